import importlib.util
import textwrap
import unittest

from .probing import probe, probe_loop, warm_up

HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_TORCH, "torch is not installed for this interpreter")
class NamesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        warm_up()

    def test_a_model_inside_functions_is_named_as_named_parameters_does(self) -> None:
        code = """
            import torch
            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.encoder = torch.nn.Linear(3, 5)
                    self.head = torch.nn.Linear(5, 2)
                def forward(self, x):
                    return self.head(self.encoder(x).relu())
            class Trainer:
                def __init__(self):
                    self.net = Net()
                    self.optimizer = torch.optim.Adam(self.net.parameters())
                def fit(self):
                    for _ in range(50):
                        loss = self.net(torch.ones(4, 3)).pow(2).mean()
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
            def main():
                Trainer().fit()
            if __name__ == "__main__":
                main()
        """
        report = probe(textwrap.dedent(code), steps=2).report
        self.assertEqual(list(report["grad_norms"]), ["encoder.weight", "encoder.bias", "head.weight", "head.bias"])
        self.assertEqual(report["steps"][0]["optimizer"], "self.optimizer: Adam")
        self.assertEqual(len(report["losses"]), 2)

    def test_two_models_are_told_apart_by_their_variables(self) -> None:
        code = """
            import torch
            maker, judge = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
            maker_steps = torch.optim.SGD(maker.parameters(), lr=0.5)
            judge_steps = torch.optim.Adam(judge.parameters(), lr=0.01)
            for round in range(50):
                judge_steps.zero_grad()
                judge(maker(torch.ones(4, 2)).detach()).mean().backward()
                judge_steps.step()
                maker_steps.zero_grad()
                (-judge(maker(torch.ones(4, 2))).mean()).backward()
                maker_steps.step()
                print(round)
        """
        probed = probe(textwrap.dedent(code), steps=3)
        report = probed.report
        self.assertEqual(probed.stdout, "0\n1\n2\n")
        self.assertEqual(
            [(step["step"], step["optimizer"], step["learning_rates"]) for step in report["steps"]],
            [(n, *which) for n in (1, 2, 3) for which in (("judge_steps: Adam", [0.01]), ("maker_steps: SGD", [0.5]))],
        )
        self.assertEqual(list(report["steps"][0]["grad_norms"]), ["judge.weight", "judge.bias"])
        self.assertEqual(sorted(report["grad_norms"]), ["judge.bias", "judge.weight", "maker.bias", "maker.weight"])
        self.assertEqual(len(report["losses"]), 6)
        self.assertEqual(report["optimizer_param_count"], 2 * 3 + 3 + 3 + 1)

    def test_frozen_and_forgotten_parameters_are_listed(self) -> None:
        code = """
            import torch
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
            model[0].requires_grad_(False)
            optimizer = torch.optim.SGD([*model[0].parameters(), *model[1].parameters()], lr=0.1)
            for _ in range(9):
                optimizer.zero_grad()
                model(torch.ones(3, 2)).pow(2).sum().backward()
                optimizer.step()
        """
        step = probe(textwrap.dedent(code), steps=1).report["steps"][0]
        self.assertEqual([step["grad_norms"][f"0.{name}"] for name in ("weight", "bias")], [None, None])
        self.assertEqual([step["update_ratios"][f"0.{name}"] for name in ("weight", "bias")], [0.0, 0.0])
        self.assertGreater(step["update_ratios"]["1.weight"], 0)
        self.assertGreater(step["grad_norms"]["2.weight"], 0)
        self.assertEqual(step["update_ratios"]["2.weight"], 0.0)

    def test_loose_tensors_have_the_names_of_their_variables(self) -> None:
        code = """
            import torch
            weight = torch.ones(3, requires_grad=True)
            parts = [torch.zeros(1, requires_grad=True)]
            optimizer = torch.optim.SGD([weight, *parts], lr=0.1)
            for _ in range(9):
                optimizer.zero_grad()
                ((weight.sum() + parts[0]) ** 2).sum().backward()
                optimizer.step()
        """
        steps = probe(textwrap.dedent(code), steps=2).report["steps"]
        self.assertAlmostEqual(steps[0]["grad_norms"]["weight"], 6 * 3**0.5, places=4)
        self.assertAlmostEqual(steps[0]["grad_norms"]["parts[0]"], 6.0, places=4)
        # From zero to anything is no ratio.
        self.assertIsNone(steps[0]["update_ratios"]["parts[0]"])
        self.assertIsNotNone(steps[1]["update_ratios"]["parts[0]"])

    def test_a_layer_in_a_plain_list_is_found(self) -> None:
        code = """
            import torch
            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first = torch.nn.Linear(2, 2)
                    self.layers = [torch.nn.Linear(2, 1)]
                def forward(self, x):
                    return self.layers[0](self.first(x))
            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(9):
                net(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        """
        step = probe(textwrap.dedent(code), steps=1).report["steps"][0]
        self.assertEqual(
            list(step["update_ratios"]),
            ["net.first.weight", "net.first.bias", "net.layers[0].weight", "net.layers[0].bias"],
        )
        self.assertGreater(step["grad_norms"]["net.layers[0].weight"], 0)
        self.assertEqual(step["update_ratios"]["net.layers[0].weight"], 0.0)

    def test_sparse_half_and_complex_parameters_are_measured(self) -> None:
        probed = probe_loop(
            """
            table = torch.nn.Embedding(10, 2, sparse=True)
            wave = torch.nn.Parameter(torch.tensor([3 + 4j]))
            half = torch.nn.Parameter(torch.full((4,), 300.0, dtype=torch.float16))
            optimizer = torch.optim.SGD([*table.parameters(), wave, half], lr=1e-3)
            for _ in range(9):
                optimizer.zero_grad()
                loss = table(torch.tensor([1, 1, 2])).sum() + wave.abs().sum() + (half * 300).float().sum()
                loss.backward()
                optimizer.step()
            """,
            steps=1,
        )
        norms = probed.report["grad_norms"]
        # Row 1 is taken twice.
        self.assertAlmostEqual(norms["weight"], (2 * 4 + 2) ** 0.5, places=4)
        self.assertAlmostEqual(norms["wave"], 1.0, places=4)
        self.assertAlmostEqual(norms["half"], 600.0, places=1)
        self.assertEqual(probed.report["notes"], [])

    def test_many_parameters_are_listed_up_to_a_bound(self) -> None:
        probed = probe_loop(
            """
            model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(150)])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(12):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
            """,
            steps=10,
        )
        self.assertEqual(len(probed.report["steps"]), 10)
        self.assertEqual(len(probed.report["grad_norms"]), 200)
        self.assertEqual(probed.report["notes"], ["200 of 300 parameters are listed"])
        self.assertEqual(probed.report["optimizer_param_count"], 150 * 6)


if __name__ == "__main__":
    unittest.main()
