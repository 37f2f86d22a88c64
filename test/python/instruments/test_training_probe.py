import importlib.util
import textwrap
import unittest
from typing import Any

from .probing import episode, probe, warm_up

HAS_TORCH = importlib.util.find_spec("torch") is not None

REGRESSION = """
import torch
from torch import nn

torch.manual_seed(3)
inputs = torch.randn(16, 4)
targets = inputs.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    print("step", step)
"""


def by_hand(steps: int) -> list[dict[str, Any]]:
    """What the loop of REGRESSION does, written out without any optimizer."""
    import torch
    from torch import nn

    torch.manual_seed(3)
    inputs = torch.randn(16, 4)
    targets = inputs.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    seen = []
    for _ in range(steps):
        loss = ((model(inputs) - targets) ** 2).mean()
        named = dict(model.named_parameters())
        gradients = torch.autograd.grad(loss, list(named.values()))
        norms, ratios = {}, {}
        with torch.no_grad():
            for (name, parameter), gradient in zip(named.items(), gradients, strict=True):
                norms[name] = float((gradient.double() ** 2).sum().sqrt())
                ratios[name] = 0.1 * norms[name] / float((parameter.double() ** 2).sum().sqrt())
                parameter -= 0.1 * gradient
        seen.append({"loss": loss.item(), "grad_norms": norms, "update_ratios": ratios})
    return seen


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class TrainingProbeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def assert_close(self, measured: dict[str, float], expected: dict[str, float]) -> None:
        self.assertEqual(list(measured), list(expected))
        for name, value in expected.items():
            self.assertAlmostEqual(measured[name] / value, 1.0, places=4, msg=name)

    def test_probe_measures_what_a_loop_by_hand_measures(self) -> None:
        report, expected = probe(REGRESSION).report, by_hand(5)
        self.assertEqual(report["stopped"], "steps")
        self.assertEqual([step["step"] for step in report["steps"]], [1, 2, 3, 4, 5])
        for step, own in zip(report["steps"], expected, strict=True):
            self.assertAlmostEqual(step["losses"][0], own["loss"], places=5)
            self.assertEqual(len(step["losses"]), 1)
            self.assertEqual(step["learning_rates"], [0.1])
            self.assertEqual(step["optimizer"], "optimizer: SGD")
            self.assert_close(step["grad_norms"], own["grad_norms"])
            self.assert_close(step["update_ratios"], own["update_ratios"])
        self.assert_close(report["grad_norms"], expected[-1]["grad_norms"])
        self.assertEqual(report["losses"], [step["losses"][0] for step in report["steps"]])
        self.assertEqual(report["final_loss"], report["losses"][-1])
        self.assertEqual(report["optimizer_param_count"], 4 * 8 + 8 + 8 + 1)
        self.assertEqual((report["loss_is_nan"], report["loss_is_inf"]), (False, False))
        self.assertEqual((report["nonfinite"], report["notes"], report["error"]), ([], [], None))
        self.assertEqual((report["exit_code"], report["signal"]), (0, None))

    def test_steps_ends_the_script_after_as_many_optimizer_steps(self) -> None:
        for steps in (1, 4, 10):
            probed = probe(REGRESSION, steps=steps)
            with self.subTest(steps=steps):
                self.assertEqual(len(probed.report["losses"]), steps)
                self.assertEqual(len(probed.report["steps"]), steps)
                self.assertEqual(probed.stdout, "".join(f"step {number}\n" for number in range(steps)))

    def test_a_script_that_ends_earlier_is_told_as_ended(self) -> None:
        probed = probe(REGRESSION.replace("range(100)", "range(3)") + "print('done')")
        self.assertEqual(probed.report["stopped"], "end")
        self.assertEqual(len(probed.report["losses"]), 3)
        self.assertTrue(probed.stdout.endswith("done\n"))

    def test_wrong_arguments_are_told_by_name(self) -> None:
        for arguments, kind in (
            ({"steps": 0}, ValueError),
            ({"steps": 11}, ValueError),
            ({"steps": True}, TypeError),
            ({"steps": 2.0}, TypeError),
            ({"fresh": "no"}, TypeError),
        ):
            with self.subTest(arguments=arguments), self.assertRaisesRegex(kind, f"^{next(iter(arguments))}: expected"):
                probe("pass", **arguments)

    def test_any_text_is_a_script(self) -> None:
        code = (
            "text = 'a \"quoted\" \\n backslash'\n"
            "triple = '''one\n  \"\"\"two\"\"\"\n'''\n"
            'if __name__ == "__main__":\n'
            "    print(text, len(triple), r'\\d', 'ü', __file__[-8:])\n"
        )
        self.assertEqual(probe(code).stdout, 'a "quoted" \n backslash 16 \\d ü train.py\n')

    def test_learning_rates_follow_a_schedule_per_group(self) -> None:
        code = """
            import torch
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
            groups = [{"params": model[0].parameters(), "lr": 0.4}, {"params": model[1].parameters()}]
            optimizer = torch.optim.SGD(groups, lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
            for _ in range(9):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
                schedule.step()
        """
        steps = probe(textwrap.dedent(code), steps=3).report["steps"]
        self.assertEqual([step["learning_rates"] for step in steps], [[0.4, 0.1], [0.2, 0.05], [0.1, 0.025]])

    def test_variables_of_the_episode_are_there_unless_fresh(self) -> None:
        setup = """
            import torch
            scale = 3
            model = torch.nn.Linear(2, 1)
            def loss_of(x):
                return scale * model(x).sum()
        """
        code = """
            import torch
            scale = 5
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(9):
                optimizer.zero_grad()
                loss_of(torch.ones(1, 2)).backward()
                optimizer.step()
        """
        with episode() as made:
            made.run(textwrap.dedent(setup))
            weight = made.values["model"].weight.detach().clone()
            report = made.probe(textwrap.dedent(code), steps=2).report
            self.assertEqual(list(report["grad_norms"]), ["weight", "bias"])
            # Functions of the episode see what the script binds, as they would in a cell.
            self.assertEqual(report["grad_norms"]["bias"], 5.0)
            self.assertEqual((made.values["scale"], "optimizer" in made.values), (3, False))
            self.assertTrue(bool((made.values["model"].weight == weight).all()))
            fresh = made.probe(textwrap.dedent(code), fresh=True)
            self.assertEqual(fresh.report["error"], "NameError: name 'model' is not defined")
            self.assertEqual(fresh.report["optimizer_param_count"], None)
            self.assertIn('File "train.py", line 4', fresh.stderr)


if __name__ == "__main__":
    unittest.main()
