"""The rules of the house for the Python that runs in the sandbox."""

import ast
import sys
import unittest
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "python" / "worker"

ALLOWED = sys.stdlib_module_names | {"worker"}


def imported_modules(source: str) -> set[str]:
    """Top-level names of every module that a source imports; relative imports stay inside their package."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


class WorkerImportTest(unittest.TestCase):
    def test_worker_imports_the_standard_library_only(self) -> None:
        sources = sorted(WORKER.rglob("*.py"))
        self.assertGreater(len(sources), 0)
        for path in sources:
            with self.subTest(path=path.name):
                self.assertEqual(imported_modules(path.read_text()) - ALLOWED, set())

    def test_imported_modules_sees_every_form(self) -> None:
        source = "import a.b, c\nfrom d.e import f\nfrom . import g\ndef h() -> None:\n    import i\n"
        self.assertEqual(imported_modules(source), {"a", "c", "d", "i"})


if __name__ == "__main__":
    unittest.main()
