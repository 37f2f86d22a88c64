"""Evaluates one Python expression of the agent's among the variables of a cell."""

from types import CodeType
from typing import Any

from worker.interrupt import StepTimeout

from instruments.bounded_text import error_text

MAX_CHARS = 500
_FILENAME = "<expression>"
_eval = eval
_compile = compile


class ExpressionError(Exception):
    """There is no value; the message is for the agent."""


def evaluate(expression: str, values: dict[str, Any], *, limit: int) -> Any:
    """The value of an expression.

    Args:
        limit: Most characters of the message of an error.

    Raises:
        ExpressionError: It is empty, too long or no expression, or it raised.
        StepTimeout: The deadline came while it ran.
    """
    text = expression.strip()
    if not text:
        raise ExpressionError("Expression is empty")
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"Expression has {len(text)} characters, expected at most {MAX_CHARS}")
    try:
        return _eval(_code(text), values)
    except StepTimeout:
        raise
    except BaseException as error:
        prefix = "Failed to evaluate expression: "
        raise ExpressionError(prefix + error_text(error, limit - len(prefix))) from None


def _code(text: str) -> CodeType:
    try:
        return _compile(text, _FILENAME, "eval", dont_inherit=True)
    except SyntaxError as error:
        problem = error.msg
    try:
        _compile(text, _FILENAME, "exec", dont_inherit=True)
    except SyntaxError:
        raise SyntaxError(problem) from None
    raise SyntaxError("expected one expression, got a statement")
