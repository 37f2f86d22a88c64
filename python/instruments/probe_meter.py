"""Measures what a probe watches: names, norms, updates, and the first values that are not finite."""

import math
import sys
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any

from instruments.probe_names import find_module_name, find_names, parameters_of
from instruments.probe_record import MAX_NUMBERS, Record, Step
from instruments.probe_scaling import remember_scale, scale_of
from instruments.probe_search import name_in
from instruments.probe_tensors import nonfinite_kind, sum_of, tensors_in
from instruments.probe_updates import Updates, flag_parameters, gradient_norms

_MAX_CALLED = 3_000


@dataclass(slots=True)
class OpenStep:
    """A step that has begun."""

    step: Step
    updates: Updates | None = None
    measured: bool = False


class Meter:
    """Writes what it measures into the record. Its methods may raise anything that a tensor of the script raises."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._called: dict[int, weakref.ref[Any]] = {}
        self._names_of: tuple[frozenset[int], int] | None = None
        self._numbers = 0
        self._scaling = False

    def saw(self, module: Any) -> None:
        """A module ran forward."""
        known = self._called.get(id(module))
        if (known is None or known() is not module) and len(self._called) < _MAX_CALLED:
            self._called[id(module)] = weakref.ref(module)

    def saw_scale(self, scale: float, scaled: Any) -> None:
        """A gradient scaler multiplied a loss."""
        self._scaling = True
        remember_scale(scale, scaled)

    def check_output(self, module: Any, inputs: Any, output: Any, number: int) -> None:
        """Note the module whose output is the first that is not finite."""
        kind = next((kind for tensor in tensors_in(output) if (kind := nonfinite_kind(tensor)) is not None), None)
        if kind is None:
            return
        name = find_module_name(sys._getframe(), module, self._running())
        if any(nonfinite_kind(tensor) is not None for tensor in tensors_in(inputs)):
            name = f"input of {name}"
        self._record.add_place("activation", number, name, kind)

    def take_loss(self, tensors: Any, weights: Any, frame: FrameType | None, losses: list[float], number: int) -> None:
        """Note the value that a backward call differentiates, as it was before a gradient scaler."""
        first = tensors if isinstance(tensors, sys.modules["torch"].Tensor) else next(iter(tensors))
        value = sum_of(tensors, weights) / (scale_of(first) if self._scaling else 1.0)
        losses.append(value)
        if not math.isfinite(value):
            kind = "nan" if math.isnan(value) else "inf"
            self._record.add_place("loss", number, name_in(frame, first) or "loss", kind)

    def prepare(self, opened: OpenStep, optimizer: Any) -> None:
        """Name the parameters and copy those that the step may change."""
        names = self._find_names(sys._getframe())
        opened.step.names = names
        label = names.optimizers[id(optimizer)]
        opened.step.label = label if label == opened.step.label else f"{label}: {opened.step.label}"
        opened.updates = Updates([held for held in parameters_of(optimizer) if id(held) in names.by_id])
        if not opened.updates.copied:
            opened.step.update_ratios = None
            self._record.note("no update ratios: the parameters are too large to be copied")

    def take_gradients(self, opened: OpenStep, optimizer: Any) -> None:
        """Note the gradients of what the optimizer holds and of what none holds."""
        opened.measured = True
        held = {key for track in self._record.live_tracks() for key in track.sizes()}
        others = [parameter for _name, parameter in self._record.names.parameters if id(parameter) not in held]
        number, names = opened.step.number, self._record.names.by_id
        norms = gradient_norms(optimizer, others, lambda held, kind: self._flag("gradient", number, held, kind))
        named = {names[key]: norm for key, norm in norms.items() if key in names}
        self._numbers += 2 * len(named)
        if self._numbers > MAX_NUMBERS:
            self._record.note("norms of later steps are left out, there are too many")
            return
        opened.step.grad_norms = named

    def finish(self, opened: OpenStep, optimizer: Any) -> None:
        """Note what a step did."""
        number = opened.step.number
        flag_parameters(optimizer, lambda held, kind: self._flag("parameter", number, held, kind))
        if opened.updates is not None and opened.updates.copied:
            names = self._record.names.by_id
            moved = {names[key]: ratio for key, ratio in opened.updates.ratios().items() if key in names}
            # What no optimizer holds stays where it is.
            opened.step.update_ratios = {name: moved.get(name, 0.0) for name in opened.step.grad_norms}

    def flag_gradients(self, optimizer: Any, number: int) -> None:
        """Note the gradients of an optimizer that are not finite."""
        self._find_names(sys._getframe())
        gradient_norms(optimizer, [], lambda held, kind: self._flag("gradient", number, held, kind))

    def take_last_norms(self) -> None:
        """Note the gradients that are there at the end of a script which took no step."""
        names = self._find_names(None)
        flagged = gradient_norms(None, [parameter for _name, parameter in names.parameters], lambda held, kind: None)
        self._record.last_norms = {name: flagged[id(parameter)] for name, parameter in names.parameters}

    def _find_names(self, frame: FrameType | None) -> Any:
        record = self._record
        optimizers = [found for track in record.live_tracks() if (found := track.optimizer) is not None]
        key = (frozenset(map(id, optimizers)), len(self._called))
        if key != self._names_of:
            record.rename(find_names(frame, optimizers, self._running()))
            self._names_of = key
        listed, left_out = len(record.names.parameters), len(record.names.left_out)
        if left_out > 0:
            record.note(f"{listed} of {listed + left_out} parameters are listed")
        return record.names

    def _flag(self, where: str, number: int, parameter: Any, kind: str) -> None:
        self._record.add_place(where, number, self._record.names.by_id.get(id(parameter), "a parameter"), kind)

    def _running(self) -> list[Any]:
        return [module for reference in self._called.values() if (module := reference()) is not None]
