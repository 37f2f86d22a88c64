"""The instrument `run_script`: runs a script in a forked child and reports how it ended and what it used."""

import random
import resource
import signal
import time
from typing import Any

from worker.instrument import Scene
from worker.interrupt import StepTimeout

from instruments.arguments import number_argument, text_argument
from instruments.forked_child import ChildEnd, run_in_child
from instruments.script_run import run_as_script

FIELDS = ("exit_code", "signal", "cpu_s", "wall_s", "peak_growth_bytes", "starved", "timed_out")


def run_script(scene: Scene, arguments: dict[str, Any]) -> None:
    """Run `code` as `python train.py` would, in the work folder, with `cpu_s` seconds of CPU time.

    The worker itself runs none of it, so what is reported is the kernel's word: `exit_code` or else the number of
    the `signal` that ended it, `cpu_s` of all its processes, `wall_s`, `starved` (share of its life that others kept
    it from a CPU, None if not known), `timed_out` (a limit ended it) and `peak_growth_bytes`: the largest resident
    memory of any of its processes, over that of a child which does nothing.

    Raises:
        TypeError: An argument is missing or of another type.
        ValueError: `cpu_s` is not above zero.
        StepTimeout: The deadline came; the report is whole, with `timed_out`.
    """
    code, cpu_s = text_argument(arguments, "code"), number_argument(arguments, "cpu_s")
    report = scene.report
    report.update(dict.fromkeys(FIELDS), timed_out=False)
    ends: list[ChildEnd] = []
    cut: list[ChildEnd] = []
    draws = random.getstate()
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ends.append(run_in_child(lambda found: 0))
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        end = run_in_child(lambda found: _run(code, scene.work, draws), cpu_s=cpu_s, cut_short=cut)
        ends.append(end)
        report.update(exit_code=end.exit_code, signal=end.signal, starved=end.starved, timed_out=_limited(end, cpu_s))
    except StepTimeout:
        report.update(signal=int(signal.SIGKILL), starved=cut[0].starved if cut else None, timed_out=True)
        raise
    finally:
        # All of its processes are gone, and the kernel has added them up, daemons too: they became children of the
        # worker. Where an earlier child was larger than all of them, the one that was waited for must do.
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        largest = [end.max_rss_bytes for end in ends]
        if after.ru_maxrss > before.ru_maxrss:
            largest.append(after.ru_maxrss * 1024)
        report.update(
            cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            wall_s=ends[1].wall_s if len(ends) > 1 else time.monotonic() - started,
            peak_growth_bytes=max(largest) - largest[0] if largest else None,
        )


def _run(code: str, folder: str, draws: tuple[Any, ...]) -> int:
    # A fork seeds `random` anew; numpy and torch go on as the parent would.
    random.setstate(draws)
    return run_as_script(code, folder)


def _limited(end: ChildEnd, cpu_s: float) -> bool:
    return end.signal == signal.SIGXCPU or (end.signal == signal.SIGKILL and end.cpu_s >= cpu_s)
