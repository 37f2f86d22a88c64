"""Run one cell of agent code and describe what happened."""

import ast
import os
from dataclasses import dataclass
from types import CodeType
from typing import Any

from worker.capture import StandardStreams
from worker.channel import Channel
from worker.failure import describe, innermost_cell_line, remember_source
from worker.interrupt import StepTimeout
from worker.namespace import Namespace, restore_builtins
from worker.protocol import RunFrame


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell did; the fields of a `result` frame.

    Attributes:
        exception: Headline and traceback of what ended the cell, None if it ran to its end.
        interrupted: The cell was ended by an interrupt of the service.
        locals: Names bound or changed, to previews.
        variables: Public names now, sorted.
        answer: The answer protocol, None unless `answer` was a dict.
    """

    id: int
    exception: str | None
    interrupted: bool
    locals: dict[str, str]
    variables: list[str]
    answer: dict[str, Any] | None


class CellRunner:
    """Runs cells one after the other in one namespace."""

    def __init__(self, channel: Channel, streams: StandardStreams, namespace: Namespace) -> None:
        self._channel = channel
        self._streams = streams
        self._namespace = namespace
        self._pid = os.getpid()
        self._count = 0
        self._running: int | None = None
        channel.deliver_interrupt = self._deliver

    def run(self, frame: RunFrame) -> CellResult:
        """Run one cell. Never raises for what agent code does, however it ends."""
        self._count += 1
        filename = f"<cell {self._count}>"
        remember_source(filename, frame.code)
        self._streams.restore()
        self._channel.interrupted_cell = None
        before = self._namespace.before(None)
        raised: BaseException | None = None
        interrupted = False
        try:
            self._running = frame.id
            self._channel.listen()
            tree = _parse(frame.code, filename)
            before = self._namespace.before(tree)
            self._execute(tree, filename)
        except BaseException as error:
            raised = error
        # From here a late interrupt finds nothing to raise in, except while agent code may run again.
        self._running = None
        put_back = restore_builtins()
        if os.getpid() != self._pid:
            self._end_child(raised)
        exception = None
        changed: dict[str, str] = {}
        answer: dict[str, Any] | None = None
        try:
            self._running = frame.id
            if raised is not None:
                interrupted = isinstance(raised, StepTimeout)
                exception = _timeout_text(raised, frame.limit_s) if interrupted else describe(raised)
            answer = self._namespace.answer()
            changed = self._namespace.changes(before)
        except StepTimeout as error:
            interrupted = True
            exception = _timeout_text(error, frame.limit_s)
        finally:
            self._running = None
        self._channel.ignore()
        # A frame of the cell may be the only thing that keeps agent objects alive.
        raised = None
        self._streams.flush()
        notes = put_back + self._namespace.restore() + self._streams.restore()
        if exception is not None:
            self._streams.print_error(exception + "\n")
        if notes:
            self._streams.print_error(f"note: put back after this step: {', '.join(notes)}\n")
        return CellResult(frame.id, exception, interrupted, changed, self._namespace.public_names(), answer)

    def names(self) -> list[str]:
        """Public names now, sorted."""
        return self._namespace.public_names()

    def lookup(self, names: list[str]) -> Any:
        """The value of the first of these variables that has one other than None; None when none has."""
        values = (self._namespace.values.get(name) for name in names)
        return next((value for value in values if value is not None), None)

    def _execute(self, tree: ast.Module, filename: str) -> None:
        body, tail = _split_tail(tree)
        values = self._namespace.values
        if body is not None:
            exec(_compile(body, filename, "exec"), values)
        if tail is not None:
            # "single" makes the interpreter echo the value as its own prompt does, through sys.displayhook.
            exec(_compile(tail, filename, "single"), values)

    def _deliver(self) -> None:
        if self._running is not None and self._channel.interrupted_cell == self._running:
            self._running = None
            raise StepTimeout

    def _end_child(self, raised: BaseException | None) -> None:
        # os.fork() in a cell: the child ends where the cell ends and never speaks for the worker.
        status = 0
        if isinstance(raised, SystemExit):
            status = raised.code if isinstance(raised.code, int) else int(raised.code is not None)
        elif raised is not None:
            self._streams.print_error(describe(raised) + "\n")
            status = 1
        self._streams.flush()
        os._exit(status & 0xFF)


def _parse(code: str, filename: str) -> ast.Module:
    tree = compile(code, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


def _compile(tree: ast.Module | ast.Interactive, filename: str, mode: str) -> CodeType:
    return compile(tree, filename, mode, dont_inherit=True)


def _split_tail(module: ast.Module) -> tuple[ast.Module | None, ast.Interactive | None]:
    """Separate a trailing expression, whose value the agent wants to see."""
    if module.body and isinstance(last := module.body[-1], ast.Expr):
        rest = ast.Module(module.body[:-1], module.type_ignores) if module.body[:-1] else None
        return rest, ast.Interactive([last])
    return module, None


def _timeout_text(raised: BaseException, limit_s: float) -> str:
    where = innermost_cell_line(raised)
    place = f" at {where}" if where is not None else ""
    cause = f"it ran longer than its limit of {limit_s:g} s"
    return f"StepTimeout: the step was interrupted{place}: {cause}. Variables are kept."
