"""Ends all descendants of an init that has no pid namespace to do it."""

import os
import signal
import time

_PATIENCE_S = 4.0


def end_descendants() -> None:
    """Stop, then kill and reap everything below this process, until nothing is left.

    The caller is a subreaper, so what a daemon leaves behind becomes its child.
    Stopping first keeps a fork bomb from outrunning the kills.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        found = descendants()
        if not found and not _has_children():
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                _signal(pid, number)
        _reap()


def descendants() -> list[int]:
    """Process ids below this process, parents first."""
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            # It ended meanwhile.
            continue
        found += children
        todo += children
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _has_children() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) is not None
    except ChildProcessError:
        return False


def _reap() -> None:
    while True:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            # Give the kernel a moment to take the killed ones down.
            time.sleep(0.001)
            return
