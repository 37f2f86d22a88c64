import functools
import math
import unittest
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from .network_tasks import OTHER_DATA, RUN, FileTests, InputTests, Modules, NetworkTask, tensor_file
from .run_files import given_arrays

MODULES = Modules("task5")
STAGE1 = "stage1.safetensors"
FINAL = "weights.safetensors"


@functools.cache
def delivered() -> dict[str, np.ndarray]:
    """The tensors of the backbone as a script gets them."""
    arrays = given_arrays(MODULES.evaluation.make_inputs(RUN))
    return {name: array for name, array in arrays.items() if name.startswith("backbone.")}


def delivered_with(head: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of the delivered backbone below a head."""
    return {**delivered(), **head}


def fitted_head(backbone: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A head that was trained on what a backbone makes of the training rows."""
    rows = MODULES.data.training_rows(RUN)
    x, y = MODULES.network.features(backbone, rows.x), torch.from_numpy(rows.y)
    head = torch.nn.Linear(*reversed(MODULES.network.HEAD["head.weight"]))
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        functional.cross_entropy(head(x), y).backward()
        optimizer.step()
    return {f"head.{name}": tensor.numpy() for name, tensor in head.state_dict().items()}


class Task5(NetworkTask):
    modules = MODULES
    outputs: ClassVar = {STAGE1: MODULES.network.WEIGHTS, FINAL: MODULES.network.WEIGHTS}

    def files(self, stage1: dict[str, np.ndarray], final: dict[str, np.ndarray]) -> dict[str, bytes]:
        return {STAGE1: tensor_file(**stage1), FINAL: tensor_file(**final)}

    def untrained_files(self) -> dict[str, bytes]:
        tensors = delivered_with(MODULES.network.seeded_head(RUN.init_seed))
        return self.files(tensors, tensors)


class Task5Inputs(InputTests, Task5):
    def test_there_are_rows_labels_and_the_delivered_backbone(self) -> None:
        arrays = given_arrays(self.inputs())
        self.assertEqual((arrays["x"].shape, arrays["x"].dtype), ((2000, 32), np.float32))
        self.assertEqual((arrays["y"].shape, arrays["y"].dtype), ((2000,), np.int64))
        self.assertEqual(set(np.unique(arrays["y"])), set(range(5)))
        counters = {"backbone.1.num_batches_tracked", "backbone.4.num_batches_tracked"}
        self.assertEqual(arrays.keys() - {"x", "y"}, MODULES.network.BACKBONE.keys() | counters)

    def test_every_class_is_frequent_and_no_linear_rule_of_the_known_sensors_is_enough(self) -> None:
        rows = MODULES.data.held_out_rows(RUN)
        self.assertGreater(np.bincount(rows.y).min() / len(rows.y), 0.1)
        teacher = MODULES.data.target_domain(RUN)
        z = (rows.x - teacher.offset) / teacher.scale
        known = (z[:, :16] @ teacher.linear[:, :16].T).argmax(1)
        self.assertLess((known == rows.y).mean(), 0.62)

    def test_no_held_out_row_is_in_them(self) -> None:
        self.assert_no_row_of(MODULES.data.held_out_rows(RUN).x, [given_arrays(self.inputs())["x"]])

    def test_no_weight_of_the_teacher_and_no_offset_or_scale_is_in_them(self) -> None:
        teacher = MODULES.data.target_domain(RUN)
        for secret in (teacher.linear, teacher.mix, teacher.offset, teacher.scale):
            self.assert_no_number_of(secret)

    def test_held_out_rows_come_from_a_stream_of_their_own(self) -> None:
        domain = MODULES.data.target_domain(RUN)
        purposes = ("training rows", "held-out rows", "teacher", "source")
        rows = [domain.draw(MODULES.data._generator(RUN, purpose), 100).x for purpose in purposes]
        self.assertEqual(len({array.tobytes() for array in rows}), len(purposes))

    def test_biases_before_a_normalisation_stay_where_they_started(self) -> None:
        # Their gradients are rounding errors. If those were trained on, two workers might deliver two backbones.
        for name, inputs in (("backbone.0.bias", 32), ("backbone.3.bias", 64)):
            self.assertLess(np.abs(delivered()[name]).max(), inputs**-0.5 + 1e-4, name)

    def test_the_delivered_backbone_hardly_listens_to_the_second_half_of_the_sensors(self) -> None:
        weight = given_arrays(self.inputs())["backbone.0.weight"]
        known, other = (np.linalg.norm(part) for part in (weight[:, :16], weight[:, 16:]))
        self.assertLess(other, 0.05 * known)


class Task5Files(FileTests, Task5):
    pass


class Task5Measures(Task5):
    def test_the_delivered_backbone_below_a_seeded_head_has_learned_nothing(self) -> None:
        measures = self.measure(self.untrained_files())
        self.assertEqual(measures["head_moved"], 0)
        self.assertEqual(measures["stage1_drift"], 0)
        self.assertLess(measures["accuracy"], 0.3)
        self.assertLess(measures["stage1_fit"], 0.2)

    def test_a_head_of_another_seed_has_moved(self) -> None:
        tensors = delivered_with(MODULES.network.seeded_head(RUN.init_seed + 1))
        self.assertGreater(self.measure(self.files(tensors, tensors))["head_moved"], 0.2)

    def test_a_head_trained_on_the_delivered_features_fits_them_and_is_not_enough(self) -> None:
        tensors = delivered_with(fitted_head(delivered()))
        measures = self.measure(self.files(tensors, tensors))
        self.assertEqual(measures["stage1_drift"], 0)
        self.assertGreater(measures["stage1_fit"], 0.8)
        self.assertGreater(measures["accuracy"], 0.4)
        self.assertLess(measures["accuracy"], 0.56)

    def test_a_head_trained_on_a_drifted_backbone_does_not_fit_the_delivered_one(self) -> None:
        rows = MODULES.data.training_rows(RUN)
        pre = rows.x @ delivered()["backbone.0.weight"].T + delivered()["backbone.0.bias"]
        drifted = {
            **delivered(),
            "backbone.1.running_mean": pre.mean(0).astype(np.float32),
            "backbone.1.running_var": pre.var(0).astype(np.float32),
        }
        tensors = delivered_with(fitted_head(drifted))
        self.assertLess(self.measure(self.files(tensors, tensors))["stage1_fit"], 0.3)

    def test_every_kind_of_tensor_of_the_backbone_counts_as_drift(self) -> None:
        head = MODULES.network.seeded_head(RUN.init_seed)
        for name in ("0.weight", "1.bias", "1.running_mean", "3.bias", "4.weight", "4.running_var"):
            with self.subTest(name=name):
                stage1 = delivered_with(head)
                stage1[f"backbone.{name}"] = stage1[f"backbone.{name}"] * np.float32(1.1)
                drift = self.measure(self.files(stage1, delivered_with(head)))["stage1_drift"]
                self.assertAlmostEqual(drift, 0.1, places=4)

    def test_the_count_of_batches_is_no_drift(self) -> None:
        head = MODULES.network.seeded_head(RUN.init_seed)
        stage1 = {**delivered_with(head), "backbone.1.num_batches_tracked": np.int64(7)}
        self.assertEqual(self.measure(self.files(stage1, delivered_with(head)))["stage1_drift"], 0)

    def test_the_delivered_backbone_of_other_data_has_drifted(self) -> None:
        head = MODULES.network.seeded_head(RUN.init_seed)
        stage1 = {**MODULES.data.delivered_backbone(OTHER_DATA), **head}
        self.assertGreater(self.measure(self.files(stage1, delivered_with(head)))["stage1_drift"], 0.5)

    def test_the_same_files_measure_the_same(self) -> None:
        files = self.untrained_files()
        self.assertEqual(self.measure(files), self.measure(files))

    def test_the_kind_of_a_run_changes_nothing(self) -> None:
        files = self.untrained_files()
        evaluation = MODULES.evaluation
        self.assertEqual(evaluation.measure(RUN, files), evaluation.measure(replace(RUN, kind=0), files))

    def test_variances_below_zero_measure_as_no_number(self) -> None:
        tensors = delivered_with(MODULES.network.seeded_head(RUN.init_seed))
        tensors["backbone.4.running_var"] = -tensors["backbone.4.running_var"]
        measures = self.measure(self.files(tensors, tensors))
        self.assertTrue(math.isnan(measures["stage1_fit"]))
        self.assertLess(measures["accuracy"], 0.3)


if __name__ == "__main__":
    unittest.main()
