"""Run one cell of agent code and describe what happened."""

import ast
import threading
from collections.abc import Callable
from dataclasses import dataclass
from os import _exit, getpid
from sys import getrecursionlimit, setprofile, setrecursionlimit, settrace
from types import CodeType
from typing import Any, TypeVar

from worker.capture import StandardStreams
from worker.channel import Channel
from worker.failure import describe, innermost_cell_line, remember_source
from worker.instrument import Scene, find_instrument
from worker.interrupt import StepTimeout
from worker.namespace import Before, Namespace, restore_builtins
from worker.protocol import RunFrame
from worker.report import plain_report

_T = TypeVar("_T")
# Bound by name, like all that is called before the built-ins are back.
_exec = exec
#: How deep the worker itself must be able to call.
_RECURSION_LIMIT = getrecursionlimit()
# A handler of agent code raises at most once per signal; more than this is one that never stops.
_TRIES = tuple(range(100))


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell did; the fields of a `result` frame.

    Attributes:
        exception: Headline and traceback of what ended the cell, None if it ran to its end.
        interrupted: The cell was ended by an interrupt of the service.
        locals: Names bound or changed, to previews.
        variables: Public names now, sorted.
        answer: The answer protocol, None unless `answer` was a dict.
        report: What the instrument of the cell wrote, None without one.
    """

    id: int
    exception: str | None
    interrupted: bool
    locals: dict[str, str]
    variables: list[str]
    answer: dict[str, Any] | None
    report: dict[str, Any] | None


class CellRunner:
    """Runs cells one after the other, in one namespace unless a cell brings its own."""

    def __init__(self, channel: Channel, streams: StandardStreams, namespace: Namespace, work: str) -> None:
        self._channel = channel
        self._streams = streams
        self._lasting = self._namespace = namespace
        self._work = work
        self._scene: Scene | None = None
        self._pid = getpid()
        self._count = 0
        self._cell = 0
        # The cell an interrupt may raise in at this moment; None while the worker works for itself.
        self._running: int | None = None
        self._late: StepTimeout | None = None
        self._before = Before({}, {})
        self._put_back: list[str] = []
        self._notes: list[str] = []
        channel.deliver_interrupt = self._deliver
        channel.signals.hold()

    def run(self, frame: RunFrame, namespace: Namespace | None = None) -> CellResult:
        """Run one cell. What agent code raises, in the cell or while it is described, is told in the result.

        Args:
            namespace: For this cell alone; None is the lasting one.

        Raises:
            OSError: The worker's own descriptors are gone.
        """
        self._count += 1
        self._cell, self._late, self._before = frame.id, None, Before({}, {})
        self._put_back, self._notes = [], []
        self._namespace = namespace or self._lasting
        self._scene = None if frame.instrument is None else Scene(self._namespace.values, self._work)
        raised: BaseException | None = None
        try:
            self._attempt(frame)
        except BaseException as error:
            raised = error
        for _ in _TRIES:
            # A last interrupt, handler or trace function may raise in here, and then belongs to the cell.
            try:
                self._leave()
                break
            except BaseException as error:
                raised = error if raised is None else raised
        if getpid() != self._pid:
            self._end_child(raised)
        # Handed over in a list: a frame of the cell may be all that keeps agent objects alive.
        ends = [raised] if raised is not None else []
        raised = None
        return self._describe(ends)

    def names(self) -> list[str]:
        """Public names now, sorted."""
        return self._lasting.public_names()

    def lookup(self, names: list[str]) -> Any:
        """The value of the first of these variables that has one other than None; None when none has."""
        values = (self._lasting.values.get(name) for name in names)
        return next((value for value in values if value is not None), None)

    def _attempt(self, frame: RunFrame) -> None:
        filename = f"<cell {self._count}>"
        remember_source(filename, frame.code)
        self._streams.restore()
        self._namespace.enter()
        self._running = self._cell
        self._channel.listen()
        tree = _parse(frame.code, filename)
        try:
            self._before = self._namespace.before(tree)
        except Exception as error:
            self._notes.append(f"every variable counts as changed in this step ({type(error).__name__})")
        codes = _compile(tree, filename)
        values = self._namespace.values
        self._channel.signals.release()
        self._channel.signals.raise_arrived()
        for code in codes:
            _exec(code, values)
        if frame.instrument is not None and self._scene is not None:
            find_instrument(frame.instrument)(self._scene, frame.arguments)

    def _leave(self) -> None:
        """Take agent code's hands off the worker; safe to repeat when something raises in the middle."""
        settrace(None)
        setprofile(None)
        self._running = None
        self._put_back = restore_builtins() or self._put_back
        self._lasting.enter()
        if getrecursionlimit() < _RECURSION_LIMIT:
            setrecursionlimit(_RECURSION_LIMIT)
            self._put_back = [*self._put_back, "recursion limit"]
        self._channel.signals.hold()
        threading.settrace(None)
        threading.setprofile(None)

    def _describe(self, ends: list[BaseException]) -> CellResult:
        told = "Exception: <it could not be described>" if ends else None
        exception: str | None = self._part("the exception", lambda: _text(ends), told)
        interrupted = bool(ends) and type(ends[0]) is StepTimeout
        answer = self._part("the answer", self._namespace.answer, None)
        changed: dict[str, str] = self._part("the changed variables", lambda: self._namespace.changes(self._before), {})
        report: dict[str, Any] | None = self._part("the report", self._report, None)
        self._part("the frames of the cell", ends.clear, None)
        unflushed: list[str] = self._part("the output", self._streams.flush, [])
        reserved: list[str] = self._part("the reserved names", self._namespace.restore, [])
        names: list[str] = self._part("the names", self._lasting.public_names, [])
        self._channel.ignore()
        put_back = self._put_back + reserved + self._streams.restore()
        if self._late is not None:
            exception, interrupted = _timeout_text(self._late), True
            self._late = None
        if exception is not None:
            self._streams.print_error(exception + "\n")
        if put_back:
            self._notes.append(f"put back after this step: {', '.join(put_back)}")
        self._notes += [f"could not be flushed: {stream}" for stream in unflushed]
        for note in self._notes:
            self._streams.print_error(f"note: {note}\n")
        return CellResult(self._cell, exception, interrupted, changed, names, answer, report)

    def _report(self) -> dict[str, Any] | None:
        return None if self._scene is None else plain_report(self._scene.report)

    def _part(self, what: str, work: Callable[[], _T], fallback: _T) -> _T:
        """Do one part of a result, in which agent code may run; what it raises costs this part only."""
        try:
            self._running = self._cell
            # One that came while nothing could raise.
            self._deliver()
            return work()
        except StepTimeout as error:
            self._late = error
        except BaseException as error:
            self._running = None
            self._notes.append(f"{what} could not be taken ({type(error).__name__})")
        finally:
            self._running = None
        return fallback

    def _deliver(self) -> None:
        if self._running is not None and self._channel.interrupted_cell == self._running:
            # Once: what cleans up after it is not interrupted again.
            self._running = self._channel.interrupted_cell = None
            raise StepTimeout(self._channel.interrupt_cause)

    def _end_child(self, raised: BaseException | None) -> None:
        # os.fork() in a cell: the child ends where the cell ends and never speaks for the worker.
        status = 1
        try:
            if isinstance(raised, SystemExit):
                status = raised.code if isinstance(raised.code, int) else int(raised.code is not None)
            elif raised is not None:
                self._streams.print_error(describe(raised) + "\n")
            else:
                status = 0
            self._streams.flush()
        finally:
            _exit(status & 0xFF)


def _parse(code: str, filename: str) -> ast.Module:
    tree = compile(code, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


def _compile(module: ast.Module, filename: str) -> list[CodeType]:
    """Code of a cell; a trailing expression apart, whose value the agent wants to see."""
    parts: list[tuple[ast.Module | ast.Interactive, str]] = []
    body, last = module.body, module.body[-1:]
    if last and isinstance(last[0], ast.Expr):
        # "single" makes the interpreter echo the value as its own prompt does, through sys.displayhook.
        parts.append((ast.Interactive(last), "single"))
        body = body[:-1]
    if body or not parts:
        parts.insert(0, (ast.Module(body, module.type_ignores), "exec"))
    return [compile(tree, filename, mode, dont_inherit=True) for tree, mode in parts]


def _text(ends: list[BaseException]) -> str | None:
    if not ends:
        return None
    return _timeout_text(ends[0]) if type(ends[0]) is StepTimeout else describe(ends[0])


def _timeout_text(raised: BaseException) -> str:
    where = innermost_cell_line(raised)
    place = f" at {where}" if where is not None else ""
    return f"StepTimeout: the step was interrupted{place}: {raised.args[0]}. Variables are kept."
