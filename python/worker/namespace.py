"""The names agent code sees: what opening bound, what cells changed, what is put back."""

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import is_
from typing import Any

from worker.interrupt import StepTimeout
from worker.preview import fingerprint, preview
from worker.protocol import cut_answer

MAX_LOCALS = 200
MAX_NAMES = 10_000
#: Longer names are not told of: all that are told of must fit one frame.
MAX_NAME_CHARS = 100

#: `_` is where the interactive prompt keeps its last value.
_BUILTINS = {name: value for name, value in builtins.__dict__.items() if name != "_"}
_BUILTIN_NAMES, _BUILTIN_VALUES = tuple(_BUILTINS), tuple(_BUILTINS.values())
# What putting built-ins back needs of them.
_all, _map = all, map
# A metaclass may define a `__name__` of its own.
_type_name = type.__dict__["__name__"].__get__


@dataclass(frozen=True, slots=True)
class Before:
    """What a cell found: identities of all values, fingerprints of those it mentions."""

    identities: dict[str, int]
    fingerprints: dict[str, object]


class Namespace:
    """The `__main__` module of the episode, with reserved names that survive every cell.

    A real module: classes made in a cell pickle, and `multiprocessing` finds them.
    """

    def __init__(
        self, variables: dict[str, str], helpers: dict[str, Callable[..., Any]], *, has_answer: bool = True
    ) -> None:
        self._module = types.ModuleType("__main__")
        self.values: dict[str, Any] = self._module.__dict__
        self._reserved: dict[str, Any] = {"__builtins__": builtins, **variables, **helpers}
        self.values.update(self._reserved)
        self._has_answer = has_answer
        if has_answer:
            self.values["answer"] = _fresh_answer()
        self.enter()

    def enter(self) -> None:
        """Be what `import __main__` finds."""
        sys.modules["__main__"] = self._module

    def restore(self) -> list[str]:
        """Put reserved names and the answer dict back; returns what had been replaced."""
        replaced = [name for name, value in self._reserved.items() if self.values.get(name, self) is not value]
        for name in replaced:
            self.values[name] = self._reserved[name]
        if self._has_answer and not isinstance(self.values.get("answer"), dict):
            self.values["answer"] = _fresh_answer()
            replaced.append("answer")
        return replaced

    def public_names(self) -> list[str]:
        """Names that are there now and don't start with an underscore, sorted; at most MAX_NAMES."""
        return sorted(name for key in self.values.copy() if (name := _public(key)) is not None)[:MAX_NAMES]

    def answer(self) -> dict[str, Any] | None:
        """The answer protocol: `ready` is true only for the boolean True."""
        value = self.values.get("answer") if self._has_answer else None
        if not isinstance(value, dict):
            return None
        # The methods of dict itself: a subclass may have others.
        content = dict.get(value, "content", "")
        return {"ready": dict.get(value, "ready") is True, "content": cut_answer(as_text(content))}

    def before(self, tree: ast.AST) -> Before:
        """What is there now, before the cell of this tree runs."""
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        # A copy, made in one go: threads of the agent may add and remove names meanwhile.
        values = self.values.copy()
        return Before(
            {name: id(value) for name, value in values.items()},
            {name: fingerprint(values[name]) for name in mentioned if name in values},
        )

    def changes(self, before: Before) -> dict[str, str]:
        """Public names that a cell bound, rebound or changed in place, to a preview of their values."""
        return {name: preview(value) for name, value in _first(self._changed(before), MAX_LOCALS)}

    def _changed(self, before: Before) -> Iterator[tuple[str, Any]]:
        for key, value in self.values.copy().items():
            name = _public(key)
            if name is None or self._reserved.get(name, self) is value:
                continue
            rebound = before.identities.get(name) != id(value)
            if rebound or (name in before.fingerprints and before.fingerprints[name] != fingerprint(value)):
                yield name, value


def restore_builtins() -> list[str]:
    """Put built-ins back; looks none up, since any may be gone, and compares by identity, which runs no agent code."""
    current = builtins.__dict__
    if _all(_map(is_, _map(current.get, _BUILTIN_NAMES), _BUILTIN_VALUES)):
        return []
    current.update(_BUILTINS)
    return ["builtins"]


def as_text(value: Any) -> str:
    """`str(value)`, or the reason why there is none."""
    try:
        return value if type(value) is str else str.__str__(str(value))
    except StepTimeout:
        raise
    except BaseException as error:
        return f"<{_type_name(type(value))} without text: {_type_name(type(error))}>"


def _public(key: object) -> str | None:
    """The name of a global that the service is told of; None for any other key."""
    # globals() takes keys that no source could name, and subclasses of str with methods of their own.
    if type(key) is not str:
        if not issubclass(type(key), str):
            return None
        key = str.__str__(key)
    return None if key.startswith("_") or len(key) > MAX_NAME_CHARS else key


def _fresh_answer() -> dict[str, Any]:
    return {"content": "", "ready": False}


def _first(items: Iterable[tuple[str, Any]], limit: int) -> Iterator[tuple[str, Any]]:
    for index, item in enumerate(items):
        if index == limit:
            return
        yield item
