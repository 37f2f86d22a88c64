"""What an interrupted cell feels, and how handlers of agent code are kept out of the worker's own work."""

# The public module turns every number into an enum member, which costs more than the calls themselves.
import _signal  # type: ignore[import-not-found]
import signal
from types import FrameType
from typing import Any

# Not those that can't be caught, those that end a broken process at once, and the worker's own.
_FATAL = {"SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}
_HOLDABLE = tuple(
    sorted(int(number) for number in signal.valid_signals() - {getattr(signal, name) for name in _FATAL | {"SIGIO"}})
)
_get_handler, _set_handler = _signal.getsignal, _signal.signal
_raise_signal = signal.raise_signal
_callable = callable


class StepTimeout(KeyboardInterrupt):
    """The step reached its deadline.

    A KeyboardInterrupt, so that `except Exception` in agent code lets it pass
    and everything that cleans up after Ctrl-C cleans up after it.
    """


class HeldSignals:
    """Stands in for the signal handlers of agent code while the worker works for itself.

    A handler may raise anywhere in the main thread. Blocking the signals would
    not do: the kernel gives them to another thread, and Python still runs the
    handler in the main one. Used by the main thread only.
    """

    def __init__(self) -> None:
        self._active = False
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []
        # One object: a bound method is a new one each time it is asked for.
        self._note = self._take_note

    def hold(self) -> bool:
        """Put a note-taker in the place of every handler; False when that is the case already.

        Raises:
            BaseException: What a handler of agent code raised just before it was replaced; nothing is held then.
        """
        if self._active:
            return False
        try:
            for number in _HOLDABLE:
                handler = _get_handler(number)
                if _callable(handler) and handler is not self._note:
                    self._handlers[number] = handler
                    _set_handler(number, self._note)
        except BaseException:
            self.release()
            raise
        self._active = True
        return True

    def release(self) -> None:
        """Put the handlers back; what arrived meanwhile waits for `raise_arrived`."""
        self._active = False
        for number in tuple(self._handlers):
            # In this order: a handler that is back may raise out of the call, and the others stay known.
            _set_handler(number, self._handlers[number])
            del self._handlers[number]

    def raise_arrived(self) -> None:
        """Run the handlers of the signals that arrived while they were held.

        Raises:
            BaseException: What a handler raises; the later ones wait for the next time.
        """
        while self._arrived:
            _raise_signal(self._arrived.pop(0))

    def _take_note(self, number: int, _frame: FrameType | None) -> None:
        # Like the kernel, which keeps one of each number.
        if number not in self._arrived:
            self._arrived.append(number)
