"""The part of the private root that all episodes of a zygote share, built once.

The template is a mount namespace whose root is assembled from nothing: system
folders, Python's own paths, a few devices and a tiny /etc, all read-only. It
is kept alive by a descriptor; an episode joins it, copies it and adds what is
its own (`private_root.enter`).

It works as real root and as root of an unprivileged user namespace, so it
makes no device nodes, binds whole subtrees (parts of a locked mount cannot be
taken alone) and only ever adds restrictions to mounts it inherited.
"""

import array
import os
import socket
import stat

from . import syscalls as sc
from .namespaces import PidNamespaceForker
from .policy import IdentityPolicy
from .python_paths import outermost
from .root_plan import RootPlan

_READ_ONLY = sc.MOUNT_ATTR_RDONLY | sc.MOUNT_ATTR_NOSUID | sc.MOUNT_ATTR_NODEV
_DEVICE = sc.MOUNT_ATTR_RDONLY | sc.MOUNT_ATTR_NOSUID | sc.MOUNT_ATTR_NOEXEC
_DEV_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_MESSAGE_BYTES = 4096


def make_template(plan: RootPlan, forker: PidNamespaceForker) -> int:
    """Build the template in a short-lived child.

    Returns:
        A descriptor of its mount namespace, not inheritable over exec; the
        caller keeps it open for as long as it makes episodes.

    Raises:
        OSError: A mount failed; the message names it.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = forker.fork()
    if pid == 0:
        ours.close()
        try:
            _build_and_send(plan, theirs)
        except BaseException as error:
            theirs.sendall(f"{type(error).__name__}: {error}".encode()[:_MESSAGE_BYTES])
        finally:
            os._exit(0)
    theirs.close()
    size = socket.CMSG_SPACE(array.array("i", [0]).itemsize)
    with ours:
        message, ancillary, _flags, _address = ours.recvmsg(_MESSAGE_BYTES, size, socket.MSG_CMSG_CLOEXEC)
    os.waitpid(pid, 0)
    for _level, _kind, payload in ancillary:
        return array.array("i", payload)[0]
    raise OSError(f"private root: {message.decode(errors='replace') or 'its builder died'}")


def _build_and_send(plan: RootPlan, channel: socket.socket) -> None:
    sc.unshare(sc.CLONE_NEWNS)
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    build_root(plan)
    channel.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [namespace]))])


def build_root(plan: RootPlan) -> None:
    """Assemble the root in the caller's mount namespace, enter it and let go of the old one.

    The caller must be process 1 of its pid namespace and own its mount namespace.

    Raises:
        OSError: A mount failed; the message names it. The caller must exit.
    """
    policy = plan.policy
    os.umask(0o022)
    sc.mount("none", "/", None, sc.MS_REC | sc.MS_PRIVATE)
    mount_tmpfs(plan.staging, policy.skeleton_bytes, policy.skeleton_inodes, 0o755)
    os.chdir(plan.staging)

    for path in policy.system_paths:
        if os.path.islink(path):
            os.symlink(os.readlink(path), path.lstrip("/"))
        else:
            _bind(path, _READ_ONLY)
    for path in (*policy.etc_paths, *plan.python_paths):
        _bind(path, _READ_ONLY)
    for path in outermost(policy.sys_paths + (policy.gpu_sys_paths if plan.gpu_devices else ())):
        _bind(path, _READ_ONLY | sc.MOUNT_ATTR_NOEXEC)
    _write_accounts(plan.identity)
    _fill_dev(plan)
    for path in (plan.work, policy.tmp_path, "/proc"):
        os.makedirs(path.lstrip("/"), exist_ok=True)
    # Each episode mounts its own /proc over this one. An unprivileged user
    # namespace may do so only where a whole /proc is mounted already.
    mount_proc("proc", policy.proc_options)

    # The old root is stacked on the new one for an instant, so that no folder
    # for it is needed, and detached with everything that hung below it.
    sc.pivot_root(".", ".")
    sc.umount2(".", sc.MNT_DETACH)
    os.chdir("/")
    sc.mount_setattr("/", _READ_ONLY, recursive=False)


def mount_tmpfs(target: str, size_bytes: int, inodes: int, mode: int) -> None:
    """Mount a tmpfs that holds at most `size_bytes` and `inodes`; past either a write is ENOSPC."""
    data = f"size={size_bytes},nr_inodes={inodes},mode={mode:o}"
    sc.mount("tmpfs", target, "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, data)


def mount_proc(target: str, options: str) -> None:
    """Mount a /proc that shows the caller's pid namespace."""
    sc.mount("proc", target, "proc", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC, options or None)


def _bind(path: str, attributes: int) -> None:
    """Show `path` of the old root at the same place; a missing one is skipped."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    target = path.lstrip("/")
    if stat.S_ISDIR(mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    sc.mount(path, target, None, sc.MS_BIND | sc.MS_REC)
    sc.mount_setattr(target, attributes, recursive=True)


def _fill_dev(plan: RootPlan) -> None:
    os.makedirs("dev/shm")
    for name in plan.policy.devices:
        _bind(f"/dev/{name}", _DEVICE)
    for path in plan.gpu_devices:
        _bind(path, _DEVICE)
    for name, target in _DEV_LINKS.items():
        os.symlink(target, f"dev/{name}")


def _write_accounts(identity: IdentityPolicy) -> None:
    name, uid, gid = identity.user_name, identity.inner_uid, identity.inner_gid
    files = {
        "passwd": f"root:x:0:0:root:/nonexistent:/bin/false\n{name}:x:{uid}:{gid}:{name}:/nonexistent:/bin/sh\n",
        "group": f"root:x:0:\n{name}:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n",
    }
    os.makedirs("etc", exist_ok=True)
    for file_name, text in files.items():
        with open(f"etc/{file_name}", "w", encoding="utf-8") as file:
            file.write(text)
