"""What the tests of evaluations make of files: modules, arrays, and what a script would have left."""

import importlib.util
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import workbench

from . import TASKS


def load_evaluation(task: str) -> Any:
    """The evaluation of a task, by its path: the module has the same name in every folder."""
    spec = importlib.util.spec_from_file_location(f"evaluation_of_{task}", TASKS / task / "evaluation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def given_arrays(inputs: dict[str, bytes]) -> dict[str, np.ndarray]:
    """The arrays that a script finds in `data.npz`."""
    with np.load(io.BytesIO(inputs["data.npz"])) as archive:
        return {name: archive[name] for name in archive.files}


def written(name: str, arrays: dict[str, Any]) -> dict[str, bytes]:
    """The file that `workbench.save_arrays` writes."""
    return _left_by(lambda: workbench.save_arrays(name, **arrays))


def reported(**claims: float) -> dict[str, bytes]:
    """The file that `workbench.report` writes."""
    return _left_by(lambda: workbench.report(**claims))


def _left_by(write: Any) -> dict[str, bytes]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write()
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        finally:
            os.chdir(before)
