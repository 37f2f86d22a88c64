import importlib.util
import unittest

from .probing import MODEL, Probed, probe_loop, warm_up

HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class LossesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def assert_steps(self, probed: Probed, count: int, *, losses: int | None = None) -> None:
        report = probed.report
        self.assertEqual(report["error"], None, probed.stderr)
        self.assertEqual([step["step"] for step in report["steps"]], list(range(1, count + 1)))
        self.assertEqual(len(report["losses"]), count if losses is None else losses)

    def test_the_closure_of_lbfgs_is_one_step_with_the_losses_of_all_its_calls(self) -> None:
        probed = probe_loop(
            """
            optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
            def closure():
                optimizer.zero_grad()
                loss = (model(inputs) - 1).pow(2).mean()
                loss.backward()
                print(loss.item(), model.weight.grad.norm().item())
                return loss
            for _ in range(9):
                optimizer.step(closure)
            """,
            steps=2,
        )
        printed = [[float(word) for word in line.split()] for line in probed.stdout.splitlines()]
        self.assertEqual(len(printed), 8)
        self.assert_steps(probed, 2, losses=8)
        self.assertEqual(probed.report["losses"], [loss for loss, _norm in printed])
        # Where the step began, not where the last call of the closure left it.
        for step, first in zip(probed.report["steps"], (0, 4), strict=True):
            self.assertAlmostEqual(step["grad_norms"]["weight"], printed[first][1], places=4)
            self.assertGreater(step["update_ratios"]["weight"], 0)

    def test_mixed_precision_is_told_in_the_units_of_the_loss(self) -> None:
        loop = """
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
            for _ in range(9):
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = (model(inputs) - 1).float().pow(2).mean()
                scaler.scale(SCALED).backward()
                print(loss.item())
                scaler.step(optimizer)
                scaler.update()
        """
        for scaled, after in (("loss", ""), ("loss", " / 4"), ("loss / 4", "")):
            with self.subTest(scaled=scaled, after=after):
                code = loop.replace("SCALED).backward", f"{scaled}){after}).backward").replace(
                    "scaler.scale", "(scaler.scale"
                )
                probed = probe_loop(code, steps=3)
                share = 4 if "4" in scaled + after else 1
                self.assert_steps(probed, 3)
                printed = [float(line) for line in probed.stdout.split()]
                for loss, own in zip(probed.report["losses"], printed, strict=True):
                    self.assertAlmostEqual(loss, own / share, places=5)
                self.assertLess(probed.report["grad_norms"]["weight"], 10)

    def test_a_step_that_a_scaler_left_out_is_told_with_the_gradient(self) -> None:
        probed = probe_loop(
            """
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
            for _ in range(9):
                optimizer.zero_grad()
                scaler.scale(model(torch.ones(1, 3)).sum() * 100).backward()
                scaler.step(optimizer)
                scaler.update()
            """,
            steps=1,
        )
        report = probed.report
        self.assertIn("GradScaler left out an optimizer step, as a scaled gradient was not finite", report["notes"])
        self.assertEqual(
            next(place for place in report["nonfinite"] if place["where"] == "gradient"),
            {"step": 1, "where": "gradient", "name": "weight", "kind": "inf"},
        )

    def test_gradient_accumulation_gives_several_losses_to_one_step(self) -> None:
        probed = probe_loop(
            """
            for batch in range(99):
                loss = (model(inputs) - batch).pow(2).mean() / 4
                loss.backward()
                if batch % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
            """,
            steps=3,
        )
        self.assert_steps(probed, 3, losses=12)
        self.assertEqual([len(step["losses"]) for step in probed.report["steps"]], [4, 4, 4])

    def test_a_checkpoint_goes_backward_once_for_a_reader(self) -> None:
        probed = probe_loop(
            """
            from torch.utils.checkpoint import checkpoint
            inputs.requires_grad_()
            for _ in range(9):
                optimizer.zero_grad()
                checkpoint(model, inputs, use_reentrant=True).mean().backward()
                optimizer.step()
            """,
            steps=2,
        )
        self.assert_steps(probed, 2)

    def test_a_step_before_its_backward_call_still_shows_all_losses(self) -> None:
        probed = probe_loop(
            """
            for _ in range(50):
                optimizer.zero_grad()
                loss = (model(inputs) - 1).pow(2).mean()
                optimizer.step()
                loss.backward()
                print(loss.item())
            """,
            steps=3,
        )
        self.assert_steps(probed, 3)
        self.assertEqual(probed.report["losses"], [float(line) for line in probed.stdout.split()[:3]])
        self.assertEqual(probed.report["grad_norms"], {"weight": None, "bias": None})
        self.assertEqual(probed.report["steps"][2]["update_ratios"], {"weight": 0.0, "bias": 0.0})
        self.assertIn("the first step() came before any backward()", probed.report["notes"][0])

    def test_steps_without_any_backward_call_end_too(self) -> None:
        probed = probe_loop("for number in range(50):\n    optimizer.step()\n    print(number)\n", steps=3)
        self.assert_steps(probed, 3, losses=0)
        self.assertEqual(probed.stdout.split(), ["0", "1", "2"])
        self.assertEqual(probed.report["loss_is_nan"], None)

    def test_a_script_that_never_steps_is_ended_after_many_losses(self) -> None:
        probed = probe_loop(
            """
            number = 0
            while True:
                model(inputs).mean().backward()
                number += 1
                print(number)
            """
        )
        report = probed.report
        self.assertEqual(report["stopped"], "no_step")
        self.assertEqual(len(report["losses"]), 256)
        self.assertEqual(probed.stdout.split()[-1], "256")
        self.assertEqual(report["steps"], [])
        self.assertEqual(list(report["grad_norms"]), ["weight", "bias"])
        self.assertGreater(report["grad_norms"]["bias"], 0)
        self.assertEqual(report["optimizer_param_count"], 4)
        self.assertEqual(
            report["notes"], ["ended after 256 backward calls without an optimizer step", "no optimizer took a step"]
        )

    def test_updates_by_hand_show_losses_and_gradients(self) -> None:
        probed = probe_loop(
            """
            for _ in range(7):
                loss = (model(inputs) - 1).pow(2).mean()
                gradients = torch.autograd.grad(loss, list(model.parameters()))
                print(loss.item())
                with torch.no_grad():
                    for parameter, gradient in zip(model.parameters(), gradients):
                        parameter -= 0.1 * gradient
            """,
            model=MODEL.replace("optimizer =", "# optimizer ="),
        )
        self.assertEqual(probed.report["stopped"], "end")
        self.assertEqual(probed.report["losses"], [float(line) for line in probed.stdout.split()])
        self.assertEqual(probed.report["optimizer_param_count"], None)
        self.assertEqual(probed.report["notes"], ["no optimizer took a step"])

    def test_gradients_handed_out_count_as_losses_of_a_step_a_penalty_does_not(self) -> None:
        probed = probe_loop(
            """
            for _ in range(50):
                loss = model(inputs).pow(2).mean()
                weight, bias = torch.autograd.grad(loss, [model.weight, model.bias], create_graph=True)
                total = loss + weight.pow(2).sum()
                model.weight.grad, model.bias.grad = torch.autograd.grad(total, [model.weight, model.bias])
                print(total.item())
                optimizer.step()
            """,
            steps=2,
        )
        self.assert_steps(probed, 2)
        self.assertEqual(probed.report["losses"], [float(line) for line in probed.stdout.split()])
        self.assertGreater(probed.report["grad_norms"]["weight"], 0)


if __name__ == "__main__":
    unittest.main()
