"""Shared memory between a worker's processes where named sockets are closed.

multiprocessing hands a descriptor to another process through a named AF_UNIX
socket, which level `landlock` denies: Landlock before ABI 9 cannot tell the
agent's sockets from the host's. Here the memory behind the descriptor travels
by value instead, so that tensors and arrays still pass through queues and
DataLoader workers. The receiver gets a copy, not the sender's memory.
"""

import os
import stat
from multiprocessing import reduction, resource_sharer

_CHUNK_BYTES = 1 << 24


class CopiedDescriptor:
    """Stands in for multiprocessing's DupFd: pickles the contents of a memory file."""

    def __init__(self, fd: int) -> None:
        """Read the file behind `fd`, which stays open and keeps its position.

        Raises:
            OSError: `fd` is a pipe, socket or device, which cannot be copied.
        """
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("only memory can be sent to another process at this isolation level, no pipe or socket")
        parts = []
        offset = 0
        while offset < status.st_size:
            part = os.pread(fd, min(_CHUNK_BYTES, status.st_size - offset), offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
        self.contents = b"".join(parts)

    def detach(self) -> int:
        """A descriptor of a new memory file with the contents; the caller closes it."""
        fd = os.memfd_create("forkyard")
        view = memoryview(self.contents)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd


def share_by_value() -> None:
    """Make multiprocessing, and torch on top of it, send memory by value in this process and its children."""
    for module in (reduction, resource_sharer):
        setattr(module, "DupFd", CopiedDescriptor)  # noqa: B010 - typed as another class
