"""Tests of the tasks' evaluations, which find `grading` and `workbench` where workers find them: on the path."""

import sys
from pathlib import Path

TASKS = Path(__file__).resolve().parents[3] / "python" / "tasks"

sys.path.insert(0, str(TASKS))
