"""Task 2: a logistic model, trained on eight daily shards whose extreme rows saturate a float32 sigmoid.

One sign of extreme comes on the days 2 to 4, the other on the days 5 to 7,
counted from 0, and `kind` says which is first. Each sign breaks one logarithm
of the loss, so a loss with only one of them protected lives longer in one of
the two kinds. New sensors come into service on day 2 and on day 5: whoever
stops learning then has not seen what the later days are judged on.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from grading.inputs import hashed_stream, pack_inputs
from grading.run import Run
from grading.tensor_files import read_tensors

DAYS = 8
ROWS_PER_DAY = 600
HELD_OUT_ROWS = 4000

SENSORS = 24
SENSORS_PER_GROUP = 6
GROUPS = 3
#: How many groups of sensors are in service on each day.
GROUPS_IN_SERVICE = (1, 1, 2, 2, 2, 3, 3, 3)
EARLY_DAYS = range(2)
MIDDLE_DAYS = range(2, 5)
LATE_DAYS = range(5, DAYS)

#: Standard deviation of a group's share of the teacher's logits. The sum of the three stays far from 16.6, where
#: float32 begins to round a sigmoid to 1: ordinary rows do not saturate it.
LOGIT_SCALE = 1.8
EXTREME_SHARE = 0.06
#: Size of extreme readings along the teacher's direction, and across it for each unit along. A model that has learned
#: half of the teacher has logits of more than 104 on them, for which float32 rounds a sigmoid to 1 or 0.
EXTREME_READINGS = (250.0, 500.0)
EXTREME_SPREAD = 0.5

#: The sensors of no group read 0 but in a few rows of every day, whose labels hang on them: whoever leaves out all rows
#: with large readings learns nothing of these. The other sensors are quiet in such rows. So few labels contradict the
#: alarm that SGD settles in spite of the size, and the logits stay far from 16.6.
ALARM_SHARE = 0.06
ALARM_READINGS = (21.0, 23.0)
ALARM_LOGIT = 6.0
QUIET_SCALE = 0.25


def make_inputs(run: Run) -> dict[str, bytes]:
    """`readings` [8, 600, 24] and `labels` [8, 600], both float32, and the seed of the weights."""
    rng = _stream(run, "training")
    days = [_rows(run, rng, day, ROWS_PER_DAY) for day in range(DAYS)]
    return pack_inputs(run, readings=np.stack([day[0] for day in days]), labels=np.stack([day[1] for day in days]))


def measure(run: Run, files: Mapping[str, bytes]) -> dict[str, float | list[float]]:
    """Judge the exported weights, and those after each day, on held-out rows. What is NaN or infinite measures as NaN.

    Returns:
        `moved`: distance of the weights after day 1 from the initial ones, in norms of those.
        `early_accuracy`: share of rows of the first days that the weights after day 1 put on the right side of 0.5.
        `middle_excess_losses`: mean cross-entropy of the weights after each of the days 2 to 4 on rows of those days,
            less that of the true probabilities, in nats.
        `late_excess_losses`: the same of the days 5 to 7.
        `excess_loss`: the same of the exported weights on rows of the last days.

    Raises:
        InvalidFiles: A file is missing or not as the description says; weights may be NaN here.
    """
    final = read_tensors(
        files, "weights.safetensors", {"weight": ("F32", (1, SENSORS)), "bias": ("F32", (1,))}, finite=False
    )
    days = read_tensors(
        files, "days.safetensors", {"weight": ("F32", (DAYS, 1, SENSORS)), "bias": ("F32", (DAYS, 1))}, finite=False
    )
    after = [(days["weight"][day], days["bias"][day]) for day in range(DAYS)]
    early, middle, late = (_HeldOut(run, part[-1]) for part in (EARLY_DAYS, MIDDLE_DAYS, LATE_DAYS))
    return {
        "moved": _moved(run, after[EARLY_DAYS[-1]][0]),
        "early_accuracy": early.accuracy(*after[EARLY_DAYS[-1]]),
        "middle_excess_losses": [middle.excess_loss(*after[day]) for day in MIDDLE_DAYS],
        "late_excess_losses": [late.excess_loss(*after[day]) for day in LATE_DAYS],
        "excess_loss": late.excess_loss(final["weight"], final["bias"]),
    }


class _HeldOut:
    """Rows as they come on a day, none of which the script sees. What models with NaN or infinities reach is NaN."""

    def __init__(self, run: Run, day: int) -> None:
        teacher, _ = _teacher(run)
        self._readings, self._labels = _rows(run, _stream(run, f"held-out rows of day {day}"), day, HELD_OUT_ROWS)
        self._least = _loss(self._readings @ teacher, self._labels)

    def accuracy(self, weight: np.ndarray, bias: np.ndarray) -> float:
        if not _is_finite(weight, bias):
            return math.nan
        return float(np.mean((self._logits(weight, bias) > 0) == (self._labels > 0)))

    def excess_loss(self, weight: np.ndarray, bias: np.ndarray) -> float:
        if not _is_finite(weight, bias):
            return math.nan
        return _loss(self._logits(weight, bias), self._labels) - self._least

    def _logits(self, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        logits: np.ndarray = self._readings.astype(np.float64) @ weight[0].astype(np.float64) + float(bias[0])
        return logits


def _is_finite(weight: np.ndarray, bias: np.ndarray) -> bool:
    return bool(np.isfinite(weight).all() and np.isfinite(bias).all())


def _stream(run: Run, purpose: str) -> np.random.Generator:
    return hashed_stream(f"task2 {purpose} {run.data_seed}")


def _teacher(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The weights that draw the labels, and the group of each sensor; both differ from seed to seed.

    Sensors of the group `GROUPS` are those that read 0 in most rows.
    """
    rng = _stream(run, "teacher")
    groups = rng.permutation(SENSORS) // SENSORS_PER_GROUP
    teacher = rng.standard_normal(SENSORS)
    for group in range(GROUPS):
        teacher[groups == group] *= LOGIT_SCALE / np.linalg.norm(teacher[groups == group])
    alarms = groups == GROUPS
    teacher[alarms] = np.sign(teacher[alarms]) * ALARM_LOGIT / np.mean(ALARM_READINGS)
    return teacher, groups


def _rows(run: Run, rng: np.random.Generator, day: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Readings and labels as they come on a day."""
    teacher, groups = _teacher(run)
    readings = rng.standard_normal((count, SENSORS)) * (groups < GROUPS_IN_SERVICE[day])
    alarm = rng.random(count) < ALARM_SHARE
    readings[alarm] = QUIET_SCALE * readings[alarm] + _alarm_readings(rng, groups, count)[alarm]
    sign = _sign_of_extremes(run, day)
    extreme = ~alarm & (rng.random(count) < EXTREME_SHARE * abs(sign))
    readings[extreme] += sign * _extreme_readings(rng, np.where(groups == 0, teacher, 0), count)[extreme]
    labels = rng.random(count) < np.exp(-np.logaddexp(0, -(readings @ teacher)))
    return readings.astype(np.float32), labels.astype(np.float32)


def _alarm_readings(rng: np.random.Generator, groups: np.ndarray, count: int) -> np.ndarray:
    """A large reading, of either sign, of one of the sensors that read 0 otherwise."""
    readings = np.zeros((count, SENSORS))
    sensor = rng.choice(np.flatnonzero(groups == GROUPS), count)
    readings[np.arange(count), sensor] = rng.choice((-1, 1), count) * rng.uniform(*ALARM_READINGS, count)
    return readings


def _extreme_readings(rng: np.random.Generator, teacher: np.ndarray, count: int) -> np.ndarray:
    """Readings of the sensors that the teacher uses, to which it answers 1, each in a direction of its own."""
    directions = rng.standard_normal((count, SENSORS)) * (teacher != 0)
    directions *= EXTREME_SPREAD / np.linalg.norm(directions, axis=1, keepdims=True)
    readings: np.ndarray = (directions + teacher / np.linalg.norm(teacher)) * rng.uniform(*EXTREME_READINGS, (count, 1))
    return readings


def _sign_of_extremes(run: Run, day: int) -> int:
    """The sign of a day's extreme readings; 0 where it has none."""
    first = 1 if run.kind == 0 else -1
    return first if day in MIDDLE_DAYS else -first if day in LATE_DAYS else 0


def _loss(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, logits) - labels * logits))


def _moved(run: Run, weight: np.ndarray) -> float:
    torch.manual_seed(run.init_seed)
    initial = torch.nn.Linear(SENSORS, 1).weight.detach().numpy()
    return float(np.linalg.norm(weight.astype(np.float64) - initial) / np.linalg.norm(initial))
