"""Bounded text for values that agent code made: nothing here may raise or grow without limit."""

import itertools
import sys
from typing import Any

from worker.interrupt import StepTimeout

LIMIT_CHARS = 500
UNREPRESENTABLE = "<unrepresentable>"
# Enough items to fill LIMIT_CHARS, since each takes at least two characters.
_ITEMS = LIMIT_CHARS // 2
_OPENINGS: dict[type, str] = {list: "[", tuple: "(", set: "{", frozenset: "frozenset({"}


def preview(value: Any) -> str:
    """`repr(value)` cut to LIMIT_CHARS, without building a huge one for a huge container."""
    try:
        text = _bounded_repr(value)
    except StepTimeout:
        raise
    except BaseException:
        return UNREPRESENTABLE
    return text if len(text) <= LIMIT_CHARS else text[:LIMIT_CHARS] + "..."


def fingerprint(value: Any) -> object:
    """A cheap value that changes when a mutable value is changed in place.

    Looks at sizes and at the identity of items, never at their `__eq__` or
    `__repr__`: it must not run agent code.
    """
    kind = type(value)
    if kind in (list, tuple):
        return len(value), tuple(map(id, value[:_ITEMS])), tuple(map(id, value[-_ITEMS:]))
    if kind in (dict, set, frozenset):
        return _table_fingerprint(value)
    if kind is bytearray:
        return len(value), bytes(value[:_ITEMS]), bytes(value[-_ITEMS:])
    torch = sys.modules.get("torch")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        # torch counts in-place writes of a tensor, except of one made in inference mode, where it refuses to say.
        return None if value.is_inference() else value._version
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except Exception:
        # No attributes, or a `__dict__` of the class's own making that fails: nothing to compare.
        return None
    return _table_fingerprint(attributes) if type(attributes) is dict else None


def _table_fingerprint(value: Any) -> object:
    try:
        first = itertools.islice(value.items() if type(value) is dict else value, 2 * _ITEMS)
        ids = [(id(key), id(item)) for key, item in first] if type(value) is dict else list(map(id, first))
    except RuntimeError:
        # A thread of the agent changes it right now: equal to no other fingerprint, so it counts as changed.
        return object()
    return len(value), ids


def _bounded_repr(value: Any) -> str:
    kind = type(value)
    if kind in (str, bytes, bytearray) and len(value) > LIMIT_CHARS:
        return repr(value[: LIMIT_CHARS + 1])[: LIMIT_CHARS + 1]
    if kind in (list, tuple, set, frozenset) and len(value) > _ITEMS:
        # The cut at LIMIT_CHARS falls before the closing bracket.
        return _OPENINGS[kind] + ", ".join(preview(item) for item in itertools.islice(value, _ITEMS))
    if kind is dict and len(value) > _ITEMS:
        pairs = itertools.islice(value.items(), _ITEMS)
        return "{" + ", ".join(f"{preview(key)}: {preview(item)}" for key, item in pairs)
    text = repr(value)
    return text if type(text) is str else str.__str__(text)
