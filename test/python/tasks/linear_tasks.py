"""What the evaluations of both tasks with a linear model promise."""

import json
import unittest
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from grading.run import Run
from grading.tensor_files import InvalidFiles

from .run_files import given_arrays, written

RUN = Run(data_seed=8_127_345_901_234, init_seed=417, kind=0)


def tensor_file(**arrays: Any) -> bytes:
    """The content of a file with these arrays."""
    return written("any", arrays)["any.safetensors"]


class LinearTask(unittest.TestCase):
    """Base of a task's tests."""

    evaluation: Any
    #: File with the weights after each of the stages of training, and how many there are.
    curve: str
    stages: int

    def files(self, weight: torch.Tensor, bias: torch.Tensor) -> dict[str, bytes]:
        """What a run leaves whose weights are these all the time."""
        curve = {"weight": weight.expand(self.stages, *weight.shape), "bias": bias.expand(self.stages, 1)}
        return {
            "weights.safetensors": tensor_file(weight=weight, bias=bias),
            f"{self.curve}.safetensors": tensor_file(**curve),
        }

    def initial_files(self, run: Run) -> dict[str, bytes]:
        torch.manual_seed(run.init_seed)
        model = torch.nn.Linear(self.evaluation.SENSORS, 1)
        return self.files(model.weight, model.bias)

    def teacher_files(self, run: Run) -> dict[str, bytes]:
        teacher = torch.from_numpy(self.evaluation._teacher(run)[0]).float()
        return self.files(teacher[None], torch.zeros(1))


class InputTests:
    """Mixed into a `LinearTask`: what `make_inputs` promises."""

    def test_the_same_run_has_the_same_bytes(self: Any) -> None:
        self.assertEqual(self.evaluation.make_inputs(RUN), self.evaluation.make_inputs(RUN))

    def test_another_data_seed_has_other_rows_and_labels(self: Any) -> None:
        one = given_arrays(self.evaluation.make_inputs(RUN))
        other = given_arrays(self.evaluation.make_inputs(replace(RUN, data_seed=RUN.data_seed + 1)))
        self.assertEqual(one.keys(), other.keys())
        for name, array in one.items():
            self.assertEqual(array.shape, other[name].shape)
            self.assertFalse(np.array_equal(array, other[name]), name)

    def test_another_data_seed_has_another_teacher(self: Any) -> None:
        seeds = range(RUN.data_seed, RUN.data_seed + 40)
        teachers = np.stack([self.evaluation._teacher(replace(RUN, data_seed=seed))[0] for seed in seeds])
        teachers /= np.linalg.norm(teachers, axis=1, keepdims=True)
        alike = np.abs(teachers @ teachers.T - np.eye(len(teachers)))
        self.assertLess(alike.max(), 0.9)
        self.assertLess(alike.mean(), 0.3)

    def test_the_initial_seed_changes_the_config_only(self: Any) -> None:
        one = self.evaluation.make_inputs(RUN)
        other = self.evaluation.make_inputs(replace(RUN, init_seed=418))
        self.assertEqual(one["data.npz"], other["data.npz"])
        self.assertEqual(json.loads(other["config.json"]), {"seed": 418})

    def test_there_is_nothing_but_rows_labels_and_the_initial_seed(self: Any) -> None:
        inputs = self.evaluation.make_inputs(RUN)
        self.assertEqual(inputs.keys(), {"data.npz", "config.json"})
        arrays = given_arrays(inputs)
        self.assertEqual(arrays.keys(), {"readings", "labels"})
        self.assertEqual({array.dtype for array in arrays.values()}, {np.dtype(np.float32)})
        self.assertEqual(arrays["labels"].shape, arrays["readings"].shape[:-1])
        self.assertEqual(set(np.unique(arrays["labels"])), {0.0, 1.0})
        for secret in (str(RUN.data_seed).encode(), RUN.data_seed.to_bytes(8, "little")):
            self.assertNotIn(secret, b"".join(inputs.values()))

    def test_no_held_out_row_and_no_weight_of_the_teacher_is_in_them(self: Any) -> None:
        inputs = self.evaluation.make_inputs(RUN)
        seen = {row.tobytes() for row in given_arrays(inputs)["readings"].reshape(-1, self.evaluation.SENSORS)}
        held_out = self.held_out_rows()
        self.assertEqual(len(held_out[0]), self.evaluation.SENSORS)
        self.assertFalse([row for row in held_out if row.tobytes() in seen])
        data = inputs["data.npz"]
        for weight in self.evaluation._teacher(RUN)[0]:
            self.assertNotIn(np.float32(weight).tobytes(), data)
            self.assertNotIn(np.float64(weight).tobytes(), data)


class MeasureTests:
    """Mixed into a `LinearTask`: what `measure` promises."""

    def test_the_seeded_initial_weights_have_not_moved(self: Any) -> None:
        self.assertEqual(self.evaluation.measure(RUN, self.initial_files(RUN))["moved"], 0)

    def test_weights_of_another_initial_seed_have_moved(self: Any) -> None:
        files = self.initial_files(replace(RUN, init_seed=418))
        self.assertGreater(self.evaluation.measure(RUN, files)["moved"], 0.2)

    def test_the_teacher_has_no_excess_loss_and_that_of_another_seed_has(self: Any) -> None:
        own = self.evaluation.measure(RUN, self.teacher_files(RUN))
        self.assertLess(abs(own["excess_loss"]), 1e-6)
        other = self.evaluation.measure(RUN, self.teacher_files(replace(RUN, data_seed=RUN.data_seed + 1)))
        self.assertGreater(other["excess_loss"], 0.3)

    def test_the_same_files_measure_the_same(self: Any) -> None:
        files = self.teacher_files(replace(RUN, data_seed=RUN.data_seed + 1))
        self.assertEqual(self.evaluation.measure(RUN, files), self.evaluation.measure(RUN, files))

    def test_a_missing_file_is_named(self: Any) -> None:
        for name in ("weights.safetensors", f"{self.curve}.safetensors"):
            with self.subTest(name=name):
                files = self.initial_files(RUN)
                del files[name]
                with self.assertRaisesRegex(InvalidFiles, f"^{name}: "):
                    self.evaluation.measure(RUN, files)

    def test_odd_files_are_invalid(self: Any) -> None:
        weight, bias = torch.randn(1, self.evaluation.SENSORS), torch.zeros(1)
        odd = {
            "no tensor file": b"\xff" * 4096,
            "empty": b"",
            "renamed": tensor_file(w=weight, b=bias),
            "one tensor more": tensor_file(weight=weight, bias=bias, scale=bias),
            "float64": tensor_file(weight=weight.double(), bias=bias),
            "transposed": tensor_file(weight=weight.T, bias=bias),
            "one sensor less": tensor_file(weight=weight[:, 1:], bias=bias),
        }
        for what, data in odd.items():
            for name in ("weights.safetensors", f"{self.curve}.safetensors"):
                with self.subTest(what=what, name=name), self.assertRaisesRegex(InvalidFiles, f"^{name}: "):
                    self.evaluation.measure(RUN, {**self.initial_files(RUN), name: data})

    def test_a_curve_that_lacks_a_stage_is_invalid(self: Any) -> None:
        files = self.initial_files(RUN)
        weight, bias = torch.zeros(self.stages - 1, 1, self.evaluation.SENSORS), torch.zeros(self.stages - 1, 1)
        files[f"{self.curve}.safetensors"] = tensor_file(weight=weight, bias=bias)
        with self.assertRaisesRegex(InvalidFiles, f"expected weight to be F32 of shape .{self.stages}, 1, "):
            self.evaluation.measure(RUN, files)
