"""What one optimizer step finds in the gradients and does to the parameters."""

import math
from collections.abc import Callable
from typing import Any

from instruments.probe_names import parameters_of
from instruments.probe_tensors import nonfinite_kind, norm_of

#: Copies of more than this are not made; with 4 bytes an element it is 256 MiB.
MAX_COPIED_ELEMENTS = 64 << 20

#: Takes a parameter and `nan` or `inf`.
Flag = Callable[[Any, str], None]


def gradient_norms(optimizer: Any, others: list[Any], flag: Flag) -> dict[int, float | None]:
    """Norms of the gradients as the optimizer finds them, by the id of the parameter; None where there is none.

    Args:
        optimizer: None for `others` alone.
        others: Parameters that no optimizer holds.
        flag: Called for each gradient that is not finite.
    """
    # Fused optimizers take the scale of mixed precision out themselves.
    scale = getattr(optimizer, "grad_scale", None)
    divisor = 1.0 if scale is None else float(scale)
    norms: dict[int, float | None] = {}
    for parameter in (*(parameters_of(optimizer) if optimizer is not None else ()), *others):
        gradient = parameter.grad
        norm = None if gradient is None else norm_of(gradient)
        norms[id(parameter)] = None if norm is None else norm / divisor
        if norm is not None and not math.isfinite(norm):
            _flag_kind(parameter, gradient, flag)
    return norms


class Updates:
    """Parameters as they were before a step.

    Attributes:
        copied: Whether they could be copied; there may be too many.
    """

    def __init__(self, parameters: list[Any]) -> None:
        self.copied = sum(parameter.numel() for parameter in parameters) <= MAX_COPIED_ELEMENTS
        self._before = [(parameter, parameter.detach().clone()) for parameter in parameters] if self.copied else []

    def ratios(self) -> dict[int, float | None]:
        """Norm of the change over norm before, by the id of the parameter.

        None where that is no number: a parameter that was all zero and moved, or is not finite now.
        """
        found: dict[int, float | None] = {}
        for parameter, before in self._before:
            moved, size = norm_of(parameter.detach() - before), norm_of(before)
            ratio = moved / size if size > 0 else (0.0 if moved == 0 else math.inf)
            found[id(parameter)] = ratio if math.isfinite(ratio) else None
        return found


def flag_parameters(optimizer: Any, flag: Flag) -> None:
    """Call `flag` for each parameter of the optimizer that is not finite."""
    for parameter in parameters_of(optimizer):
        _flag_kind(parameter, parameter, flag)


def _flag_kind(parameter: Any, tensor: Any, flag: Flag) -> None:
    kind = nonfinite_kind(tensor)
    if kind is not None:
        flag(parameter, kind)
