import math
import signal
import warnings
from types import FrameType

import torch
from instruments.inspect_tensor import FIELDS, inspect_tensor
from torch import nn
from worker.instrument import Scene
from worker.interrupt import StepTimeout

from .inspecting import InspectTest
from .scenes import Output, report_of


class InspectTensorTest(InspectTest):
    def test_a_tensor_and_its_gradient(self) -> None:
        x = torch.randn(4, 5, requires_grad=True)
        (3 * x).sum().backward()
        report = self.inspect(x)
        self.assert_numbers(report, x.detach())
        self.assertAlmostEqual(report["grad_norm"], 3 * math.sqrt(20), places=5)
        expected = {
            "error": None,
            "kind": "tensor",
            "shape": [4, 5],
            "dtype": "torch.float32",
            "device": "cpu",
            "layout": "torch.strided",
            "numel": 20,
            "requires_grad": True,
            "grad_is_none": False,
            "is_nan": False,
            "is_inf": False,
            "nan_count": 0,
            "inf_count": 0,
            "statistics_note": "",
            "length": None,
            "parameters": None,
        }
        self.assertEqual({name: report[name] for name in expected}, expected)
        self.assertTrue(report["repr"].startswith("tensor([["))

    def test_the_gradient_of_a_result_is_none_without_a_warning(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            report = self.inspect(torch.ones(2, requires_grad=True) * 2)
        self.assertEqual((report["requires_grad"], report["grad_is_none"], report["grad_norm"]), (True, True, None))
        self.assertEqual(caught, [])

    def test_a_parameter(self) -> None:
        report = self.inspect(nn.Linear(2, 2).weight)
        self.assertEqual((report["kind"], report["shape"], report["grad_is_none"]), ("parameter", [2, 2], True))
        self.assertTrue(report["repr"].startswith("Parameter containing:\ntensor("))

    def test_a_gradient_that_is_not_finite_has_no_norm(self) -> None:
        x = torch.ones(2, requires_grad=True)
        x.grad = torch.tensor([1.0, math.nan])
        report = self.inspect(x)
        self.assertEqual((report["grad_is_none"], report["grad_norm"], report["is_nan"]), (False, None, False))
        self.assertEqual(report["statistics_note"], "gradient: of the 1 finite values")

    def test_a_module_with_its_parameters(self) -> None:
        module = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1, bias=False))
        module(torch.ones(2, 4)).sum().backward()
        module[1].weight.requires_grad_(False)
        report = self.inspect(module)
        self.assertEqual((report["kind"], report["shape"], report["parameter_count"]), ("module", [3, 4], 18))
        self.assert_numbers(report, module[0].weight.detach())
        rows = report["parameters"]
        self.assertEqual([row["name"] for row in rows], ["0.weight", "0.bias", "1.weight"])
        self.assertEqual([row["requires_grad"] for row in rows], [True, True, False])
        self.assertAlmostEqual(rows[1]["grad_norm"], module[0].bias.grad.norm().item(), places=5)
        self.assertAlmostEqual(rows[2]["max"], module[1].weight.max().item(), places=6)

    def test_a_parametrized_module_shows_the_weight_it_computes(self) -> None:
        module = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        report = self.inspect(module)
        self.assertEqual((report["shape"], report["parameter_count"]), ([3, 4], 18))
        self.assert_numbers(report, module.weight.detach())

    def test_modules_with_many_parameters_and_with_none(self) -> None:
        many = self.inspect(nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(30)]))
        self.assertEqual((len(many["parameters"]), many["parameter_count"]), (20, 30))
        none = self.inspect(nn.ReLU())
        self.assertEqual(
            (none["error"], none["shape"], none["parameters"], none["parameter_count"]), (None, None, [], 0)
        )
        self.assertEqual(none["statistics_note"], "the module has no parameters")

    def test_containers_are_no_tensors_and_have_a_length(self) -> None:
        for value, name, length in (([torch.ones(1)] * 3, "list", 3), ({"a": 1}, "dict", 1), ("text", "str", 4)):
            report = self.inspect(value)
            self.assertEqual(report["error"], f"Expression is neither a tensor nor a module: {name}")
            self.assertEqual((report["kind"], report["length"]), (name, length))
        self.assertEqual(self.inspect(None)["error"], "Expression is neither a tensor nor a module: NoneType")

    def test_expressions_that_have_no_value(self) -> None:
        failed = "Failed to evaluate expression: "
        for expression, error in (
            ("", "Expression is empty"),
            (" \n", "Expression is empty"),
            ("x" * 501, "Expression has 501 characters, expected at most 500"),
            ("1 / 0", f"{failed}ZeroDivisionError: division by zero"),
            ("missing", f"{failed}NameError: name 'missing' is not defined"),
            ("x = 1", f"{failed}SyntaxError: expected one expression, got a statement"),
            ("1; 2", f"{failed}SyntaxError: expected one expression, got a statement"),
            ("1 +", f"{failed}SyntaxError: invalid syntax"),
            ("exit_now()", f"{failed}SystemExit: 3"),
            ("long_error()", f"{failed}ValueError: {'e' * 1000}"[:497] + "..."),
            ("bad_error()", f"{failed}BadError: <no message: KeyError>"),
        ):
            with self.subTest(expression[:20]):
                report = report_of(inspect_tensor, dict(RAISERS), expression=expression)
                self.assertEqual(report["error"], error)
                self.assertEqual(set(report), set(FIELDS))

    def test_an_expression_may_have_several_lines(self) -> None:
        report = report_of(inspect_tensor, {"torch": torch}, expression="\n torch.ones(\n2)\n")
        self.assertEqual(report["shape"], [2])

    def test_bad_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "expression: expected text, got int"):
            report_of(inspect_tensor, {}, expression=3)

    def test_a_deadline_goes_through_and_keeps_what_was_found(self) -> None:
        def deadline(_number: int, _frame: FrameType | None) -> None:
            raise StepTimeout("the limit")

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, deadline))

        class Slow(nn.Module):
            def extra_repr(self) -> str:
                signal.raise_signal(signal.SIGUSR1)
                return ""

        for expression, kind in (("value", "module"), ("repr(value)", None)):
            scene = Scene({"value": Slow()}, "")
            with Output(), self.assertRaises(StepTimeout):
                inspect_tensor(scene, {"expression": expression})
            self.assertEqual(scene.report["kind"], kind)


class BadError(Exception):
    def __str__(self) -> str:
        raise KeyError("no text")


def _exit_now() -> None:
    raise SystemExit(3)


def _long_error() -> None:
    raise ValueError("e" * 1000)


def _bad_error() -> None:
    raise BadError


RAISERS = {"exit_now": _exit_now, "long_error": _long_error, "bad_error": _bad_error}
