"""Watches a script train: sees every backward call, optimizer step and module output, and ends it in time."""

import sys
from collections.abc import Callable
from os import getpid
from time import monotonic
from types import FrameType
from typing import Any

from instruments.probe_meter import Meter, OpenStep
from instruments.probe_record import MAX_BACKWARDS, MAX_STEPS, Record, Step, Track
from instruments.probe_script import ScriptEnd
from instruments.probe_stop import ProbeStop

# A script that catches what ends it is ended again; after as many times its process has to go.
_MAX_STOPS = 4
_MAX_NOTE_CHARS = 160
# A step of very many losses is not told anew for each of them.
_ALWAYS_PUBLISHED = 8
_PUBLISH_S = 0.05


class Probe:
    """What the hooks call. Only the process that made it is watched, not those that the script forks."""

    def __init__(
        self, wanted: int, publish: Callable[[dict[str, Any]], None], give_up: Callable[[], None] | None = None
    ) -> None:
        """
        Args:
            wanted: Optimizer steps after which the script is ended.
            publish: Gets the report after every step and every loss, less often where a step has very many.
            give_up: Ends the process of a script that catches every stop.
        """
        self.record = Record()
        self.meter = Meter(self.record)
        self._wanted = wanted
        self._publish = publish
        self._give_up = give_up
        self._pid = getpid()
        self._open: dict[int, OpenStep] = {}
        self._backwards = 0
        self._published_s = 0.0
        self._stops = 0
        # The script is to be ended as soon as it begins anything more.
        self._due = False
        # The script steps before it goes backward: a loss belongs to the step before it.
        self._late = False

    def is_stopped(self) -> bool:
        """Whether the probe has ended the script."""
        return self._stops > 0

    def watches(self) -> bool:
        """False in a process that the script forked.

        Raises:
            ProbeStop: All wanted steps are done, and the script goes on.
        """
        if getpid() != self._pid:
            return False
        if self._due:
            self._stop("steps")
        return True

    def on_built(self, optimizer: Any) -> None:
        """The script made an optimizer."""
        self._measure(lambda: self.record.track(optimizer, built=True))

    def on_backward(self, tensors: Any, weights: Any, frame: FrameType | None) -> None:
        """Gradients of a loss are about to be computed."""
        self._count_backward()
        losses = self._losses_now()
        self._measure(lambda: self.meter.take_loss(tensors, weights, frame, losses, self._number()))
        if self._backwards <= _ALWAYS_PUBLISHED or monotonic() - self._published_s > _PUBLISH_S:
            self.publish()

    def on_grad(self, outputs: Any, weights: Any, frame: FrameType | None) -> None:
        """As `on_backward`, for a call that hands out gradients and stores none; it counts where no other call was."""
        self._count_backward()
        losses = self.record.pending_grads
        self._measure(lambda: self.meter.take_loss(outputs, weights, frame, losses, self._number()))

    def on_output(self, module: Any, inputs: Any, output: Any) -> None:
        """A module ran forward."""
        self.meter.saw(module)
        if not self.record.has_place("activation"):
            self._measure(lambda: self.meter.check_output(module, inputs, output, self._number()))

    def on_scaled(self, scale: float, scaled: Any) -> None:
        """A gradient scaler multiplied a loss."""
        self._measure(lambda: self.meter.saw_scale(scale, scaled))

    def on_skipped(self, optimizer: Any) -> None:
        """A gradient scaler left a step out."""
        self.record.note("GradScaler left out an optimizer step, as a scaled gradient was not finite")
        self._measure(lambda: self.meter.flag_gradients(optimizer, self._number()))

    def before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A step begins. Returns other arguments for it where it takes a closure, whose losses are part of the step."""
        track = self.record.track(optimizer)
        if track.done >= self._wanted:
            self._stop("steps")
        if len(self.record.steps) >= MAX_STEPS:
            self.record.note(f"ended after {MAX_STEPS} steps of all optimizers together")
            self._stop("steps")
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        opened = self._open[id(optimizer)] = OpenStep(self._begin(track, optimizer, closure is not None))
        self._measure(lambda: self.meter.prepare(opened, optimizer))
        if not callable(closure):
            self._measure(lambda: self.meter.take_gradients(opened, optimizer))
            return None

        def watched() -> Any:
            loss = closure()
            if not opened.measured:
                # Gradients at the point where the step began.
                self._measure(lambda: self.meter.take_gradients(opened, optimizer))
            return loss

        return ((args[0], watched, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": watched})

    def after_step(self, optimizer: Any) -> None:
        """A step is done; after the last one the script ends where it begins anything more."""
        opened = self._open.pop(id(optimizer), None)
        if opened is None:
            return
        self._measure(lambda: self.meter.finish(opened, optimizer))
        track = self.record.track(optimizer)
        track.done += 1
        self._measure(track.measure)
        self.publish()
        watched = [track for track in self.record.live_tracks() if track.built or track.done]
        if not self._late and all(track.done >= self._wanted for track in watched):
            # Not here: what the script says about this step comes after it.
            self._due = True

    def finish(self, end: ScriptEnd) -> None:
        """The script ended, by itself or not, in the process that is watched or in one that it forked."""
        if getpid() != self._pid:
            return
        record = self.record
        if end.stopped != "probe":
            record.stopped, record.error = end.stopped, end.error
        if not record.steps:
            self._measure(self.meter.take_last_norms)
            if record.pending or record.pending_grads:
                record.note("no optimizer took a step")
        for key, track in record.tracks.items():
            if record.steps and track.built and track.done == 0 and track.optimizer is not None:
                record.note(f"{record.names.optimizers.get(key, 'an optimizer')} took no step")
        self.publish()

    def publish(self) -> None:
        """Hand on the report as it is now."""
        self._published_s = monotonic()
        self._measure(lambda: self._publish(self.record.report(self._wanted)))

    def _measure(self, work: Callable[[], object]) -> None:
        # What can't be looked at costs the script nothing.
        try:
            with sys.modules["torch"].no_grad():
                work()
        except Exception as error:
            self.record.note(f"not measured: {type(error).__name__}: {error}"[:_MAX_NOTE_CHARS])

    def _stop(self, why: str) -> None:
        self.record.stopped, self._due = self.record.stopped or why, True
        self._stops += 1
        if self._stops > _MAX_STOPS and self._give_up is not None:
            self.record.note("the script caught what ended it, again and again; its process was ended")
            self.publish()
            self._give_up()
        raise ProbeStop

    def _count_backward(self) -> None:
        if self._backwards >= MAX_BACKWARDS:
            self.record.note(f"ended after {MAX_BACKWARDS} backward calls without an optimizer step")
            self._stop("no_step")
        self._backwards += 1

    def _losses_now(self) -> list[float]:
        if self._open:
            return list(self._open.values())[-1].step.losses
        return self.record.steps[-1].losses if self._late else self.record.pending

    def _begin(self, track: Track, optimizer: Any, takes_closure: bool) -> Step:
        record = self.record
        losses = record.pending or record.pending_grads
        record.pending, record.pending_grads, self._backwards = [], [], 0
        step = Step(track.done + 1, id(optimizer), type(optimizer).__name__, [], losses)
        if not record.steps and not losses and not takes_closure:
            self._late = True
            record.note("the first step() came before any backward(); each loss is told with the step before it")
        record.steps.append(step)
        self._measure(lambda: step.learning_rates.extend(_rates(optimizer)))
        return step

    def _number(self) -> int:
        """Number of the step that what happens now belongs to."""
        if self._open:
            return list(self._open.values())[-1].step.number
        if self._late and self.record.steps:
            return self.record.steps[-1].number
        done = [track.done for track in self.record.tracks.values()] or [0]
        # One that is a step behind the others is in their step still.
        return min(count for count in done if count >= max(done) - 1) + 1


def _rates(optimizer: Any) -> list[float | None]:
    return [None if group.get("lr") is None else float(group["lr"]) for group in optimizer.param_groups]
