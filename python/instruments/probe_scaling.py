"""Losses as they were before a gradient scaler multiplied them."""

from typing import Any

#: Where a node of the graph keeps the scale; it lives as long as the node does.
_KEY = "instruments.probe_scaling"
#: How far below a loss its scaled part may be.
_MAX_DEPTH = 8


def remember_scale(scale: float, scaled: Any) -> None:
    """Take note of a scaled loss, or of a list of them."""
    for tensor in scaled if isinstance(scaled, list | tuple) else [scaled]:
        if tensor.grad_fn is not None:
            tensor.grad_fn.metadata[_KEY] = scale


def scale_of(tensor: Any) -> float:
    """What a scaler multiplied this tensor by, or a part that it was computed from a few operations before; else 1."""
    nodes = {tensor.grad_fn}
    for _ in range(_MAX_DEPTH):
        nodes.discard(None)
        for node in nodes:
            if _KEY in node.metadata:
                return float(node.metadata[_KEY])
        nodes = {following for node in nodes for following, _index in node.next_functions}
    return 1.0
