"""The instrument `training_probe`: the first optimizer steps of a script, seen from inside."""

import builtins
import copy
import linecache
import os
import resource
import signal
import sys
import types
from os import _exit
from typing import Any

from worker.instrument import Scene
from worker.interrupt import StepTimeout
from worker.isolation.rlimits import private_bytes

from instruments.arguments import text_argument
from instruments.child_ending import flush_output
from instruments.forked_child import ChildEnd, run_in_child
from instruments.probe import Probe
from instruments.probe_hooks import watch
from instruments.probe_record import EMPTY_REPORT
from instruments.probe_script import run_probed
from instruments.script_run import SCRIPT_NAME
from instruments.shared_report import SharedReport

DEFAULT_STEPS = 5
MAX_STEPS = 10

# What the limit on mapped memory allows beyond the memory of an episode, and what stays for the worker itself.
_MAPPED_SLACK_BYTES = 1 << 30
_WORKER_BYTES = 128 << 20
_LEAST_BYTES = 32 << 20
_UNABLE_TO_FORK = "unable_to_fork"


def training_probe(scene: Scene, arguments: dict[str, Any]) -> None:
    """Run the script `code` until its optimizers took `steps` steps (1 to 10, default 5) and report what they did.

    It runs in a forked child, with the variables of the episode unless `fresh`:
    whatever it does, crash, hang or waste memory, the episode keeps its
    variables and its processes. Files it writes stay. A worker that has used a
    GPU can't fork for it: CUDA works in no child, and where there is a GPU
    autograd doesn't either once it ran. Then the script runs in place, with
    names of its own but the same objects; the hooks are removed at its end.

    The report: `losses`, `final_loss`, `loss_is_nan`, `loss_is_inf`, `steps` (for
    each: `step`, `optimizer`, `losses`, `learning_rates`, `grad_norms`,
    `update_ratios`), `grad_norms` of the last step, `optimizer_param_count`,
    `nonfinite` (`step`, `where`, `name`, `kind`), `notes`, `error`, `exit_code`,
    `signal`, and `stopped`: `steps`, `no_step` (too many backward calls without
    a step), `end`, `exit` (the script ended itself), `error`, `killed`, or
    `time_limit`. It is up to date after every step and every loss.

    Raises:
        TypeError: `code` is missing or no text; `steps` or `fresh` is of another type.
        ValueError: `steps` is out of range.
        StepTimeout: The deadline came; what was measured until then is in the report.
    """
    code = text_argument(arguments, "code")
    steps, fresh = arguments.get("steps", DEFAULT_STEPS), arguments.get("fresh", False)
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise TypeError(f"steps: expected a whole number, got {type(steps).__name__}")
    if not 1 <= steps <= MAX_STEPS:
        raise ValueError(f"steps: expected 1 to {MAX_STEPS}, got {steps}")
    if not isinstance(fresh, bool):
        raise TypeError(f"fresh: expected true or false, got {type(fresh).__name__}")
    scene.report.update(copy.deepcopy(EMPTY_REPORT), exit_code=None, signal=None)
    torch = sys.modules.get("torch")
    able = torch is None or not torch.cuda.is_initialized()
    if not able or not _probe_in_child(scene, code, steps, fresh):
        probe_in_place(scene, code, steps, fresh)


def _probe_in_child(scene: Scene, code: str, steps: int, fresh: bool) -> bool:
    """Probe in a fork; False when nothing ran, since autograd does not work there."""
    report = scene.report

    def work(shared: SharedReport) -> int:
        return _run(scene, code, steps, fresh, shared)

    with SharedReport() as shared:
        report["stopped"] = "time_limit"
        try:
            end = run_in_child(work, shared, data_bytes=_data_bytes())
            report["stopped"] = None
        finally:
            found = shared.read()
            report.update({name: value for name, value in found.items() if name != "stopped" or value is not None})
    if _UNABLE_TO_FORK in found:
        del report[_UNABLE_TO_FORK]
        return False
    report.update(exit_code=end.exit_code, signal=end.signal)
    if report["stopped"] is None:
        _tell_end(report, end)
    return True


def _tell_end(report: dict[str, Any], end: ChildEnd) -> None:
    """What the script itself could not tell."""
    if end.signal is None:
        report["stopped"] = "exit"
        if end.exit_code != 0:
            report["error"] = f"the script ended its process with status {end.exit_code}"
    else:
        report["stopped"] = "killed"
        report["error"] = f"the script's process was ended by {signal.Signals(end.signal).name}"


def _run(scene: Scene, code: str, steps: int, fresh: bool, shared: SharedReport) -> int:
    """In the child."""
    try:
        import torch
    except ImportError:
        # The script says so itself.
        torch = None

    def leave() -> None:
        flush_output()
        _exit(0)

    probe = Probe(steps, shared.write, leave)
    values = _enter_main(scene, fresh)
    if torch is None:
        end = run_probed(code, values, scene.work, probe.is_stopped)
        probe.finish(end)
        return end.status
    if not _can_differentiate(torch):
        shared.write({_UNABLE_TO_FORK: True})
        return 0
    # For the rest of the process: threads of the script may still train when its last line has run.
    watch(probe)
    end = run_probed(code, values, scene.work, probe.is_stopped)
    probe.finish(end)
    if probe.is_stopped():
        # Not as an interpreter would end: its threads and callbacks would go on training.
        leave()
    return end.status


def probe_in_place(scene: Scene, code: str, steps: int, fresh: bool) -> None:
    """Probe in the worker's own process.

    Raises:
        StepTimeout: The deadline came; the hooks are gone.
    """
    import torch

    main, arguments, folder = sys.modules["__main__"], list(sys.argv), os.getcwd()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    probe = Probe(steps, scene.report.update)
    probe.record.note("ran in the worker itself, which can't fork once it has used a GPU")
    try:
        module = types.ModuleType("__main__")
        module.__dict__.update({} if fresh else scene.values, __builtins__=builtins)
        sys.modules["__main__"] = module
        with watch(probe), torch.random.fork_rng(devices):
            end = run_probed(code, module.__dict__, scene.work, probe.is_stopped)
        probe.finish(end)
        scene.report["exit_code"] = end.status
    except StepTimeout:
        scene.report["stopped"] = "time_limit"
        raise
    finally:
        sys.modules["__main__"], sys.argv[:] = main, arguments
        linecache.cache.pop(SCRIPT_NAME, None)
        os.chdir(folder)


def _enter_main(scene: Scene, fresh: bool) -> dict[str, Any]:
    """The variables a script in the child begins with, in a `__main__` that its functions and pickles find."""
    if scene.work not in sys.path and "" not in sys.path:
        sys.path.insert(0, scene.work)
    if not fresh:
        return scene.values
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    os.chdir(scene.work)
    return module.__dict__


def _can_differentiate(torch: Any) -> bool:
    try:
        with torch.enable_grad():
            torch.ones((), requires_grad=True).mul(2).backward()
    except RuntimeError as error:
        return "fork-based multiprocessing" not in str(error)
    return True


def _data_bytes() -> int | None:
    """Memory for the child, so that it runs out before the episode as a whole does, which would end the worker too."""
    limit, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        return None
    return min(limit, max(limit - _MAPPED_SLACK_BYTES - _WORKER_BYTES, private_bytes() + _LEAST_BYTES))
