import atexit
import os
import signal
import sys
import threading
import time
import unittest
from types import ModuleType

from instruments.child_turns import Turns, waited_for_others_s
from instruments.shared_report import SharedReport

from .child_test import ChildTest, await_report, burn
from .scenes import Output


class ForkedChildTest(ChildTest):
    def test_the_status_is_what_the_function_returns(self) -> None:
        for status in (0, 7, 255, 256 + 3):
            end, _report = self.run_child(lambda _report, status=status: status)
            self.assertEqual((end.exit_code, end.signal), (status & 0xFF, None))

    def test_a_signal_is_told_as_one(self) -> None:
        end, _report = self.run_child(lambda _report: os.kill(os.getpid(), signal.SIGKILL) or 0)
        self.assertEqual((end.exit_code, end.signal), (None, 9))

    def test_what_the_function_raises_is_printed(self) -> None:
        with Output() as output:
            end, _report = self.run_child(lambda _report: 1 // 0)
        self.assertEqual(end.exit_code, 1)
        self.assertTrue(output.stderr.endswith("ZeroDivisionError: integer division or modulo by zero\n"))

    def test_times_and_memory_are_those_of_the_child(self) -> None:
        def work(_report: SharedReport) -> int:
            held = bytearray(64 << 20)
            burn(0.2)
            time.sleep(0.1)
            return len(held) & 1

        idle, _report = self.run_child(lambda _report: 0)
        end, _report = self.run_child(work)
        self.assertTrue(0.2 <= end.cpu_s < 0.35, end)
        self.assertGreaterEqual(end.wall_s, 0.3)
        self.assertAlmostEqual((end.max_rss_bytes - idle.max_rss_bytes) / (64 << 20), 1.0, delta=0.15)

    def test_times_and_memory_are_those_of_what_it_leaves_behind_too(self) -> None:
        def work(report: SharedReport) -> int:
            if os.fork() == 0:
                os.setsid()
                held = bytearray(64 << 20)
                burn(0.2)
                report.write({"ready": len(held)})
                time.sleep(600)
            await_report(report, "ready")
            return 0

        idle, _report = self.run_child(lambda _report: 0)
        end, _report = self.run_child(work)
        self.assertGreaterEqual(end.cpu_s, 0.2)
        self.assertAlmostEqual((end.max_rss_bytes - idle.max_rss_bytes) / (64 << 20), 1.0, delta=0.15)

    def test_starved_is_the_share_of_time_that_others_had_the_cpu(self) -> None:
        cpus = os.sched_getaffinity(0)
        # With fewer CPUs than before it would count as one that made way.
        os.sched_setaffinity(0, {min(cpus)})
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        rival = os.fork()
        if rival == 0:
            burn(600)
        try:
            end, _report = self.run_child(lambda _report: burn(0.2) or 0)
        finally:
            os.kill(rival, signal.SIGKILL)
            os.waitpid(rival, 0)
        assert end.starved is not None
        self.assertTrue(0.3 < end.starved < 0.95, end)
        sleeping, _report = self.run_child(lambda _report: time.sleep(0.3) or 0)
        assert sleeping.starved is not None
        self.assertLess(sleeping.starved, 0.5)

    def test_who_makes_way_by_itself_is_not_starved(self) -> None:
        def behind_its_own(_report: SharedReport) -> int:
            rival = os.fork()
            burn(0.2)
            os.kill(rival, signal.SIGKILL) if rival else os._exit(0)
            os.wait()
            return 0

        def idle_by_choice(_report: SharedReport) -> int:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            burn(0.05)
            return 0

        def on_one_cpu(_report: SharedReport) -> int:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            return behind_its_own(_report)

        for work in (lambda _report: (os.nice(5) and burn(0.05)) or 0, idle_by_choice):
            end, _report = self.run_child(work)
            self.assertEqual(end.starved, 0.0)
        if len(os.sched_getaffinity(0)) > 1:
            end, _report = self.run_child(on_one_cpu)
            self.assertEqual(end.starved, 0.0)

    def test_time_behind_its_own_processes_is_not_time_behind_others(self) -> None:
        self.assertAlmostEqual(waited_for_others_s(Turns(ran_s=1.0, waited_s=5.0), cpu_s=4.0), 2.0)
        self.assertEqual(waited_for_others_s(Turns(ran_s=1.0, waited_s=2.0), cpu_s=4.0), 0.0)

    def test_the_cpu_limit_ends_it(self) -> None:
        def stubborn(_report: SharedReport) -> int:
            signal.signal(signal.SIGXCPU, signal.SIG_IGN)
            burn(60)
            return 0

        end, _report = self.run_child(lambda _report: burn(60) or 0, cpu_s=0.5)
        self.assertEqual((end.exit_code, end.signal), (None, signal.SIGXCPU))
        self.assertAlmostEqual(end.cpu_s, 1.0, delta=0.2)
        end, _report = self.run_child(stubborn, cpu_s=1)
        self.assertEqual(end.signal, signal.SIGKILL)

    def test_the_memory_limit_raises_in_it(self) -> None:
        def work(report: SharedReport) -> int:
            try:
                bytearray(1 << 30)
            except MemoryError:
                report.write({"raised": True})
            return 0

        # The limit counts all that is mapped, and the parent has little.
        _end, report = self.run_child(work, data_bytes=1 << 30)
        self.assertEqual(report.read(), {"raised": True})

    def test_it_begins_like_a_process_of_its_own(self) -> None:
        def work(report: SharedReport) -> int:
            handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)]
            report.write(
                {
                    "stdin": sys.stdin.read(),
                    "session": os.getsid(0) == os.getpid(),
                    "handlers": handlers == [signal.SIG_DFL, signal.SIG_DFL, signal.default_int_handler],
                    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
                }
            )
            return 0

        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        try:
            _end, report = self.run_child(work)
        finally:
            signal.signal(signal.SIGUSR1, before)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        self.assertEqual(report.read(), {"stdin": "", "session": True, "handlers": True, "blocked": 0})

    def test_it_ends_like_an_interpreter(self) -> None:
        def work(_report: SharedReport) -> int:
            def talk() -> None:
                time.sleep(0.05)
                print("thread")

            atexit.register(print, "exit")
            threading.Thread(target=talk).start()
            main = ModuleType("__main__")
            main.__dict__["last"] = type("Last", (), {"__del__": lambda self, say=print: say("variable")})()
            sys.modules["__main__"] = main
            print("work", end="\n")
            return 0

        with Output() as output:
            self.run_child(work)
        self.assertEqual(output.stdout, "work\nthread\nexit\nvariable\n")

    def test_what_the_parent_registered_is_not_run(self) -> None:
        atexit.register(print, "the parent's own")
        try:
            with Output() as output:
                print("before", end="")
                self.run_child(lambda _report: 0)
        finally:
            atexit.unregister(print)
        self.assertEqual(output.stdout, "before")


if __name__ == "__main__":
    unittest.main()
