"""The worker's private frame socket.

Frames travel on a descriptor of their own, never on 0, 1 or 2, so nothing that
agent code prints or writes can be taken for one. Agent code can still find the
descriptor; the service knows that and trusts no frame.

While a cell runs, the kernel raises SIGIO when the service sends something.
The handler reads the frame, so an interrupt carries the id of the cell it is
meant for and a late one can't hit the next cell, and the worker needs no
second thread: it stays single-threaded between two steps, and can be forked.
"""

import fcntl
import os
import select
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from worker.protocol import InterruptFrame, ReplyFrame, ServiceFrame, encode_frame, parse_frame

_READ_BYTES = 1 << 20


class ChannelClosed(Exception):
    """The service closed the socket: there is nobody left to work for."""


class Channel:
    """Whole frames in both directions; replies to calls are handed to their waiters."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._owner = os.getpid()
        self._parts: list[bytes] = []
        self._frames: deque[ServiceFrame] = deque()
        self._replies: dict[int, ReplyFrame] = {}
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._main = threading.get_ident()
        # True while the main thread is in here, where an exception out of a handler would break a frame.
        self._inside = False
        # Bound once: agent code may replace what the modules export.
        self._poll = select.poll
        self.interrupted_cell: int | None = None
        # Raises in the main thread when the running cell is the interrupted one; set by the cell runner.
        self.deliver_interrupt: Callable[[], None] = lambda: None
        os.register_at_fork(after_in_child=self._close_in_child)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, kind: str, **fields: Any) -> None:
        """Write one whole frame, waiting while the socket is full.

        Raises:
            ChannelClosed: The service is gone, or this is a forked child of the worker.
            ValueError: A field holds a number JSON can't.
        """
        if os.getpid() != self._owner:
            raise ChannelClosed("a forked child has no channel to the service")
        view = memoryview(encode_frame(kind, **fields))
        with self._write_lock, _Inside(self):
            while view:
                try:
                    view = view[self._socket.send(view) :]
                except BlockingIOError:
                    self._wait(select.POLLOUT, None)
                except OSError as error:
                    raise ChannelClosed(str(error)) from error

    def next_frame(self) -> ServiceFrame:
        """Wait for the next frame that is not an interrupt or a reply.

        Raises:
            ChannelClosed: The service closed the socket.
        """
        while not self._frames:
            with self._read_lock:
                # A thread that waited for a reply may have read it meanwhile.
                if not self._frames and not self._read():
                    self._wait(select.POLLIN, None)
        return self._frames.popleft()

    def wait_reply(self, call: int) -> ReplyFrame:
        """Wait for the answer to a call, from any thread.

        Raises:
            BaseException: What `deliver_interrupt` raises when the cell is interrupted meanwhile.
            ChannelClosed: The service closed the socket.
        """
        while call not in self._replies:
            self.deliver_interrupt()
            with _Inside(self):
                # One waiter reads for everybody; the others look again when it has.
                if not self._read_lock.acquire(timeout=0.05):
                    continue
                try:
                    if call not in self._replies and not self._read():
                        self._wait(select.POLLIN, 50)
                finally:
                    self._read_lock.release()
            if self.interrupted_cell is not None and threading.get_ident() != self._main:
                signal.pthread_kill(self._main, signal.SIGIO)
        return self._replies.pop(call)

    def listen(self) -> None:
        """Let SIGIO announce frames to the main thread while a cell runs."""
        signal.signal(signal.SIGIO, self._on_signal)
        fcntl.fcntl(self._socket, fcntl.F_SETOWN, self._owner)
        flags = fcntl.fcntl(self._socket, fcntl.F_GETFL)
        fcntl.fcntl(self._socket, fcntl.F_SETFL, flags | os.O_ASYNC)
        # What arrived before the flag was set raised no signal.
        self._on_signal(signal.SIGIO, None)

    def ignore(self) -> None:
        """Stop announcing frames: the worker reads them itself."""
        flags = fcntl.fcntl(self._socket, fcntl.F_GETFL)
        fcntl.fcntl(self._socket, fcntl.F_SETFL, flags & ~os.O_ASYNC)

    def _on_signal(self, _number: int, _frame: object) -> None:
        # A thread that waits for a reply holds the lock and reads for everybody.
        if self._read_lock.acquire(blocking=False):
            try:
                self._read()
            except ChannelClosed:
                os._exit(0)
            finally:
                self._read_lock.release()
        if not self._inside:
            self.deliver_interrupt()

    def _wait(self, event: int, timeout_ms: int | None) -> None:
        poller = self._poll()
        poller.register(self._socket.fileno(), event)
        poller.poll(timeout_ms)

    def _read(self) -> bool:
        """Take what the socket holds; False when it held nothing."""
        try:
            chunk = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not chunk:
            raise ChannelClosed("the service closed the socket")
        head, newline, rest = chunk.partition(b"\n")
        while newline:
            self._parts.append(head)
            line = b"".join(self._parts)
            self._parts = []
            self._accept(parse_frame(line))
            head, newline, rest = rest.partition(b"\n")
        self._parts.append(head)
        return True

    def _accept(self, frame: ServiceFrame) -> None:
        if isinstance(frame, ReplyFrame):
            self._replies[frame.call] = frame
        elif isinstance(frame, InterruptFrame):
            self.interrupted_cell = frame.id
        else:
            self._frames.append(frame)

    def _close_in_child(self) -> None:
        # A child of agent code must not read or answer for the worker.
        self._socket.close()


class _Inside:
    """Marks the main thread as inside the channel, so that no handler raises there."""

    __slots__ = ("_channel", "_marks")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._marks = threading.get_ident() == channel._main and not channel._inside

    def __enter__(self) -> None:
        if self._marks:
            self._channel._inside = True

    def __exit__(self, *_error: object) -> None:
        if self._marks:
            self._channel._inside = False
