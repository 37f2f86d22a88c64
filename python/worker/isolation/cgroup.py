"""One episode's control group: limits on the whole tree, accounts, and the kill.

A group is one directory on cgroup v2 and one per controller on v1; on a hybrid
host the controllers are v1 and a directory on the controller-less v2 mount
adds `cgroup.kill`. Whoever writes here is the zygote or the service; the
worker sees none of it.
"""

import errno
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from .kernel_files import read_file, write_file

_KILL_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """Limits on a whole process tree; None leaves one unset.

    Attributes:
        memory_bytes: Memory charged to the tree, tmpfs and kernel memory
            included; swap is not given.
        processes: Processes and threads.
    """

    memory_bytes: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class EpisodeCgroup:
    """The directories of one group; each is None where the host lacks it.

    Attributes:
        memory, pids: Directory of that controller, of either version.
        cpu: Directory with `cpu.stat` (v2) or `cpuacct.usage` (v1).
        freezer: v1 freezer directory.
        unified: v2 directory, with or without controllers.
    """

    name: str
    memory: Path | None
    pids: Path | None
    cpu: Path | None
    freezer: Path | None
    unified: Path | None

    def directories(self) -> list[Path]:
        """Each directory once."""
        found = (self.memory, self.pids, self.cpu, self.freezer, self.unified)
        return list(dict.fromkeys(path for path in found if path is not None))

    def apply(self, limits: CgroupLimits) -> None:
        """Set the limits.

        Raises:
            OSError: The kernel refused one.
        """
        if self.memory is not None and limits.memory_bytes is not None:
            if (self.memory / "memory.max").exists():
                write_file(self.memory / "memory.max", limits.memory_bytes)
                _write_if_present(self.memory / "memory.swap.max", 0)
                _write_if_present(self.memory / "memory.oom.group", 1)
            else:
                write_file(self.memory / "memory.limit_in_bytes", limits.memory_bytes)
                _write_if_present(self.memory / "memory.memsw.limit_in_bytes", limits.memory_bytes)
                _write_if_present(self.memory / "memory.swappiness", 0)
        if self.pids is not None and limits.processes is not None:
            write_file(self.pids / "pids.max", limits.processes)

    def attach(self, pid: int) -> None:
        """Move a process in, with all its threads; its later children are born inside.

        Args:
            pid: As the caller's pid namespace numbers it; 0 is the caller,
                which must then have one thread only, and costs the least.

        Raises:
            OSError: The process is gone, or the caller may not move it.
        """
        for directory in self.directories():
            # A process that moves just itself, by thread, spares v1 the lock
            # that stops every fork and exec on the host for a grace period.
            alone = pid == 0 and (directory / "tasks").exists()
            write_file(directory / ("tasks" if alone else "cgroup.procs"), pid)

    def kill(self) -> None:
        """Send SIGKILL to every process inside, those that fork meanwhile included.

        Raises:
            OSError: The group cannot be written to.
            TimeoutError: Only without `cgroup.kill`: processes kept appearing.
        """
        if self.unified is not None and (self.unified / "cgroup.kill").exists():
            write_file(self.unified / "cgroup.kill", 1)
            return
        if self.pids is not None:
            write_file(self.pids / "pids.max", 0)
        if self.freezer is not None:
            _write_if_present(self.freezer / "freezer.state", "FROZEN")
        try:
            self._kill_each()
        finally:
            if self.freezer is not None:
                _write_if_present(self.freezer / "freezer.state", "THAWED")

    def _kill_each(self) -> None:
        sent: set[int] = set()
        for _ in range(_KILL_ROUNDS):
            fresh = self.processes() - sent
            if not fresh:
                return
            for pid in fresh:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    # It ended by itself, which is what was wanted.
                    continue
            sent |= fresh
        raise TimeoutError(f"processes keep appearing in {self.name}")

    def processes(self) -> set[int]:
        """Pids inside, as far as the caller's pid namespace can number them."""
        pids: set[int] = set()
        for directory in self.directories():
            pids |= {int(word) for word in read_file(directory / "cgroup.procs").split()}
        return pids - {0, os.getpid()}

    def usage(self) -> tuple[int | None, int | None]:
        """CPU time so far in nanoseconds and highest memory in bytes; None where nothing counts it."""
        cpu_ns: int | None = None
        if self.cpu is not None:
            if (self.cpu / "cpuacct.usage").exists():
                cpu_ns = int(read_file(self.cpu / "cpuacct.usage"))
            else:
                cpu_ns = _field(self.cpu / "cpu.stat", "usage_usec") * 1000
        peak_bytes: int | None = None
        if self.memory is not None:
            for file in ("memory.peak", "memory.max_usage_in_bytes", "memory.current"):
                if (self.memory / file).exists():
                    peak_bytes = int(read_file(self.memory / file))
                    break
        return cpu_ns, peak_bytes

    def oom_kills(self) -> int:
        """Processes the kernel killed here because the memory limit was reached."""
        if self.memory is None:
            return 0
        events = self.memory / "memory.events"
        return _field(events if events.exists() else self.memory / "memory.oom_control", "oom_kill")

    def pids_limit_hits(self) -> int:
        """Forks and thread starts refused here because of the process limit."""
        return 0 if self.pids is None else _field(self.pids / "pids.events", "max")

    def paths(self) -> dict[str, str]:
        """Files another process may read by itself.

        Keys: `memory_current` (bytes), `memory_peak` (bytes), `memory_events`
        (a line `oom_kill N`), `pids_events` (a line `max N`), `cpu_nanoseconds`
        (v1, one number) or `cpu_stat` (v2, a line `usage_usec N`), `kill`
        (write 1), `procs` (one pid a line). A key is absent where the host has
        no such file.
        """
        candidates = {
            "memory_current": (self.memory, ("memory.current", "memory.usage_in_bytes")),
            "memory_peak": (self.memory, ("memory.peak", "memory.max_usage_in_bytes")),
            "memory_events": (self.memory, ("memory.events", "memory.oom_control")),
            "pids_events": (self.pids, ("pids.events",)),
            "cpu_nanoseconds": (self.cpu, ("cpuacct.usage",)),
            "cpu_stat": (self.cpu, ("cpu.stat",)),
            "kill": (self.unified, ("cgroup.kill",)),
            "procs": (self.unified or self.pids or self.memory, ("cgroup.procs",)),
        }
        found: dict[str, str] = {}
        for key, (directory, names) in candidates.items():
            for name in names:
                if directory is not None and (directory / name).exists():
                    found[key] = str(directory / name)
                    break
        return found

    def remove(self) -> bool:
        """Remove the group's directories.

        Returns:
            False while a process is still inside; kill, wait and call again.

        Raises:
            OSError: For any other reason.
        """
        gone = True
        for directory in self.directories():
            try:
                directory.rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                gone = False
        return gone


def _write_if_present(file: Path, value: int | str) -> None:
    if file.exists():
        write_file(file, value)


def _field(file: Path, key: str) -> int:
    for line in read_file(file).splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0
