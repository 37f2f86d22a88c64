"""Calls instruments the way a worker does, and catches what their children print."""

import json
import os
import sys
import tempfile
import unittest
from typing import Any

from worker.instrument import Instrument, Scene
from worker.report import plain_report


def report_of(instrument: Instrument, values: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """What the service would get: the report of one call, through JSON."""
    scene = Scene(values if values is not None else {}, os.getcwd())
    instrument(scene, arguments)
    report: dict[str, Any] = json.loads(json.dumps(plain_report(scene.report), allow_nan=False))
    return report


class WorkFolderTest(unittest.TestCase):
    """Runs each test in an empty folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = os.path.realpath(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.work)


class Output:
    """What this process and its children write to descriptors 1 and 2 while the context is open."""

    def __enter__(self) -> "Output":
        # Closed at the end of the context.
        self._files = [tempfile.TemporaryFile() for _ in (1, 2)]  # noqa: SIM115
        self._spares = [os.dup(target) for target in (1, 2)]
        self._flush()
        for target, file in zip((1, 2), self._files, strict=True):
            os.dup2(file.fileno(), target)
        return self

    def __exit__(self, *_error: object) -> None:
        self._flush()
        texts = []
        for target, (file, spare) in enumerate(zip(self._files, self._spares, strict=True), start=1):
            os.dup2(spare, target)
            os.close(spare)
            file.seek(0)
            texts.append(file.read().decode())
            file.close()
        self.stdout, self.stderr = texts

    def _flush(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
