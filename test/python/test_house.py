"""The rules of the house for the Python that runs in workers: who may import whom."""

import ast
import sys
import unittest
from collections.abc import Iterable
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"
TASKS = PYTHON / "tasks"

STANDARD = frozenset(sys.stdlib_module_names)
#: Of these a worker may have none: they are imported where they are used.
HEAVY = frozenset({"torch", "numpy"})


def imported_modules(source: str) -> set[str]:
    """Top-level names of every module that a source imports; relative imports stay inside their package."""
    return _names(ast.walk(ast.parse(source)))


def imported_at_once(source: str) -> set[str]:
    """Those of them that are imported with the module itself, not by a function that is called later."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found.append(node)
            todo += ast.iter_child_nodes(node)
    return _names(found)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


class ImportTest(unittest.TestCase):
    def assert_imports(self, folder: Path, allowed: set[str] | frozenset[str], *, but: str = "") -> None:
        sources = [path for path in sorted(folder.rglob("*.py")) if path.name != but]
        self.assertGreater(len(sources), 0)
        for path in sources:
            with self.subTest(path=str(path.relative_to(PYTHON))):
                self.assertEqual(imported_modules(path.read_text()) - allowed, set())

    def test_worker_imports_the_standard_library_only(self) -> None:
        self.assert_imports(PYTHON / "worker", STANDARD | {"worker"})

    def test_instruments_import_the_standard_library_and_the_worker(self) -> None:
        self.assert_imports(PYTHON / "instruments", STANDARD | HEAVY | {"worker", "instruments"})

    def test_instruments_are_imported_without_torch_and_numpy(self) -> None:
        for path in sorted((PYTHON / "instruments").rglob("*.py")):
            with self.subTest(path=path.name):
                self.assertEqual(imported_at_once(path.read_text()) & HEAVY, set())

    def test_grading_and_the_workbench_know_no_worker(self) -> None:
        self.assert_imports(TASKS / "grading", STANDARD | HEAVY | {"grading", "evaluation"})
        self.assertEqual(imported_modules((TASKS / "workbench.py").read_text()) - STANDARD - HEAVY, set())

    def test_evaluations_import_grading_and_what_lies_beside_them(self) -> None:
        folders = [path.parent for path in sorted(TASKS.glob("*/evaluation.py"))]
        self.assertGreater(len(folders), 0)
        for folder in folders:
            beside = {path.stem for path in folder.glob("*.py")} - {"broken"}
            self.assert_imports(folder, STANDARD | HEAVY | {"grading"} | beside, but="broken.py")

    def test_scripts_import_the_workbench(self) -> None:
        scripts = sorted(TASKS.glob("*/broken.py"))
        self.assertGreater(len(scripts), 0)
        for path in scripts:
            with self.subTest(path=str(path.relative_to(TASKS))):
                self.assertEqual(imported_modules(path.read_text()) - STANDARD - HEAVY, {"workbench"})

    def test_imported_modules_sees_every_form(self) -> None:
        source = "import a.b, c\nfrom d.e import f\nfrom . import g\ndef h() -> None:\n    import i\n"
        self.assertEqual(imported_modules(source), {"a", "c", "d", "i"})

    def test_imported_at_once_leaves_out_what_functions_import(self) -> None:
        source = "import a\nif a:\n    import b\nclass C:\n    import c\n    def d() -> None:\n        import e\n"
        self.assertEqual(imported_at_once(source), {"a", "b", "c"})


if __name__ == "__main__":
    unittest.main()
