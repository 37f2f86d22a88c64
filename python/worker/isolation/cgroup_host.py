"""Where control groups can be made on this host, found by looking.

The kernel version says nothing about it: v1, v2, both at once, read-only
mounts in containers and delegated subtrees all occur. The own group of the
caller is the first choice as a parent; on v2 a group that holds processes
cannot give controllers to children, so a delegated one is first emptied into
a leaf, and otherwise an ancestor is used if the caller may write there.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .cgroup import CgroupLimits, EpisodeCgroup
from .cgroup_mounts import Memberships, Mounts, groups, locate, mounts
from .owner_name import PREFIX, owner_is_dead, owner_prefix

_SERVICE_LEAF = "forkyard-service"
_NEEDED = ("memory", "pids")
_BUSY = "{} holds processes, so it cannot limit groups below it: start the service in a leaf"

Version = Literal["v1", "v2", "hybrid", "none"]


@dataclass(slots=True)
class CgroupHost:
    """Parents of the episodes' groups; None where there is none to use.

    Attributes:
        version: Which kind carries the limits; hybrid is v1 limits with a v2 kill.
        notes: One sentence for each thing that is missing, for `forkyard doctor`.
    """

    version: Version = "none"
    memory: Path | None = None
    pids: Path | None = None
    cpu: Path | None = None
    freezer: Path | None = None
    unified: Path | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def detect(
        cls, mountinfo: str | None = None, membership: str | None = None, *, arrange: bool = True
    ) -> "CgroupHost":
        """Look at the mounts and try to make a group under each.

        Args:
            arrange: Enable controllers, and empty a delegated group into a
                leaf if that takes it; False only looks.
            mountinfo, membership: Contents of /proc/self/mountinfo and
                /proc/self/cgroup; read when None.
        """
        mounted = mounts(mountinfo if mountinfo is not None else Path("/proc/self/mountinfo").read_text())
        memberships = groups(membership if membership is not None else Path("/proc/self/cgroup").read_text())
        host = cls()
        for controller in ("memory", "pids", "cpuacct", "freezer"):
            parent = _v1_parent(controller, mounted, memberships, host.notes)
            setattr(host, "cpu" if controller == "cpuacct" else controller, parent)
        v1_limits = host.memory is not None or host.pids is not None
        own = locate("", mounted, memberships)
        if own is not None:
            top, directory = own
            if v1_limits:
                host.unified = directory if _can_make(directory) else None
                host.cpu = host.cpu or host.unified
            else:
                parent = _v2_parent(directory, top, host.notes, arrange)
                host.memory = host.pids = host.cpu = host.unified = parent
        if v1_limits:
            host.version = "hybrid" if host.unified is not None else "v1"
        elif host.unified is not None:
            host.version = "v2"
        elif not host.notes:
            host.notes.append("no cgroup file system is mounted")
        return host

    def create(
        self, name: str, limits: CgroupLimits, owner_pid: int | None = None, *, killable: bool = True
    ) -> EpisodeCgroup:
        """Make a group with its limits set.

        Args:
            killable: Add the directories that only the kill needs; an episode
                with a pid namespace dies with its first process anyway.
            name: Unique among the owner's groups; letters, digits, - and _.
            owner_pid: The process whose death makes the group stale; the caller by default.

        Raises:
            OSError: A directory or limit could not be made; nothing is left behind.
        """
        full = f"{owner_prefix(os.getpid() if owner_pid is None else owner_pid)}.{name}"
        v2 = self.version == "v2"
        parents = (
            self.memory,
            self.pids,
            self.cpu,
            self.freezer if killable and self.unified is None else None,
            self.unified if killable or v2 else None,
        )
        group = EpisodeCgroup(full, *(None if parent is None else parent / full for parent in parents))
        try:
            for directory in group.directories():
                directory.mkdir()
            group.apply(limits)
        except OSError:
            group.remove()
            raise
        return group

    def sweep_stale(self) -> list[str]:
        """Kill and remove the groups of services that no longer run.

        Returns:
            Names of the groups removed. One whose processes have not gone yet
            stays for the next call.
        """
        parents = (self.memory, self.pids, self.cpu, self.freezer, self.unified)
        existing = {path for parent in parents if parent is not None for path in parent.glob(f"{PREFIX}.*.*.*.*")}
        removed = []
        for name in sorted({path.name for path in existing}):
            if owner_is_dead(name):
                own = (None if parent is None or parent / name not in existing else parent / name for parent in parents)
                group = EpisodeCgroup(name, *own)
                group.kill()
                if group.remove():
                    removed.append(name)
        return removed


def _v1_parent(controller: str, mounted: Mounts, memberships: Memberships, notes: list[str]) -> Path | None:
    located = locate(controller, mounted, memberships)
    if located is None:
        return None
    if not _can_make(located[1]):
        notes.append(f"{located[1]} is not writable for this user: run as root or delegate it")
        return None
    return located[1]


def _v2_parent(own: Path, top: Path, notes: list[str], arrange: bool) -> Path | None:
    ancestors = [directory for directory in own.parents if directory == top or top in directory.parents]
    for directory in [own, *ancestors] if own != top else [own]:
        if not _can_make(directory) or not os.access(directory / "cgroup.procs", os.W_OK):
            notes.append(f"{directory} is not writable for this user: delegate a cgroup, e.g. systemd Delegate=yes")
            continue
        delegated = directory == own and _is_delegated(directory, top)
        if arrange and delegated:
            _empty_into_leaf(directory, notes)
        reason = _enable(directory) if arrange else _why_not(directory, delegated)
        if reason is None:
            return directory
        notes.append(reason)
    return None


def _missing(directory: Path, file: str) -> list[str]:
    given = (directory / file).read_text().split()
    return [name for name in _NEEDED if name not in given]


def _why_not(directory: Path, delegated: bool) -> str | None:
    """What `_enable` would answer, as far as looking tells."""
    if absent := _missing(directory, "cgroup.controllers"):
        return f"{directory} is not given {' and '.join(absent)} by its parent"
    if not _missing(directory, "cgroup.subtree_control") or delegated:
        return None
    if (directory / "cgroup.procs").read_text() and (directory / "cgroup.type").exists():
        return _BUSY.format(directory)
    return None


def _enable(directory: Path) -> str | None:
    """Give the needed controllers to children of `directory`; a sentence if that failed."""
    control = directory / "cgroup.subtree_control"
    missing = _missing(directory, control.name)
    if not missing:
        return None
    try:
        control.write_text(" ".join(f"+{name}" for name in missing))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return _BUSY.format(directory)
        return f"{directory} cannot enable {' and '.join(missing)}: {error.strerror}"
    return None


def _is_delegated(directory: Path, top: Path) -> bool:
    """Whether everything below is the caller's to arrange, other processes included."""
    for name in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(directory, name) == b"1":
                return True
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP, errno.EPERM):
                raise
    # The top of a cgroup namespace looks like a root but, unlike the real one, has a type.
    return directory == top and (directory / "cgroup.type").exists()


def _empty_into_leaf(directory: Path, notes: list[str]) -> None:
    leaf = directory / _SERVICE_LEAF
    try:
        leaf.mkdir(exist_ok=True)
        for pid in (directory / "cgroup.procs").read_text().split():
            (leaf / "cgroup.procs").write_text(pid)
    except OSError as error:
        notes.append(f"{directory} could not be emptied into {leaf.name}: {error.strerror}")


def _can_make(directory: Path) -> bool:
    probe = directory / f"{PREFIX}-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    probe.rmdir()
    return True
