"""What a probe has seen, and the report it makes of that."""

import math
import weakref
from dataclasses import dataclass, field
from typing import Any

from instruments.probe_names import Names, parameters_of

#: A script that takes no optimizer step is ended after as many backward calls.
MAX_BACKWARDS = 256
MAX_LOSSES = 1_000
#: Steps of all optimizers together, and the numbers they may hold.
MAX_STEPS = 100
MAX_NUMBERS = 8_000
MAX_NAMES_PER_PLACE = 5
MAX_NOTES = 20

#: The report of a probe that saw nothing.
EMPTY_REPORT: dict[str, Any] = {
    "losses": [],
    "final_loss": None,
    "loss_is_nan": None,
    "loss_is_inf": None,
    "steps": [],
    "grad_norms": {},
    "optimizer_param_count": None,
    "nonfinite": [],
    "stopped": None,
    "error": None,
    "notes": [],
}


@dataclass(slots=True)
class Step:
    """One step of one optimizer.

    Attributes:
        number: From 1 on, of this optimizer.
        optimizer: Its id.
        label: What the script calls it, and its type.
        grad_norms, update_ratios: By name of the parameter; None where there is no gradient, or no number.
        names: Those that were known then.
    """

    number: int
    optimizer: int
    label: str
    learning_rates: list[float | None]
    losses: list[float]
    grad_norms: dict[str, float | None] = field(default_factory=dict)
    update_ratios: dict[str, float | None] | None = field(default_factory=dict)
    names: Names | None = None


class Track:
    """One optimizer of the script."""

    def __init__(self, optimizer: Any, *, built: bool, done: int) -> None:
        self._optimizer = weakref.ref(optimizer)
        #: The script made it while the probe watched.
        self.built = built
        self.done = done
        self._held: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.measure()

    def measure(self) -> None:
        """Take note of what it holds: groups may be added at any time."""
        optimizer = self.optimizer
        if optimizer is not None:
            self._held = {id(held): (weakref.ref(held), held.numel()) for held in parameters_of(optimizer)}

    def sizes(self) -> dict[int, int]:
        """Numbers of elements by the ids of the parameters."""
        return {key: size for key, (_parameter, size) in self._held.items()}

    def holds(self, parameters: list[Any]) -> bool:
        """Whether it has one of these."""
        found = (self._held.get(id(parameter)) for parameter in parameters)
        return any(held is not None and held[0]() is not None for held in found)

    @property
    def optimizer(self) -> Any:
        """The optimizer, None once the script let go of it."""
        return self._optimizer()


class Record:
    """Everything seen so far, bounded in size."""

    def __init__(self) -> None:
        self.tracks: dict[int, Track] = {}
        self.steps: list[Step] = []
        #: Losses since the last step.
        self.pending: list[float] = []
        #: The same of calls that store no gradients, which count where no other was made.
        self.pending_grads: list[float] = []
        self.names = Names()
        self.notes: list[str] = []
        self.stopped: str | None = None
        self.error: str | None = None
        #: Gradient norms by name at the end of a script that took no step.
        self.last_norms: dict[str, float | None] = {}
        self._places: list[dict[str, Any]] = []
        self._first: dict[str, int] = {}

    def track(self, optimizer: Any, *, built: bool = False) -> Track:
        """The record of an optimizer; one that takes over parameters of an earlier one goes on counting its steps."""
        known = self.tracks.get(id(optimizer))
        if known is not None and known.optimizer is optimizer:
            return known
        parameters = parameters_of(optimizer)
        done = max((track.done for track in self.tracks.values() if built and track.holds(parameters)), default=0)
        self.tracks[id(optimizer)] = track = Track(optimizer, built=built, done=done)
        return track

    def live_tracks(self) -> list[Track]:
        """Optimizers that the script still has and made, or used, meanwhile."""
        return [track for track in self.tracks.values() if track.optimizer is not None]

    def note(self, text: str) -> None:
        """Say something about the measurement, once."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def has_place(self, where: str) -> bool:
        """Whether a value that was not finite is noted there."""
        return where in self._first

    def add_place(self, where: str, step: int, name: str, kind: str) -> None:
        """Note where a value was not finite, in the first step in which that happened there."""
        count = sum(place["where"] == where for place in self._places)
        if self._first.setdefault(where, step) == step and count < MAX_NAMES_PER_PLACE:
            self._places.append({"step": step, "where": where, "name": name, "kind": kind})

    def losses(self, wanted: int) -> list[float]:
        """Losses of the probed steps, and those that wait for a step that is still to come."""
        found = [loss for step in self.steps for loss in step.losses]
        used = [track for track in self.tracks.values() if track.done > 0] or list(self.tracks.values())
        if not used or any(track.done < wanted for track in used):
            found += self.pending or self.pending_grads
        if len(found) > MAX_LOSSES:
            self.note(f"{MAX_LOSSES} of {len(found)} losses are listed")
        return found[:MAX_LOSSES]

    def report(self, wanted: int) -> dict[str, Any]:
        """All of it as JSON values; numbers that are not finite are left to the writer, which makes them null."""
        losses = self.losses(wanted)
        counted = self.live_tracks() or self.tracks.values()
        sizes = {key: size for track in counted for key, size in track.sizes().items()}
        return {
            "losses": losses,
            "final_loss": losses[-1] if losses else None,
            "loss_is_nan": any(math.isnan(loss) for loss in losses) if losses else None,
            "loss_is_inf": any(math.isinf(loss) for loss in losses) if losses else None,
            "steps": [_told(step) for step in self.steps],
            "grad_norms": self._last_norms(),
            "optimizer_param_count": sum(sizes.values()) if self.tracks else None,
            "nonfinite": self._places,
            "stopped": self.stopped,
            "error": self.error,
            "notes": self.notes,
        }

    def rename(self, names: Names) -> None:
        """Take new names, and use them in steps told already: a second model gives those of the first a prefix."""
        known = names.by_id
        renamed = {name: known[id(held)] for name, held in self.names.parameters if id(held) in known}
        for step in self.steps:
            if step.names is self.names and renamed:
                step.grad_norms = {renamed.get(name, name): norm for name, norm in step.grad_norms.items()}
                if step.update_ratios is not None:
                    step.update_ratios = {renamed.get(name, name): part for name, part in step.update_ratios.items()}
                step.names = names
        self.names = names

    def _last_norms(self) -> dict[str, float | None]:
        """Of the last step, and of those of other optimizers since the same one stepped before."""
        found: dict[str, float | None] = {}
        seen: set[int] = set()
        for step in reversed(self.steps):
            if step.optimizer in seen:
                break
            seen.add(step.optimizer)
            found = step.grad_norms | found
        return {name: _short(norm) for name, norm in (found or self.last_norms).items()}


def _told(step: Step) -> dict[str, Any]:
    return {
        "step": step.number,
        "optimizer": step.label,
        "losses": step.losses,
        "learning_rates": step.learning_rates,
        "grad_norms": {name: _short(norm) for name, norm in step.grad_norms.items()},
        "update_ratios": None
        if step.update_ratios is None
        else {name: _short(ratio) for name, ratio in step.update_ratios.items()},
    }


def _short(value: float | None) -> float | None:
    """Six digits say what a norm can say, and keep a report with many of them small."""
    return value if value is None or not math.isfinite(value) else float(f"{value:.6g}")
