import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from instruments.run_script import run_script
from worker.instrument import Scene
from worker.interrupt import StepTimeout

from . import scripts
from .scenes import Output, WorkFolderTest, report_of

MIB = 1 << 20
TOLERANCE_BYTES = 20 * MIB


class RunScriptTest(WorkFolderTest):
    def run_code(self, code: str, cpu_s: float = 20) -> tuple[dict[str, Any], Output]:
        with Output() as output:
            report = report_of(run_script, code=code, cpu_s=cpu_s)
        return report, output

    def assert_prints(self, code: str, stdout: str) -> None:
        report, output = self.run_code(code)
        self.assertEqual((output.stdout, output.stderr, report["exit_code"]), (stdout, "", 0))

    def test_the_report_of_a_script_that_ends_well(self) -> None:
        report, output = self.run_code("print('seen')\n'not echoed'")
        self.assertEqual(output.stdout, "seen\n")
        self.assertEqual((report["exit_code"], report["signal"], report["timed_out"]), (0, None, False))
        self.assertGreater(report["cpu_s"], 0)
        self.assertGreater(report["wall_s"], 0)
        self.assertTrue(0 <= report["starved"] <= 1)

    def test_the_script_is_main_in_a_module_of_its_own(self) -> None:
        self.assert_prints(scripts.MAIN, f"__main__ train.py 1 ['train.py'] {self.work} True\n")

    def test_the_input_is_empty(self) -> None:
        self.assert_prints("import sys\nprint(repr(sys.stdin.read()))", "''\n")

    def test_a_module_in_the_work_folder_is_importable(self) -> None:
        Path("beside.py").write_text("value = 5\n")
        self.assert_prints("import os\nos.chdir('/')\nimport beside\nprint(beside.value)", "5\n")

    def test_data_loaders_pools_and_pickles_work(self) -> None:
        self.assert_prints(scripts.LOADER, "2016.0\n")
        self.assert_prints(scripts.POOL, "[Point(x=2), Point(x=3)] Point(x=5)\n")

    def test_threads_and_exit_callbacks_run_to_their_end(self) -> None:
        report, output = self.run_code(scripts.LATE)
        self.assertEqual(report["exit_code"], 0)
        self.assertEqual(sorted(output.stdout.replace("main", "main\n").split("\n"))[1:], ["at exit", "main", "thread"])

    def test_a_traceback_has_the_frames_and_lines_of_the_script_only(self) -> None:
        report, output = self.run_code(scripts.CHAIN)
        self.assertEqual(report["exit_code"], 1)
        # Older and newer Pythons mark other parts of a line.
        lines = [line for line in output.stderr.splitlines(True) if line.strip(" ~^\n")]
        self.assertEqual(lines, [line for line in scripts.CHAIN_TEXT.splitlines(True) if line.strip(" ~^\n")])

    def test_a_traceback_quotes_the_line_that_python_counts(self) -> None:
        _report, output = self.run_code("x = 1\n\x0c\n# \u2028 a separator\r\nraise ValueError()\n")
        self.assertIn('File "train.py", line 4, in <module>\n    raise ValueError()\n', output.stderr)

    def test_source_that_is_no_python_is_a_syntax_error_at_its_line(self) -> None:
        report, output = self.run_code("x = 1\ny = (")
        self.assertEqual(report["exit_code"], 1)
        self.assertRegex(
            output.stderr, r"""^  File "train.py", line 2\n    y = \(\n +\^\nSyntaxError: '\(' was never closed\n$"""
        )
        for code in ("a = 1\0", "\ud800"):
            report, output = self.run_code(code)
            self.assertEqual(report["exit_code"], 1)
            self.assertRegex(output.stderr, r"(SyntaxError|ValueError): ")
            self.assertNotIn("script_run", output.stderr)

    def test_exit_codes_are_those_of_a_program(self) -> None:
        cases: list[tuple[str, int, str]] = [
            ("import sys; sys.exit()", 0, ""),
            ("import sys; sys.exit(0)", 0, ""),
            ("import sys; sys.exit(7)", 7, ""),
            ("import sys; sys.exit('reason')", 1, "reason\n"),
            ("import sys; sys.exit(-1)", 255, ""),
            ("import os; os._exit(9)", 9, ""),
        ]
        for code, exit_code, stderr in cases:
            with self.subTest(code):
                report, output = self.run_code(code)
                self.assertEqual((report["exit_code"], output.stderr), (exit_code, stderr))

    def test_ctrl_c_is_told_as_a_shell_tells_it(self) -> None:
        report, output = self.run_code("import signal\nsignal.raise_signal(signal.SIGINT)")
        self.assertEqual(report["exit_code"], 130)
        self.assertRegex(output.stderr, r"^Traceback (?s:.*)train.py(?s:.*)\nKeyboardInterrupt\n$")

    def test_an_excepthook_of_the_script_is_used_and_may_fail(self) -> None:
        report, output = self.run_code(
            "import sys\nsys.excepthook = lambda *found: print('hook', found[0].__name__)\n1 / 0"
        )
        self.assertEqual((report["exit_code"], output.stdout, output.stderr), (1, "hook ZeroDivisionError\n", ""))
        report, output = self.run_code(
            "import sys\ndef hook(*found): raise KeyError('h')\nsys.excepthook = hook\n1 / 0"
        )
        self.assertEqual(report["exit_code"], 1)
        self.assertRegex(output.stderr, r"(?s)^Error in sys.excepthook:.*KeyError: 'h'.*Original.*ZeroDivisionError")

    def test_a_signal_is_reported(self) -> None:
        report, _ = self.run_code("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
        self.assertEqual((report["exit_code"], report["signal"], report["timed_out"]), (None, signal.SIGSEGV, False))

    def test_the_cpu_limit_ends_a_script_also_one_that_ignores_the_warning(self) -> None:
        for ignore in ("", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"):
            with self.subTest(ignore):
                report, _ = self.run_code(f"{ignore}while True: pass", cpu_s=1)
                self.assertTrue(report["timed_out"])
                self.assertIsNone(report["exit_code"])
                self.assertIn(report["signal"], (signal.SIGXCPU, signal.SIGKILL))
                self.assertGreaterEqual(report["cpu_s"], 0.9)

    def test_growth_is_that_of_the_script(self) -> None:
        cases = {
            "pass": 0,
            f"x = bytearray({200 * MIB})\ndel x": 200 * MIB,
            f"import torch\ntorch.ones({50 * MIB})": 200 * MIB,
        }
        for code, expected in cases.items():
            with self.subTest(code):
                report, _ = self.run_code(code)
                self.assertEqual(report["exit_code"], 0)
                self.assertAlmostEqual(report["peak_growth_bytes"], expected, delta=TOLERANCE_BYTES)

    def test_growth_and_cpu_time_are_those_of_daemons_too(self) -> None:
        report, output = self.run_code(scripts.LARGE_DAEMON)
        self.assertEqual(report["exit_code"], 0, output.stderr)
        self.assertAlmostEqual(report["peak_growth_bytes"], 150 * MIB, delta=TOLERANCE_BYTES)
        self.assertGreater(report["cpu_s"], 0.3)

    def test_nothing_of_the_script_is_left_in_this_process_or_beside_it(self) -> None:
        report, output = self.run_code(scripts.DAEMON)
        self.assertEqual(report["exit_code"], 0, output.stderr)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(Path("daemon").read_text()), 0)
        self.assertIsNotNone(torch.Tensor.backward)

    def test_a_deadline_ends_the_script_and_leaves_a_whole_report(self) -> None:
        def deadline(_number: int, _frame: FrameType | None) -> None:
            raise StepTimeout("the limit")

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, deadline))
        scene = Scene({}, self.work)
        started = time.monotonic()
        with Output() as output, self.assertRaises(StepTimeout):
            run_script(scene, {"code": scripts.WAITS, "cpu_s": 20})
        self.assertLess(time.monotonic() - started, 10)
        self.assertEqual(output.stdout, "begun\n")
        report = scene.report
        self.assertEqual((report["timed_out"], report["exit_code"], report["signal"]), (True, None, signal.SIGKILL))
        self.assertGreater(report["cpu_s"], 0)
        self.assertGreater(report["wall_s"], 0)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_bad_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "code: expected text, got NoneType"):
            report_of(run_script, cpu_s=1)
        with self.assertRaisesRegex(ValueError, "cpu_s: expected a number above 0, got -1"):
            report_of(run_script, code="", cpu_s=-1)
