"""Runs the text of a probed script in this process, in the variables it is given."""

import linecache
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from worker.interrupt import StepTimeout

SCRIPT_NAME = "train.py"
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MAX_ERROR_CHARS = 1_000
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
    # A None time keeps the lines from being checked against a file.
    linecache.cache[SCRIPT_NAME] = (len(code), None, code.splitlines(True), SCRIPT_NAME)
    try:
        _exec(_compile(code, SCRIPT_NAME, "exec", dont_inherit=True), values)
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
    return f"{type(raised).__name__}: {line}"[:_MAX_ERROR_CHARS]


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
