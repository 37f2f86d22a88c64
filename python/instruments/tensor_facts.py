"""What is reported of tensors, modules, arrays and numbers: each field is written when it is found."""

import itertools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from worker.interrupt import StepTimeout

from instruments.array_statistics import array_statistics
from instruments.bounded_text import error_text
from instruments.moments import Moments, constant
from instruments.tensor_statistics import own_methods, tensor_statistics
from instruments.value_kind import is_instance

_T = TypeVar("_T")
#: Modules are told with this many parameters.
MAX_PARAMETERS = 20
_MAX_COUNTED = 10_000
_MAX_NOTE_CHARS = 200
#: Stands in a shape for a dimension that has no one size.
RAGGED = -1


def write_tensor(torch: Any, tensor: Any, report: dict[str, Any]) -> None:
    """Write what a tensor is, and the statistics of it and of its gradient."""
    base = torch._C.TensorBase
    with own_methods(torch):
        for name in ("dtype", "device", "layout"):
            report[name] = _or_none(_attribute_text, base, tensor, name)
        report["shape"] = tensor_shape(torch, tensor)
        report["numel"] = _or_none(lambda: int(base.numel(tensor)))
        report["requires_grad"] = _or_none(lambda: bool(base.requires_grad.__get__(tensor)))
        gradient = _or_none(lambda: _gradient(base, tensor))
        report["grad_is_none"] = gradient is None
        moments, report["statistics_note"] = _moments(torch, tensor)
        write_moments(moments, report)
        if gradient is not None:
            moments, note = _moments(torch, gradient)
            report["grad_norm"] = None if moments is None else moments.norm()
            if note:
                report["statistics_note"] = "; ".join(filter(None, [report["statistics_note"], f"gradient: {note}"]))


def write_module(torch: Any, module: Any, report: dict[str, Any]) -> None:
    """Write the parameters of a module, and the fields of a tensor from its weight, or else its first parameter."""
    try:
        named = list(itertools.islice(torch.nn.Module.named_parameters(module), _MAX_COUNTED))
    except StepTimeout:
        raise
    except BaseException as error:
        report["statistics_note"] = f"its parameters can not be listed: {error_text(error, _MAX_NOTE_CHARS)}"
        return
    sizes = [_or_none(_size_of, torch, each) for _, each in named]
    report["parameter_count"] = sum(size or 0 for size in sizes)
    first = _weight(torch, module, named)
    if first is None:
        report["statistics_note"] = "the module has no parameters"
    else:
        write_tensor(torch, first, report)
    report["parameters"] = rows = []
    for name, parameter in named[:MAX_PARAMETERS]:
        facts: dict[str, Any] = {"grad_norm": None}
        write_tensor(torch, parameter, facts)
        rows.append(
            {
                "name": str(name)[:_MAX_NOTE_CHARS],
                **{field: facts[field] for field in ("shape", "requires_grad", "grad_norm")},
                **{field: facts[f"{field}_val"] for field in ("min", "max", "mean")},
            }
        )


def _weight(torch: Any, module: Any, named: list[tuple[str, Any]]) -> Any:
    """The parameter of that name, else what a parametrized module computes as its weight, else the first parameter."""
    own = next((each for name, each in named if name == "weight"), None)
    if own is not None:
        return own
    computed = _or_none(getattr, module, "weight")
    return computed if is_instance(computed, torch.Tensor) else named[0][1] if named else None


def write_array(array: Any, report: dict[str, Any]) -> None:
    """Write what a numpy array is, and its statistics."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray.view(array, numpy.ndarray)
    report.update(shape=list(plain.shape), dtype=str(plain.dtype)[:_MAX_NOTE_CHARS], numel=plain.size, device="cpu")
    report.update(requires_grad=False, grad_is_none=True)
    moments, report["statistics_note"] = array_statistics(numpy, plain)
    write_moments(moments, report)


def write_number(value: Any, report: dict[str, Any]) -> None:
    """Write what a number of Python or numpy is, and its statistics."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        write_array(numpy.asarray(value), report)
        return
    report.update(shape=[], dtype=type(value).__name__, numel=1, requires_grad=False, grad_is_none=True)
    moments = Moments()
    try:
        magnitude = float(abs(value) if type(value) is complex else value)
    except OverflowError:
        report["statistics_note"] = "the number is beyond a double"
        return
    if magnitude != magnitude:
        moments.nan_count = 1
    elif magnitude in (float("inf"), float("-inf")):
        moments.inf_count = 1
    else:
        moments = constant(value if type(value) is int else magnitude, 1)
    report["statistics_note"] = "of the magnitudes" if type(value) is complex else ""
    write_moments(moments, report)


def write_moments(moments: Moments | None, report: dict[str, Any]) -> None:
    """Write the fields of statistics, None for those that are not known."""
    known = moments is not None
    found = moments or Moments()
    report.update(
        min_val=found.low,
        max_val=found.high,
        mean_val=found.finite_mean(),
        std_val=found.std(),
        is_nan=found.nan_count > 0 if known else None,
        is_inf=found.inf_count > 0 if known else None,
        nan_count=found.nan_count if known else None,
        inf_count=found.inf_count if known else None,
    )


def tensor_shape(torch: Any, tensor: Any) -> list[int] | None:
    """The shape that torch itself knows; RAGGED where a dimension has no one size, None where there is no shape."""
    base = torch._C.TensorBase
    if _is_uninitialized(torch, tensor):
        return None
    with own_methods(torch):
        if not base.is_nested.__get__(tensor):
            return _or_none(lambda: [int(size) for size in base.size(tensor)])
        dims = _or_none(lambda: int(base.dim(tensor))) or 0
        return _or_none(lambda: [_size(base, tensor, dim) for dim in range(dims)])


def _size(base: Any, tensor: Any, dim: int) -> int:
    try:
        size = base.size(tensor, dim)
    except RuntimeError:
        return RAGGED
    return size if type(size) is int else RAGGED


def _gradient(base: Any, tensor: Any) -> Any:
    # torch warns of asking where it keeps none.
    if base.is_leaf.__get__(tensor) or base.retains_grad.__get__(tensor):
        return base.grad.__get__(tensor)
    return None


def _moments(torch: Any, tensor: Any) -> tuple[Moments | None, str]:
    if _is_uninitialized(torch, tensor):
        return None, "an uninitialized parameter has no data"
    try:
        # Without the methods of a subclass; sparse and nested tensors have no other form, and need none.
        own = type(tensor) in (torch.Tensor, torch.nn.Parameter) or torch._C.TensorBase.is_nested.__get__(tensor)
        found = tensor_statistics(torch, tensor if own else torch._C.TensorBase.as_subclass(tensor, torch.Tensor))
    except StepTimeout:
        raise
    except BaseException as error:
        return None, f"no statistics: {error_text(error, _MAX_NOTE_CHARS)}"
    return found.moments, found.note


def _is_uninitialized(torch: Any, tensor: Any) -> bool:
    return is_instance(tensor, torch.nn.parameter.UninitializedTensorMixin)


def _attribute_text(base: Any, tensor: Any, name: str) -> str:
    return str(getattr(base, name).__get__(tensor))


def _size_of(torch: Any, tensor: Any) -> int:
    return int(torch._C.TensorBase.numel(tensor))


def _or_none(read: Callable[..., _T], *arguments: Any) -> _T | None:
    try:
        return read(*arguments)
    except StepTimeout:
        raise
    except BaseException:
        return None
