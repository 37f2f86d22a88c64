"""`repr` of any value in bounded time and length, whatever agent code made of it."""

import collections
import sys
from typing import Any

from worker.interrupt import StepTimeout

from instruments.data_text import array_repr, tensor_repr
from instruments.value_kind import type_name

_DEEPEST = 12
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
    collections.OrderedDict: ("OrderedDict({", "})"),
    collections.defaultdict: ("defaultdict({", "})"),
    collections.deque: ("deque([", "])"),
}
_EMPTY_IN_BRACKETS = (list, tuple, dict, collections.deque)


def bounded_repr(value: Any, limit: int) -> str:
    """`repr(value)`, cut to `limit` characters with "..." at the end.

    Raises:
        StepTimeout: The deadline came in a `__repr__`.
        BaseException: What a `__repr__` of the value itself raises; that of an item costs only the item.
    """
    return cut(_text(value, limit, 0), limit)


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def error_text(error: BaseException, limit: int) -> str:
    """`<Type>: <message>` in at most `limit` characters."""
    try:
        message = str.__str__(str(error))
    except StepTimeout:
        raise
    except BaseException as again:
        message = f"<no message: {type_name(again)}>"
    return cut(f"{type_name(error)}: {message}" if message else type_name(error), limit)


def _text(value: Any, room: int, depth: int) -> str:
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return repr(value[: room + 1])
    if kind is int and value.bit_length() > 4 * room:
        # Python refuses, or takes for ever, to write more than some thousand digits.
        return f"<int of {value.bit_length()} bits>"
    if kind in _BRACKETS:
        return _container_text(value, room, depth)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        return tensor_repr(torch, value)
    if numpy is not None and kind is numpy.ndarray:
        return array_repr(numpy, value)
    return str.__str__(repr(value))


def _container_text(value: Any, room: int, depth: int) -> str:
    kind = type(value)
    opening, closing = _BRACKETS[kind]
    if not value:
        return opening + closing if kind in _EMPTY_IN_BRACKETS else f"{kind.__name__}()"
    if depth == _DEEPEST:
        return f"{opening}...{closing}"
    mapping = issubclass(kind, dict)
    parts: list[str] = []
    left = room
    for item in value.items() if mapping else value:
        if left <= 0:
            parts.append("...")
            break
        if mapping:
            part = f"{_item_text(item[0], left, depth)}: {_item_text(item[1], left, depth)}"
        else:
            part = _item_text(item, left, depth)
        parts.append(part)
        left -= len(part) + 2
    comma = "," if kind is tuple and len(value) == 1 else ""
    return opening + ", ".join(parts) + comma + closing


def _item_text(value: Any, room: int, depth: int) -> str:
    try:
        return cut(_text(value, room, depth + 1), room + 3)
    except StepTimeout:
        raise
    except BaseException as error:
        return f"<{type_name(value)} without repr: {type_name(error)}>"
