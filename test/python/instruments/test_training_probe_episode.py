import importlib.util
import os
import resource
import signal
import threading
import unittest
from pathlib import Path
from typing import Any

from instruments.child_tree import children
from worker.instrument import Scene
from worker.interrupt import StepTimeout
from worker.isolation.rlimits import private_bytes

from .probing import Episode, deadline, episode, warm_up
from .scenes import Output

HAS_TORCH = importlib.util.find_spec("torch") is not None
SETUP = """
import torch
torch.manual_seed(5)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
history = [1, 2]
"""
LOOP = """
import os, signal, time
history.append(3)
for step in range(1, 100):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if step == 3:
        FAULT
"""


def snapshot(made: Episode) -> dict[str, Any]:
    """Everything of an episode that a probe must leave as it was."""
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer

    return {
        "names": sorted(made.values),
        "history": list(made.values["history"]),
        "weights": [parameter.tolist() for parameter in made.values["model"].parameters()],
        "gradients": [parameter.grad for parameter in made.values["model"].parameters()],
        "optimizer": made.values["optimizer"].state_dict()["state"],
        "chance": torch.get_rng_state().tolist(),
        "hooks": (
            len(optimizer._global_optimizer_pre_hooks),
            len(optimizer._global_optimizer_post_hooks),
            len(module._global_forward_hooks),
        ),
        "patched": (torch.autograd.backward, torch.autograd.grad, torch.optim.Optimizer.__init__, threading.excepthook),
        "scaler": (torch.amp.GradScaler.scale, torch.amp.GradScaler.step),
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "children": children(),
        "threads": threading.active_count(),
        "folder": os.getcwd(),
        "handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGTERM)],
    }


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class EpisodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def test_the_episode_stays_as_it_is_whatever_the_script_does(self) -> None:
        endings = {
            "ends": "break",
            "is stopped": "pass",
            "raises": "1 / 0",
            "exits": "os._exit(3)",
            "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
            "leaves processes": "os.fork() or (os.setsid(), os.fork() or time.sleep(60), time.sleep(60))",
            "closes what it has": "os.closerange(0, 256)",
            "changes folder": "os.chdir('/')",
            "changes signals": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        }
        for ending, fault in endings.items():
            with self.subTest(ending=ending), episode() as made:
                made.run(SETUP)
                before = snapshot(made)
                report = made.probe(LOOP.replace("FAULT", fault)).report
                self.assertEqual(snapshot(made), before)
                self.assertGreaterEqual(len(report["losses"]), 2 if ending == "closes what it has" else 3)

    def test_a_script_that_hangs_ends_with_the_step_and_leaves_what_was_measured(self) -> None:
        hangs = {
            "in Python": "while True: pass",
            "in C": "time.sleep(600)",
            "without signals": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); time.sleep(600)",
            "in its end": "import atexit; atexit.register(time.sleep, 600); break",
        }
        for place, fault in hangs.items():
            with self.subTest(place=place), episode() as made:
                made.run(SETUP)
                before = snapshot(made)
                with self.assertRaises(StepTimeout), deadline(1.5):
                    made.probe(LOOP.replace("FAULT", fault))
                self.assertEqual(snapshot(made), before)
                self.assertEqual(len(made.report["losses"]), 3)
                self.assertEqual(len(made.report["steps"]), 3)
                self.assertEqual(made.report["stopped"], "end" if place == "in its end" else "time_limit")

    def test_memory_runs_out_for_the_script_before_it_does_for_the_episode(self) -> None:
        limits = resource.getrlimit(resource.RLIMIT_DATA)
        # As a worker has it: what it began with, 512 MiB for the episode, and 1 GiB that is only mapped.
        allowed = private_bytes() + (512 << 20) + (1 << 30)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, limits[1]))
        try:
            with episode() as made:
                made.run(SETUP)
                report = made.probe(LOOP.replace("FAULT", "hoard = torch.ones(600 << 18)")).report
                self.assertIn("can't allocate memory", report["error"])
                self.assertEqual(len(report["losses"]), 3)
                report = made.probe(LOOP.replace("FAULT", "hoard = torch.ones(200 << 18)")).report
                self.assertEqual((report["error"], len(report["losses"])), (None, 5))
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, limits)

    def test_a_process_of_an_earlier_cell_lives_on(self) -> None:
        with episode() as made:
            made.run(SETUP + "import subprocess\nkept = subprocess.Popen(['sleep', '60'], start_new_session=True)\n")
            try:
                made.probe(LOOP.replace("FAULT", "os.fork() or time.sleep(60)"))
                self.assertIsNone(made.values["kept"].poll())
                self.assertEqual(children(), [made.values["kept"].pid])
            finally:
                made.values["kept"].kill()
                made.values["kept"].wait()

    def test_what_the_parent_meant_to_do_at_its_end_is_not_done(self) -> None:
        setup = (
            "import tempfile, atexit\nfolder = tempfile.TemporaryDirectory()\n"
            "log = open('log.txt', 'w')\natexit.register(print, 'the end of the episode')\n"
        )
        with episode() as made:
            made.run(SETUP + setup)
            code = "folder = log = None\nimport gc; gc.collect()\nown = open('own.txt', 'w')\nown.write('written')\n"
            probed = made.probe(code + "print('ran')")
            self.assertEqual((probed.stdout, probed.report["stopped"]), ("ran\n", "end"))
            self.assertTrue(os.path.isdir(made.values["folder"].name))
            self.assertEqual(Path("own.txt").read_text(), "written")
            made.values["log"].write("still open")
            made.values["log"].close()
            self.assertEqual(Path("log.txt").read_text(), "still open")
            made.values["folder"].cleanup()
            made.values["atexit"].unregister(print)

    def test_in_place_the_hooks_go_and_the_variables_stay(self) -> None:
        import torch
        from instruments.training_probe import probe_in_place

        for fault, stopped in (("pass", "steps"), ("1 / 0", "error"), ("raise SystemExit(2)", "exit")):
            with self.subTest(fault=fault), episode() as made:
                made.run(SETUP)
                before = snapshot(made)
                scene = Scene(made.values, made.work, {"exit_code": None})
                code = LOOP.replace("history.append(3)", "history = [9]").replace("FAULT", fault)
                with Output():
                    probe_in_place(scene, code, 5, False)
                self.assertEqual(scene.report["stopped"], stopped)
                self.assertEqual(len(scene.report["losses"]), 5 if stopped == "steps" else 3)
                self.assertEqual(
                    scene.report["notes"], ["ran in the worker itself, which can't fork once it has used a GPU"]
                )
                after = snapshot(made)
                # The objects are the episode's own.
                for name in ("weights", "gradients", "optimizer"):
                    before.pop(name), after.pop(name)
                self.assertEqual(after, before)
                self.assertEqual(torch.initial_seed(), 5)

    def test_a_hang_in_place_ends_with_the_step(self) -> None:
        from instruments.training_probe import probe_in_place

        with episode() as made:
            made.run(SETUP)
            before = snapshot(made)["hooks"]
            scene = Scene(made.values, made.work)
            with self.assertRaises(StepTimeout), deadline(0.5):
                probe_in_place(scene, LOOP.replace("FAULT", "time.sleep(60)"), 5, False)
            self.assertEqual((scene.report["stopped"], len(scene.report["losses"])), ("time_limit", 3))
            self.assertEqual(snapshot(made)["hooks"], before)


if __name__ == "__main__":
    unittest.main()
