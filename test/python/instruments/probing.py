"""Runs the training probe on a script as a cell of the worker would, with real processes and descriptors."""

import os
import signal
import sys
import tempfile
import textwrap
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from instruments.training_probe import training_probe
from worker.instrument import Scene
from worker.interrupt import StepTimeout
from worker.report import plain_report

from .scenes import Output

#: What most training scripts begin with.
MODEL = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.arange(12.0).reshape(4, 3) / 10
"""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe left: its report, and what the script wrote to descriptors 1 and 2."""

    report: dict[str, Any]
    stdout: str
    stderr: str


class Episode:
    """A `__main__` with variables, and a work folder; both go when it is closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._main = sys.modules["__main__"]
        self._home = os.getcwd()
        self.work = self._folder.name
        module = types.ModuleType("__main__")
        self.values: dict[str, Any] = module.__dict__
        sys.modules["__main__"] = module
        os.chdir(self.work)

    def close(self) -> None:
        os.chdir(self._home)
        sys.modules["__main__"] = self._main
        self._folder.cleanup()

    def run(self, code: str) -> None:
        """A cell: what it binds is there for the next ones."""
        exec(compile(code, "<cell 1>", "exec", dont_inherit=True), self.values)

    def probe(self, code: str, **arguments: Any) -> Probed:
        """Raises what the probe raises; its report is in `self.report` then."""
        scene = Scene(self.values, self.work)
        self.report = scene.report
        with Output() as output:
            training_probe(scene, {"code": code, **arguments})
        return Probed(plain_report(scene.report), output.stdout, output.stderr)


def warm_up() -> None:
    """Import what a zygote imports, so that no script waits for it, and use one thread as a worker does."""
    import torch._dynamo

    torch.set_num_threads(1)


@contextmanager
def episode() -> Iterator[Episode]:
    made = Episode()
    try:
        yield made
    finally:
        made.close()


def probe(code: str, **arguments: Any) -> Probed:
    """Probe a script in an episode without variables."""
    with episode() as made:
        return made.probe(code, **arguments)


def probe_loop(loop: str, *, model: str = MODEL, **arguments: Any) -> Probed:
    """Probe MODEL with a loop after it."""
    return probe(model + textwrap.dedent(loop), **arguments)


@contextmanager
def deadline(after_s: float) -> Iterator[None]:
    """Raise StepTimeout in the main thread after some time, like the worker's interrupt does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise StepTimeout("the deadline of the test")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
