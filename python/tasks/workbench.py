"""What a training script reads its task with, and leaves its results with.

A copy lies in the working folder of every run. Reading: `load_data` and
`load_config`. Results: `save_weights` and `save_arrays` write files that the
grader reads, `report` writes claims that it checks. What a script prints is
shown, and graded never.
"""

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

# Names of the safetensors format: https://huggingface.co/docs/safetensors
_TYPES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "uint8": "U8",
    "bool": "BOOL",
}


def load_data(path: str = "data.npz") -> dict[str, np.ndarray]:
    """The arrays of the task by name."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def load_config(path: str = "config.json") -> dict[str, Any]:
    """The settings of the run; `seed` is for `torch.manual_seed`."""
    with open(path, encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    return settings


def save_weights(name: str, model: Any) -> None:
    """Write the weights of a module, or of a dict of tensors, to `<name>.safetensors`."""
    save_arrays(name, **(model.state_dict() if hasattr(model, "state_dict") else model))


def save_arrays(name: str, **arrays: Any) -> None:
    """Write tensors or arrays to `<name>.safetensors`.

    Raises:
        TypeError: An array has a type that the format lacks.
    """
    _write(f"{name}.safetensors", _encode({key: _to_array(key, value) for key, value in arrays.items()}))


def report(**claims: float) -> None:
    """Write what the script claims about its result, such as `val_acc=0.9`, to `report.json`."""
    _write("report.json", json.dumps({name: float(value) for name, value in claims.items()}).encode())


def _to_array(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    if array.dtype.name not in _TYPES:
        raise TypeError(f"{name}: expected one of {', '.join(_TYPES)}, got {array.dtype}")
    # ascontiguousarray makes one dimension of none.
    return np.ascontiguousarray(array).reshape(array.shape)


def _encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    header: dict[str, Any] = {}
    position = 0
    for name, array in arrays.items():
        end = position + array.nbytes
        header[name] = {
            "dtype": _TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for array in arrays.values())])


def _write(path: str, data: bytes) -> None:
    # Whole or not at all, also when the script is ended in the middle.
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.replace(path + ".part", path)
