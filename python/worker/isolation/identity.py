"""Who agent code is: an unprivileged uid, no capability, no way back.

Order matters. The uid changes first, because only then may a user namespace
belong to it; capabilities go after that namespace exists, since creating it
hands out a full set; no_new_privs comes last and is what Landlock and seccomp
need.
"""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from . import syscalls as sc
from .kernel_files import read_file, write_file
from .policy import IdentityPolicy, UidRange
from .python_paths import prefixes_reachable

_CAP_KILL = 5
_CAP_SETGID = 6
_CAP_SETUID = 7
_CAP_CHOWN = 0
_CAP_SYS_ADMIN = 21
#: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each locked, and KEEP_CAPS locked off.
_SECUREBITS = 0xEF


@dataclass(frozen=True, slots=True)
class Identity:
    """What `drop` turns the worker into.

    Attributes:
        uid, gid: As the init sees them; files made for the worker get these.
        inner_uid, inner_gid: As the worker sees itself.
        user_namespace: Enter a user namespace of the episode's own.
        own_uid: `uid` belongs to this episode alone on the whole host.
        nproc_binds: RLIMIT_NPROC will count the tasks of this episode and no
            others. It never counts those of the host's uid 0.
    """

    uid: int
    gid: int
    inner_uid: int
    inner_gid: int
    user_namespace: bool
    own_uid: bool
    nproc_binds: bool


@dataclass(frozen=True, slots=True)
class IdentityReport:
    """What `drop` reached.

    Attributes:
        own_uid, user_namespace, nproc_binds: As in `Identity`.
        supplementary_groups_dropped: False where the host gave no right to drop them.
        bounding_set_empty: False where the caller held no CAP_SETPCAP; with
            no_new_privs nothing can be gained from a bounding set.
    """

    own_uid: bool
    user_namespace: bool
    supplementary_groups_dropped: bool
    bounding_set_empty: bool
    nproc_binds: bool


def needs_zygote_userns() -> bool:
    """Whether this process may not make namespaces yet: a plain user, or root without CAP_SYS_ADMIN."""
    return not _may(_CAP_SYS_ADMIN)


def enter_zygote_userns() -> None:
    """Make this process root of a user namespace, so that it may make the other ones.

    Call it once, before any thread exists, where `needs_zygote_userns`.

    Raises:
        OSError: User namespaces are switched off, or the process has threads.
    """
    uid, gid = os.geteuid(), os.getegid()
    sc.unshare(sc.CLONE_NEWUSER)
    _write_maps(f"0 {uid} 1", f"0 {gid} 1")


def plan_identity(
    policy: IdentityPolicy,
    slot: int,
    python_paths: Iterable[str],
    *,
    private_root: bool,
    user_namespace: bool,
) -> Identity:
    """Decide who the worker of `slot` becomes; call it in the zygote.

    Args:
        slot: Number unique among live episodes of this host; it picks the uid.
        python_paths: What the worker must still reach after the change.
        private_root: The worker gets a private root, where every Python path is reachable.
        user_namespace: The host allows a user namespace to an unprivileged uid.
    """
    _last_capability()  # Known before the fork, so that no worker has to ask.
    nested = private_root and user_namespace
    inner = (policy.inner_uid, policy.inner_gid)
    uids = _own_range(policy.host_uid_ranges) if os.geteuid() == 0 else None
    if uids is not None and (private_root or prefixes_reachable(python_paths)):
        uid = uids.first + slot % uids.count
        return Identity(uid, uid, *(inner if nested else (uid, uid)), nested, own_uid=True, nproc_binds=True)
    uid, gid = os.geteuid(), os.getegid()
    binds = nested and _outer_uid(uid) != 0
    return Identity(uid, gid, *(inner if nested else (uid, gid)), nested, own_uid=False, nproc_binds=binds)


def drop(identity: Identity) -> IdentityReport:
    """Become `identity` for good; call it in the worker, single-threaded, before rlimits.

    Raises:
        OSError: A step the identity promises was refused. The caller must exit.
    """
    groups_dropped = _drop_groups()
    bounding_set_empty = False
    if not identity.user_namespace:
        bounding_set_empty = _empty_bounding_set()
    if identity.uid != os.geteuid():
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)
    # A change of uid gives /proc/self to root; the maps below live there.
    sc.set_dumpable(True)
    if identity.user_namespace:
        sc.unshare(sc.CLONE_NEWUSER)
        _write_maps(f"{identity.inner_uid} {identity.uid} 1", f"{identity.inner_gid} {identity.gid} 1")
        bounding_set_empty = _empty_bounding_set()
    sc.prctl(sc.PR_CAP_AMBIENT, sc.PR_CAP_AMBIENT_CLEAR_ALL)
    sc.capset(0, 0, 0)
    sc.set_no_new_privs()
    sc.set_dumpable(True)
    sc.set_parent_death_signal(signal.SIGKILL)
    return IdentityReport(
        own_uid=identity.own_uid,
        user_namespace=identity.user_namespace,
        supplementary_groups_dropped=groups_dropped,
        bounding_set_empty=bounding_set_empty,
        nproc_binds=identity.nproc_binds,
    )


def confine_init() -> None:
    """Leave an episode's init no privilege but that of signalling its worker.

    Call it once the private root stands and the worker is forked: the init
    lives as long as the episode and needs nothing else.

    Raises:
        OSError: The kernel refused a step.
    """
    sc.prctl(sc.PR_CAP_AMBIENT, sc.PR_CAP_AMBIENT_CLEAR_ALL)
    kept = 1 << _CAP_KILL if _may(_CAP_KILL) else 0
    _empty_bounding_set()
    sc.capset(kept, kept, 0)
    sc.set_no_new_privs()


def _drop_groups() -> bool:
    if not os.getgroups():
        return True
    if not _may(_CAP_SETGID):
        return False
    try:
        os.setgroups([])
    except PermissionError:
        # A user namespace with one mapped gid forbids the call for everybody.
        return False
    return True


def _empty_bounding_set() -> bool:
    """Lock root out of capabilities and drop the bounding set; False without CAP_SETPCAP."""
    try:
        sc.prctl(sc.PR_SET_SECUREBITS, _SECUREBITS)
        for capability in range(_last_capability() + 1):
            sc.prctl(sc.PR_CAPBSET_DROP, capability)
    except PermissionError:
        return False
    return True


@lru_cache(maxsize=1)
def _last_capability() -> int:
    return int(read_file("/proc/sys/kernel/cap_last_cap"))


def _own_range(ranges: Iterable[UidRange]) -> UidRange | None:
    """The first range this process may switch to, or None."""
    if not (_may(_CAP_SETUID) and _may(_CAP_SETGID) and _may(_CAP_CHOWN)):
        return None
    mapped = [_mapped_ranges(read_file(f"/proc/self/{kind}_map")) for kind in ("uid", "gid")]
    for candidate in ranges:
        if all(any(_covers(known, candidate) for known in kind) for kind in mapped):
            return candidate
    return None


def _outer_uid(uid: int) -> int:
    """What the parent user namespace calls `uid`; in the first one, what it is called here."""
    for line in read_file("/proc/self/uid_map").splitlines():
        inside, outside, count = (int(word) for word in line.split())
        if inside <= uid < inside + count:
            return outside + uid - inside
    return uid


def _mapped_ranges(text: str) -> list[UidRange]:
    rows = [[int(word) for word in line.split()] for line in text.splitlines()]
    return [UidRange(inside, count) for inside, _outside, count in rows]


def _covers(known: UidRange, wanted: UidRange) -> bool:
    return known.first <= wanted.first and wanted.first + wanted.count <= known.first + known.count


def _may(capability: int) -> bool:
    for line in read_file("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def _write_maps(uid_map: str, gid_map: str) -> None:
    # The kernel lets an unprivileged process map its gid only after this.
    write_file("/proc/self/setgroups", "deny")
    write_file("/proc/self/gid_map", gid_map)
    write_file("/proc/self/uid_map", uid_map)
