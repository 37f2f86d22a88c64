"""An exception of agent code, as text: its own frames only, with the right lines."""

import linecache
import os
import traceback
from io import StringIO
from types import TracebackType

from worker.interrupt import StepTimeout

MAX_CHARS = 8_192
CELL_PREFIX = "<cell "
#: The worker and the instruments.
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def remember_source(filename: str, source: str) -> None:
    """Let tracebacks show the lines of a cell; a None time keeps them out of cache checks."""
    if type(getattr(linecache, "cache", None)) is not dict:
        linecache.cache = {}
    linecache.cache[filename] = (len(source), None, source_lines(source), filename)


def source_lines(source: str) -> list[str]:
    """The lines of a program as Python counts them; `str.splitlines` ends them at more characters."""
    return StringIO(source, newline=None).readlines()


def describe(raised: BaseException) -> str:
    """`<Type>: <message>` on the first line, then the traceback that starts at the agent's first frame."""
    try:
        report = traceback.TracebackException.from_exception(raised, compact=True)
        _keep_agent_frames(report)
        headline = _headline(raised)
        body = "".join(report.format())
    except StepTimeout:
        raise
    except BaseException as error:
        return f"{type(raised).__name__}: <no message: {type(error).__name__} while it was formatted>"
    return _cut(f"{headline}\n{body}".rstrip("\n"))


def innermost_cell_line(raised: BaseException) -> str | None:
    """Where in the agent's code an exception hit: `<cell 3>, line 7`."""
    found = None
    link: TracebackType | None = raised.__traceback__
    while link is not None:
        filename = link.tb_frame.f_code.co_filename
        if filename.startswith(CELL_PREFIX):
            found = f"{filename}, line {link.tb_lineno}"
        link = link.tb_next
    return found


def _headline(raised: BaseException) -> str:
    name = type(raised).__name__
    try:
        message = str(raised)
    except StepTimeout:
        raise
    except BaseException:
        message = "<exception str() failed>"
    if isinstance(raised, SyntaxError):
        message = raised.msg or message
    first_line = message.splitlines()[0] if message else ""
    return f"{name}: {first_line}" if first_line else f"{name}:"


def _keep_agent_frames(report: traceback.TracebackException) -> None:
    seen: set[int] = set()
    todo: list[traceback.TracebackException | None] = [report]
    while todo:
        part = todo.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        first = next((i for i, frame in enumerate(part.stack) if frame.filename.startswith(CELL_PREFIX)), None)
        # Frames of the worker stand before the first cell frame; without one the code never ran.
        # Those after it are of helpers, which is not code the agent could mend.
        rest = [] if first is None else list(part.stack)[first:]
        kept = [frame for frame in rest if not frame.filename.startswith(_OWN_FOLDER)]
        part.stack[:] = kept
        todo += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or [])]


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return f"{text[:half]}\n... ({len(text)} characters in all)\n{text[-half:]}"
