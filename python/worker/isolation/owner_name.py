"""Names that tell which service made a thing, and whether that service still runs."""

import os
from functools import lru_cache

from .kernel_files import read_file

PREFIX = "forkyard"


@lru_cache(maxsize=4)
def owner_prefix(pid: int) -> str:
    """The first part of a name: pid namespace, pid and start time, so that reuse of a pid is no match."""
    return f"{PREFIX}.{_pid_namespace()}.{pid}.{_start_ticks(pid)}"


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _start_ticks(pid: int) -> int:
    # The command's name may hold spaces and parentheses; fields count from its last one.
    return int(read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()[19])


def owner_is_dead(name: str) -> bool:
    """Whether the process in a name is known to be gone.

    False for owners in other pid namespaces, which cannot be seen from here.
    """
    _prefix, namespace, pid, ticks, _rest = name.split(".", 4)
    if not (namespace.isdigit() and pid.isdigit()) or int(namespace) != _pid_namespace():
        return False
    try:
        return str(_start_ticks(int(pid))) != ticks
    except FileNotFoundError:
        return True
