"""The worker examines its own confinement before it reads any agent code.

Each answer is named for what held, so true is good. The probe tries the real
thing: it would do harm, of a harmless kind, if the confinement were missing.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from . import syscalls as sc
from .kernel_files import read_file

Level = Literal["namespaces", "landlock"]

_AF_UNIX = 1
#: inet, inet6, netlink, packet, alg, vsock
_OUTSIDE_FAMILIES = (2, 10, 16, 17, 38, 40)
_SOCK_STREAM, _SOCK_DGRAM = 1, 2
_OUTSIDE_FOLDERS = ("/", "/etc", "/usr", "/usr/lib", "/var/tmp", "/run", "/root", "/home", "/proc", "/dev")
_PTRACE_PEEKTEXT = 1

_ALWAYS = frozenset(
    {
        "write_outside_denied",
        "write_inside_works",
        "canary_unreadable",
        "network_denied",
        "foreign_process_untouchable",
        "namespaces_denied",
        "mount_denied",
        "ptrace_denied",
        "io_uring_denied",
        "capabilities_empty",
        "uid_locked",
        "no_new_privs",
        "seccomp_enforced",
        "landlock_enforced",
        "descriptors_expected",
        "core_dumps_off",
    }
)
_REQUIRED: dict[Level, frozenset[str]] = {
    "landlock": _ALWAYS | {"named_sockets_denied"},
    "namespaces": _ALWAYS
    | {"foreign_pids_hidden", "root_read_only", "network_empty", "host_tree_hidden", "bounding_set_empty"},
}


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """What to try.

    Attributes:
        canary_path: A file outside that exists and that the zygote can read.
        foreign_pid: A process of the service, as the host numbers it.
        allowed_fds: Descriptors the worker is meant to hold.
        writable: Folders the worker must be able to write to.
        python_paths: Must be readable, not writable.
    """

    level: Level
    canary_path: str
    foreign_pid: int
    allowed_fds: frozenset[int]
    writable: tuple[str, ...]
    python_paths: tuple[str, ...] = ()


def required_for(level: Level) -> frozenset[str]:
    """The answers that must be true; a worker lacking one is not used."""
    return _REQUIRED[level]


def attest(spec: ProbeSpec) -> dict[str, bool | str]:
    """Try what must not work; call it in the worker, after seccomp.

    Returns:
        An answer for each name in `required_for(spec.level)`, and further
        facts: `own_user_namespace`, `own_uid_nonzero`, `bounding_set_empty`,
        `landlock_abi`.
    """
    status = _status()
    caps = {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd")}
    outside = [*_OUTSIDE_FOLDERS, *spec.python_paths, os.path.dirname(spec.canary_path)]
    answers: dict[str, bool | str] = {
        "write_outside_denied": not any(
            _can_create(folder) for folder in outside if not _inside(folder, spec.writable)
        ),
        "write_inside_works": all(_can_create(folder) for folder in spec.writable),
        "canary_unreadable": _refused(partial(_open, spec.canary_path, os.O_RDONLY)),
        "network_denied": all(
            _refused(partial(_socket, family, kind), errno.EAFNOSUPPORT)
            for family in _OUTSIDE_FAMILIES
            for kind in (_SOCK_STREAM, _SOCK_DGRAM)
        ),
        "foreign_process_untouchable": _untouchable(spec.foreign_pid),
        "namespaces_denied": all(
            _refused(partial(sc.unshare, kind), errno.EPERM)
            for kind in (sc.CLONE_NEWUSER, sc.CLONE_NEWNS, sc.CLONE_NEWNET)
        )
        and _refused(partial(sc.raw, "clone3", None, 0), errno.ENOSYS),
        "mount_denied": _refused(partial(sc.mount, "none", spec.writable[0], "tmpfs", 0), errno.EPERM),
        "ptrace_denied": _refused(partial(sc.raw, "ptrace", _PTRACE_PEEKTEXT, 0, 0, 0), errno.EPERM),
        "io_uring_denied": _refused(partial(sc.raw, "io_uring_setup", 0, None), errno.ENOSYS),
        "capabilities_empty": not any(caps[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")),
        "bounding_set_empty": caps["CapBnd"] == 0,
        "uid_locked": _uid_locked(),
        "no_new_privs": status["NoNewPrivs"] == "1",
        "seccomp_enforced": status["Seccomp"] == "2",
        # The file belongs to this process, so only Landlock stands in the way.
        "landlock_enforced": _refused(partial(_open, "/proc/self/comm", os.O_WRONLY), errno.EACCES),
        "descriptors_expected": _open_descriptors() <= spec.allowed_fds,
        "core_dumps_off": _core_dumps_off(),
        "own_uid_nonzero": os.geteuid() != 0,
        "landlock_abi": str(sc.landlock_abi()),
    }
    if spec.level == "landlock":
        answers["named_sockets_denied"] = all(
            _refused(partial(_socket, _AF_UNIX, kind), errno.EPERM) for kind in (_SOCK_STREAM, _SOCK_DGRAM)
        )
    else:
        visible = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        answers["foreign_pids_hidden"] = visible <= {1, os.getpid()}
        answers["root_read_only"] = bool(os.statvfs("/").f_flag & os.ST_RDONLY)
        answers["network_empty"] = _interfaces() <= {"lo"}
        answers["host_tree_hidden"] = not os.path.lexists(spec.canary_path)
        answers["own_user_namespace"] = read_file("/proc/self/uid_map").split()[2:] == ["1"]
    return answers


def _refused(attempt: Callable[[], object], *expected: int) -> bool:
    """Whether `attempt` fails, with one of the `expected` errnos if any are given."""
    try:
        attempt()
    except OSError as error:
        return not expected or error.errno in expected
    return False


def _open(path: str, flags: int) -> None:
    os.close(os.open(path, flags | os.O_CLOEXEC))


def _socket(family: int, kind: int) -> None:
    os.close(sc.raw("socket", family, kind, 0))


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _can_create(folder: str) -> bool:
    path = os.path.join(folder, f".forkyard-probe-{os.getpid()}")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError:
        return False
    os.unlink(path)
    return True


def _untouchable(pid: int) -> bool:
    # Inside a pid namespace the number may mean this process or its init.
    if pid in (1, os.getpid()):
        return True
    return _refused(partial(os.kill, pid, 0)) and _refused(partial(_open, f"/proc/{pid}/stat", os.O_RDONLY))


def _uid_locked() -> bool:
    other = 0 if os.geteuid() != 0 else 65534
    return _refused(partial(os.setresuid, other, other, other)) and _refused(partial(os.setgroups, [other]))


def _open_descriptors() -> set[int]:
    listed = [int(name) for name in os.listdir("/proc/self/fd")]
    # The listing's own descriptor is closed by now.
    return {fd for fd in listed if not _refused(partial(os.fstat, fd))}


def _core_dumps_off() -> bool:
    for line in read_file("/proc/self/limits").splitlines():
        if line.startswith("Max core file size"):
            return line.split()[4:6] == ["0", "0"]
    return False


def _interfaces() -> set[str]:
    return {line.split(":")[0].strip() for line in read_file("/proc/self/net/dev").splitlines()[2:]}


def _status() -> dict[str, str]:
    rows = (line.partition(":") for line in read_file("/proc/self/status").splitlines())
    return {name: value.strip() for name, _, value in rows}
