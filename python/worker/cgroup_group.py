"""An episode's cgroups as the zygote uses them."""

import os

from worker.isolation.cgroup import EpisodeCgroup
from worker.isolation.cgroup_host import CgroupHost
from worker.isolation.owner_name import owner_prefix


class CgroupGroup:
    """An `EpisodeGroup` over real control groups."""

    def __init__(self, group: EpisodeCgroup) -> None:
        self._group = group

    def attach(self) -> None:
        self._group.attach(0)

    def accounting(self) -> dict[str, str | None]:
        paths = self._group.paths()
        return {
            "cpu": paths.get("cpu_nanoseconds") or paths.get("cpu_stat"),
            "memory_peak": paths.get("memory_peak"),
            "oom": paths.get("memory_events"),
        }

    def final_usage(self) -> dict[str, int | None]:
        cpu_ns, peak_memory_bytes = self._group.usage()
        return {
            "oom_kills": self._group.oom_kills(),
            "cpu_ns": cpu_ns,
            "peak_memory_bytes": peak_memory_bytes,
        }

    def kill(self) -> None:
        self._group.kill()

    def remove(self) -> bool:
        return self._group.remove()


def remove_left_behind(host: CgroupHost, service: int) -> None:
    """Remove groups of episodes that ended after their zygote had died.

    Args:
        service: Process id of the service, which still runs.
    """
    for parent in (host.memory, host.pids, host.cpu, host.freezer, host.unified):
        for directory in parent.glob(f"{owner_prefix(service)}.*") if parent is not None else ():
            zygote = directory.name.rpartition(".")[2].partition("-")[0]
            if os.path.exists(f"/proc/{zygote}"):
                continue
            try:
                directory.rmdir()
            except OSError:
                # The episode still runs: what outlives a zygote must not be touched.
                continue
