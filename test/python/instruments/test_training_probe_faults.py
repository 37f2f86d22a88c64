import importlib.util
import textwrap
import unittest
from pathlib import Path
from typing import Any

from .probing import Probed, episode, probe, warm_up

HAS_TORCH = importlib.util.find_spec("torch") is not None
MODEL = """
import os, signal, sys, torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        self.head = torch.nn.Linear(2, 1)
    def forward(self, x):
        return self.head(BETWEEN(self.body(x)))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """
for step in range(1, 50):
    optimizer.zero_grad()
    x = torch.ones(3, 2)
    BEFORE
    loss = model(x).pow(2).mean()
    AFTER
    loss.backward()
    GRADIENT
    optimizer.step()
"""


def probe_with(*, between: str = "", steps: int = 5, **parts: str) -> Probed:
    """Probe a loop with statements put into it by the name of the place."""
    code = MODEL.replace("BETWEEN", between) + LOOP
    for place in ("BEFORE", "AFTER", "GRADIENT"):
        code = code.replace(place, parts.get(place.lower(), "pass"))
    return probe(code, steps=steps)


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class FaultTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def places(self, report: dict[str, Any]) -> list[tuple[int, str, str, str]]:
        return [(place["step"], place["where"], place["name"], place["kind"]) for place in report["nonfinite"]]

    def test_a_loss_that_becomes_nan_is_located_in_the_loss(self) -> None:
        report = probe_with(after="if step == 3: loss = loss * float('nan')").report
        self.assertEqual(
            self.places(report)[:3],
            [
                (3, "loss", "loss", "nan"),
                (3, "gradient", "body.0.weight", "nan"),
                (3, "gradient", "body.0.bias", "nan"),
            ],
        )
        self.assertEqual([loss is None for loss in report["losses"]], [False, False, True, True, True])
        self.assertEqual((report["loss_is_nan"], report["loss_is_inf"], report["final_loss"]), (True, False, None))
        # From the step on, weights and outputs are NaN too, each told once.
        self.assertIn((3, "parameter", "head.bias", "nan"), self.places(report))
        self.assertIn((4, "activation", "body.0", "nan"), self.places(report))
        self.assertIsNone(report["steps"][2]["grad_norms"]["head.weight"])
        self.assertIsNone(report["steps"][2]["update_ratios"]["head.weight"])
        self.assertGreater(report["steps"][1]["grad_norms"]["head.weight"], 0)

    def test_an_output_that_becomes_infinite_is_located_in_the_module(self) -> None:
        report = probe_with(before="if step == 3: model.head.bias.data.fill_(float('inf'))").report
        self.assertEqual(self.places(report)[:2], [(3, "activation", "head", "inf"), (3, "loss", "loss", "inf")])
        self.assertEqual((report["loss_is_nan"], report["loss_is_inf"]), (True, True))

    def test_what_happens_between_two_modules_is_told_as_the_input_of_the_second(self) -> None:
        report = probe_with(between="torch.log").report
        self.assertEqual(self.places(report)[0], (1, "activation", "input of head", "nan"))

    def test_data_that_is_nan_is_told_as_the_input_of_the_first_module(self) -> None:
        report = probe_with(before="if step == 3: x[0, 0] = float('nan')").report
        self.assertEqual(
            self.places(report)[:2], [(3, "activation", "input of body.0", "nan"), (3, "loss", "loss", "nan")]
        )

    def test_gradients_that_become_nan_are_located_by_parameter(self) -> None:
        # The loss is finite: the derivative of the root at 0 is not.
        report = probe_with(after="if step == 3: loss = loss + (model.head.weight * 0).sum().sqrt()").report
        self.assertEqual(
            self.places(report)[:2], [(3, "gradient", "head.weight", "nan"), (3, "parameter", "head.weight", "nan")]
        )
        self.assertIsNotNone(report["losses"][2])

    def test_parameters_that_diverge_are_located_by_name(self) -> None:
        report = probe_with(
            after="if step == 3: loss = loss * 100", gradient="if step == 3: optimizer.param_groups[0]['lr'] = 3e38"
        ).report
        self.assertEqual([place[:2] for place in self.places(report)[:2]], [(3, "parameter")] * 2)
        self.assertEqual(report["steps"][2]["learning_rates"], [3e38])

    def test_a_script_that_crashes_returns_what_was_measured_and_the_error(self) -> None:
        probed = probe_with(after="if step == 3: raise ValueError(f'bad batch {step}')")
        report = probed.report
        self.assertEqual((report["stopped"], report["error"]), ("error", "ValueError: bad batch 3"))
        self.assertEqual((len(report["losses"]), len(report["steps"]), report["exit_code"]), (2, 2, 1))
        self.assertGreater(report["grad_norms"]["head.weight"], 0)
        self.assertTrue(probed.stderr.startswith('Traceback (most recent call last):\n  File "train.py", line '))
        self.assertIn("    if step == 3: raise ValueError(f'bad batch {step}')\n", probed.stderr)
        self.assertTrue(probed.stderr.endswith("\nValueError: bad batch 3\n"))

    def test_a_crash_in_torch_shows_no_frame_of_the_probe(self) -> None:
        code = MODEL.replace("BETWEEN", "") + "loss = model(torch.ones(1, 2)).sum()\nloss.backward()\nloss.backward()\n"
        probed = probe(code)
        self.assertEqual(len(probed.report["losses"]), 2)
        self.assertIn("RuntimeError: Trying to backward through the graph a second time", probed.report["error"])
        self.assertIn("    loss.backward()\n", probed.stderr)
        self.assertNotIn("instruments", probed.stderr)

    def test_a_shape_error_before_any_loss_is_told(self) -> None:
        probed = probe(MODEL.replace("BETWEEN", "") + "model(torch.ones(1, 7))\n")
        self.assertTrue(probed.report["error"].startswith("RuntimeError: mat1 and mat2 shapes"))
        self.assertEqual((probed.report["losses"], probed.report["optimizer_param_count"]), ([], 9))

    def test_a_text_that_is_no_program_is_told_like_a_script(self) -> None:
        probed = probe("x = (1,\nprint('never')\ny = = 2\n")
        self.assertEqual(probed.report["error"], "SyntaxError: '(' was never closed")
        self.assertEqual(
            probed.stderr, "  File \"train.py\", line 1\n    x = (1,\n        ^\nSyntaxError: '(' was never closed\n"
        )
        self.assertEqual(probe("x = 1\0").report["stopped"], "error")

    def test_a_syntax_error_shows_the_line_of_the_script_and_not_of_the_file_of_its_name(self) -> None:
        with episode() as current:
            Path(current.work, "train.py").write_text("another = 'script'\nof_two = 'lines'\n")
            for code, line in (("import torch\nreturn 5\n", "return 5"), ("if 1:\n\tx = 1\n        y = 2\n", "y = 2")):
                with self.subTest(code=code):
                    self.assertEqual(current.probe(code).stderr.splitlines()[1].strip(), line)

    def test_lines_end_where_python_ends_them(self) -> None:
        probed = probe("x = 1\n\x0c\n# \u2028 a separator\r\nraise ValueError()\n")
        self.assertIn("line 4, in <module>\n    raise ValueError()\n", probed.stderr)
        self.assertEqual(probed.report["error"], "ValueError")

    def test_a_script_is_read_as_a_file_is(self) -> None:
        for code in ("\ufeffprint(len('é'))", "# coding: latin-1\nprint(len('é') - 1)"):
            with self.subTest(code=code):
                self.assertEqual(probe(code).stdout, "1\n")

    def test_an_exit_keeps_its_status(self) -> None:
        for call, status, error in (
            ("sys.exit()", 0, None),
            ("sys.exit(3)", 3, "SystemExit: 3"),
            ("sys.exit('no data')", 1, "SystemExit: no data"),
        ):
            with self.subTest(call=call):
                report = probe_with(after=f"if step == 3: {call}").report
                self.assertEqual((report["stopped"], report["exit_code"], report["error"]), ("exit", status, error))
                self.assertEqual(len(report["losses"]), 2)

    def test_a_process_that_ends_itself_leaves_what_was_measured(self) -> None:
        for call, stopped, error, code, number in (
            ("os._exit(0)", "exit", None, 0, None),
            ("os._exit(7)", "exit", "the script ended its process with status 7", 7, None),
            ("os.kill(os.getpid(), signal.SIGKILL)", "killed", "the script's process was ended by SIGKILL", None, 9),
            ("os.abort()", "killed", "the script's process was ended by SIGABRT", None, 6),
        ):
            with self.subTest(call=call):
                report = probe_with(gradient=f"if step == 3: {call}").report
                self.assertEqual((report["stopped"], report["error"]), (stopped, error))
                self.assertEqual((report["exit_code"], report["signal"]), (code, number))
                self.assertEqual((len(report["losses"]), len(report["steps"])), (3, 2))

    def test_an_object_that_refuses_to_be_looked_at_costs_no_names(self) -> None:
        code = """
            class Refuses:
                def __getattribute__(self, name):
                    raise RuntimeError("do not look")
            class Net(torch.nn.Linear):
                @property
                def broken(self):
                    raise RuntimeError("nor here")
            refuses, listed = Refuses(), [Refuses()]
            model = Net(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(9):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        """
        report = probe("import torch\n" + textwrap.dedent(code), steps=1).report
        self.assertEqual((list(report["grad_norms"]), report["notes"]), (["weight", "bias"], []))


if __name__ == "__main__":
    unittest.main()
