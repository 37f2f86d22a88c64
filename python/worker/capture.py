"""Descriptors 0, 1 and 2 of the worker, put back before each cell.

Output is captured at descriptor level: C code and child processes write to the
same pipes as `print`. The service holds the reading ends, so what was written
survives the worker.
"""

import ctypes
import io
import os
import sys

# Line buffered: what was printed before a hang that no signal can break has left the process.
_IOLBF = 1


class StandardStreams:
    """Keeps spare copies of the three descriptors and of the `sys` objects over them."""

    def __init__(self, null: int, stdout: int, stderr: int) -> None:
        self._spares = tuple(os.dup(descriptor) for descriptor in (null, stdout, stderr))
        for target, spare in enumerate(self._spares):
            os.dup2(spare, target)
        self._stdin = _reader(0)
        self._stdout = _writer(1)
        self._stderr = _writer(2)
        self._libc = ctypes.CDLL(None)
        libc_stdout = ctypes.c_void_p.in_dll(self._libc, "stdout")
        self._libc.setvbuf(libc_stdout, None, _IOLBF, 0)
        self._identity = [_identity(target) for target in range(3)]
        self.restore()

    def restore(self) -> list[str]:
        """Put descriptors and `sys` objects back; returns what had been replaced."""
        replaced = []
        for target, spare in enumerate(self._spares):
            if _identity(target) != self._identity[target]:
                os.dup2(spare, target)
                replaced.append(f"descriptor {target}")
        # A closed wrapper can't be reopened: make another over the same descriptor.
        if self._stdout.closed:
            self._stdout = _writer(1)
        if self._stderr.closed:
            self._stderr = _writer(2)
        if self._stdin.closed:
            self._stdin = _reader(0)
        for name, stream in (("stdin", self._stdin), ("stdout", self._stdout), ("stderr", self._stderr)):
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
                replaced.append(f"sys.{name}")
        return replaced

    def flush(self) -> None:
        """Empty Python's and C's buffers into the pipes."""
        for stream in (sys.stdout, sys.stderr, self._stdout, self._stderr):
            try:
                stream.flush()
            except Exception:
                continue
        self._libc.fflush(None)

    def print_error(self, text: str) -> None:
        """Write to descriptor 2 of the worker, whatever `sys.stderr` is now."""
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._spares[2], data) :]


def _reader(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "rb", closefd=False)
    return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors="replace")


def _writer(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "wb", closefd=False)
    # backslashreplace: a lone surrogate is shown, not raised from print().
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
