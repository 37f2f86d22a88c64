"""What tests of forked children share."""

import os
import time
import unittest
from collections.abc import Callable

from instruments.child_tree import children
from instruments.forked_child import ChildEnd, run_in_child
from instruments.shared_report import SharedReport


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def await_report(report: SharedReport, name: str) -> int:
    """Wait until a child has written a number under this name."""
    while name not in report.read():
        time.sleep(0.001)
    return int(report.read()[name])


class ChildTest(unittest.TestCase):
    """Checks that each test leaves neither a process nor a descriptor."""

    def setUp(self) -> None:
        before = children(), sorted(os.listdir("/proc/self/fd"))
        self.addCleanup(lambda: self.assertEqual((children(), sorted(os.listdir("/proc/self/fd"))), before))

    def run_child(self, work: Callable[[SharedReport], int], **options: float) -> tuple[ChildEnd, SharedReport]:
        """Run a child and return its end and what it reported."""
        report = SharedReport()
        self.addCleanup(report.close)
        return run_in_child(work, report, **options), report  # type: ignore[arg-type]
