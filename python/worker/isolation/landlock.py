"""Landlock: what files the worker may touch, whatever its uid.

The ruleset handles every right the kernel's ABI knows, so what no rule grants
is denied. TCP is handled without a rule, abstract unix sockets and signals are
scoped to the worker's own domain. Landlock does not govern metadata (stat,
chdir, chmod, utime), UDP, or descriptors that are already open.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from . import syscalls
from .policy import LandlockPolicy

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
RESOLVE_UNIX = 1 << 16

READ = EXECUTE | READ_FILE | READ_DIR
#: Everything below a folder of the episode's own, device nodes excepted.
OWN = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK
OWN |= MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE | RESOLVE_UNIX
#: A /dev/shm that other processes use too: files by name, no listing.
SHARED_SHM = READ_FILE | WRITE_FILE | REMOVE_FILE | MAKE_REG | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
GPU_DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV

_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX

#: (first ABI, file rights it added)
_FS_RIGHTS_SINCE = (
    (1, (1 << 13) - 1),
    (2, REFER),
    (3, TRUNCATE),
    (5, IOCTL_DEV),
    (9, RESOLVE_UNIX),
)
_NET_ABI = 4
_NET_TCP = 0b11  # bind, connect
_SCOPE_ABI = 6
_SCOPES = 0b11  # abstract unix sockets, signals


@dataclass(frozen=True, slots=True)
class PathRule:
    """`rights` on the file or on everything below the folder at `path`."""

    path: str
    rights: int


@dataclass(frozen=True, slots=True)
class LandlockReport:
    """What held after `restrict`.

    Attributes:
        abi: The kernel's ABI; 0 means nothing was applied.
        truncate, device_ioctl, tcp, signal_scope, abstract_socket_scope,
            named_socket_scope: Whether the kernel could restrict this at all.
        skipped: Paths of rules that do not exist on this host.
    """

    abi: int
    truncate: bool
    device_ioctl: bool
    tcp: bool
    signal_scope: bool
    abstract_socket_scope: bool
    named_socket_scope: bool
    skipped: tuple[str, ...]


def private_root_rules(
    policy: LandlockPolicy, writable: Iterable[str], gpu_devices: Iterable[str] = ()
) -> list[PathRule]:
    """Rules inside a private root, whose every visible path the policy chose already."""
    return [
        *(PathRule(path, READ) for path in policy.private_root_read),
        *_device_rules(policy, gpu_devices),
        *(PathRule(path, OWN) for path in [*writable, policy.shm_path]),
    ]


def shared_root_rules(
    policy: LandlockPolicy,
    python_paths: Iterable[str],
    writable: Iterable[str],
    gpu_devices: Iterable[str] = (),
    gpu_sys_paths: Iterable[str] = (),
) -> list[PathRule]:
    """Rules where the worker sees the host's file system: listed paths and its own folders.

    /proc/self is resolved now: a child of the worker gets no /proc of its own.
    """
    return [
        *(PathRule(path, READ) for path in [*policy.read, *python_paths, *gpu_sys_paths]),
        *_device_rules(policy, gpu_devices),
        PathRule(policy.shm_path, SHARED_SHM),
        *(PathRule(path, OWN) for path in writable),
    ]


def restrict(rules: Iterable[PathRule], abi: int) -> LandlockReport:
    """Confine the calling thread and its future children; needs no_new_privs.

    Args:
        rules: Rules whose path does not exist are skipped and reported.
        abi: From `syscalls.landlock_abi()`, measured once by the zygote.

    Raises:
        OSError: ENOSYS when `abi` is 0; otherwise the errno of the rule or
            call that failed, in which case nothing is confined.
    """
    if abi < 1:
        raise OSError(errno.ENOSYS, "this kernel offers no Landlock")
    handled = handled_fs(abi)
    attributes = struct.pack("=Q", handled)
    if abi >= _NET_ABI:
        attributes += struct.pack("=Q", _NET_TCP)
    if abi >= _SCOPE_ABI:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = syscalls.raw("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        skipped = tuple(rule.path for rule in rules if not _add(ruleset, rule, handled))
        syscalls.raw("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
    return LandlockReport(
        abi=abi,
        truncate=abi >= 3,
        device_ioctl=abi >= 5,
        tcp=abi >= _NET_ABI,
        signal_scope=abi >= _SCOPE_ABI,
        abstract_socket_scope=abi >= _SCOPE_ABI,
        named_socket_scope=abi >= 9,
        skipped=skipped,
    )


def signal_scope_offered(abi: int) -> bool:
    """Whether Landlock keeps signals inside the worker's domain; otherwise seccomp must."""
    return abi >= _SCOPE_ABI


def handled_fs(abi: int) -> int:
    """Every file right that a kernel of this ABI can restrict."""
    return sum(rights for since, rights in _FS_RIGHTS_SINCE if abi >= since)


def _device_rules(policy: LandlockPolicy, gpu_devices: Iterable[str]) -> list[PathRule]:
    return [
        *(PathRule(path, DEVICE) for path in policy.device_read_write),
        *(PathRule(path, READ_FILE) for path in policy.device_read),
        *(PathRule(path, GPU_DEVICE) for path in gpu_devices),
    ]


def _add(ruleset: int, rule: PathRule, handled: int) -> bool:
    try:
        fd = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # What this process cannot even look up, agent code cannot use either.
        return False
    try:
        rights = rule.rights & handled
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        attributes = struct.pack("=Qi", rights, fd)
        syscalls.raw("landlock_add_rule", ruleset, syscalls.LANDLOCK_RULE_PATH_BENEATH, attributes, 0)
    except OSError as error:
        raise OSError(error.errno, f"Landlock rule for {rule.path}: {error.strerror}") from error
    finally:
        os.close(fd)
    return True
