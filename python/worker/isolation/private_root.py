"""An episode's own root: a copy of the template with its own work, tmp, shm and /proc."""

import os

from . import syscalls as sc
from .namespaces import EPISODE_NAMESPACES
from .root_plan import RootPlan
from .root_template import mount_proc, mount_tmpfs


def enter(plan: RootPlan, template: int, uid: int, gid: int) -> None:
    """Leave the host's mounts, IPC, names and network for the episode's own.

    Call it in the episode's init, process 1 of its pid namespace. Afterwards
    the current folder is the root.

    Args:
        template: From `root_template.make_template`; stays open.
        uid, gid: Owner of the folders that the worker writes to, as the
            calling process sees them.

    Raises:
        OSError: A namespace or mount was refused; the message names it. The
            caller must exit.
    """
    sc.setns(template, sc.CLONE_NEWNS)
    sc.unshare(EPISODE_NAMESPACES)
    os.umask(0o022)
    quotas, work, tmp = plan.quotas, plan.work, plan.policy.tmp_path
    mount_proc("/proc", plan.policy.proc_options)
    covered = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in plan.covered_paths]

    # One tmpfs, two of whose folders are shown: work and tmp share one quota.
    mount_tmpfs(work, quotas.work_and_tmp_bytes, quotas.work_and_tmp_inodes, 0o755)
    os.mkdir(f"{work}/work")
    os.mkdir(f"{work}/tmp")
    os.chmod(f"{work}/tmp", 0o1777)
    os.chown(f"{work}/work", uid, gid)
    if not covered:
        os.chown(f"{work}/tmp", uid, gid)
    sc.mount(f"{work}/tmp", tmp, None, sc.MS_BIND)
    sc.mount(f"{work}/work", work, None, sc.MS_BIND)
    mount_tmpfs("/dev/shm", quotas.shm_bytes, quotas.shm_inodes, 0o1777)
    os.chown("/dev/shm", uid, gid)

    # Python lives below /tmp. Under real root the sticky bit and /tmp's foreign
    # owner keep agent code from renaming the folders that lead there; a plain
    # user's agent code can, and breaks nothing but its own episode.
    for path, fd in covered:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            os.makedirs(path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
        sc.mount(f"/proc/self/fd/{fd}", path, None, sc.MS_BIND | sc.MS_REC)
        os.close(fd)
    sc.sethostname(plan.policy.hostname)
