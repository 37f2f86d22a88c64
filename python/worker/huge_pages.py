"""Puts the zygote on huge pages, so that a fork copies a few hundred table entries and not tens of thousands."""

import ctypes
import errno
from collections.abc import Iterator

_HUGE_BYTES = 2 * 1024 * 1024
#: Linux 6.1 and later; not in the mmap module of the Pythons we support.
_MADV_COLLAPSE = 25


def collapse_private_memory() -> int:
    """Collapse the writable anonymous memory of this process; call it once, when all imports are done.

    Returns:
        Bytes on huge pages now; 0 where the kernel offers no such advice.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    madvise = libc.madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    collapsed = 0
    for start in _huge_extents():
        if madvise(start, _HUGE_BYTES, _MADV_COLLAPSE) == 0:
            collapsed += _HUGE_BYTES
        elif ctypes.get_errno() == errno.EINVAL and collapsed == 0:
            # An older kernel, or one built without huge pages; the first extent tells.
            return 0
    return collapsed


def _huge_extents() -> Iterator[int]:
    """Start of each aligned 2 MiB inside a private, writable, anonymous mapping."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        lines = file.read().splitlines()
    for line in lines:
        addresses, rights, _offset, _device, inode, *name = line.split(maxsplit=5)
        if not rights.startswith("rw") or not rights.endswith("p") or inode != "0" or name[:1] == ["[stack]"]:
            continue
        first, last = (int(part, 16) for part in addresses.split("-"))
        aligned = -(-first // _HUGE_BYTES) * _HUGE_BYTES
        yield from range(aligned, last - _HUGE_BYTES + 1, _HUGE_BYTES)
