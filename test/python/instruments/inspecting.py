"""What the tests of `inspect_tensor` ask about values."""

import unittest
import warnings
from typing import Any

import numpy as np
import torch
from instruments.inspect_tensor import FIELDS, inspect_tensor

from .scenes import report_of

NUMBERS = ("min_val", "max_val", "mean_val", "std_val")


class InspectTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        # Half of what is inspected here is new, old or rare enough for a warning of torch.
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def inspect(self, value: Any) -> dict[str, Any]:
        report = report_of(inspect_tensor, {"value": value}, expression="value")
        self.assertEqual(set(report), set(FIELDS))
        self.assertLessEqual(len(report["repr"] or ""), 500)
        return report

    def assert_numbers(self, report: dict[str, Any], values: Any) -> None:
        """The statistics are those that numpy has of these values."""
        array = np.asarray(values, dtype=np.float64)
        expected = (array.min(), array.max(), array.mean(), array.std(ddof=1) if array.size > 1 else None)
        for name, number in zip(NUMBERS, expected, strict=True):
            if number is None:
                self.assertIsNone(report[name], name)
            else:
                self.assertAlmostEqual(report[name], float(number), places=5, msg=name)
