"""The processes below this one that came from one forked child, and their end."""

import os
import signal
import time
from os import getpgid, getpgrp, getsid, kill, killpg, wait4, waitid
from resource import struct_rusage

# What a fork bomb at the process limit needs on a busy machine is well below it.
_PATIENCE_S = 4.0
_PAUSE_S = 0.001


class TreeSurvived(RuntimeError):
    """Processes of a child were still there after all attempts to end them."""


class ChildTree:
    """Tells a child's processes from the others below this process, and ends them.

    The caller is a subreaper meanwhile, so what a daemon leaves behind becomes
    its direct child. The child leads a session of its own and no process ever
    joins a session, so nothing of its is found in the caller's; what else was
    there before the fork is told by its number, which is not given again while
    the process is the caller's child.
    """

    def __init__(self) -> None:
        self._kept = set(children())
        self._session = getsid(0)

    def kill(self, child: int) -> None:
        """SIGKILL to the child and its process group, while it has not been reaped."""
        _kill(child)

    def end(self, child: int | None, usages: list[struct_rusage]) -> None:
        """Kill and reap all that came from the child, itself included unless it was reaped.

        Args:
            usages: Gets what each of them used, with what it waited for.

        Raises:
            TreeSurvived: Something forked faster than it could be killed, or hangs in the kernel.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while living := [pid for pid in self._own(child) if not _has_ended(pid)]:
            if time.monotonic() > deadline:
                raise TreeSurvived(f"{len(living)} processes of a child could not be ended")
            below = [pid for top in living for pid in _below(top)]
            for pid in (*living, *below):
                _signal(pid, signal.SIGSTOP)
            for pid in (*living, *below):
                _kill(pid)
            time.sleep(_PAUSE_S)
        # Not one by one before: what is dead and not reaped counts as a process, so a fork bomb runs out of them.
        for pid in self._own(child):
            _reap(pid, usages)

    def _own(self, child: int | None) -> list[int]:
        return [pid for pid in children() if pid not in self._kept and self._is_own(pid, child)]

    def _is_own(self, pid: int, child: int | None) -> bool:
        if pid == child:
            return True
        try:
            return getsid(pid) != self._session
        except ProcessLookupError:
            # A thread of agent code reaped it.
            return False


def children() -> list[int]:
    """Process ids of the direct children of this process, ended ones that were not reaped included."""
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            found += _numbers(f"/proc/self/task/{thread}/children")
        except (FileNotFoundError, ProcessLookupError):
            # The thread ended.
            continue
    return found


def _below(top: int) -> list[int]:
    """Deeper descendants, as far as /proc shows them: under Landlock alone it shows no other process."""
    found: list[int] = []
    todo = [top]
    while todo:
        pid = todo.pop()
        try:
            below = _numbers(f"/proc/{pid}/task/{pid}/children")
        except OSError:
            continue
        found += below
        todo += below
    return found


def _numbers(path: str) -> list[int]:
    with open(path, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def _kill(pid: int) -> None:
    try:
        group = getpgid(pid)
    except ProcessLookupError:
        return
    # The group as a whole, since the kernel lets no member fork out of that.
    if group != getpgrp():
        _signal_group(group)
    _signal(pid, signal.SIGKILL)


def _signal_group(group: int) -> None:
    try:
        killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _signal(pid: int, number: int) -> None:
    try:
        kill(pid, number)
    except ProcessLookupError:
        return


def _has_ended(pid: int) -> bool:
    try:
        return waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # A thread of agent code reaped it.
        return True


def _reap(pid: int, usages: list[struct_rusage]) -> None:
    try:
        _pid, _status, usage = wait4(pid, 0)
    except ChildProcessError:
        return
    usages.append(usage)
