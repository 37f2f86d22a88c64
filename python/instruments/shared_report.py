"""A page of memory through which a forked child tells its parent what it has found so far."""

import json
import math
import mmap
import struct
from types import TracebackType
from typing import Any

#: Enough for every report an instrument writes; pages cost memory only once they are written.
SLOT_BYTES = 2 << 20

# One machine word says which slot is whole and how long its text is.
_HEADER = struct.Struct("=Q")
_SECOND_SLOT = 1 << 63


class SharedReport:
    """JSON in anonymous memory that stays shared over a fork.

    An update goes to the slot that is not being read and becomes visible with
    the header's one word, so the last whole report is there wherever the child
    was killed. Agent code that runs in the child can write here too: what is
    read is no evidence.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _HEADER.size + 2 * SLOT_BYTES)

    def write(self, report: dict[str, Any]) -> None:
        """Replace the report. Floats that are not finite become null, as JSON has none.

        Raises:
            ValueError: The text is longer than `SLOT_BYTES`.
            TypeError: A value is none that JSON knows.
        """
        text = _text(report).encode()
        if len(text) > SLOT_BYTES:
            raise ValueError(f"a report of {len(text)} bytes does not fit {SLOT_BYTES}")
        (header,) = _HEADER.unpack_from(self._memory)
        second = not header & _SECOND_SLOT
        start = _HEADER.size + second * SLOT_BYTES
        self._memory[start : start + len(text)] = text
        _HEADER.pack_into(self._memory, 0, len(text) | (_SECOND_SLOT if second else 0))

    def read(self) -> dict[str, Any]:
        """The last whole report; empty when nothing was written, or when what stands there is none."""
        (header,) = _HEADER.unpack_from(self._memory)
        start = _HEADER.size + bool(header & _SECOND_SLOT) * SLOT_BYTES
        try:
            report = json.loads(self._memory[start : start + min(header & ~_SECOND_SLOT, SLOT_BYTES)] or b"{}")
        except (ValueError, RecursionError):
            # Agent code scribbled over it.
            return {}
        return report if isinstance(report, dict) else {}

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def __enter__(self) -> "SharedReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _text(report: dict[str, Any]) -> str:
    try:
        return json.dumps(report, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(report), allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
