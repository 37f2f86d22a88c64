"""Text of tensors and arrays, of a size that can be told beforehand."""

import sys
from typing import Any

from instruments.tensor_data import why_no_data
from instruments.value_kind import is_instance

#: Elements that torch and numpy print in full.
_PRINTED_IN_FULL = 1000
_EDGE_ITEMS = 3
#: More than this are not formatted: many short dimensions are never summarized.
_MAX_FORMATTED = 3000
#: Some kinds of tensors are copied as a whole before a few of their values are printed.
_MAX_COPIED = 1 << 20


def tensor_repr(torch: Any, tensor: Any) -> str:
    """torch's own text of a tensor, whatever its subclass has; a shorter one where that would be long in the making.

    Raises:
        Exception: What torch raises where it can't print the tensor.
    """
    with torch._C.DisableTorchFunction(), torch.no_grad():
        nested = torch._C.TensorBase.is_nested.__get__(tensor)
        count = torch._C.TensorBase.numel(tensor)
        missing = why_no_data(torch, tensor)
        if not nested:
            shape = tuple(torch._C.TensorBase.size(tensor))
            most = sys.maxsize if _prints_in_place(torch, tensor) else _MAX_COPIED
            if missing is not None or not _is_printable(shape, count, most):
                return _tensor_summary(torch, tensor, shape)
        with torch._tensor_str.printoptions(threshold=_PRINTED_IN_FULL, edgeitems=_EDGE_ITEMS):
            try:
                text = torch._tensor_str._str(tensor)
            except Exception:
                # A subclass whose properties raise.
                text = torch._tensor_str._str(torch._C.TensorBase.as_subclass(tensor, torch.Tensor))
    prefix = "Parameter containing:\n" if is_instance(tensor, torch.nn.Parameter) else ""
    return prefix + str.__str__(text)


def _prints_in_place(torch: Any, tensor: Any) -> bool:
    base = torch._C.TensorBase
    dtype = base.dtype.__get__(tensor)
    if base.layout.__get__(tensor) is not torch.strided or base.is_quantized.__get__(tensor):
        return False
    if dtype.is_floating_point and dtype.itemsize < 2:
        return False
    lazy = base.is_neg(tensor) or base.is_conj(tensor) or base._is_zerotensor(tensor)
    return not lazy and base.device.__get__(tensor).type in ("cpu", "cuda")


def _tensor_summary(torch: Any, tensor: Any, shape: tuple[int, ...]) -> str:
    plain = torch._C.TensorBase.as_subclass(tensor, torch.Tensor)
    facts = f"shape={list(shape)}, dtype={plain.dtype}, device={str(plain.device)!r}"
    if why_no_data(torch, plain) or plain.layout is not torch.strided or plain.is_quantized or 0 in shape:
        layout = "" if plain.layout is torch.strided else f", layout={plain.layout}"
        return f"tensor(..., {facts}{layout})"
    for _ in shape[:-1]:
        plain = plain.select(0, 0)
    first = plain.narrow(0, 0, min(shape[-1], 2 * _EDGE_ITEMS)).tolist()
    return f"tensor([{', '.join(f'{item:.4g}' if type(item) is float else str(item) for item in first)}, ...], {facts})"


def array_repr(numpy: Any, array: Any) -> str:
    """numpy's text of an array, or a shorter one where that would be long in the making."""
    if array.dtype.kind == "O":
        return f"array(shape={list(array.shape)}, dtype=object)" if array.size > _EDGE_ITEMS else repr(array)
    if not _is_printable(array.shape, array.size, sys.maxsize):
        first = array[(0,) * (array.ndim - 1)][: 2 * _EDGE_ITEMS]
        return f"array([{', '.join(str(item) for item in first)}, ...], shape={list(array.shape)}, dtype={array.dtype})"
    with numpy.printoptions(threshold=_PRINTED_IN_FULL, edgeitems=_EDGE_ITEMS):
        return str.__str__(repr(array))


def _is_printable(shape: tuple[int, ...], count: int, most: int) -> bool:
    if count <= _PRINTED_IN_FULL:
        return True
    formatted = 1
    for size in shape:
        formatted *= min(size, 2 * _EDGE_ITEMS)
    return count <= most and formatted <= _MAX_FORMATTED
