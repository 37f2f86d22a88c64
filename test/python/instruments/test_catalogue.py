import subprocess
import sys
import unittest

from instruments.catalogue import INSTRUMENTS

IMPORT = """
import sys
import instruments.catalogue
print([name for name in ("torch", "numpy") if name in sys.modules], len(instruments.catalogue.INSTRUMENTS))
"""


class CatalogueTest(unittest.TestCase):
    def test_instruments_are_known_by_their_names(self) -> None:
        for name, instrument in INSTRUMENTS.items():
            self.assertEqual(instrument.__name__, name)
        self.assertEqual(
            set(INSTRUMENTS),
            {"call", "run_script", "collect_files", "inspect_tensor", "variable_state", "training_probe"},
        )

    def test_importing_it_imports_neither_torch_nor_numpy(self) -> None:
        done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, f"[] {len(INSTRUMENTS)}\n", done.stderr)
