"""Makes what an instrument wrote fit for a frame: JSON values only, bounded in depth and number."""

import math
from typing import Any

_MAX_DEPTH = 12
_MAX_VALUES = 100_000
#: Whole numbers beyond it lose digits in the service.
_MAX_EXACT = 2**53 - 1


def plain_report(report: dict[str, Any]) -> dict[str, Any]:
    """A copy of JSON values only: NaN and infinities become None, what JSON doesn't know its type's name.

    Raises:
        ValueError: It is nested deeper, or holds more values, than a frame should.
    """
    left = [_MAX_VALUES]
    return {str(name): _plain(value, 0, left) for name, value in report.items()}


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > _MAX_DEPTH or left[0] < 0:
        raise ValueError(f"a report holds at most {_MAX_VALUES} values, {_MAX_DEPTH} deep")
    # Exact types: a subclass made by agent code may have methods of its own.
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_MAX_EXACT <= value <= _MAX_EXACT else float(max(min(value, 2**1000), -(2**1000)))
    if kind is float:
        return value if math.isfinite(value) else None
    if kind in (list, tuple):
        return [_plain(item, depth + 1, left) for item in value]
    if kind is dict:
        return {str(key): _plain(item, depth + 1, left) for key, item in value.items()}
    return f"<{kind.__name__}>"
