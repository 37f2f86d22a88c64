import functools
import unittest
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from .network_tasks import OTHER_DATA, RUN, FileTests, InputTests, Modules, NetworkTask, tensor_file
from .run_files import given_arrays

MODULES = Modules("task6")
IMAGES = MODULES.images
WEIGHTS, PROBE, QUERY = "weights.safetensors", "probe.safetensors", "query.safetensors"

Preparation = Callable[[np.ndarray], np.ndarray]


def right(pixels: np.ndarray) -> np.ndarray:
    """The preparation that the task describes."""
    levels = torch.from_numpy(pixels).float().permute(0, 3, 1, 2) / 255
    return functional.interpolate(levels, size=(28, 28), mode="bilinear", align_corners=False).numpy()


def cropped(pixels: np.ndarray) -> np.ndarray:
    """Colours first, but without the right and the bottom edge."""
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)[:, :, :28, :28] / np.float32(255))


def scrambled(pixels: np.ndarray) -> np.ndarray:
    """Resized, but the axes were renamed and not moved."""
    levels = torch.from_numpy(pixels).float().reshape(-1, 3, 32, 32) / 255
    return functional.interpolate(levels, size=(28, 28), mode="bilinear", align_corners=False).numpy()


def first_column(ids: np.ndarray) -> np.ndarray:
    """What the first column of the one-hot labels says."""
    return (ids == 0).astype(np.int64)


@functools.cache
def trained(prepare: Preparation, name: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    """Weights that learned from the training images, prepared and named in some way."""
    images = IMAGES.training_images(RUN)
    x, y = torch.from_numpy(prepare(images.pixels)), torch.from_numpy(name(images.ids))
    torch.manual_seed(RUN.init_seed)
    model = MODULES.network.Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(10):
        for batch in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    return {key: tensor.numpy() for key, tensor in model.state_dict().items()}


def same(ids: np.ndarray) -> np.ndarray:
    """The true class ids."""
    return ids


class Task6(NetworkTask):
    modules = MODULES
    outputs: ClassVar = {
        WEIGHTS: MODULES.network.WEIGHTS,
        PROBE: MODULES.evaluation._PROBE,
        QUERY: MODULES.evaluation._QUERY,
    }

    def files(
        self,
        weights: dict[str, np.ndarray],
        prepare: Preparation = right,
        name: Callable[[np.ndarray], np.ndarray] = same,
        *,
        uniform: bool = False,
    ) -> dict[str, bytes]:
        """What a run leaves that prepares, names and answers in some way."""
        probe, query = IMAGES.probe_images(RUN), IMAGES.query_images(RUN)

        def answers(inputs: np.ndarray) -> np.ndarray:
            if uniform:
                return np.full((len(inputs), 5), 0.2, np.float32)
            odds = torch.from_numpy(MODULES.network.logits(weights, inputs))
            return torch.softmax(odds, dim=1).float().numpy()

        shown = {"inputs": prepare(probe.pixels), "ids": name(probe.ids)}
        asked = prepare(query.pixels)
        return {
            WEIGHTS: tensor_file(**weights),
            PROBE: tensor_file(**shown, probabilities=answers(shown["inputs"])),
            QUERY: tensor_file(inputs=asked, probabilities=answers(asked)),
        }

    def untrained_files(self) -> dict[str, bytes]:
        return dict(_untrained_files())


@functools.cache
def _untrained_files() -> dict[str, bytes]:
    return Task6().files(MODULES.network.seeded_weights(RUN.init_seed))


class Task6Inputs(InputTests, Task6):
    def test_there_are_images_and_the_labels_of_all_but_the_query(self) -> None:
        arrays = given_arrays(self.inputs())
        shapes = {name: array.shape for name, array in arrays.items()}
        expected = {
            "images": (800, 32, 32, 3),
            "labels": (800, 5),
            "probe_images": (80, 32, 32, 3),
            "probe_labels": (80, 5),
            "query_images": (160, 32, 32, 3),
        }
        self.assertEqual(shapes, expected)
        self.assertEqual({array.dtype for array in arrays.values()}, {np.dtype(np.uint8)})
        for name in ("labels", "probe_labels"):
            self.assertEqual(set(arrays[name].sum(axis=1)), {1})

    def test_the_order_of_the_query_says_nothing_about_its_classes(self) -> None:
        query = IMAGES.query_images(RUN)
        for labelled in (IMAGES.training_images(RUN), IMAGES.probe_images(RUN), IMAGES.query_images(OTHER_DATA)):
            count = min(len(query.ids), len(labelled.ids))
            self.assertLess((query.ids[:count] == labelled.ids[:count]).mean(), 0.45)
        cycle = np.arange(len(query.ids)) % 5
        self.assertLess(max((query.ids == np.roll(cycle, shift)).mean() for shift in range(5)), 0.45)

    def test_no_held_out_image_is_in_them_and_no_image_twice(self) -> None:
        arrays = given_arrays(self.inputs())
        seen = [arrays[name] for name in ("images", "probe_images", "query_images")]
        self.assert_no_row_of(IMAGES.held_out_images(RUN).pixels, seen)
        self.assertEqual(len({image.tobytes() for array in seen for image in array}), sum(map(len, seen)))

    def test_no_template_is_in_them(self) -> None:
        self.assert_no_number_of(IMAGES._templates(RUN)[:, ::16, ::16])

    def test_templates_of_another_data_seed_are_not_alike(self) -> None:
        one, other = (IMAGES._templates(run).reshape(5, -1) for run in (RUN, OTHER_DATA))
        alike = np.corrcoef(one, other)[:5, 5:]
        self.assertLess(np.abs(alike).max(), 0.4)


class Task6Files(FileTests, Task6):
    def test_ids_that_are_no_class_are_invalid(self) -> None:
        for odd in (-1, 5):
            with self.subTest(odd=odd):
                tensors = self.zeros(PROBE)
                tensors["ids"][3] = odd
                self.assert_invalid(PROBE, tensor_file(**tensors), "expected ids to hold numbers from 0 to 4")


class Task6Measures(Task6):
    def test_the_seeded_weights_have_learned_nothing_however_right_the_rest_is(self) -> None:
        measures = self.measure(self.untrained_files())
        self.assertEqual(measures["moved"], 0)
        self.assertLess(measures["accuracy"], 0.4)
        self.assertLess(measures["own_information"], 0.2)
        self.assertLess(measures["own_skill"], 0.1)
        for name, expected in {"size": 1, "channels": 1, "ids": 1, "single": 0, "own_images": 1}.items():
            self.assertAlmostEqual(measures[name], expected, places=3, msg=name)

    def test_the_right_script_has_all_measures_right(self) -> None:
        measures = self.measure(self.files(trained(right, same)))
        for name in ("accuracy", "query_accuracy", "own_skill"):
            self.assertGreater(measures[name], 0.9, name)
        self.assertGreater(measures["own_information"], 1.4)
        self.assertGreater(measures["own_fit"], -0.01)

    def test_learning_shows_on_inputs_and_ids_of_the_scripts_own(self) -> None:
        measures = self.measure(self.files(trained(cropped, first_column), cropped, first_column, uniform=True))
        self.assertGreater(measures["own_information"], 0.35)
        self.assertGreater(measures["own_skill"], 0.5)
        self.assertGreater(measures["own_fit"], -0.01)
        self.assertLess(measures["accuracy"], 0.3)
        self.assertLess(measures["size"], 0.5)
        self.assertEqual(measures["ids"], 0)
        self.assertAlmostEqual(measures["single"], 1, places=3)

    def test_inputs_that_the_weights_did_not_learn_from_do_not_fit_them(self) -> None:
        for learned_from, shown in ((cropped, right), (scrambled, right), (right, cropped)):
            with self.subTest(learned_from=learned_from.__name__, shown=shown.__name__):
                self.assertLess(self.measure(self.files(trained(learned_from, same), shown))["own_fit"], -0.3)

    def test_ids_that_the_weights_did_not_learn_do_not_fit_them(self) -> None:
        self.assertLess(self.measure(self.files(trained(right, first_column), right, same))["own_skill"], 0)

    def test_size_and_channels_are_told_apart(self) -> None:
        weights = MODULES.network.seeded_weights(RUN.init_seed)
        cases = {cropped: (False, True), scrambled: (True, False), right: (True, True)}
        for prepare, expected in cases.items():
            with self.subTest(prepare=prepare.__name__):
                measures = self.measure(self.files(weights, prepare))
                self.assertEqual((measures["size"] > 0.95, measures["channels"] > 0.9), expected)

    def test_an_affine_change_of_the_levels_is_still_the_same_image(self) -> None:
        weights = MODULES.network.seeded_weights(RUN.init_seed)
        measures = self.measure(self.files(weights, lambda pixels: right(pixels) * np.float32(4) - np.float32(2)))
        for name in ("size", "channels", "own_images"):
            self.assertGreater(measures[name], 0.99, name)

    def test_inputs_made_from_other_images_do_not_pass_for_these(self) -> None:
        probe, query = IMAGES.probe_images(OTHER_DATA).pixels, IMAGES.query_images(OTHER_DATA).pixels
        measures = self.measure(
            self.files(
                MODULES.network.seeded_weights(RUN.init_seed),
                lambda pixels: right(probe if len(pixels) == len(probe) else query),
            )
        )
        for name in ("own_images", "size", "channels"):
            self.assertLess(abs(measures[name]), 0.3, name)

    def test_the_same_files_measure_the_same(self) -> None:
        files = self.untrained_files()
        self.assertEqual(self.measure(files), self.measure(files))

    def test_the_largest_finite_numbers_measure_without_a_warning(self) -> None:
        weights = {name: np.full(shape, 3e38, np.float32) for name, (_, shape) in MODULES.network.WEIGHTS.items()}
        self.assertIsInstance(self.measure({**self.untrained_files(), WEIGHTS: tensor_file(**weights)}), dict)


if __name__ == "__main__":
    unittest.main()
