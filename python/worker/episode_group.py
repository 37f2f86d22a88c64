"""The cgroups of one episode, or their absence."""

from typing import Protocol


class EpisodeGroup(Protocol):
    """What the zygote and init do with an episode's cgroups."""

    def attach(self) -> None:
        """Put the calling process in; its children follow."""

    def accounting(self) -> dict[str, str | None]:
        """Files the service may read: cpu, memory_peak, oom."""

    def final_usage(self) -> dict[str, int | None]:
        """oom_kills, cpu_ns and peak_memory_bytes of the whole episode."""

    def kill(self) -> None:
        """SIGKILL to every process in the group."""

    def remove(self) -> bool:
        """Remove the group; False while the kernel still holds something in it."""


class NoGroup:
    """For hosts that offer no writable cgroup: limits come from rlimits and the service's watchdog."""

    def attach(self) -> None:
        return

    def accounting(self) -> dict[str, str | None]:
        return {"cpu": None, "memory_peak": None, "oom": None}

    def final_usage(self) -> dict[str, int | None]:
        return {"oom_kills": 0, "cpu_ns": None, "peak_memory_bytes": None}

    def kill(self) -> None:
        return

    def remove(self) -> bool:
        return True
