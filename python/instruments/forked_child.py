"""Run a function in a forked child, measure its life, and leave nothing of it behind."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import _exit, fork, getpid, wait4, waitid
from resource import struct_rusage
from typing import NoReturn

from instruments.child_ending import begin_child, end_child, flush_output, print_exception
from instruments.child_tree import ChildTree
from instruments.child_turns import Rank, Turns, rank_of, turns_of, waited_for_others_s
from instruments.held_handlers import HeldHandlers
from instruments.shared_report import SharedReport

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_libc = ctypes.CDLL(None, use_errno=True)
# A handler of agent code may raise in the cleaning up; one that always does is given up on.
_TRIES = 100


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended and what it used.

    Attributes:
        exit_code: Its exit status, 0 to 255; None if a signal ended it.
        signal: Number of the signal that ended it, or None.
        cpu_s: CPU time of the child and of all processes that came from it, in seconds. The kernel
            forgets those whose parent ignored their end.
        wall_s: From just before the fork to its end, in seconds.
        max_rss_bytes: Largest resident memory of any of them. It starts with what the parent had resident.
        starved: Share of `wall_s` that its main thread was ready to run and others had the CPU, 0 to 1. Waiting
            behind processes of its own is not counted, and none is where it made way by itself (niceness, policy,
            affinity). None where the kernel does not show it: under Landlock alone, /proc has only the worker itself.
    """

    exit_code: int | None
    signal: int | None
    cpu_s: float
    wall_s: float
    max_rss_bytes: int
    starved: float | None


def run_in_child(
    work: Callable[[SharedReport], int],
    report: SharedReport | None = None,
    *,
    cpu_s: float | None = None,
    data_bytes: int | None = None,
    cut_short: list[ChildEnd] | None = None,
) -> ChildEnd:
    """Fork, call `work` in the child and wait for its end.

    The child has an empty stdin, a session and default signals of its own, and
    ends as an interpreter does: threads joined, `atexit` callbacks run, output
    flushed. Then whatever it started is killed, daemons included; processes
    that were there before live on. An exception that arrives in the parent
    meanwhile (`StepTimeout`) ends the child and all of its processes, and goes on.

    Args:
        work: Returns the exit status. What it raises is printed, and the status is 1.
        report: Where `work` may write; read it whatever happened to the child.
        cpu_s: CPU time limit of the child, whole seconds, rounded up. At the limit SIGXCPU ends it.
        data_bytes: Private writable memory the child may map, what it inherits included; more raises `MemoryError`.
        cut_short: Gets the end of a child that was killed because of an exception in the parent.

    Raises:
        OSError: The kernel refused to fork.
        TreeSurvived: A process of the child could not be ended.
        BaseException: What arrived in the parent.
    """
    owner = getpid()
    if report is None:
        report = SharedReport()
    flush_output()
    born: list[int] = []
    lives: list[_Life] = []
    left: list[struct_rusage] = []
    threads, tree, rank = len(os.listdir("/proc/self/task")), ChildTree(), rank_of(0)
    adopting, ignoring = _adopts_orphans(), signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    started, interrupted = time.monotonic(), False
    try:
        _adopt_orphans(True)
        if ignoring:
            # The kernel would reap the child before it is measured.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with HeldHandlers():
            born.append(fork())
            if born[0] == 0:
                _live(work, report, lambda: begin_child(cpu_s, data_bytes, threads))
        lives.append(_await(born[0], tree, rank, started))
    except BaseException:
        interrupted = True
        if getpid() == owner and born:
            _cut_short(born[0], tree, rank, started, lives)
        raise
    finally:
        if getpid() == owner:
            try:
                _end(tree, born, left)
            finally:
                _adopt_orphans(adopting)
                if ignoring:
                    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                if interrupted and cut_short is not None and lives:
                    cut_short.append(_told(lives[0], left))
    return _told(lives[0], left)


def _live(work: Callable[[SharedReport], int], report: SharedReport, begin: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        inherited = dict(sys.modules["__main__"].__dict__)
        begin()
        try:
            status = work(report)
        except BaseException:
            print_exception()
        status = end_child(status, inherited)
    finally:
        _exit(status)


@dataclass(frozen=True, slots=True)
class _Life:
    """What the parent learned when it waited for the child."""

    code: int
    usage: struct_rusage
    wall_s: float
    turns: Turns | None
    made_way: bool


def _await(child: int, tree: ChildTree, rank: Rank, started: float) -> _Life:
    # Not reaped yet: its entries in /proc and its process group are still its own.
    waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    wall_s = time.monotonic() - started
    turns, made_way = turns_of(child), rank_of(child).is_below(rank)
    tree.kill(child)
    _pid, status, usage = wait4(child, 0)
    return _Life(os.waitstatus_to_exitcode(status), usage, wall_s, turns, made_way)


def _cut_short(child: int, tree: ChildTree, rank: Rank, started: float, lives: list[_Life]) -> None:
    tree.kill(child)
    # Empty where the exception came when the child was reaped already.
    with contextlib.suppress(ChildProcessError):
        lives.append(_await(child, tree, rank, started))


def _told(life: _Life, left: list[struct_rusage]) -> ChildEnd:
    usages = [life.usage, *left]
    cpu_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return ChildEnd(
        exit_code=life.code if life.code >= 0 else None,
        signal=-life.code if life.code < 0 else None,
        cpu_s=cpu_s,
        wall_s=life.wall_s,
        max_rss_bytes=max(usage.ru_maxrss for usage in usages) * 1024,
        starved=_starved(life, cpu_s),
    )


def _starved(life: _Life, cpu_s: float) -> float | None:
    if life.turns is None:
        return None
    return 0.0 if life.made_way else min(waited_for_others_s(life.turns, cpu_s) / life.wall_s, 1.0)


def _end(tree: ChildTree, born: list[int], left: list[struct_rusage]) -> None:
    raised: BaseException | None = None
    for _ in range(_TRIES):
        try:
            tree.end(born[0] if born else None, left)
            break
        except (OSError, RuntimeError):
            raise
        except BaseException as error:
            raised = error
    if raised is not None:
        raise raised


def _adopts_orphans() -> bool:
    """Whether orphans below this process become its children."""
    found = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(found))
    return bool(found.value)


def _adopt_orphans(wanted: bool) -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(wanted))


def _prctl(option: int, argument: object) -> None:
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
