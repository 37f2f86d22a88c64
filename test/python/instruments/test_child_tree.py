import contextlib
import os
import signal
import time
import unittest
from collections.abc import Callable
from types import FrameType

from instruments.child_tree import children
from instruments.forked_child import ChildEnd, run_in_child
from instruments.shared_report import SharedReport
from worker.interrupt import StepTimeout

from .child_test import ChildTest, await_report, burn
from .probing import deadline


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class ChildTreeTest(ChildTest):
    def test_whatever_it_started_is_ended(self) -> None:
        def leave(report: SharedReport) -> int:
            def sleep(name: str, then: Callable[[], None]) -> None:
                if os.fork() == 0:
                    then()
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    # One after the other: a report is replaced as a whole.
                    report.write({**report.read(), name: os.getpid()})
                    time.sleep(600)
                await_report(report, name)

            def daemon() -> None:
                os.setsid()
                if os.fork() > 0:
                    os._exit(0)

            sleep("plain", lambda: None)
            sleep("session", os.setsid)
            sleep("daemon", daemon)
            return 0

        end, report = self.run_child(leave)
        self.assertEqual(end.exit_code, 0)
        found = report.read()
        self.assertEqual(sorted(found), ["daemon", "plain", "session"])
        self.assertEqual([name for name, pid in found.items() if is_running(pid)], [])

    def test_a_fork_bomb_is_ended(self) -> None:
        def bomb(_report: SharedReport) -> int:
            # It ends by itself should the test fail: nothing forks after two seconds.
            end = time.monotonic() + 2
            for depth in range(5):
                if os.fork() == 0 and depth % 2:
                    os.setsid()
            while time.monotonic() < end:
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
            time.sleep(600)
            return 0

        started = time.monotonic()
        with self.assertRaises(StepTimeout), deadline(0.5):
            self.run_child(bomb)
        self.assertLess(time.monotonic() - started, 4)

    def test_an_interrupt_in_the_parent_ends_the_child_and_goes_on(self) -> None:
        ends: list[ChildEnd] = []
        with self.assertRaises(StepTimeout), deadline(0.4), SharedReport() as report:
            run_in_child(lambda report: report.write({"x": 1}) or burn(600) or 0, report, cut_short=ends)
        (end,) = ends
        self.assertEqual((end.exit_code, end.signal), (None, 9))
        self.assertTrue(0.3 < end.wall_s < 2, end)
        self.assertGreater(end.cpu_s, 0)
        self.assertIsNotNone(end.starved)

    def test_an_interrupt_at_any_moment_is_felt_and_leaves_no_process(self) -> None:
        for number in range(60):
            after_s = 0.0005 * (number + 1)
            with contextlib.suppress(StepTimeout), deadline(after_s):
                started = time.monotonic()
                run_in_child(lambda _report: 0)
                self.assertLess(time.monotonic() - started, after_s + 0.001, "the interrupt was lost")
            self.assertEqual(children(), [])

    def test_handlers_that_raise_again_and_again_do_not_stop_the_cleaning_up(self) -> None:
        def interrupt(_number: int, _frame: FrameType | None) -> None:
            raise StepTimeout("again")

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.01)
        try:
            with self.assertRaises(StepTimeout):
                run_in_child(lambda _report: burn(600) or 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_children_that_are_ignored_are_measured_all_the_same(self) -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            end, _report = self.run_child(lambda _report: 5)
            self.assertEqual((end.exit_code, signal.getsignal(signal.SIGCHLD)), (5, signal.SIG_IGN))
        finally:
            signal.signal(signal.SIGCHLD, before)

    def test_processes_that_were_there_before_live_on(self) -> None:
        own, daemon = os.fork(), os.fork()
        if 0 in (own, daemon):
            os.setsid()
            time.sleep(60)
            os._exit(0)
        try:
            self.run_child(lambda _report: os.fork() and 0)
            self.assertEqual(sorted(children()), sorted([own, daemon]))
        finally:
            for pid in (own, daemon):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


if __name__ == "__main__":
    unittest.main()
