"""The instrument `inspect_tensor`: what one expression of the agent's is, and its statistics."""

import sys
from collections import OrderedDict
from typing import Any

from worker.instrument import Scene
from worker.interrupt import StepTimeout

from instruments.arguments import text_argument
from instruments.bounded_text import bounded_repr, cut, error_text
from instruments.data_text import tensor_repr
from instruments.expression import ExpressionError, evaluate
from instruments.tensor_facts import write_array, write_module, write_number, write_tensor
from instruments.value_kind import Kind, kind_of, type_name

MAX_REPR_CHARS = 500
MAX_ERROR_CHARS = 500
_SIZED = (str, bytes, list, tuple, dict, set, frozenset, OrderedDict)
FIELDS = (
    *("error", "kind", "shape", "dtype", "device", "layout", "numel", "requires_grad", "grad_is_none", "grad_norm"),
    *("min_val", "max_val", "mean_val", "std_val", "is_nan", "is_inf", "nan_count", "inf_count", "statistics_note"),
    *("length", "parameter_count", "parameters", "repr"),
)


def inspect_tensor(scene: Scene, arguments: dict[str, Any]) -> None:
    """Evaluate `expression` and report each of FIELDS, None where the value has no such thing.

    Statistics are of the finite values, of the magnitudes of complex ones; `statistics_note` says so. Of a module
    they are those of its weight, or else of its first parameter, and `parameters` has more. `length` is that of
    a container, which is no tensor and so an error. `error` is None when there was something to inspect.

    Raises:
        TypeError: `expression` is no text.
        StepTimeout: The deadline came; what was found until then is reported.
    """
    expression = text_argument(arguments, "expression")
    report = scene.report
    report.update(dict.fromkeys(FIELDS), statistics_note="")
    try:
        value = evaluate(expression, scene.values, limit=MAX_ERROR_CHARS)
    except ExpressionError as error:
        report["error"] = str(error)
        return
    kind = kind_of(value)
    if kind == "other":
        report.update(_other_facts(value))
        return
    report["kind"] = kind
    _write(kind, value, report)
    report["repr"] = _repr(kind, value)


def _other_facts(value: Any) -> dict[str, Any]:
    name = type_name(value)
    length = len(value) if type(value) in _SIZED else None
    return {"kind": name, "length": length, "error": f"Expression is neither a tensor nor a module: {name}"}


def _write(kind: Kind, value: Any, report: dict[str, Any]) -> None:
    try:
        if kind == "array":
            write_array(value, report)
        elif kind == "scalar":
            write_number(value, report)
        elif kind == "module":
            write_module(sys.modules["torch"], value, report)
        else:
            write_tensor(sys.modules["torch"], value, report)
    except StepTimeout:
        raise
    except BaseException as error:
        report["error"] = f"The {kind} can not be inspected: {error_text(error, MAX_ERROR_CHARS - 50)}"


def _repr(kind: Kind, value: Any) -> str:
    try:
        if kind in ("tensor", "parameter"):
            return cut(tensor_repr(sys.modules["torch"], value), MAX_REPR_CHARS)
        return bounded_repr(value, MAX_REPR_CHARS)
    except StepTimeout:
        raise
    except BaseException as error:
        return f"<{type_name(value)} without repr: {type_name(error)}>"
