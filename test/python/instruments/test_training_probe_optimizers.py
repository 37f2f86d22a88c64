import importlib.util
import textwrap
import unittest

from .probing import Probed, probe, probe_loop, warm_up

HAS_TORCH = importlib.util.find_spec("torch") is not None

#: Zeros that the kernel has not handed out yet: their size costs nothing.
LARGE = "model = torch.nn.Embedding.from_pretrained(torch.zeros(9_000_000, 8), freeze=False, sparse=True)"


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class OptimizersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def assert_steps(self, probed: Probed, count: int, *, losses: int | None = None) -> None:
        report = probed.report
        self.assertEqual(report["error"], None, probed.stderr)
        self.assertEqual([step["step"] for step in report["steps"]], list(range(1, count + 1)))
        self.assertEqual(len(report["losses"]), count if losses is None else losses)

    def test_an_optimizer_that_never_steps_is_told(self) -> None:
        code = """
            import torch
            model, spare = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
            used, unused = (torch.optim.SGD(found.parameters(), lr=0.1) for found in (model, spare))
            for _ in range(50):
                model(torch.ones(1, 2)).sum().backward()
                used.step()
        """
        report = probe(textwrap.dedent(code), steps=3).report
        self.assertEqual(report["stopped"], "steps")
        self.assertEqual((len(report["losses"]), len(report["steps"])), (3, 3))
        self.assertEqual(report["notes"], ["unused took no step"])
        self.assertEqual(report["optimizer_param_count"], 6)

    def test_a_large_model_is_not_copied(self) -> None:
        probed = probe_loop(
            """
            model = torch.nn.Embedding(9_000_000, 8, sparse=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(9):
                optimizer.zero_grad()
                model(torch.tensor([1, 2])).sum().backward()
                optimizer.step()
            """.replace("model = torch.nn.Embedding(9_000_000, 8, sparse=True)", LARGE),
            steps=2,
        )
        self.assert_steps(probed, 2)
        self.assertEqual([step["update_ratios"] for step in probed.report["steps"]], [None, None])
        self.assertEqual(probed.report["notes"], ["no update ratios: the parameters are too large to be copied"])

    def test_a_data_loader_with_workers_feeds_the_steps(self) -> None:
        probed = probe_loop(
            """
            from torch.utils.data import DataLoader, TensorDataset
            data = TensorDataset(torch.arange(64.0).reshape(-1, 1).expand(-1, 3))
            for persistent in (False, True):
                loader = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=persistent)
                for (batch,) in loader:
                    optimizer.zero_grad()
                    model(batch / 64).pow(2).mean().backward()
                    optimizer.step()
                    print(int(batch[0, 0]))
                    if not persistent and batch[0, 0] == 4:
                        break
            """,
            steps=4,
        )
        self.assertEqual(probed.stdout.split(), ["0", "4", "0", "4"])
        self.assert_steps(probed, 4)
        self.assertEqual(probed.stderr, "")

    def test_an_optimizer_made_anew_for_every_step_is_counted_on(self) -> None:
        probed = probe_loop(
            """
            for number in range(50):
                optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
                schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
                optimizer.zero_grad()
                model(inputs).mean().backward()
                optimizer.step()
                print(number)
            """,
            steps=3,
        )
        self.assertEqual(probed.stdout.split(), ["0", "1", "2"])
        self.assert_steps(probed, 3)

    def test_two_optimizers_over_one_loss_step_as_often_as_asked(self) -> None:
        probed = probe_loop(
            """
            optimizer = None
            first = torch.optim.SGD([model.weight], lr=0.1)
            second = torch.optim.SGD([model.bias], lr=0.2)
            for number in range(50):
                first.zero_grad(); second.zero_grad()
                model(inputs).mean().backward()
                first.step(); second.step()
                print(number)
            """,
            steps=2,
        )
        self.assertEqual(probed.stdout.split(), ["0", "1"])
        self.assertEqual(len(probed.report["losses"]), 2)
        self.assertEqual(
            [(step["step"], step["optimizer"], list(step["grad_norms"])) for step in probed.report["steps"]],
            [
                (1, "first: SGD", ["weight"]),
                (1, "second: SGD", ["bias"]),
                (2, "first: SGD", ["weight"]),
                (2, "second: SGD", ["bias"]),
            ],
        )
        self.assertEqual(list(probed.report["grad_norms"]), ["weight", "bias"])

    def test_a_handler_that_catches_everything_does_not_keep_the_script_alive(self) -> None:
        loop = """
            for number in range(50):
                CATCH:
                    optimizer.zero_grad()
                    model(inputs).mean().backward()
                    optimizer.step()
                    print(number)
                except KIND:
                    print("caught")
        """
        for kind, caught in (("Exception", 0), ("KeyboardInterrupt", 0), ("BaseException", 4)):
            with self.subTest(kind=kind):
                probed = probe_loop(loop.replace("CATCH", "try").replace("KIND", kind), steps=2)
                self.assert_steps(probed, 2)
                self.assertEqual(probed.report["stopped"], "steps")
                self.assertEqual(probed.stdout.split(), ["0", "1", *["caught"] * caught])
        self.assertIn("again and again", probed.report["notes"][-1])

    def test_what_a_script_does_after_it_caught_the_end_is_not_its_error(self) -> None:
        probed = probe_loop(
            """
            try:
                while True:
                    model(inputs).mean().backward()
                    optimizer.step()
            except BaseException:
                raise ValueError("training failed")
            """,
            steps=2,
        )
        self.assert_steps(probed, 2)
        self.assertEqual((probed.report["stopped"], probed.stderr), ("steps", ""))

    def test_training_in_a_thread_is_seen_and_ended(self) -> None:
        probed = probe_loop(
            """
            import threading
            def train():
                for number in range(500):
                    model(inputs).mean().backward()
                    optimizer.step()
                    print(number)
            threading.Thread(target=train).start()
            """,
            steps=3,
        )
        self.assert_steps(probed, 3)
        self.assertEqual((probed.stdout.split(), probed.stderr), (["0", "1", "2"], ""))

    def test_training_in_processes_of_the_script_is_left_alone(self) -> None:
        probed = probe_loop(
            """
            import os
            if os.fork() == 0:
                for number in range(8):
                    model(inputs).mean().backward()
                    optimizer.step()
                os.write(1, b"child done\\n")
                os._exit(0)
            os.wait()
            model(inputs).mean().backward()
            optimizer.step()
            """,
            steps=1,
        )
        self.assert_steps(probed, 1)
        self.assertEqual(probed.stdout, "child done\n")

    def test_an_optimizer_around_another_counts_both(self) -> None:
        probed = probe_loop(
            """
            class Around(torch.optim.Optimizer):
                def __init__(self, inner):
                    self.inner = inner
                    super().__init__(inner.param_groups, {})
                def step(self, closure=None):
                    return self.inner.step(closure)
            around = Around(optimizer)
            for number in range(50):
                model(inputs).mean().backward()
                around.step()
                print(number)
            """,
            steps=2,
        )
        self.assertEqual(probed.report["error"], None, probed.stderr)
        self.assertEqual(probed.stdout.split(), ["0", "1"])
        self.assertEqual(len(probed.report["losses"]), 2)


if __name__ == "__main__":
    unittest.main()
