"""The worker's private frame socket.

Frames travel on a descriptor of their own, never on 0, 1 or 2, so nothing that
agent code prints or writes can be taken for one. Agent code can still find the
descriptor; the service knows that and trusts no frame.

While a cell runs, the kernel raises SIGIO when the service sends something.
The handler reads the frame, so an interrupt carries the id of the cell it is
meant for and a late one can't hit the next cell, and the worker needs no
second thread: it stays single-threaded between two steps, and can be forked.

What is called while agent code is around is bound by name here: agent code may
replace what the modules export.
"""

import _signal  # type: ignore[import-not-found]
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from fcntl import F_SETFL, F_SETOWN, fcntl
from os import O_ASYNC, O_NONBLOCK, O_RDWR, _exit, getpid
from signal import SIG_UNBLOCK, SIGIO
from threading import get_ident
from time import sleep
from typing import Any

from worker.interrupt import HeldSignals
from worker.protocol import InterruptFrame, ReplyFrame, ServiceFrame, encode_frame, parse_frame

_READ_BYTES = 1 << 20
_TURN_S = 0.05
_PAUSE_S = 0.02
_set_handler, _set_mask, _signal_thread = _signal.signal, _signal.pthread_sigmask, _signal.pthread_kill
_SIGIO = int(SIGIO)


class ChannelClosed(Exception):
    """The service closed the socket: there is nobody left to work for."""


def own_signals(connection: socket.socket) -> None:
    """Let SIGIO of this socket go to the calling process, for as long as the socket is open.

    Call it in the worker before the system call filter, which may refuse it.
    The kernel keeps the owner, and the identity of the caller, with the open
    socket; the owner must be one whom that identity may signal.
    """
    fcntl(connection, F_SETOWN, getpid())


class Channel:
    """Whole frames in both directions; replies to calls are handed to their waiters."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._owner = getpid()
        self._parts: list[bytes] = []
        self._frames: deque[ServiceFrame] = deque()
        self._replies: dict[int, ReplyFrame] = {}
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._main = get_ident()
        # True while the main thread waits between two cells, and reads for everybody.
        self._main_waits = False
        # True while the main thread is in here, where an exception out of a handler would break a frame.
        self._inside = False
        self._poll = select.poll
        #: Handlers of agent code, which must not raise in the middle of a frame.
        self.signals = HeldSignals()
        self.interrupted_cell: int | None = None
        self.interrupt_cause = ""
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
            FrameError: The frame is longer than the service accepts.
            BaseException: What `deliver_interrupt` or a signal handler of agent code raises, after the whole frame.
        """
        if getpid() != self._owner:
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
        self._main_waits = True
        while not self._frames:
            with self._read_lock:
                # A thread that waited for a reply may have read it meanwhile.
                if not self._frames and not self._read():
                    self._wait(select.POLLIN, None)
        self._main_waits = False
        return self._frames.popleft()

    def wait_reply(self, call: int) -> ReplyFrame:
        """Wait for the answer to a call, from any thread.

        Raises:
            BaseException: What `deliver_interrupt` raises when the cell is interrupted meanwhile.
            ChannelClosed: The service closed the socket.
        """
        while call not in self._replies:
            if get_ident() == self._main:
                self.deliver_interrupt()
            elif self._main_waits:
                # It needs the lock to hear of the next cell.
                sleep(_PAUSE_S)
                continue
            with _Inside(self):
                # One waiter reads for everybody; the others look again when it has.
                if not self._read_lock.acquire(timeout=_TURN_S):
                    continue
                try:
                    if call not in self._replies and not self._read():
                        self._wait(select.POLLIN, 50)
                finally:
                    self._read_lock.release()
        return self._replies.pop(call)

    def listen(self) -> None:
        """Let SIGIO announce frames to the main thread while a cell runs."""
        _set_handler(_SIGIO, self._on_signal)
        # An earlier cell may have blocked it.
        _set_mask(SIG_UNBLOCK, (_SIGIO,))
        fcntl(self._socket, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC)
        # What arrived before the flag was set raised no signal.
        self._on_signal(_SIGIO, None)

    def ignore(self) -> None:
        """Stop announcing frames: the worker reads them itself."""
        fcntl(self._socket, F_SETFL, O_RDWR | O_NONBLOCK)

    def _on_signal(self, _number: int, _frame: object) -> None:
        with _Inside(self):
            # A thread that waits for a reply holds the lock and reads for everybody.
            if self._read_lock.acquire(blocking=False):
                try:
                    self._read()
                except ChannelClosed:
                    _exit(0)
                finally:
                    self._read_lock.release()

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
            self.interrupted_cell, self.interrupt_cause = frame.id, frame.cause
            if get_ident() != self._main:
                # Only the main thread runs cells.
                _signal_thread(self._main, _SIGIO)
        else:
            self._frames.append(frame)

    def _close_in_child(self) -> None:
        # A child of agent code must not read or answer for the worker.
        self._socket.close()


class _Inside:
    """Marks the main thread as inside the channel, where neither an interrupt nor agent code's handlers may raise.

    What came meanwhile raises at the end of the outermost one.
    """

    __slots__ = ("_channel", "_holds", "_marks")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._marks = get_ident() == channel._main and not channel._inside
        self._holds = False

    def __enter__(self) -> None:
        if self._marks:
            self._holds = self._channel.signals.hold()
            self._channel._inside = True

    def __exit__(self, *_error: object) -> None:
        if not self._marks:
            return
        channel = self._channel
        channel._inside = False
        if self._holds:
            channel.signals.release()
        channel.deliver_interrupt()
        if self._holds:
            channel.signals.raise_arrived()
