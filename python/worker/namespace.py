"""The names agent code sees: what opening bound, what cells changed, what is put back."""

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from worker.interrupt import StepTimeout
from worker.preview import fingerprint, preview
from worker.protocol import MAX_ANSWER_CHARS

MAX_LOCALS = 200
MAX_NAMES = 10_000
MAX_NAME_CHARS = 200

#: `_` is where the interactive prompt keeps its last value.
_BUILTINS = {name: value for name, value in builtins.__dict__.items() if name != "_"}


@dataclass(frozen=True, slots=True)
class Before:
    """What a cell found: identities of all values, fingerprints of those it mentions."""

    identities: dict[str, int]
    fingerprints: dict[str, object]


class Namespace:
    """The `__main__` module of the episode, with reserved names that survive every cell.

    A real module: classes made in a cell pickle, and `multiprocessing` finds them.
    """

    def __init__(self, variables: dict[str, str], helpers: dict[str, Callable[..., Any]]) -> None:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.values: dict[str, Any] = module.__dict__
        self.values["__builtins__"] = builtins
        self._reserved: dict[str, Any] = {**variables, **helpers}
        self.values.update(self._reserved)
        self.values["answer"] = _fresh_answer()

    def restore(self) -> list[str]:
        """Put reserved names and the answer dict back; returns what had been replaced."""
        replaced = [name for name, value in self._reserved.items() if self.values.get(name, self) is not value]
        for name in replaced:
            self.values[name] = self._reserved[name]
        if not isinstance(self.values.get("answer"), dict):
            self.values["answer"] = _fresh_answer()
            replaced.append("answer")
        return replaced

    def public_names(self) -> list[str]:
        """Names that are there now and don't start with an underscore, sorted; at most MAX_NAMES."""
        return sorted(name for name in list(self.values) if _is_public(name))[:MAX_NAMES]

    def answer(self) -> dict[str, Any] | None:
        """The answer protocol: `ready` is true only for the boolean True."""
        value = self.values.get("answer")
        if not isinstance(value, dict):
            return None
        content = value.get("content", "")
        return {"ready": value.get("ready") is True, "content": as_text(content)[:MAX_ANSWER_CHARS]}

    def before(self, tree: ast.AST | None) -> Before:
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree is not None else set()
        return Before(
            {name: id(value) for name, value in self.values.items()},
            {name: fingerprint(self.values[name]) for name in mentioned if name in self.values},
        )

    def changes(self, before: Before) -> dict[str, str]:
        """Public names that a cell bound, rebound or changed in place, to a preview of their values."""
        return {name: preview(value) for name, value in _first(self._changed(before), MAX_LOCALS)}

    def _changed(self, before: Before) -> Iterator[tuple[str, Any]]:
        for name, value in list(self.values.items()):
            if not _is_public(name) or self._reserved.get(name, self) is value:
                continue
            rebound = before.identities.get(name) != id(value)
            if rebound or (name in before.fingerprints and before.fingerprints[name] != fingerprint(value)):
                yield name, value


def restore_builtins(current: dict[str, Any] = builtins.__dict__, original: dict[str, Any] = _BUILTINS) -> list[str]:
    """Put built-ins back; uses none itself, since any may be gone."""
    try:
        if original.items() <= current.items():
            return []
    except StepTimeout:
        raise
    except BaseException:
        pass
    current.update(original)
    return ["builtins"]


def as_text(value: Any) -> str:
    """`str(value)`, or the reason why there is none."""
    try:
        return value if type(value) is str else str.__str__(str(value))
    except StepTimeout:
        raise
    except BaseException as error:
        return f"<{type(value).__name__} without text: {type(error).__name__}>"


def _is_public(name: object) -> bool:
    # globals() takes keys that no source could name.
    return isinstance(name, str) and not name.startswith("_") and len(name) <= MAX_NAME_CHARS


def _fresh_answer() -> dict[str, Any]:
    return {"content": "", "ready": False}


def _first(items: Iterable[tuple[str, Any]], limit: int) -> Iterator[tuple[str, Any]]:
    for index, item in enumerate(items):
        if index == limit:
            return
        yield item
