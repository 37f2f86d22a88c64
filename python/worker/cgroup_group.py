"""An episode's cgroups as the zygote uses them."""

from worker.isolation.cgroup import EpisodeCgroup


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
