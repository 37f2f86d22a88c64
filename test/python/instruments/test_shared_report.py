import unittest

from instruments.forked_child import run_in_child
from instruments.shared_report import SLOT_BYTES, SharedReport
from worker.interrupt import StepTimeout

from .probing import deadline


class SharedReportTest(unittest.TestCase):
    def test_the_last_whole_report_is_read(self) -> None:
        with SharedReport() as report:
            self.assertEqual(report.read(), {})
            for number in range(5):
                report.write({"number": number, "long": "x" * number})
                self.assertEqual(report.read(), {"number": number, "long": "x" * number})

    def test_numbers_that_are_not_finite_become_null(self) -> None:
        with SharedReport() as report:
            report.write({"a": [1.5, float("nan"), {"b": float("inf")}]})
            self.assertEqual(report.read(), {"a": [1.5, None, {"b": None}]})

    def test_a_report_that_is_too_long_leaves_the_one_before(self) -> None:
        with SharedReport() as report:
            report.write({"x": 1})
            with self.assertRaisesRegex(ValueError, "does not fit"):
                report.write({"x": "y" * SLOT_BYTES})
            self.assertEqual(report.read(), {"x": 1})

    def test_a_child_that_is_killed_while_it_writes_leaves_a_whole_report(self) -> None:
        def write(report: SharedReport) -> int:
            for number in range(10**9):
                report.write({"number": number, "text": str(number) * 20_000})
            return 0

        for _ in range(5):
            with SharedReport() as report:
                with self.assertRaises(StepTimeout), deadline(0.2):
                    run_in_child(write, report)
                found = report.read()
                self.assertEqual(found["text"], str(found["number"]) * 20_000)

    def test_bytes_of_agent_code_are_no_report(self) -> None:
        for scribble in (b"\xff" * 64, b"\x05" + b"\0" * 7 + b"[1,2]", b"\x7f" + b"\0" * 7 + b"[" * 120):
            with SharedReport() as report:
                report._memory[: len(scribble)] = scribble
                self.assertEqual(report.read(), {})


if __name__ == "__main__":
    unittest.main()
