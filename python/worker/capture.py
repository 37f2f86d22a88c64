"""Descriptors 0, 1 and 2 of the worker, put back before each cell.

Output is captured at descriptor level: C code and child processes write to the
same pipes as `print`. The service holds the reading ends, so what was written
survives the worker.
"""

import ctypes
import io
import os
import select
import sys
from os import dup2, fstat, get_blocking, set_blocking, write

from worker.interrupt import StepTimeout

# Line buffered: what was printed before a hang that no signal can break has left the process.
_IOLBF = 1

_DISPLAYHOOK = sys.displayhook


class StandardStreams:
    """Keeps spare copies of the three descriptors and of the `sys` objects over them."""

    def __init__(self, null: int, stdout: int, stderr: int) -> None:
        self._spares = tuple(os.dup(descriptor) for descriptor in (null, stdout, stderr))
        for target, spare in enumerate(self._spares):
            os.dup2(spare, target)
        self._stdin = _reader(0)
        self._stdout = _writer(1)
        self._stderr = _writer(2)
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _IOLBF, 0)
        self._fflush = libc.fflush
        self._poll = select.poll
        self._identity = [_identity(target) for target in range(3)]
        self.restore()

    def restore(self) -> list[str]:
        """Put descriptors and `sys` objects back; returns what had been replaced."""
        replaced = []
        for target, spare in enumerate(self._spares):
            if _identity(target) != self._identity[target]:
                dup2(spare, target)
                replaced.append(f"descriptor {target}")
            if not get_blocking(spare):
                # Event loops do that to the pipes they are given; `print` can't live with it.
                set_blocking(spare, True)
        # A closed wrapper can't be reopened: make another over the same descriptor.
        if not _is_open(self._stdout):
            self._stdout = _writer(1)
        if not _is_open(self._stderr):
            self._stderr = _writer(2)
        if not _is_open(self._stdin):
            self._stdin = _reader(0)
        for name, stream in (("stdin", self._stdin), ("stdout", self._stdout), ("stderr", self._stderr)):
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
                replaced.append(f"sys.{name}")
        if not callable(getattr(sys, "displayhook", None)):
            sys.displayhook = _DISPLAYHOOK
            replaced.append("sys.displayhook")
        return replaced

    def flush(self) -> list[str]:
        """Empty Python's and C's buffers into the pipes; returns which could not be, and why.

        Raises:
            StepTimeout: The cell was interrupted in the `flush` of a stream of agent code.
        """
        failed = []
        own = [self._stdout, self._stderr]
        found = [getattr(sys, "stdout", None), getattr(sys, "stderr", None)]
        for stream in own + [other for other in found if other is not own[0] and other is not own[1]]:
            try:
                if stream is not None and not getattr(stream, "closed", False):
                    stream.flush()
            except StepTimeout:
                raise
            except BaseException as error:
                failed.append(f"{type(stream).__name__} ({type(error).__name__})")
        self._fflush(None)
        return failed

    def print_error(self, text: str) -> None:
        """Write to descriptor 2 of the worker, whatever `sys.stderr` is now."""
        data = text.encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[write(self._spares[2], data) :]
            except BlockingIOError:
                # Agent code made the pipe non-blocking.
                poller = self._poll()
                poller.register(self._spares[2], select.POLLOUT)
                poller.poll()


def _reader(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "rb", closefd=False)
    return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors="replace")


def _writer(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "wb", closefd=False)
    # backslashreplace: a lone surrogate is shown, not raised from print().
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _is_open(stream: io.TextIOWrapper) -> bool:
    try:
        return not stream.closed
    except ValueError:
        # Agent code took its buffer away with detach().
        return False


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        status = fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
