"""How a child took its turns on the CPUs, and whether it was others who kept it from them."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rank:
    """Before whom a process goes on a CPU; agent code can only lower it.

    Attributes:
        nice: Higher ones get less.
        policy: Number of the scheduling policy.
        cpus: Where it may run.
    """

    nice: int
    policy: int
    cpus: frozenset[int]

    def is_below(self, other: "Rank") -> bool:
        """Whether it gave away turns that the other has."""
        return self.nice > other.nice or self.policy != other.policy or not self.cpus >= other.cpus


@dataclass(frozen=True, slots=True)
class Turns:
    """Time of a process's main thread on a CPU and in line for one, in seconds."""

    ran_s: float
    waited_s: float


def rank_of(pid: int) -> Rank:
    """The rank of a process, 0 for this one; an ended one has it until it is reaped."""
    return Rank(os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), frozenset(os.sched_getaffinity(pid)))


def turns_of(pid: int) -> Turns | None:
    """First two numbers of schedstat, in nanoseconds: Documentation/scheduler/sched-stats.rst of the kernel.

    None where the kernel does not show them: under Landlock alone, /proc has only the worker itself.
    """
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            ran, waited = file.read().split()[:2]
    except OSError:
        return None
    return Turns(int(ran) / 1e9, int(waited) / 1e9)


def waited_for_others_s(turns: Turns, cpu_s: float) -> float:
    """The time in line that a process did not spend behind its own threads and children.

    Args:
        cpu_s: CPU time of all of them, itself included. Whoever waits behind them waits no longer than they run.
    """
    return max(0.0, turns.waited_s - max(0.0, cpu_s - turns.ran_s))
