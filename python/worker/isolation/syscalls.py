"""Thin ctypes wrappers: one kernel call each, errno turned into OSError.

Nothing here decides anything. Every function raises OSError with the errno of
the failed call, and ENOSYS where the running kernel or machine lacks it.
"""

import ctypes
import errno
import os
import struct

from .syscall_numbers import AUDIT_ARCH, MACHINE, number

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000
MNT_DETACH = 0x2

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
AT_FDCWD = -100
AT_RECURSIVE = 0x8000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
SECCOMP_SET_MODE_FILTER = 1

_CAPABILITY_VERSION_3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


def raw(name: str, *arguments: int | bytes | None) -> int:
    """Make one system call by name.

    Args:
        arguments: Integers are passed as C long, bytes as a pointer to a
            NUL-terminated copy, None as a null pointer.

    Raises:
        OSError: The errno of the call; ENOSYS if this machine has no such call.
    """
    nr = number(name)
    if nr is None:
        raise OSError(errno.ENOSYS, f"{name}: no such call on {MACHINE}")
    converted = [
        ctypes.c_char_p(value) if value is None or isinstance(value, bytes) else ctypes.c_long(value)
        for value in arguments
    ]
    result = int(_libc.syscall(ctypes.c_long(nr), *converted))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    """Move the caller into new namespaces; CLONE_NEWPID takes effect for its next child."""
    raw("unshare", flags)


def setns(fd: int, kind: int) -> None:
    """Join the namespace behind `fd`, which must be of type `kind` (a CLONE_NEW* flag)."""
    raw("setns", fd, kind)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2). The OSError names the target, since a caller mounts many."""
    try:
        raw(
            "mount",
            os.fsencode(source),
            os.fsencode(target),
            None if kind is None else kind.encode(),
            flags,
            None if data is None else os.fsencode(data),
        )
    except OSError as error:
        raise OSError(error.errno, f"mount {kind or 'bind'} on {target}: {os.strerror(error.errno or 0)}") from error


def mount_setattr(path: str, attributes: int, *, recursive: bool) -> None:
    """Add mount attributes (MOUNT_ATTR_*) to the mount at `path` and, if asked, to all below it."""
    payload = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    try:
        raw("mount_setattr", AT_FDCWD, os.fsencode(path), flags, payload, len(payload))
    except OSError as error:
        raise OSError(error.errno, f"mount_setattr on {path}: {os.strerror(error.errno or 0)}") from error


def umount2(target: str, flags: int) -> None:
    """umount2(2)."""
    raw("umount2", os.fsencode(target), flags)


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2)."""
    raw("pivot_root", os.fsencode(new_root), os.fsencode(put_old))


def sethostname(name: str) -> None:
    """Name the caller's UTS namespace."""
    encoded = name.encode()
    raw("sethostname", encoded, len(encoded))


def prctl(option: int, *arguments: int) -> int:
    """prctl(2) with its unused arguments set to zero, as newer options demand."""
    result = int(_libc.prctl(option, *(*arguments, 0, 0, 0, 0)[:4]))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
    return result


def set_no_new_privs() -> None:
    """Make exec unable to grant privileges, for good."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def set_subreaper() -> None:
    """Adopt orphaned descendants in place of the namespace's first process."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(signal_number: int) -> None:
    """Have the kernel send `signal_number` when the parent thread ends; a change of uid clears it."""
    prctl(PR_SET_PDEATHSIG, signal_number)


def set_dumpable(value: bool) -> None:
    """Whether /proc/self belongs to the caller and processes of its uid may inspect it."""
    prctl(PR_SET_DUMPABLE, int(value))


def capset(effective: int, permitted: int, inheritable: int) -> None:
    """Set the caller's capability masks (bit n is capability n)."""
    masks = (effective, permitted, inheritable)
    low = struct.pack("=III", *(mask & 0xFFFF_FFFF for mask in masks))
    high = struct.pack("=III", *(mask >> 32 for mask in masks))
    raw("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), low + high)


def close_range(first: int, last: int) -> None:
    """Close every descriptor from `first` to `last`, both included."""
    if first <= last:
        raw("close_range", first, last, 0)


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor of the process except those in `keep`."""
    start = 0
    for fd in sorted(keep):
        close_range(start, fd - 1)
        start = fd + 1
    close_range(start, 0x7FFF_FFFF)


def landlock_abi() -> int:
    """The Landlock ABI of the kernel; 0 where Landlock is missing or switched off."""
    try:
        return raw("landlock_create_ruleset", None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def seccomp_set_filter(instructions: bytes) -> None:
    """Install a compiled BPF program on the calling thread; needs no_new_privs or CAP_SYS_ADMIN."""
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(buffer))
    raw("seccomp", SECCOMP_SET_MODE_FILTER, 0, program)


def audit_architecture() -> int:
    """The AUDIT_ARCH_* value seccomp reports for native calls.

    Raises:
        OSError: ENOSYS on a machine the policy has no call numbers for.
    """
    if MACHINE not in AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no system call table for {MACHINE}")
    return AUDIT_ARCH[MACHINE]
