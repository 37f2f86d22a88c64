"""What the host running the tests gives; a test that needs more says so and is skipped."""

import os

from worker.isolation.cgroup_host import CgroupHost
from worker.isolation.host_report import detect_levels

from .confined import Lost, in_child

REPORT = detect_levels()
GROUPS = CgroupHost.detect()


def _can_change_uid() -> bool:
    if os.geteuid() != 0:
        return False
    try:
        in_child(lambda: (os.setgroups([]), os.setresuid(65534, 65534, 65534))[1])
    except Lost:
        return False
    return True


#: Real root, or root of a user namespace with many uids: it can become anybody.
IS_ROOT = _can_change_uid()


def missing(level: str) -> str | None:
    """Why the host lacks a level; None if it has it."""
    if level in REPORT.levels:
        return None
    return f"no level {level} here: " + " ".join(f"{name}: {why}" for name, why in REPORT.layers.items() if why)


#: Each way the same promises must hold; a plain user can be tried only by giving up root.
VARIANTS = [
    (level, plain)
    for level in ("namespaces", "landlock")
    for plain in ((False, True) if IS_ROOT else (False,))
    if level in REPORT.levels
]
