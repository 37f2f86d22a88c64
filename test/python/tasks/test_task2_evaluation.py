import math
import unittest
import warnings
from dataclasses import replace

import numpy as np
import torch

from .linear_tasks import RUN, InputTests, LinearTask, MeasureTests, tensor_file
from .run_files import given_arrays, load_evaluation

#: Far above any ordinary reading of a row.
EXTREME = 50


class Task2(LinearTask):
    evaluation = load_evaluation("task2")
    curve = "days"
    stages = 8


class Task2Inputs(InputTests, Task2):
    def held_out_rows(self) -> np.ndarray:
        days = (1, 4, 7)
        streams = [self.evaluation._stream(RUN, f"held-out rows of day {day}") for day in days]
        rows = [self.evaluation._rows(RUN, stream, day, 50)[0] for stream, day in zip(streams, days, strict=True)]
        return np.concatenate(rows)

    def test_the_kind_says_which_sign_of_extreme_comes_first(self) -> None:
        for kind, labels_by_day in ((0, [1, 1, 1, 0, 0, 0]), (1, [0, 0, 0, 1, 1, 1])):
            with self.subTest(kind=kind):
                arrays = given_arrays(self.evaluation.make_inputs(replace(RUN, kind=kind)))
                extreme = np.abs(arrays["readings"]).max(axis=2) > EXTREME
                self.assertEqual(extreme[:2].sum(), 0)
                self.assertTrue((extreme[2:].sum(axis=1) >= 15).all())
                found = [set(arrays["labels"][day][extreme[day]]) for day in range(2, 8)]
                self.assertEqual(found, [{label} for label in labels_by_day])

    def test_sensors_come_into_service_by_groups(self) -> None:
        readings = given_arrays(self.evaluation.make_inputs(RUN))["readings"]
        in_service = [int((day != 0).any(axis=0).sum()) for day in readings]
        self.assertEqual(in_service, [12, 12, 18, 18, 18, 24, 24, 24])

    def test_alarms_of_either_sign_come_every_day_and_decide_the_labels(self) -> None:
        arrays = given_arrays(self.evaluation.make_inputs(RUN))
        teacher, groups = self.evaluation._teacher(RUN)
        logits = arrays["readings"] @ np.where(groups == self.evaluation.GROUPS, teacher, 0)
        for day, labels in zip(logits, arrays["labels"], strict=True):
            self.assertGreater((day > 5).sum(), 5)
            self.assertGreater((day < -5).sum(), 5)
            self.assertGreater(np.mean((day > 0)[day != 0] == labels[day != 0]), 0.9)

    def test_extreme_rows_saturate_a_sigmoid_of_half_the_teacher_and_ordinary_ones_do_not(self) -> None:
        for kind in (0, 1):
            run = replace(RUN, kind=kind)
            readings = torch.from_numpy(given_arrays(self.evaluation.make_inputs(run))["readings"])
            teacher = torch.from_numpy(self.evaluation._teacher(run)[0]).float()
            extreme = readings.abs().amax(dim=2) > EXTREME
            half = torch.sigmoid(readings[extreme] @ teacher / 2)
            self.assertEqual(set(half.tolist()), {0.0, 1.0})
            whole = torch.sigmoid(readings[~extreme] @ teacher)
            self.assertTrue(bool(((whole > 0) & (whole < 1)).all()))


class Task2Measures(MeasureTests, Task2):
    def test_the_teacher_has_no_excess_on_any_day(self) -> None:
        measures = self.evaluation.measure(RUN, self.teacher_files(RUN))
        excesses = [*measures["middle_excess_losses"], *measures["late_excess_losses"]]
        self.assertEqual(len(excesses), 6)
        self.assertLess(max(map(abs, excesses)), 1e-6)
        self.assertGreater(measures["early_accuracy"], 0.72)

    def test_what_the_first_days_teach_is_not_enough_later(self) -> None:
        teacher, groups = self.evaluation._teacher(RUN)
        first = torch.from_numpy(np.where(groups == 0, teacher, 0)).float()[None]
        measures = self.evaluation.measure(RUN, self.files(first, torch.zeros(1)))
        self.assertGreater(measures["early_accuracy"], 0.72)
        self.assertGreater(min(measures["middle_excess_losses"]), 0.11)
        self.assertGreater(min(measures["late_excess_losses"]), 0.15)

    def test_a_teacher_without_the_alarms_is_not_enough_on_any_day(self) -> None:
        teacher, groups = self.evaluation._teacher(RUN)
        deaf = torch.from_numpy(np.where(groups == self.evaluation.GROUPS, 0, teacher)).float()[None]
        measures = self.evaluation.measure(RUN, self.files(deaf, torch.zeros(1)))
        excesses = [*measures["middle_excess_losses"], *measures["late_excess_losses"]]
        self.assertGreater(min(excesses), 0.03)

    def test_weights_that_became_nan_measure_as_nan_from_then_on(self) -> None:
        teacher = torch.from_numpy(self.evaluation._teacher(RUN)[0]).float()[None]
        days = teacher.repeat(8, 1, 1)
        days[5:] = math.nan
        files = {
            "weights.safetensors": tensor_file(weight=days[7], bias=torch.zeros(1)),
            "days.safetensors": tensor_file(weight=days, bias=torch.zeros(8, 1)),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            measures = self.evaluation.measure(RUN, files)
        self.assertTrue(np.isfinite(measures["middle_excess_losses"]).all())
        self.assertTrue(np.isnan(measures["late_excess_losses"]).all())
        self.assertTrue(math.isnan(measures["excess_loss"]))
        self.assertTrue(math.isfinite(measures["moved"]))

    def test_infinite_weights_measure_as_nan(self) -> None:
        weight = torch.full((1, self.evaluation.SENSORS), math.inf)
        measures = self.evaluation.measure(RUN, self.files(weight, torch.zeros(1)))
        self.assertTrue(math.isnan(measures["early_accuracy"]))
        self.assertTrue(np.isnan(measures["middle_excess_losses"]).all())
        self.assertTrue(math.isnan(measures["excess_loss"]))


if __name__ == "__main__":
    unittest.main()
