"""Reads the files a submission left. Every byte is hostile: what isn't exactly as specified is refused.

A reader of its own, because loaders that can run code or guess are what
submissions attack; format: https://huggingface.co/docs/safetensors
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024

_TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}

#: Names of tensors to their dtype in safetensors' words and their shape.
Spec = Mapping[str, tuple[str, tuple[int, ...]]]


class InvalidFiles(Exception):
    """A file is missing or not as specified; the message names it and is shown to the agent."""


def read_tensors(files: Mapping[str, bytes], name: str, spec: Spec, *, finite: bool = True) -> dict[str, np.ndarray]:
    """Read the tensors of one file.

    Args:
        files: What the submission left, by file name.
        spec: Exactly these tensors must be there.
        finite: Refuse NaN and infinities.

    Raises:
        InvalidFiles: It is missing, or differs from the specification in any way.
    """
    data = files.get(name)
    if data is None:
        raise InvalidFiles(f"{name}: the script did not write it")
    if len(data) > MAX_FILE_BYTES:
        raise InvalidFiles(f"{name}: has {len(data)} bytes, at most {MAX_FILE_BYTES} are read")
    header, body = _split(name, data)
    found = set(header) - {"__metadata__"}
    if found != set(spec):
        # Not the names that were found: they are the script's words, and of a hidden run it may tell nothing.
        missing, others = ", ".join(sorted(set(spec) - found)) or "none", len(found - set(spec))
        raise InvalidFiles(
            f"{name}: expected the tensors {', '.join(sorted(spec))}; missing {missing}, and {others} of other names"
        )
    tensors = {key: _read(name, key, header[key], spec[key], body) for key in spec}
    for key, tensor in tensors.items():
        if finite and tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InvalidFiles(f"{name}: {key} holds NaN or infinities")
    return tensors


def read_claim(files: Mapping[str, bytes], claim: str) -> float | None:
    """A number that the submission claims in `report.json`; None where it makes no such claim."""
    data = files.get("report.json")
    if data is None or len(data) > MAX_HEADER_BYTES:
        return None
    try:
        claims = json.loads(data)
    except (ValueError, RecursionError):
        return None
    value = claims.get(claim) if isinstance(claims, dict) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e9 and math.isfinite(value) else None


def _split(name: str, data: bytes) -> tuple[dict[str, object], bytes]:
    if len(data) < 8:
        raise InvalidFiles(f"{name}: is too short for a safetensors file")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(MAX_HEADER_BYTES, len(data) - 8):
        raise InvalidFiles(f"{name}: its header is longer than the file, or than {MAX_HEADER_BYTES} bytes")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        raise InvalidFiles(f"{name}: its header is not JSON") from None
    if not isinstance(header, dict):
        raise InvalidFiles(f"{name}: its header is not a JSON object")
    return header, data[8 + length :]


def _read(name: str, key: str, entry: object, spec: tuple[str, tuple[int, ...]], body: bytes) -> np.ndarray:
    dtype, shape = spec
    if not isinstance(entry, dict) or entry.get("dtype") != dtype or entry.get("shape") != list(shape):
        raise InvalidFiles(f"{name}: expected {key} to be {dtype} of shape {list(shape)}")
    offsets: Any = entry.get("data_offsets")
    size = math.prod(shape) * np.dtype(_TYPES[dtype]).itemsize
    whole = isinstance(offsets, list) and len(offsets) == 2 and all(type(offset) is int for offset in offsets)
    if not whole or offsets[0] < 0 or offsets[1] > len(body) or offsets[1] - offsets[0] != size:
        raise InvalidFiles(f"{name}: the offsets of {key} do not fit its shape or the file")
    return np.frombuffer(body[offsets[0] : offsets[1]], dtype=_TYPES[dtype]).reshape(shape).copy()
