"""What the private root shows and where: decided once per zygote, without touching a mount."""

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass

from .policy import IdentityPolicy, PrivateRootPolicy, Quotas
from .python_paths import outermost

#: Where the new root may be assembled, hiding what lies there; only its mount
#: namespace sees it. The first that hides nothing the root has to show is taken.
_STAGING_CANDIDATES = ("/mnt", "/media", "/srv", "/run", "/tmp", "/proc")


@dataclass(frozen=True, slots=True)
class RootPlan:
    """The layout of every private root of one zygote.

    Attributes:
        work: The work folder inside the root, absolute.
        python_paths: Shown read-only, each at its own place.
        covered_paths: Those of `python_paths` below /tmp, which each episode mounts over.
        gpu_devices: Device nodes shown, empty without a GPU.
        staging: Folder of the host over which the root is assembled.
    """

    policy: PrivateRootPolicy
    identity: IdentityPolicy
    quotas: Quotas
    work: str
    python_paths: tuple[str, ...]
    covered_paths: tuple[str, ...]
    gpu_devices: tuple[str, ...]
    staging: str

    @property
    def writable(self) -> tuple[str, str]:
        """The folders that agent code may write to, besides /dev/shm."""
        return (self.work, self.policy.tmp_path)


def plan_root(
    policy: PrivateRootPolicy,
    identity: IdentityPolicy,
    quotas: Quotas,
    python_paths: Iterable[str],
    *,
    gpu: bool = False,
) -> RootPlan:
    """Decide the layout.

    Args:
        python_paths: From `interpreter_paths`.
        gpu: Show the GPU's device nodes.

    Raises:
        ValueError: No work candidate is free of Python's own paths, or no
            folder is left to assemble the root in.
    """
    paths = outermost(path for path in python_paths if not _inside(path, policy.system_paths))
    work = next((place for place in policy.work_candidates if not _overlaps(place, paths)), None)
    if work is None:
        raise ValueError(f"each of {', '.join(policy.work_candidates)} holds a Python path; add a work candidate")
    sources = [*policy.system_paths, *policy.etc_paths, *policy.sys_paths, *paths]
    sources += [*map(os.path.realpath, sources), "/dev"]
    staging = next((place for place in _STAGING_CANDIDATES if _can_stage(place, sources)), None)
    if staging is None:
        raise ValueError(f"each of {', '.join(_STAGING_CANDIDATES)} is missing or holds a path to show")
    return RootPlan(
        policy=policy,
        identity=identity,
        quotas=quotas,
        work=work,
        python_paths=paths,
        covered_paths=tuple(path for path in paths if _inside(path, [policy.tmp_path])),
        gpu_devices=tuple(sorted(found for pattern in policy.gpu_devices for found in glob.glob(pattern)))
        if gpu
        else (),
        staging=staging,
    )


def _can_stage(place: str, sources: Iterable[str]) -> bool:
    return os.path.isdir(place) and not os.path.islink(place) and not _overlaps(place, sources)


def _inside(path: str, parents: Iterable[str]) -> bool:
    return any(path == parent or path.startswith(parent + "/") for parent in parents)


def _overlaps(place: str, paths: Iterable[str]) -> bool:
    return any(_inside(path, [place]) or _inside(place, [path]) for path in paths)
