"""Finds the modules, tensors and optimizers that a script holds, and what it calls them."""

import os
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
#: What calls a script; frames further out are not the script's.
_BOTTOM = _OWN_FOLDER + "probe_script.py"
_MAX_FRAMES = 60
#: Values looked at in one search, and how deep in lists, dicts and attributes.
_MAX_VALUES = 3_000
_MAX_ITEMS = 300
_MAX_DEPTH = 3
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, FunctionType)


class Search:
    """What the variables of a script lead to, each under the first name it was found by.

    Attributes:
        modules, tensors, optimizers: Label and value by the value's id.
    """

    def __init__(self, frame: FrameType | None) -> None:
        """Look through the globals of `__main__`, then through the frames from `frame` outwards."""
        torch = sys.modules["torch"]
        self._module: type = torch.nn.Module
        self._tensor: type = torch.Tensor
        self._optimizer: type = torch.optim.Optimizer
        self.modules: dict[int, tuple[str, Any]] = {}
        self.tensors: dict[int, tuple[str, Any]] = {}
        self.optimizers: dict[int, tuple[str, Any]] = {}
        self._seen: set[int] = set()
        self._left = _MAX_VALUES
        for variables in _spaces(frame, folder_of(torch)):
            # The names directly first: a variable is a better name than a path to the same value.
            named = [(name, value) for name, value in list(variables.items()) if isinstance(name, str)]
            todo = [(name, value) for name, value in named if not name.startswith("__")]
            for depth in range(_MAX_DEPTH):
                todo = [found for label, value in todo for found in self._look(label, value, depth == _MAX_DEPTH - 1)]

    def _look(self, label: str, value: Any, last: bool) -> list[tuple[str, Any]]:
        """Note a value; returns what it leads to."""
        try:
            return self._note(label, value, last)
        except Exception:
            # An object of the script that refuses to be looked at hides no more than its own parts.
            return []

    def _note(self, label: str, value: Any, last: bool) -> list[tuple[str, Any]]:
        kind = type(value)
        if issubclass(kind, _LEAVES) or id(value) in self._seen or self._left <= 0:
            return []
        if issubclass(kind, self._tensor):
            self.tensors.setdefault(id(value), (label, value))
            return []
        if issubclass(kind, self._module) and label == "self":
            # In a method of its own; the script has another name for it.
            return []
        self._seen.add(id(value))
        self._left -= 1
        if issubclass(kind, self._optimizer):
            self.optimizers[id(value)] = (label, value)
            return []
        if issubclass(kind, self._module):
            self.modules[id(value)] = (label, value)
        return [] if last else list(self._parts(label, value))

    def _parts(self, label: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, list | tuple):
            for index, item in zip(range(_MAX_ITEMS), value, strict=False):
                yield f"{label}[{index}]", item
        elif isinstance(value, dict):
            for _, (key, item) in zip(range(_MAX_ITEMS), list(value.items()), strict=False):
                if isinstance(key, str | int):
                    yield f"{label}[{key!r}]", item
        else:
            attributes = getattr(value, "__dict__", None)
            # Registered parts of a module are under names with an underscore; the others are those it forgot.
            for name, item in list(attributes.items()) if isinstance(attributes, dict) else ():
                if isinstance(name, str) and not name.startswith("_"):
                    yield f"{label}.{name}", item


def name_in(frame: FrameType | None, value: object) -> str | None:
    """What the innermost frame of the script that has this value calls it."""
    torch = sys.modules["torch"]
    for variables in reversed(list(_spaces(frame, folder_of(torch)))):
        for name, found in list(variables.items()):
            if found is value and name != "self":
                return str(name)
    return None


def folder_of(package: ModuleType) -> str:
    """Where the files of a package lie, with a slash at the end."""
    return os.path.dirname(str(package.__file__)) + os.sep


def _spaces(frame: FrameType | None, torch_folder: str) -> Iterator[Mapping[str, Any]]:
    """Variables of a script: globals of `__main__` first, as a reader knows those; then the frames, outermost first."""
    main = sys.modules["__main__"].__dict__
    yield main
    frames: list[FrameType] = []
    while frame is not None and len(frames) < _MAX_FRAMES and frame.f_code.co_filename != _BOTTOM:
        if not frame.f_code.co_filename.startswith((torch_folder, _OWN_FOLDER, "<frozen ")):
            frames.append(frame)
        frame = frame.f_back
    for found in reversed(frames):
        if found.f_globals is not main and found.f_globals is found.f_locals:
            yield found.f_globals
        elif found.f_locals is not found.f_globals:
            yield found.f_locals
