"""Runs the text of a probed script in this process, in the variables it is given."""

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from worker.failure import remember_source, source_lines
from worker.interrupt import StepTimeout

from instruments.script_run import SCRIPT_NAME

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MAX_ERROR_CHARS = 1_000
_BYTE_ORDER_MARK = "\ufeff"
_exec, _compile = exec, compile


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """How a script ended.

    Attributes:
        status: Exit status as an interpreter would have had it.
        stopped: `end`, `exit` (SystemExit), `error`, or `probe` when the probe itself ended it.
        error: Type and message of what ended it, None where nothing went wrong.
    """

    status: int
    stopped: str
    error: str | None = None


def run_probed(code: str, values: dict[str, Any], work: str, is_stopped: Callable[[], bool]) -> ScriptEnd:
    """Run a script; a traceback goes to stderr as an interpreter would print it.

    Args:
        values: Variables of its `__main__`.
        work: The folder that `__file__` lies in.
        is_stopped: Whether the probe has ended the script, whatever the script makes of that.

    Raises:
        StepTimeout: The step ended meanwhile.
    """
    values.update(__name__="__main__", __file__=os.path.join(work, SCRIPT_NAME))
    sys.argv[:] = [SCRIPT_NAME]
    remember_source(SCRIPT_NAME, code.removeprefix(_BYTE_ORDER_MARK))
    try:
        _exec(_compiled(code), values)
    except StepTimeout:
        raise
    except BaseException as raised:
        if is_stopped():
            return ScriptEnd(0, "probe")
        if isinstance(raised, SystemExit):
            return _exited(raised.code)
        _print(raised)
        return ScriptEnd(1, "error", _headline(raised))
    return ScriptEnd(0, "probe" if is_stopped() else "end")


def _compiled(code: str) -> CodeType:
    try:
        # Bytes, as in a file: a mark of byte order is none of the text, and a coding line counts.
        return _compile(code.encode("utf-8", "surrogatepass"), SCRIPT_NAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Python may have looked the line up in the file of that name, which holds another script.
        lines = source_lines(code.removeprefix(_BYTE_ORDER_MARK))
        if error.filename == SCRIPT_NAME and error.lineno is not None and 0 < error.lineno <= len(lines):
            error.text = lines[error.lineno - 1]
        raise


def _exited(code: object) -> ScriptEnd:
    if code is None or isinstance(code, int):
        status = int(code or 0) & 0xFF
    else:
        print(code, file=sys.stderr)
        status = 1
    return ScriptEnd(status, "exit", f"SystemExit: {code}"[:_MAX_ERROR_CHARS] if status else None)


def _headline(raised: BaseException) -> str:
    try:
        message = raised.msg if isinstance(raised, SyntaxError) else str(raised)
    except Exception as error:
        message = f"<no message: {type(error).__name__}>"
    line = next(iter(message.strip().splitlines()), "")
    name = type(raised).__name__
    return f"{name}: {line}"[:_MAX_ERROR_CHARS] if line else name


def _print(raised: BaseException) -> None:
    report = traceback.TracebackException.from_exception(raised)
    todo: list[traceback.TracebackException | None] = [report]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith(_OWN_FOLDER)]
        todo += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or [])]
    print("".join(report.format()), end="", file=sys.stderr)
