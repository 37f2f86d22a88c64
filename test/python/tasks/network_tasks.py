"""What the evaluations of the tasks with a network of several modules promise."""

import importlib
import io
import json
import sys
import unittest
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from grading.run import Run
from grading.tensor_files import InvalidFiles

from . import TASKS
from .run_files import given_arrays, written

RUN = Run(data_seed=6_218_904_377_125, init_seed=90_210, kind=1)
OTHER_DATA = replace(RUN, data_seed=RUN.data_seed + 1)


def tensor_file(**arrays: Any) -> bytes:
    """The content of a file with these arrays."""
    return written("any", arrays)["any.safetensors"]


class Modules:
    """The evaluation of a task, and the modules that lie beside it, which it imports by their bare names."""

    def __init__(self, task: str) -> None:
        """Import them; another task may have modules of the same names."""
        folder = TASKS / task
        names = sorted({path.stem for path in folder.glob("*.py")} - {"broken"})
        kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
        sys.path.insert(0, str(folder))
        try:
            self._modules = {name: importlib.import_module(name) for name in names}
        finally:
            sys.path.remove(str(folder))
            for name in names:
                sys.modules.pop(name, None)
            sys.modules.update(kept)

    def __getattr__(self, name: str) -> Any:
        """A module by its name."""
        try:
            return self._modules[name]
        except KeyError:
            raise AttributeError(name) from None


class NetworkTask(unittest.TestCase):
    """Base of a task's tests."""

    modules: Any
    #: The files of the task, each with its tensors.
    outputs: ClassVar[Mapping[str, Mapping[str, tuple[str, tuple[int, ...]]]]]

    def untrained_files(self) -> dict[str, bytes]:
        """What a run leaves that trained nothing."""
        raise NotImplementedError

    def measure(self, files: dict[str, bytes]) -> Any:
        """The measures of files on the run of these tests."""
        return self.modules.evaluation.measure(RUN, files)


class InputTests:
    """Mixed into a `NetworkTask`: what `make_inputs` promises."""

    def inputs(self: Any, run: Run = RUN) -> dict[str, bytes]:
        files: dict[str, bytes] = self.modules.evaluation.make_inputs(run)
        return files

    def test_the_same_run_has_the_same_bytes(self: Any) -> None:
        self.assertEqual(self.inputs(), self.inputs())

    def test_the_archive_does_not_know_when_it_was_made(self: Any) -> None:
        with zipfile.ZipFile(io.BytesIO(self.inputs()["data.npz"])) as archive:
            self.assertEqual({entry.date_time for entry in archive.infolist()}, {(1980, 1, 1, 0, 0, 0)})

    def test_another_data_seed_has_other_arrays_of_the_same_shapes(self: Any) -> None:
        one, other = given_arrays(self.inputs()), given_arrays(self.inputs(OTHER_DATA))
        self.assertEqual(one.keys(), other.keys())
        for name, array in one.items():
            self.assertEqual((array.shape, array.dtype), (other[name].shape, other[name].dtype), name)
            # A counter of batches is the same for all.
            if array.ndim > 0:
                self.assertFalse(np.array_equal(array, other[name]), name)

    def test_the_initial_seed_changes_the_config_only(self: Any) -> None:
        other = self.inputs(replace(RUN, init_seed=3))
        self.assertEqual(self.inputs()["data.npz"], other["data.npz"])
        self.assertEqual(json.loads(other["config.json"]), {"seed": 3})

    def test_the_data_seed_is_in_no_file(self: Any) -> None:
        inputs = self.inputs()
        self.assertEqual(inputs.keys(), {"data.npz", "config.json"})
        for secret in (str(RUN.data_seed).encode(), RUN.data_seed.to_bytes(8, "little")):
            self.assertNotIn(secret, b"".join(inputs.values()))

    def assert_no_number_of(self: Any, secret: np.ndarray) -> None:
        data = self.inputs()["data.npz"]
        for number in secret.ravel():
            self.assertNotIn(np.float32(number).tobytes(), data)
            self.assertNotIn(np.float64(number).tobytes(), data)

    def assert_no_row_of(self: Any, hidden: np.ndarray, seen: list[np.ndarray]) -> None:
        rows = {row.tobytes() for array in seen for row in array}
        self.assertGreater(len(hidden), 0)
        self.assertEqual({array.dtype for array in seen}, {hidden.dtype})
        self.assertFalse([row for row in hidden if row.tobytes() in rows])


class FileTests:
    """Mixed into a `NetworkTask`: which files `measure` refuses, and with which words."""

    def assert_invalid(self: Any, name: str, data: bytes, words: str = "") -> None:
        with self.assertRaisesRegex(InvalidFiles, f"^{name}: {words}"):
            self.measure({**self.untrained_files(), name: data})

    def zeros(self: Any, name: str) -> dict[str, np.ndarray]:
        types = {"F32": np.float32, "I64": np.int64}
        return {tensor: np.zeros(shape, types[dtype]) for tensor, (dtype, shape) in self.outputs[name].items()}

    def test_zeros_of_the_right_shapes_are_valid(self: Any) -> None:
        files = {name: tensor_file(**self.zeros(name)) for name in self.outputs}
        self.assertIsInstance(self.measure(files), dict)

    def test_a_missing_file_is_named(self: Any) -> None:
        for name in self.outputs:
            with self.subTest(name=name):
                files = self.untrained_files()
                del files[name]
                with self.assertRaisesRegex(InvalidFiles, f"^{name}: the script did not write it"):
                    self.measure(files)

    def test_what_is_no_tensor_file_is_invalid(self: Any) -> None:
        for name in self.outputs:
            for data in (b"", b"\xff" * 4096, b"PK\x03\x04" * 64):
                with self.subTest(name=name, data=data[:4]):
                    self.assert_invalid(name, data)

    def test_other_names_are_invalid(self: Any) -> None:
        for name in self.outputs:
            with self.subTest(name=name):
                tensors = self.zeros(name)
                first = next(iter(tensors))
                self.assert_invalid(name, tensor_file(**{f"x.{key}": value for key, value in tensors.items()}))
                self.assert_invalid(name, tensor_file(**tensors, more=tensors[first]))
                del tensors[first]
                self.assert_invalid(name, tensor_file(**tensors), "expected the tensors ")

    def test_another_type_or_shape_of_any_tensor_is_invalid(self: Any) -> None:
        for name in self.outputs:
            for key, value in self.zeros(name).items():
                odd = value.astype(np.float64), np.concatenate([value.ravel(), value.ravel()]), value[None]
                for array in odd:
                    with self.subTest(name=name, key=key, shape=array.shape):
                        data = tensor_file(**{**self.zeros(name), key: array})
                        self.assert_invalid(name, data, f"expected {key} to be ")

    def test_nan_and_infinity_are_invalid(self: Any) -> None:
        for name in self.outputs:
            for key, value in self.zeros(name).items():
                if value.dtype == np.float32:
                    with self.subTest(name=name, key=key):
                        value.flat[-1] = np.nan if value.size % 2 else -np.inf
                        data = tensor_file(**{**self.zeros(name), key: value})
                        self.assert_invalid(name, data, f"{key} holds NaN or infinities")
