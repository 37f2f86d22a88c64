import json
import math
import unittest
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from grading.run import Run
from grading.tensor_files import InvalidFiles

from .run_files import given_arrays, load_evaluation, written

evaluation = load_evaluation("task4")
RUN = Run(data_seed=7_046_029_254_386_353_131, init_seed=417, kind=0)


def seeded_weights(run: Run) -> dict[str, torch.Tensor]:
    torch.manual_seed(run.init_seed)
    model = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.ReLU(), torch.nn.Linear(64, 6))
    return dict(model.state_dict())


def teaching_weights(run: Run) -> dict[str, torch.Tensor]:
    """A network that knows the teacher: a rectified unit for each side of each tag, ten times the log-odds."""
    directions, offsets = (torch.from_numpy(array).float() for array in evaluation._teacher(run))
    first, last = torch.zeros(64, 24), torch.zeros(6, 64)
    for tag in range(6):
        first[tag], first[6 + tag] = directions[:, tag], -directions[:, tag]
        last[tag, tag], last[tag, 6 + tag] = 10, -10
    return {"0.weight": first, "0.bias": torch.zeros(64), "2.weight": last, "2.bias": 10 * offsets}


def query_log_odds(run: Run, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    query = torch.from_numpy(given_arrays(evaluation.make_inputs(run))["query"])
    hidden = torch.relu(query @ weights["0.weight"].T + weights["0.bias"])
    return hidden @ weights["2.weight"].T + weights["2.bias"]


def measure(run: Run, weights: dict[str, Any], tags: Any) -> dict[str, float]:
    found: dict[str, float] = evaluation.measure(
        run, written("weights", weights) | written("predictions", {"tags": tags})
    )
    return found


NO_TAGS = torch.zeros(800, 6, dtype=torch.uint8)


class Task4InputsTest(unittest.TestCase):
    def test_make_inputs_gives_what_the_description_names(self) -> None:
        inputs = evaluation.make_inputs(RUN)
        arrays = given_arrays(inputs)
        self.assertEqual(json.loads(inputs["config.json"]), {"seed": 417})
        shapes = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
        wanted = {"features": ("float32", (1500, 24)), "tags": ("int64", (1500, 6)), "query": ("float32", (800, 24))}
        self.assertEqual(shapes, wanted)
        self.assertEqual(set(arrays["tags"].ravel()), {0, 1})
        counts = arrays["tags"].sum(axis=1)
        self.assertEqual((counts.min(), counts.max()), (0, 6))
        self.assertTrue(2 < counts.mean() < 2.6)

    def test_make_inputs_gives_the_same_bytes_for_the_same_run(self) -> None:
        self.assertEqual(evaluation.make_inputs(RUN), evaluation.make_inputs(replace(RUN)))

    def test_make_inputs_draws_other_rows_and_another_teacher_for_another_data_seed(self) -> None:
        other = replace(RUN, data_seed=RUN.data_seed + 1)
        ours, theirs = (given_arrays(evaluation.make_inputs(run)) for run in (RUN, other))
        for name in ("features", "query"):
            self.assertEqual({row.tobytes() for row in ours[name]} & {row.tobytes() for row in theirs[name]}, set())
        self.assertLess(measure(other, teaching_weights(RUN), NO_TAGS)["auc"], 0.64)

    def test_make_inputs_changes_only_the_seed_of_the_weights_with_init_seed(self) -> None:
        ours, theirs = (evaluation.make_inputs(replace(RUN, init_seed=seed)) for seed in (1, 2))
        self.assertEqual(ours["data.npz"], theirs["data.npz"])
        self.assertNotEqual(ours["config.json"], theirs["config.json"])

    def test_make_inputs_holds_no_held_out_row_and_tags_no_query_row(self) -> None:
        given = given_arrays(evaluation.make_inputs(RUN))
        rows = {name: {row.tobytes() for row in given[name]} for name in ("features", "query")}
        held_out, _ = evaluation._tickets(RUN, "held-out rows", evaluation.HELD_OUT_ROWS)
        self.assertEqual((rows["features"] | rows["query"]) & {row.tobytes() for row in held_out}, set())
        self.assertEqual(rows["features"] & rows["query"], set())


class Task4MeasureTest(unittest.TestCase):
    def test_the_seeded_weights_have_not_moved(self) -> None:
        self.assertEqual(measure(RUN, seeded_weights(RUN), NO_TAGS)["moved"], 0.0)

    def test_the_same_files_are_measured_alike(self) -> None:
        weights = teaching_weights(RUN)
        self.assertEqual(measure(RUN, weights, NO_TAGS), measure(RUN, weights, NO_TAGS))

    def test_a_network_that_knows_the_teacher_has_all_there_is(self) -> None:
        weights = teaching_weights(RUN)
        found = measure(RUN, weights, (query_log_odds(RUN, weights) > 0).to(torch.uint8))
        self.assertGreater(found["auc"], 0.98)
        self.assertGreater(found["skill"], 0.75)
        self.assertEqual(found["decoded"], 1.0)
        self.assertGreater(found["exact"], 0.7)

    def test_one_tag_for_each_ticket_is_seldom_what_the_weights_say(self) -> None:
        weights = teaching_weights(RUN)
        one_tag = torch.nn.functional.one_hot(query_log_odds(RUN, weights).argmax(dim=1), 6).to(torch.uint8)
        found = measure(RUN, weights, one_tag)
        self.assertLess(found["decoded"], 0.3)
        self.assertLess(found["exact"], 0.3)

    def test_the_base_rates_alone_have_no_skill(self) -> None:
        rates = torch.from_numpy(given_arrays(evaluation.make_inputs(RUN))["tags"]).float().mean(dim=0)
        blank = {name: torch.zeros(shape) for name, (_, shape) in evaluation.SPEC.items()}
        found = measure(RUN, blank | {"2.bias": rates.logit()}, NO_TAGS)
        self.assertAlmostEqual(found["skill"], 0, delta=0.01)
        self.assertEqual(found["auc"], 0.5)

    def test_auc_is_the_share_of_pairs_in_the_right_order_and_half_of_the_ties(self) -> None:
        rng = np.random.default_rng(3)
        log_odds, tagged = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.4
        above, below = log_odds[tagged][:, None], log_odds[~tagged][None, :]
        expected = np.mean((above > below) + 0.5 * (above == below))
        self.assertAlmostEqual(evaluation._auc(log_odds, tagged), float(expected), places=12)

    def test_measure_refuses_weights_that_are_not_as_specified(self) -> None:
        good = seeded_weights(RUN)
        odd: dict[str, dict[str, Any]] = {
            "one too few": {name: tensor for name, tensor in good.items() if name != "2.bias"},
            "another shape": good | {"2.weight": good["2.weight"].T},
            "another type": good | {"2.bias": good["2.bias"].half()},
            "not finite": good | {"2.bias": good["2.bias"] * math.inf},
        }
        for name, weights in odd.items():
            with self.subTest(name), self.assertRaisesRegex(InvalidFiles, r"^weights\.safetensors: "):
                measure(RUN, weights, NO_TAGS)
        with self.assertRaisesRegex(InvalidFiles, r"^weights\.safetensors: the script did not write it"):
            evaluation.measure(RUN, written("predictions", {"tags": NO_TAGS}))

    def test_measure_refuses_predictions_that_are_not_as_specified(self) -> None:
        odd = {
            "too few rows": NO_TAGS[:799],
            "another type": NO_TAGS.float(),
            "tags that are neither 0 nor 1": NO_TAGS + 2,
        }
        for name, tags in odd.items():
            with self.subTest(name), self.assertRaisesRegex(InvalidFiles, r"^predictions\.safetensors: .*tags"):
                measure(RUN, seeded_weights(RUN), tags)
        with self.assertRaisesRegex(InvalidFiles, r"^predictions\.safetensors: the script did not write it"):
            evaluation.measure(RUN, written("weights", seeded_weights(RUN)))

    def test_measure_stands_the_largest_weights(self) -> None:
        largest = {name: tensor.sign() * 3e38 for name, tensor in seeded_weights(RUN).items()}
        found = measure(RUN, largest, NO_TAGS)
        self.assertEqual(set(found), {"moved", "auc", "skill", "decoded", "exact"})
        self.assertLess(found["skill"], 0)


if __name__ == "__main__":
    unittest.main()
