import math
import unittest
from dataclasses import replace

import numpy as np
import torch
from grading.tensor_files import InvalidFiles

from .linear_tasks import RUN, InputTests, LinearTask, MeasureTests, tensor_file
from .run_files import given_arrays, load_evaluation


class Task1(LinearTask):
    evaluation = load_evaluation("task1")
    curve = "epochs"
    stages = 15


class Task1Inputs(InputTests, Task1):
    def held_out_rows(self) -> np.ndarray:
        teacher, scales = self.evaluation._teacher(RUN)
        rows, _ = self.evaluation._rows(self.evaluation._stream(RUN, "held-out"), teacher, scales, 50)
        return rows

    def test_which_sensors_are_loud_differs_from_seed_to_seed(self) -> None:
        def loud(data_seed: int) -> tuple[bool, ...]:
            readings = given_arrays(self.evaluation.make_inputs(replace(RUN, data_seed=data_seed)))["readings"]
            return tuple(readings.std(axis=0) > 3)

        patterns = {loud(seed) for seed in range(6)}
        self.assertEqual({sum(pattern) for pattern in patterns}, {self.evaluation.LOUD_SENSORS})
        self.assertEqual(len(patterns), 6)


class Task1Measures(MeasureTests, Task1):
    def test_the_teacher_is_right_about_as_often_as_the_data_allow(self) -> None:
        measures = self.evaluation.measure(RUN, self.teacher_files(RUN))
        self.assertGreater(measures["accuracy"], 0.84)
        self.assertLess(measures["accuracy"], 0.9)

    def test_weights_too_large_keep_the_accuracy_and_lose_the_probabilities(self) -> None:
        right = torch.from_numpy(self.evaluation._teacher(RUN)[0]).float()[None]
        one, other = (
            self.evaluation.measure(RUN, self.files(weight, torch.zeros(1))) for weight in (right, right * 500)
        )
        self.assertEqual(one["accuracy"], other["accuracy"])
        self.assertGreater(other["log10_loss"], 1.5)

    def test_the_curve_has_the_epochs_from_the_eighth_on(self) -> None:
        measures = self.evaluation.measure(RUN, self.teacher_files(RUN))
        self.assertEqual(len(measures["epoch_excess_losses"]), 8)
        self.assertEqual(set(measures["epoch_excess_losses"]), {measures["excess_loss"]})

    def test_copies_have_no_later_path_and_epochs_that_walk_from_the_first_have_all_of_it(self) -> None:
        files = self.teacher_files(RUN)
        self.assertEqual(self.evaluation.measure(RUN, files)["later_path"], 0)
        start = torch.from_numpy(self.evaluation._initial(RUN)).double()
        end = torch.from_numpy(self.evaluation._teacher(RUN)[0])[None]
        walk = torch.stack([start + (end - start) * share for share in torch.linspace(0, 1, 15).double()]).float()
        files["epochs.safetensors"] = tensor_file(weight=walk, bias=torch.zeros(15, 1))
        self.assertAlmostEqual(self.evaluation.measure(RUN, files)["later_path"], 1, places=4)

    def test_epochs_at_the_initial_weights_have_no_later_path(self) -> None:
        self.assertEqual(self.evaluation.measure(RUN, self.initial_files(RUN))["later_path"], 0)

    def test_nan_and_infinity_are_invalid(self) -> None:
        for value in (math.nan, math.inf):
            weight = torch.zeros(1, self.evaluation.SENSORS)
            weight[0, 3] = value
            with self.assertRaisesRegex(InvalidFiles, "weight holds NaN or infinities"):
                self.evaluation.measure(RUN, self.files(weight, torch.zeros(1)))

    def test_the_largest_finite_weights_have_a_finite_loss(self) -> None:
        weight = torch.full((1, self.evaluation.SENSORS), 3.4e38)
        measures = self.evaluation.measure(RUN, self.files(weight, torch.zeros(1)))
        self.assertTrue(math.isfinite(measures["log10_loss"]))
        self.assertGreater(measures["log10_loss"], 30)


if __name__ == "__main__":
    unittest.main()
