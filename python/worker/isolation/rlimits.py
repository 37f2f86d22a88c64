"""Limits the kernel enforces on each process by itself, cgroup or not.

RLIMIT_AS stays unset: torch and its allocators reserve far more than they use.
"""

import resource
import signal
from dataclasses import dataclass

from .kernel_files import read_file
from .policy import RlimitPolicy


@dataclass(frozen=True, slots=True)
class Limits:
    """What one episode may use; None leaves a limit as it is.

    Attributes:
        open_files: Descriptors of one process.
        file_bytes: Longest file; at least the size of /dev/shm, where tensors are shared.
        processes: Processes and threads of the worker's uid. Give it only where
            `IdentityReport.nproc_binds`, or as a ceiling over all that share the uid.
        data_bytes: Private writable memory of one process, the zygote's own
            included. Give it only where no memory cgroup counts the tree.
        cpu_s: CPU time of one process in seconds, over the whole episode.
        gpu: Leave locked memory to the GPU driver's needs.
    """

    open_files: int
    file_bytes: int
    processes: int | None = None
    data_bytes: int | None = None
    cpu_s: int | None = None
    gpu: bool = False


def apply_rlimits(limits: Limits, policy: RlimitPolicy) -> None:
    """Set soft and hard limits of the calling process; none can be raised again.

    A hard limit below the wanted value stays: it is the stricter one. Call it
    after `identity.drop`: a user namespace takes the RLIMIT_NPROC of the
    moment it is made as a ceiling shared by everyone with the same uid.

    Raises:
        OSError: The kernel refused a limit.
    """
    wanted = {
        resource.RLIMIT_CORE: policy.core_bytes,
        resource.RLIMIT_STACK: policy.stack_bytes,
        resource.RLIMIT_MEMLOCK: policy.locked_memory_gpu_bytes if limits.gpu else policy.locked_memory_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_DATA: limits.data_bytes,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_MSGQUEUE: policy.message_queue_bytes,
        resource.RLIMIT_RTPRIO: policy.realtime_priority,
        resource.RLIMIT_SIGPENDING: policy.pending_signals,
    }
    for kind, value in wanted.items():
        if value is None:
            continue
        _soft, hard = resource.getrlimit(kind)
        allowed = _stricter(value, hard)
        # Threads take their default stack from the soft limit, exec from both.
        resource.setrlimit(kind, (allowed, hard if kind == resource.RLIMIT_STACK else allowed))
    # So that a write past RLIMIT_FSIZE is EFBIG in Python, not a killed process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def private_bytes() -> int:
    """Private writable memory of this process, in bytes, as RLIMIT_DATA counts it.

    Measured in the zygote and added to an episode's allowance, since a fork
    starts with all of it.
    """
    for line in read_file("/proc/self/status").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmData in /proc/self/status")


def _stricter(value: int, hard: int) -> int:
    infinity = resource.RLIM_INFINITY
    if value in (-1, infinity):
        return hard
    return value if hard == infinity else min(value, hard)
