import sys
from pathlib import Path

from instruments.call import call

from .scenes import Output, WorkFolderTest, report_of

MODULE = """
def double(number):
    return {"twice": 2 * number, "missing": float("nan")}

def number():
    return 3

def fail():
    raise ValueError("no data")

constant = 1
"""


class CallTest(WorkFolderTest):
    def setUp(self) -> None:
        super().setUp()
        Path("asked.py").write_text(MODULE)
        Path("folder").mkdir()
        Path("folder/__init__.py").touch()
        Path("folder/inner.py").write_text(MODULE)
        self.addCleanup(self.forget, list(sys.path))

    def forget(self, path: list[str]) -> None:
        sys.path[:] = path
        for name in ("asked", "folder", "folder.inner"):
            sys.modules.pop(name, None)

    def call(self, module: str = "asked", function: str = "double", **arguments: object) -> dict[str, object]:
        return report_of(call, module=module, function=function, arguments=arguments)

    def test_the_report_is_what_the_function_returned(self) -> None:
        self.assertEqual(self.call(number=4), {"twice": 8, "missing": None})

    def test_a_module_in_a_folder_is_found(self) -> None:
        self.assertEqual(self.call("folder.inner", number=4)["twice"], 8)

    def test_what_the_function_raises_is_raised_and_its_traceback_printed(self) -> None:
        with Output() as output, self.assertRaisesRegex(ValueError, "no data"):
            self.call(function="fail")
        self.assertRegex(output.stderr, r'(?s)asked.py", line \d+, in fail.*ValueError: no data')

    def test_a_module_that_is_not_in_the_work_folder_is_refused(self) -> None:
        for module in ("json", "sys"):
            with self.subTest(module), Output(), self.assertRaisesRegex(LookupError, "not in the work folder"):
                self.call(module, "loads")
        with Output(), self.assertRaises(ModuleNotFoundError):
            self.call("no_such_module")

    def test_a_function_that_is_not_there_is_refused(self) -> None:
        for function in ("triple", "constant"):
            with self.subTest(function), Output(), self.assertRaisesRegex(LookupError, f"no function '{function}'"):
                self.call(function=function)

    def test_a_result_that_is_no_object_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "returned int, expected an object"):
            self.call(function="number")

    def test_bad_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "arguments: expected an object, got list"):
            report_of(call, module="asked", function="double", arguments=[])
        with self.assertRaisesRegex(TypeError, "function: expected text, got NoneType"):
            report_of(call, module="asked", arguments={})
