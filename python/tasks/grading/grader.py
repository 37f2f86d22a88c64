"""The two questions the service asks a task: what does a run start with, and what did it leave?"""

import base64
import importlib
import math
from typing import Any

from grading.run import Run
from grading.tensor_files import InvalidFiles


def make_inputs(run: dict[str, int]) -> dict[str, Any]:
    """The files of a run: base64 by name."""
    files = _evaluation().make_inputs(Run(**run))
    return {"files": {name: base64.b64encode(data).decode("ascii") for name, data in files.items()}}


def measure(run: dict[str, int], files: dict[str, str]) -> dict[str, Any]:
    """Measure what a run left.

    Args:
        files: What the submission wrote, base64 by name.

    Returns:
        `valid`, `why` it is not, and the `measures` by name; a number that is not finite is None.
    """
    contents = {name: base64.b64decode(text) for name, text in files.items()}
    try:
        measures = _evaluation().measure(Run(**run), contents)
    except InvalidFiles as error:
        return {"valid": False, "why": str(error), "measures": {}}
    return {"valid": True, "why": "", "measures": {name: _plain(value) for name, value in measures.items()}}


def _evaluation() -> Any:
    # The one of the task: the service put it beside this package.
    return importlib.import_module("evaluation")


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    number = float(value)
    return number if math.isfinite(number) else None
