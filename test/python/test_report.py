"""What an instrument may write, and what becomes of the rest."""

import json
import unittest

from worker.report import plain_report


class Text(str):
    """A subclass, as agent code may make one."""


class PlainReportTest(unittest.TestCase):
    def test_json_values_stay_as_they_are(self) -> None:
        report = {"a": [1, 2.5, "x", None, True], "b": {"c": {"d": []}}}
        self.assertEqual(plain_report(report), report)

    def test_numbers_that_json_lacks_become_null(self) -> None:
        report = plain_report({"nan": float("nan"), "inf": [float("inf"), -float("inf")]})
        self.assertEqual(report, {"nan": None, "inf": [None, None]})

    def test_whole_numbers_beyond_exactness_become_floats(self) -> None:
        report = plain_report({"big": 2**53, "huge": -(10**5000)})
        self.assertEqual(report["big"], 2.0**53)
        self.assertIsInstance(report["huge"], float)
        json.dumps(report, allow_nan=False)

    def test_other_values_are_named_by_their_type(self) -> None:
        self.assertEqual(plain_report({"o": object(), "t": Text("x")}), {"o": "<object>", "t": "<Text>"})

    def test_keys_become_text(self) -> None:
        self.assertEqual(plain_report({"m": {1: "a"}}), {"m": {"1": "a"}})

    def test_a_circle_is_refused(self) -> None:
        circle: list[object] = []
        circle.append(circle)
        with self.assertRaisesRegex(ValueError, "12 deep"):
            plain_report({"c": circle})

    def test_too_many_values_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "at most 100000 values"):
            plain_report({"many": list(range(200_000))})


if __name__ == "__main__":
    unittest.main()
