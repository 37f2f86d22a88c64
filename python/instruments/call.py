"""The instrument `call`: calls a function of a module in the work folder."""

import importlib
import os
import sys
import traceback
from typing import Any

from worker.instrument import Scene

from instruments.arguments import object_argument, text_argument


def call(scene: Scene, arguments: dict[str, Any]) -> None:
    """Import `module` from the work folder, call `function` with `arguments` by keyword, and report what it returns.

    Raises:
        TypeError: An argument is missing or of another type, or the function returned no object.
        LookupError: The work folder has no such module, or the module no such function.
        Exception: What the module or the function raises; its traceback is printed.
    """
    module, function = text_argument(arguments, "module"), text_argument(arguments, "function")
    keywords = object_argument(arguments, "arguments")
    try:
        result = _find(scene.work, module, function)(**keywords)
    except Exception:
        # A cell tells the frames of agent code only, and there are none.
        traceback.print_exc()
        raise
    if type(result) is not dict:
        raise TypeError(f"{module}.{function} returned {type(result).__name__}, expected an object")
    scene.report.update(result)


def _find(work: str, module: str, function: str) -> Any:
    if work not in sys.path:
        sys.path.insert(0, work)
    # The files may be younger than the listing of their folder that the importer keeps.
    importlib.invalidate_caches()
    found = importlib.import_module(module)
    origin = getattr(found, "__file__", None)
    if origin is None or not os.path.abspath(origin).startswith(os.path.join(work, "")):
        raise LookupError(f"module: {module!r} is not in the work folder")
    if not callable(getattr(found, function, None)):
        raise LookupError(f"function: {module} has no function {function!r}")
    return getattr(found, function)
