"""Helpers of the REPL namespace: endings and calls that travel to the service."""

import functools
import itertools
import json
import traceback
from collections.abc import Callable
from os import getpid
from typing import Any

from worker.channel import Channel
from worker.namespace import as_text
from worker.protocol import FrameError, cut_answer

_encode_anything = json.JSONEncoder(default=repr, ensure_ascii=False).encode


class CallFailed(RuntimeError):
    """The service refused or could not answer a call of agent code."""


class Helpers:
    """Makes the functions that agent code calls; `cell` is the id of the running one."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)
        self._pid = getpid()
        self.cell = 0
        self.names: Callable[[], list[str]] = list
        self.find: Callable[[str], Any] = lambda name: None
        self.note: Callable[[str], None] = lambda text: None

    def make(self, call_helpers: list[str], *, endings: bool) -> dict[str, Callable[..., Any]]:
        """The helpers by the name that agent code knows them by.

        Args:
            endings: With those that end an episode, and what the REPL has beside them.
        """
        made: dict[str, Callable[..., Any]] = {}
        if endings:
            made.update(
                FINAL=self._final,
                FINAL_VAR=self._final_var,
                SHOW_VARS=self._show_vars,
                format_exc=traceback.format_exc,
                safe_json_dumps=safe_json_dumps,
            )
        for name in call_helpers:
            made[name] = (
                self._batch_helper(name) if name.endswith(("_batched", "_batch")) else self._single_helper(name)
            )
        return {name: _named(function, name) for name, function in made.items()}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Ask the service and wait for its answer; usable from any thread of the worker.

        Raises:
            CallFailed: The service answered with an error, or the arguments are too long for a frame.
        """
        number = next(self._numbers)
        try:
            self._channel.send("call", id=self.cell, call=number, name=name, arguments=arguments)
        except FrameError as error:
            raise CallFailed(f"the arguments are too long: {error}") from None
        reply = self._channel.wait_reply(number)
        if reply.error is not None:
            raise CallFailed(reply.error)
        return reply.value

    def _single_helper(self, name: str) -> Callable[..., Any]:
        def ask(prompt: str, model: str | None = None) -> Any:
            return self.call(name, {"prompt": as_text(prompt), "model": model})

        return ask

    def _batch_helper(self, name: str) -> Callable[..., Any]:
        def ask_all(prompts: list[str], model: str | None = None) -> Any:
            return self.call(name, {"prompts": [as_text(prompt) for prompt in prompts], "model": model})

        return ask_all

    def _final(self, value: Any) -> str:
        """End the episode with `value` as the final answer, once this step is over."""
        text = as_text(value)
        self._announce(text)
        return f"FINAL({text})"

    def _final_var(self, name: Any) -> str:
        """End the episode with the value of a variable, given by name or directly."""
        if not isinstance(name, str):
            return self._final(name)
        clean = name.strip().strip("\"'")
        value = self.find(clean)
        if value is None:
            known = ", ".join(self.names())
            self.note(
                f"note: FINAL_VAR found no variable {clean!r} with a value, so this is no answer; there are: {known}\n"
            )
            return f"FINAL_VAR({clean})"
        return self._final(value)

    def _show_vars(self) -> list[str]:
        """Names that are there now and don't start with an underscore."""
        return self.names()

    def _announce(self, text: str) -> None:
        value = cut_answer(text)
        if len(value) < len(text):
            self.note(f"note: the answer has {len(text)} characters and was cut to {len(value)}\n")
        if getpid() == self._pid:
            self._channel.send("final", id=self.cell, value=value)
        else:
            self.note("note: FINAL was called in a child process, which can not end the episode\n")


def safe_json_dumps(value: Any) -> str:
    """JSON text of any value; what JSON doesn't know is written as its `repr`."""
    return _encode_anything(value)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def helper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    helper.__name__ = helper.__qualname__ = name
    return helper
