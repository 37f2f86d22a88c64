"""The instrument `variable_state`: the values of some expressions of the agent's, one by one."""

import math
import sys
from typing import Any

from worker.instrument import Scene
from worker.interrupt import StepTimeout

from instruments.arguments import texts_argument
from instruments.bounded_text import bounded_repr, cut, error_text
from instruments.expression import ExpressionError, evaluate
from instruments.tensor_data import why_no_data
from instruments.tensor_facts import tensor_shape
from instruments.value_kind import is_instance, kind_of, type_name

MAX_EXPRESSIONS = 10
#: Of those that are too many, which are answered all the same.
_MAX_REFUSED = 100
MAX_REPR_CHARS = 500
MAX_TEXT_CHARS = 200
#: Whole numbers beyond it lose digits as JSON numbers.
_MAX_EXACT = 2**53 - 1


def variable_state(scene: Scene, arguments: dict[str, Any]) -> None:
    """Evaluate `expressions` and report `results`: for each a repr, type, value, shape and error.

    `value` is a number, a truth value or None as it is, a text as it is up to 200 characters,
    and the text of anything else. `shape` is that of tensors and arrays.

    Raises:
        TypeError: `expressions` is no list of texts.
        StepTimeout: The deadline came; the results until then are reported.
    """
    expressions = list(dict.fromkeys(texts_argument(arguments, "expressions")))
    results: dict[str, Any] = {}
    scene.report["results"] = results
    for expression in expressions[:MAX_EXPRESSIONS]:
        results[expression] = _state(scene, expression)
    for expression in expressions[MAX_EXPRESSIONS : MAX_EXPRESSIONS + _MAX_REFUSED]:
        results[expression] = _failed(f"not evaluated: at most {MAX_EXPRESSIONS} expressions a call")


def _state(scene: Scene, expression: str) -> dict[str, Any]:
    try:
        value = evaluate(expression, scene.values, limit=MAX_TEXT_CHARS)
    except ExpressionError as error:
        return _failed(str(error))
    state = _failed(None) | {"type": type_name(value), "shape": _shape(value)}
    try:
        state["repr"] = bounded_repr(value, MAX_REPR_CHARS)
    except StepTimeout:
        raise
    except BaseException as error:
        state["error"] = cut(f"repr failed: {error_text(error, MAX_TEXT_CHARS)}", MAX_TEXT_CHARS)
        state["repr"] = f"<{type_name(value)} without repr: {type_name(error)}>"
    state["value"] = _plain_value(value, state["repr"])
    return state


def _failed(error: str | None) -> dict[str, Any]:
    return {"repr": "", "type": "", "value": None, "shape": None, "error": error}


def _plain_value(value: Any, text: str) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int and -_MAX_EXACT <= value <= _MAX_EXACT:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is str:
        return cut(value, MAX_TEXT_CHARS)
    item = _single_item(value)
    return cut(text, MAX_TEXT_CHARS) if item is None else item


def _single_item(value: Any) -> Any:
    """The number in a tensor without dimensions, or the Python number of one of numpy; None if there is none."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    item: Any = None
    try:
        if torch is not None and type(value) is torch.Tensor and value.dim() == 0:
            item = value.item() if why_no_data(torch, value) is None else None
        elif numpy is not None and is_instance(value, numpy.generic):
            item = numpy.generic.item(value)
    except StepTimeout:
        raise
    except BaseException:
        # Such as a tensor on the meta device, which has no number; its text says so.
        return None
    kind = type(item)
    if kind is bool or (kind is int and abs(item) <= _MAX_EXACT) or (kind is float and math.isfinite(item)):
        return item
    return None


def _shape(value: Any) -> list[int] | None:
    kind = kind_of(value)
    if kind in ("tensor", "parameter"):
        return tensor_shape(sys.modules["torch"], value)
    if kind == "array":
        numpy = sys.modules["numpy"]
        return list(numpy.ndarray.view(value, numpy.ndarray).shape)
    return None
