"""Statistics of a tensor of any layout and type, taken piece by piece, so that no copy of the whole is made."""

import contextlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from instruments.moments import Moments, constant
from instruments.tensor_data import why_no_data

#: Values in a piece: its copy in double precision takes 1 MiB, twice that for complex ones.
PIECE_VALUES = 1 << 17
#: Values that may be copied where a layout gives no other way.
COPIED_VALUES = 1 << 20
_HALF_RANGE = 1 << 63


@dataclass(frozen=True, slots=True)
class Statistics:
    """What was found.

    Attributes:
        moments: Of the finite values; None without any data.
        note: What they are of, if not of all values as they are; or why there are none.
    """

    moments: Moments | None
    note: str


@contextlib.contextmanager
def own_methods(torch: Any) -> Iterator[None]:
    """Let calls reach torch itself: no `__torch_function__` of subclasses, no gradients, no warnings."""
    with warnings.catch_warnings(), torch._C.DisableTorchFunction(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


def tensor_statistics(torch: Any, tensor: Any) -> Statistics:
    """The statistics of a plain `torch.Tensor`; call it under `own_methods`.

    Raises:
        Exception: What torch raises where it can't read the tensor.
    """
    missing = why_no_data(torch, tensor)
    if missing is not None:
        return Statistics(None, missing)
    moments, notes = Moments(), []
    if tensor.is_nested:
        for component in tensor.unbind():
            _add_strided(torch, moments, component)
    elif tensor.is_quantized:
        _add_quantized(torch, moments, tensor)
        notes.append("of the dequantized values")
    elif tensor.layout is torch.strided:
        _add_strided(torch, moments, tensor)
    elif tensor.layout is torch.sparse_coo:
        notes += _add_coordinates(torch, moments, tensor)
    elif tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        _add_sparse(torch, moments, tensor.values(), tensor.numel())
    elif tensor.numel() <= COPIED_VALUES:
        _add_strided(torch, moments, tensor.to_dense())
    else:
        return Statistics(None, f"layout {tensor.layout} can not be read without a copy of the whole")
    if tensor.is_complex():
        notes.append("of the magnitudes")
    if moments.nan_count or moments.inf_count:
        notes.append(f"of the {moments.count} finite values")
    return Statistics(moments, ", ".join(notes))


def pieces(tensor: Any, limit: int = PIECE_VALUES) -> Iterator[Any]:
    """Views that together are a strided tensor, of at most `limit` values each, near ones together."""
    count = tensor.numel()
    if count <= limit:
        yield tensor
        return
    sizes, strides = tensor.size(), tensor.stride()
    widest = max((dim for dim in range(len(sizes)) if sizes[dim] > 1), key=lambda dim: strides[dim])
    rows = max(1, limit // (count // sizes[widest]))
    for start in range(0, sizes[widest], rows):
        yield from pieces(tensor.narrow(widest, start, min(rows, sizes[widest] - start)), limit)


def _add_strided(torch: Any, moments: Moments, tensor: Any) -> None:
    # What expand() repeats takes no memory, and would take for ever.
    times = 1
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            times *= tensor.size(dim)
            tensor = tensor.narrow(dim, 0, 1)
    if tensor.numel() == 0:
        return
    for piece in pieces(tensor):
        moments.merge(_piece_moments(torch, piece if piece.device.type in ("cpu", "cuda") else piece.cpu()), times)


def _piece_moments(torch: Any, piece: Any) -> Moments:
    found = Moments()
    whole = not (piece.is_floating_point() or piece.is_complex() or piece.dtype is torch.bool)
    values = piece.to(torch.complex128 if piece.is_complex() else torch.float64).reshape(-1)
    total = values.sum().abs().item()
    # A finite sum has finite terms: looking at each costs more than all the rest.
    if not math.isfinite(total):
        finite = values.isfinite()
        found.nan_count, found.inf_count = values.isnan().sum().item(), values.isinf().sum().item()
        values = values[finite]
    if values.numel() == 0:
        return found
    values = values.abs() if piece.is_complex() else values
    found.count = values.numel()
    found.mean = values.mean().item()
    distances = values - found.mean
    found.squares = distances.dot(distances).item()
    if whole:
        found.low, found.high = _whole_ends(torch, piece)
    else:
        ends = values.aminmax()
        found.low, found.high = ends.min.item(), ends.max.item()
    return found


def _whole_ends(torch: Any, piece: Any) -> tuple[int, int]:
    """Extremes of whole numbers, which a double would round."""
    offset = 0
    if piece.dtype is torch.uint64:
        # torch compares no unsigned 64-bit numbers: with the top bit flipped the signed order is theirs.
        piece, offset = piece.view(torch.int64) ^ -_HALF_RANGE, _HALF_RANGE
    ends = piece.to(torch.int64).aminmax()
    return ends.min.item() + offset, ends.max.item() + offset


def _add_quantized(torch: Any, moments: Moments, tensor: Any) -> None:
    stored = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}[tensor.dtype]
    raw = torch.empty(0, dtype=stored, device=tensor.device)
    raw.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        channels = [(raw, tensor.q_scale(), tensor.q_zero_point())]
    else:
        axis = tensor.q_per_channel_axis()
        scales, zeros = tensor.q_per_channel_scales().tolist(), tensor.q_per_channel_zero_points().tolist()
        channels = [(raw.select(axis, i), scale, zeros[i]) for i, scale in enumerate(scales)]
    for channel, scale, zero in channels:
        found = Moments()
        _add_strided(torch, found, channel)
        moments.merge(found.stretched(scale, zero))


def _add_coordinates(torch: Any, moments: Moments, tensor: Any) -> list[str]:
    values = tensor._values()
    if not tensor.is_coalesced():
        if values.numel() > COPIED_VALUES:
            _add_strided(torch, moments, values)
            return ["of the stored values, which are not summed up where several are in one place"]
        values = tensor.coalesce()._values()
    _add_sparse(torch, moments, values, tensor.numel())
    return []


def _add_sparse(torch: Any, moments: Moments, values: Any, count: int) -> None:
    _add_strided(torch, moments, values)
    zero = 0.0 if values.is_floating_point() or values.is_complex() else 0
    moments.merge(constant(zero, count - values.numel()))
