"""Keeps signal handlers from raising where what they raise would be lost."""

# The public module turns every number into an enum member, which costs more than the calls themselves.
import _signal  # type: ignore[import-not-found]
import signal
from types import FrameType
from typing import Any

#: All that a process can handle.
SIGNALS = tuple(sorted(int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
# Bound by name: agent code may replace what the modules export.
get_handler, set_handler = _signal.getsignal, _signal.signal
_raise_signal = signal.raise_signal
# A handler that raises whenever it is put back is given up on.
_TRIES = 100


class HeldHandlers:
    """A context in which signals are only noted; their handlers run at its end. For the main thread.

    Python runs what modules registered for a fork right after it, in the middle
    of the call, and drops what is raised there. Blocking the signals would not
    do: the kernel gives them to another thread, and Python still runs the
    handler in the main one.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []

    def __enter__(self) -> None:
        """Raises what a handler raises that runs before it is held; then none is held."""
        try:
            for number in SIGNALS:
                handler = get_handler(number)
                if callable(handler):
                    self._handlers[number] = handler
                    set_handler(number, self._note)
        except BaseException:
            self._put_back()
            raise

    def __exit__(self, *_error: object) -> None:
        """Raises what the handlers of the signals that arrived raise."""
        raised = self._put_back()
        while self._arrived:
            try:
                _raise_signal(self._arrived.pop(0))
            except BaseException as error:
                raised = raised or error
        if raised is not None:
            raise raised

    def _put_back(self) -> BaseException | None:
        raised: BaseException | None = None
        for _ in range(_TRIES):
            try:
                while self._handlers:
                    # In this order: a handler that is back may raise out of the call, and the others stay known.
                    number = next(iter(self._handlers))
                    set_handler(number, self._handlers[number])
                    del self._handlers[number]
                break
            except BaseException as error:
                raised = raised or error
        return raised

    def _note(self, number: int, _frame: FrameType | None) -> None:
        # Like the kernel, which keeps one of each number.
        if number not in self._arrived:
            self._arrived.append(number)
