"""The frames that arrive from the service, as checked dataclasses.

One JSON object per line in each direction. The other half is
`src/executor/protocol.ts`; `PROTOCOL_VERSION` must be equal in both.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any

PROTOCOL_VERSION = 2

#: Longest line the service accepts from a worker.
MAX_FRAME_BYTES = 64 * 1024 * 1024
#: Longest text of an answer or a looked-up value, in characters, and in bytes as JSON escapes it.
MAX_ANSWER_CHARS = 8 * 1024 * 1024
#: Leaves 16 MiB of a `result` frame: 10,000 names of 100 characters at 12 bytes, 200 previews, one exception.
MAX_ANSWER_BYTES = 48 * 1024 * 1024

# A character outside the basic plane is escaped as two surrogates.
_MAX_BYTES_A_CHAR = 12
_PIECE_CHARS = 4096
# Made here, so that agent code which patches the json module changes no frame.
_encode = json.JSONEncoder(allow_nan=False).encode
_decode = json.JSONDecoder().decode


class FrameError(ValueError):
    """A line that is not a frame of this protocol; names the field and what was expected."""


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """Make the namespace of an episode.

    Attributes:
        id: Echoed in the `opened` frame.
        variables: Names to bind before the first cell.
        files: Files to write into the work folder, base64 by relative path.
        endings: Install `FINAL` and its kin and the `answer` dict.
        call_helpers: Call helpers to install (`llm_query`, ...).
        seed: Seeds every random source when given.
        threads: torch threads.
    """

    id: int
    variables: dict[str, str]
    files: dict[str, str]
    endings: bool
    call_helpers: list[str]
    seed: int | None
    threads: int


@dataclass(frozen=True, slots=True)
class RunFrame:
    """Run one cell.

    Attributes:
        code: Agent code.
        instrument: Name of the instrument to use when the code has run; None is none.
        arguments: What the instrument gets.
        fresh: Run in a namespace made for this cell alone.
    """

    id: int
    code: str
    instrument: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class InterruptFrame:
    """Interrupt the cell of this id, for this cause; ignored when it is not the running one."""

    id: int
    cause: str


@dataclass(frozen=True, slots=True)
class LookupFrame:
    """Ask for `str()` of the first of these variables that has a value."""

    id: int
    names: list[str]


@dataclass(frozen=True, slots=True)
class ReplyFrame:
    """Answer to a call of agent code: a JSON value, or the text of an error."""

    call: int
    value: Any
    error: str | None


ServiceFrame = OpenFrame | RunFrame | InterruptFrame | LookupFrame | ReplyFrame


def parse_frame(line: bytes) -> ServiceFrame:
    """Parse one line from the service.

    Raises:
        FrameError: The line is not JSON or not a known frame.
    """
    try:
        raw = _decode(line.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise FrameError(f"expected an object, got {type(raw).__name__}")
    kind = raw.get("type")
    if kind == "run":
        return _run_frame(raw)
    if kind == "interrupt":
        return InterruptFrame(_integer(raw, "id"), _text(raw, "cause"))
    if kind == "lookup":
        return LookupFrame(_integer(raw, "id"), _texts(raw, "names"))
    if kind == "reply":
        refusal = None if raw.get("error") is None else _text(raw, "error")
        return ReplyFrame(_integer(raw, "call"), raw.get("value"), refusal)
    if kind == "open":
        seed = None if raw.get("seed") is None else _integer(raw, "seed")
        return OpenFrame(
            _integer(raw, "id"),
            _text_by_name(raw, "variables"),
            _text_by_name(raw, "files"),
            _flag(raw, "endings"),
            _texts(raw, "call_helpers"),
            seed,
            _integer(raw, "threads"),
        )
    raise FrameError(f"type: unknown frame type {kind!r}")


def encode_frame(kind: str, **fields: Any) -> bytes:
    """One line for the service. Non-finite numbers are refused: JSON has none.

    Raises:
        ValueError: A field holds NaN or an infinity.
        FrameError: The frame is longer than the service accepts.
    """
    line = _encode({"type": kind, **fields}).encode("ascii")
    if len(line) > MAX_FRAME_BYTES:
        raise FrameError(f"{kind}: {len(line)} bytes is more than the {MAX_FRAME_BYTES} one frame may have")
    return line + b"\n"


def cut_answer(text: str) -> str:
    """The start of a text that is within both limits of an answer; escaped size is counted in whole pieces."""
    text = text[:MAX_ANSWER_CHARS]
    if len(text) * _MAX_BYTES_A_CHAR <= MAX_ANSWER_BYTES:
        return text
    left = MAX_ANSWER_BYTES
    for start in range(0, len(text), _PIECE_CHARS):
        left -= len(encode_basestring_ascii(text[start : start + _PIECE_CHARS])) - len('""')
        if left < 0:
            return text[:start]
    return text


def _run_frame(raw: Mapping[str, Any]) -> RunFrame:
    number, code, fresh = _integer(raw, "id"), _text(raw, "code"), _flag(raw, "fresh")
    if raw.get("instrument") is None:
        return RunFrame(number, code, fresh=fresh)
    instrument = _object(raw, "instrument")
    return RunFrame(number, code, _text(instrument, "name"), _object(instrument, "arguments"), fresh)


def _integer(raw: Mapping[str, Any], field: str) -> int:
    value = raw.get(field)
    if type(value) is not int:
        raise FrameError(f"{field}: expected an integer, got {type(value).__name__}")
    return value


def _text(raw: Mapping[str, Any], field: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str):
        raise FrameError(f"{field}: expected a string, got {type(value).__name__}")
    return value


def _flag(raw: Mapping[str, Any], field: str) -> bool:
    value = raw.get(field)
    if not isinstance(value, bool):
        raise FrameError(f"{field}: expected a boolean, got {type(value).__name__}")
    return value


def _text_by_name(raw: Mapping[str, Any], field: str) -> dict[str, str]:
    entries = _object(raw, field)
    return {name: _text(entries, name) for name in entries}


def _texts(raw: Mapping[str, Any], field: str) -> list[str]:
    value = raw.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FrameError(f"{field}: expected a list of strings")
    return value


def _object(raw: Mapping[str, Any], field: str) -> dict[str, Any]:
    value = raw.get(field)
    if not isinstance(value, dict):
        raise FrameError(f"{field}: expected an object, got {type(value).__name__}")
    return value
