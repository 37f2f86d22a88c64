import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from .hosts import VARIANTS


@unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed for this interpreter")
class TorchEpisode(unittest.TestCase):
    def test_training_data_workers_and_children_work_at_every_level(self) -> None:
        root = Path(__file__).resolve().parents[3]
        levels = sorted({level for level, _ in VARIANTS})
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": f"{root / 'python'}:{root / 'test' / 'python'}",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        command = [sys.executable, "-m", "isolation.torch_episode", *levels]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["threads"], 1)
        for level in levels:
            with self.subTest(level=level):
                self.assertEqual(
                    answer["levels"][level],
                    {
                        "gradient": 32.0,
                        "data": 32 * 32 * sum(range(16)),
                        "pool": [0, 1, 4, 9],
                        "executor": [0, 1, 4, 9],
                        "queue": [0, 1, 2, 3, 4],
                        "saved": ["bias", "weight"],
                        "subprocess": "42\n",
                    },
                )
