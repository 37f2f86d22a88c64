import collections
import math
import signal
import sys
import time
import unittest
from types import FrameType
from typing import Any

import numpy as np
import torch
from instruments.variable_state import variable_state
from torch import nn
from worker.instrument import Scene
from worker.interrupt import StepTimeout

from .scenes import report_of


class Odd:
    def __init__(self, text: Any) -> None:
        self.text = text

    def __repr__(self) -> Any:
        if isinstance(self.text, BaseException):
            raise self.text
        return self.text


class VariableStateTest(unittest.TestCase):
    def state(self, value: Any) -> dict[str, Any]:
        return self.states({"value": value}, "value")["value"]

    def states(self, values: dict[str, Any], *expressions: str) -> dict[str, dict[str, Any]]:
        results: dict[str, dict[str, Any]] = report_of(variable_state, values, expressions=list(expressions))["results"]
        for state in results.values():
            self.assertEqual(set(state), {"repr", "type", "value", "shape", "error"})
            self.assertLessEqual(len(state["repr"]), 500)
            self.assertLessEqual(len(state["error"] or ""), 200)
            if isinstance(state["value"], str):
                self.assertLessEqual(len(state["value"]), 200)
        return results

    def test_scalars_are_values_as_they_are(self) -> None:
        for value in (3, 2.5, True, None, "text"):
            state = self.state(value)
            self.assertEqual((state["value"], state["repr"]), (value, repr(value)))
            self.assertEqual((state["type"], state["shape"], state["error"]), (type(value).__name__, None, None))

    def test_numbers_that_json_lacks_are_texts(self) -> None:
        self.assertEqual(self.state(math.nan)["value"], "nan")
        self.assertEqual(self.state(-math.inf)["value"], "-inf")
        self.assertEqual(self.state(2**60)["value"], str(2**60))
        self.assertEqual(self.state(1 << 10**6)["value"], "<int of 1000001 bits>")

    def test_single_numbers_of_torch_and_numpy_are_values(self) -> None:
        loss = torch.tensor(2.5, requires_grad=True) * 2
        state = self.state(loss)
        self.assertEqual((state["value"], state["shape"], state["type"]), (5.0, [], "Tensor"))
        self.assertEqual(state["repr"], "tensor(5., grad_fn=<MulBackward0>)")
        self.assertEqual(self.state(np.int64(7))["value"], 7)
        self.assertEqual(self.state(torch.tensor(math.nan))["value"], "tensor(nan)")

    def test_tensors_without_data_are_described(self) -> None:
        freed = torch.tensor(1.0)
        freed.untyped_storage().resize_(0)
        for value, device in ((freed, "cpu"), (torch.tensor(0.0, device="meta"), "meta")):
            state = self.state(value)
            self.assertEqual(state["value"], f"tensor(..., shape=[], dtype=torch.float32, device='{device}')")

    def test_tensors_and_arrays_have_a_shape_and_a_text(self) -> None:
        state = self.state(torch.zeros(2, 3))
        self.assertEqual((state["shape"], state["repr"]), ([2, 3], repr(torch.zeros(2, 3))))
        self.assertEqual(state["value"], state["repr"])
        self.assertEqual(self.state(np.zeros((2, 0)))["shape"], [2, 0])
        self.assertEqual(self.state(nn.Linear(2, 1))["repr"], "Linear(in_features=2, out_features=1, bias=True)")

    def test_what_fails_is_told_and_costs_the_others_nothing(self) -> None:
        values = {"a": 1, "b": Odd(ValueError("no repr")), "c": Odd(SystemExit(3)), "d": Odd(5), "e": [Odd(KeyError())]}
        results = self.states(values, "a", "1 / 0", "x =", "", "b", "c", "d", "e", "missing")
        self.assertEqual(
            {expression: state["error"] for expression, state in results.items()},
            {
                "a": None,
                "1 / 0": "Failed to evaluate expression: ZeroDivisionError: division by zero",
                "x =": "Failed to evaluate expression: SyntaxError: invalid syntax",
                "": "Expression is empty",
                "b": "repr failed: ValueError: no repr",
                "c": "repr failed: SystemExit: 3",
                "d": "repr failed: TypeError: __repr__ returned non-string (type int)",
                "e": None,
                "missing": "Failed to evaluate expression: NameError: name 'missing' is not defined",
            },
        )
        self.assertEqual((results["b"]["repr"], results["b"]["type"]), ("<Odd without repr: ValueError>", "Odd"))
        self.assertEqual(results["e"]["repr"], "[<Odd without repr: KeyError>]")

    def test_at_most_ten_are_evaluated(self) -> None:
        asked: list[int] = []
        expressions = [f"asked.append({number})" for number in range(12)]
        results = self.states({"asked": asked}, *expressions, expressions[0])
        self.assertEqual(asked, list(range(10)))
        self.assertEqual(list(results), expressions)
        self.assertEqual(results[expressions[10]]["error"], "not evaluated: at most 10 expressions a call")

    def test_containers_are_written_as_python_does(self) -> None:
        looped: list[Any] = [1]
        looped.append(looped)
        for value in (
            [],
            (),
            set(),
            frozenset(),
            {},
            (1,),
            [1, "a", b"b", None],
            {"a": {1: (2.5, {3})}},
            frozenset({1}),
            collections.deque([1, 2]),
            collections.deque(),
            collections.OrderedDict(),
        ):
            self.assertEqual(self.state(value)["repr"], repr(value))
        self.assertRegex(self.state(looped)["repr"], r"^\[1, \[1, .*\.\.\.")
        state_dict = nn.Linear(1, 1).state_dict()
        self.assertRegex(self.state(state_dict)["repr"], r"^OrderedDict\(\{'weight': tensor\(.*'bias': tensor\(")

    def test_huge_values_are_cut_at_once(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        values = {
            "numbers": list(range(10**6)),
            "inside": [list(range(10**6))] * 100,
            "table": dict.fromkeys(range(10**6), "x" * 1000),
            "text": "x" * 10**7,
            "deep": deep,
            "short_dimensions": torch.zeros((2,) * 22),
            "half": torch.zeros(2 * 10**7, dtype=torch.float16),
            "eighth": torch.zeros(2 * 10**7, dtype=torch.float8_e5m2),
            "array": np.zeros((2,) * 20),
            "objects": np.array([[Odd(RuntimeError())] * 10] * 10, dtype=object),
        }
        threshold = np.get_printoptions()["threshold"]
        torch.set_printoptions(threshold=sys.maxsize)
        np.set_printoptions(threshold=sys.maxsize)
        try:
            started = time.process_time()
            results = self.states(values, *values)
            self.assertLess(time.process_time() - started, 1)
            self.assertEqual(torch._tensor_str.PRINT_OPTS.threshold, sys.maxsize)
        finally:
            torch.set_printoptions(profile="default")
            np.set_printoptions(threshold=threshold)
        self.assertEqual({state["error"] for state in results.values()}, {None})
        self.assertTrue(results["numbers"]["repr"].startswith("[0, 1, 2, "))
        self.assertTrue(results["numbers"]["repr"].endswith("..."))
        self.assertRegex(results["short_dimensions"]["repr"], r"^tensor\(\[0, 0, \.\.\.\], shape=\[2, 2, ")
        self.assertRegex(results["array"]["repr"], r"^array\(\[0.0, 0.0, \.\.\.\], shape=\[2, 2, ")

    def test_a_deadline_goes_through_and_keeps_the_results_until_then(self) -> None:
        def deadline(_number: int, _frame: FrameType | None) -> None:
            raise StepTimeout("the limit")

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, deadline))

        class Slow:
            def __repr__(self) -> str:
                signal.raise_signal(signal.SIGUSR1)
                return "slow"

        for late in ("slow", "[slow]", "repr(slow)"):
            scene = Scene({"slow": Slow()}, "")
            with self.assertRaises(StepTimeout):
                variable_state(scene, {"expressions": ["1", late, "2"]})
            self.assertEqual({name: state["value"] for name, state in scene.report["results"].items()}, {"1": 1})

    def test_bad_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "expressions: expected a list of texts, got list"):
            report_of(variable_state, expressions=[1])
