"""Statistics of a numpy array of any strides, byte order and numeric type, taken piece by piece."""

import math
from typing import Any

from instruments.moments import Moments

#: Values in a piece: 1 MiB in double precision.
_PIECE_VALUES = 1 << 17
_NUMERIC = "biufc"


def array_statistics(numpy: Any, array: Any) -> tuple[Moments | None, str]:
    """The moments of an array, and what they are of or why there are none; subclasses count as plain arrays."""
    plain = numpy.ndarray.view(array, numpy.ndarray)
    if plain.dtype.kind not in _NUMERIC:
        return None, f"values of type {plain.dtype.name} have no statistics"
    # What broadcasting repeats takes no memory, and would take for ever.
    times = 1
    for axis, stride in enumerate(plain.strides):
        if stride == 0 and plain.shape[axis] > 1:
            times *= plain.shape[axis]
            plain = plain[(slice(None),) * axis + (slice(0, 1),)]
    moments = Moments()
    if plain.size:
        # Hands out what strides and byte order allow no view of in a buffer of this size.
        wide = {"b": "u1", "i": "i8", "u": "u8", "f": "f8", "c": "c16"}[plain.dtype.kind]
        order = {"flags": ["external_loop", "buffered"], "buffersize": _PIECE_VALUES}
        for piece in numpy.nditer(plain, op_dtypes=[wide], casting="unsafe", **order):
            moments.merge(_piece_moments(numpy, piece), times)
    notes = ["of the magnitudes"] if plain.dtype.kind == "c" else []
    if moments.nan_count or moments.inf_count:
        notes.append(f"of the {moments.count} finite values")
    return moments, ", ".join(notes)


def _piece_moments(numpy: Any, piece: Any) -> Moments:
    found = Moments()
    with numpy.errstate(all="ignore"):
        if not math.isfinite(abs(piece.sum(dtype=numpy.complex128 if piece.dtype.kind == "c" else numpy.float64))):
            found.nan_count, found.inf_count = int(numpy.isnan(piece).sum()), int(numpy.isinf(piece).sum())
            piece = piece[numpy.isfinite(piece)]
        if not piece.size:
            return found
        if piece.dtype.kind == "c":
            piece = numpy.abs(piece)
        found.count = piece.size
        found.low, found.high = piece.min().item(), piece.max().item()
        found.mean = float(piece.mean(dtype=numpy.float64))
        distances = piece - found.mean
        found.squares = float(distances.dot(distances))
    return found
