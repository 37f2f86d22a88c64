"""Numbers about tensors: they change nothing, draw nothing at random, and read each tensor once."""

import cmath
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

#: How many tensors of one output are looked at, and how deep in its lists and dicts.
_MAX_PARTS = 8
_MAX_DEPTH = 3


def norm_of(tensor: Any) -> float:
    """Euclidean norm of all stored values; not finite where a value is not."""
    torch = _torch()
    values = _stored(tensor)
    wide = torch.float32 if values.dtype in (torch.float16, torch.bfloat16) else None
    norm = float(torch.linalg.vector_norm(values, dtype=wide).item())
    if norm == math.inf and not values.is_complex() and values.dtype != torch.float64:
        # Squares overflow before the values do.
        norm = float(torch.linalg.vector_norm(values, dtype=torch.float64).item())
    return norm


def nonfinite_kind(tensor: Any) -> str | None:
    """`nan` if a value is NaN, `inf` if one is infinite and none NaN, None if all are finite or can't be otherwise."""
    torch = _torch()
    values = _stored(tensor)
    if not (values.is_floating_point() or values.is_complex()) or values.numel() == 0:
        return None
    # A sum needs no memory of the tensor's size; one that is finite has no value that is not.
    narrow = values.dtype in (torch.float16, torch.bfloat16)
    if cmath.isfinite(values.sum(dtype=torch.float32 if narrow else None).item()):
        return None
    if bool(torch.isnan(values).any()):
        return "nan"
    return "inf" if bool(torch.isinf(values).any()) else None


def sum_of(tensors: Any, weights: Any) -> float:
    """What a backward call differentiates: the sum of its tensors, each weighted by its gradient where one is given."""
    torch = _torch()
    roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    if weights is None or isinstance(weights, torch.Tensor):
        weights = [weights] * len(roots)
    total = 0.0
    for root, weight in zip(roots, weights, strict=False):
        value = root.detach()
        # One number is the loss itself, whatever weight its gradient has.
        value = value.sum() if weight is None or value.numel() == 1 else (value * weight).sum()
        total += float(value.real.item() if value.is_complex() else value.item())
    return total


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """The first few tensors of what a module took or returned."""
    if isinstance(value, _torch().Tensor):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, Mapping | list | tuple):
        parts = value.values() if isinstance(value, Mapping) else value
        for _, part in zip(range(_MAX_PARTS), parts, strict=False):
            yield from tensors_in(part, depth + 1)


def _stored(tensor: Any) -> Any:
    torch = _torch()
    values = tensor.detach()
    if values.layout == torch.sparse_coo:
        # Entries of one place add up only when coalesced.
        return values.coalesce().values()
    return values if values.layout == torch.strided else values.values()


def _torch() -> Any:
    # Not imported: a zygote without torch has this module too.
    return sys.modules["torch"]
