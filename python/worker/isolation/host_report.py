"""Which isolation level this host gives, and what each missing layer would take.

`python -m worker.isolation.host_report` prints the report as JSON.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from . import host_trials
from . import syscalls as sc
from .cgroup_host import CgroupHost
from .policy import Policy, load_policy
from .python_paths import interpreter_paths, prefixes_reachable

LevelName = Literal["namespaces", "landlock", "none"]

_LANDLOCK_LAYERS = ("landlock", "seccomp")
_NAMESPACE_LAYERS = (
    *_LANDLOCK_LAYERS,
    "mount_namespace",
    "pid_namespace",
    "ipc_namespace",
    "uts_namespace",
    "network_namespace",
    "private_root",
)


@dataclass(frozen=True, slots=True)
class HostReport:
    """What was found.

    Attributes:
        levels: Levels the host gives, best first; always ends in `none`.
        layers: Layer to None if it works, else one sentence on why not and
            how to get it.
        notes: Facts that weaken a level without taking it away.
        landlock_abi: 0 without Landlock.
        cgroup: Which kind of control group carries limits.
        memory_limit, process_limit: Whether a cgroup limits the whole tree.
        user_namespace: An unprivileged uid may have one; input to `plan_identity`.
        root: The report was made as root.
    """

    levels: tuple[LevelName, ...]
    layers: dict[str, str | None]
    notes: tuple[str, ...]
    landlock_abi: int
    cgroup: str
    memory_limit: bool
    process_limit: bool
    user_namespace: bool
    root: bool


def detect_levels(policy: Policy | None = None) -> HostReport:
    """Try each layer in a forked child; the caller stays as it is and must be single-threaded.

    Raises:
        OSError: Not even a child could be forked.
        PolicyError: The default policy file is not usable.
    """
    policy = load_policy() if policy is None else policy
    user_namespace = host_trials.trial(host_trials.try_user_namespace)
    attempts: dict[str, Callable[[], None]] = {
        "landlock": host_trials.try_landlock,
        "seccomp": partial(host_trials.try_seccomp, policy),
        "mount_namespace": partial(host_trials.try_namespace, sc.CLONE_NEWNS),
        "pid_namespace": partial(host_trials.try_namespace, sc.CLONE_NEWPID),
        "ipc_namespace": partial(host_trials.try_namespace, sc.CLONE_NEWIPC),
        "uts_namespace": partial(host_trials.try_namespace, sc.CLONE_NEWUTS),
        "network_namespace": partial(host_trials.try_namespace, sc.CLONE_NEWNET),
        "private_root": partial(host_trials.try_private_root, policy, user_namespace is None),
    }
    failures = {"user_namespace": user_namespace}
    failures |= {name: host_trials.trial(attempt) for name, attempt in attempts.items()}
    layers = {name: None if why is None else f"{why}. {_remedy(name)}" for name, why in failures.items()}
    cgroups = CgroupHost.detect(arrange=False)
    layers["cgroup"] = None if cgroups.memory and cgroups.pids else "; ".join(cgroups.notes) or "no memory controller"

    levels: list[LevelName] = []
    if all(layers[name] is None for name in _NAMESPACE_LAYERS):
        levels.append("namespaces")
    if all(layers[name] is None for name in _LANDLOCK_LAYERS):
        levels.append("landlock")
    levels.append("none")
    abi = sc.landlock_abi()
    return HostReport(
        levels=tuple(levels),
        layers=layers,
        notes=tuple(_notes(abi, cgroups)),
        landlock_abi=abi,
        cgroup=cgroups.version,
        memory_limit=cgroups.memory is not None,
        process_limit=cgroups.pids is not None,
        user_namespace=user_namespace is None,
        root=os.geteuid() == 0,
    )


def _notes(abi: int, cgroups: CgroupHost) -> list[str]:
    notes = []
    if 0 < abi < 6:
        notes.append(
            f"Landlock ABI {abi} does not scope signals: at level landlock episodes of one uid can signal "
            "each other. Linux 6.12 or later closes this."
        )
    if 0 < abi < 3:
        notes.append(f"Landlock ABI {abi} does not restrict truncation. Linux 6.2 or later does.")
    if os.geteuid() == 0 and not prefixes_reachable(interpreter_paths()):
        notes.append(
            "Python lies below a folder closed to other users, so at level landlock workers keep uid 0 "
            "(without capabilities). Install Python where every user may enter, such as /usr or /opt."
        )
        if cgroups.pids is None:
            notes.append("At level landlock nothing limits the number of processes: uid 0 and no pids cgroup.")
    return notes


def _remedy(layer: str) -> str:
    """One sentence on how to get a layer, from what the host's switches say."""
    if layer == "landlock":
        return "Landlock needs Linux 5.13 or later, built with it and with landlock in the lsm= boot list."
    if layer == "seccomp":
        return "The kernel needs CONFIG_SECCOMP_FILTER, on x86_64 or aarch64."
    if _knob("kernel/apparmor_restrict_unprivileged_userns") == "1" and os.geteuid() != 0:
        return (
            "AppArmor keeps capabilities from unprivileged user namespaces: "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for Python."
        )
    if _knob("kernel/unprivileged_userns_clone") == "0" and os.geteuid() != 0:
        return "User namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1."
    if _knob("user/max_user_namespaces") == "0":
        return "User namespaces are switched off: sysctl user.max_user_namespaces=15000."
    if layer == "user_namespace":
        return (
            "The container's seccomp or AppArmor profile forbids user namespaces; allow unshare, clone and mount in it."
        )
    return (
        "Run as root with CAP_SYS_ADMIN, or where unprivileged user namespaces work; in a container also allow "
        "mount and unmask /proc (docker: --security-opt seccomp=unconfined,systempaths=unconfined)."
    )


def _knob(name: str) -> str | None:
    try:
        return Path(f"/proc/sys/{name}").read_text().strip()
    except OSError:
        # Absent on kernels without this switch, which then does not restrict.
        return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(detect_levels()), indent=2) + "\n")
