"""Tells what a value of agent code is without running agent code: no `__class__`, no `isinstance`."""

import sys
from typing import Any, Literal

Kind = Literal["parameter", "tensor", "module", "array", "scalar", "other"]

_mro_of = type.__dict__["__mro__"].__get__
_name_of = type.__dict__["__name__"].__get__
_SCALARS = (bool, int, float, complex)


def type_name(value: Any) -> str:
    """The name of the type of a value, at most 100 characters."""
    name: str = _name_of(type(value))
    return name[:100]


def is_instance(value: Any, kind: type) -> bool:
    """`isinstance` that asks no metaclass and no `__class__` of the value."""
    return any(base is kind for base in _mro_of(type(value)))


def kind_of(value: Any) -> Kind:
    """What an instrument can say about a value; "other" is nothing numeric."""
    torch = sys.modules.get("torch")
    if torch is not None:
        if is_instance(value, torch.nn.Parameter):
            return "parameter"
        if is_instance(value, torch.Tensor):
            return "tensor"
        if is_instance(value, torch.nn.Module):
            return "module"
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if is_instance(value, numpy.ndarray):
            return "array"
        if is_instance(value, numpy.number) or is_instance(value, numpy.bool_):
            return "scalar"
    return "scalar" if type(value) in _SCALARS else "other"
