"""Task 1: a linear classifier of sensors on very different scales, trained by momentum SGD.

The scales make the two faults separable. On a curvature c, steps of size s with
momentum m are stable for s·c < 2(1 + m), which is 3.8 here; with gradients that
are one step old only for s·c < 1 - m, which is 0.1 (the roots of their linear
recurrences are then inside the unit circle). At steps that small the faint
sensors are not learned within the epochs: no step size makes up for the order.
"""

from collections.abc import Mapping

import numpy as np
import torch
from grading.inputs import hashed_stream, pack_inputs
from grading.run import Run
from grading.tensor_files import read_tensors

SENSORS = 28
EPOCHS = 15
TRAINING_ROWS = 2560
HELD_OUT_ROWS = 4000

#: Evidence is spread over many sensors of both kinds: neither is enough alone, and the weights of one seed are worth
#: nothing on another.
LOUD_SENSORS = 8
LOUD_SCALE = 8.0
FAINT_SCALE = 0.8
LOUD_EVIDENCE = 0.28
#: Standard deviation of the teacher's logits: its own accuracy is about 0.87.
LOGIT_SCALE = 4.0

#: Counted from 0; by then a stable run has settled.
FIRST_SETTLED_EPOCH = 7


def make_inputs(run: Run) -> dict[str, bytes]:
    """`readings` [2560, 28] and `labels` [2560], both float32, and the seed of the weights."""
    teacher, scales = _teacher(run)
    readings, labels = _rows(_stream(run, "training"), teacher, scales, TRAINING_ROWS)
    return pack_inputs(run, readings=readings, labels=labels)


def measure(run: Run, files: Mapping[str, bytes]) -> dict[str, float | list[float]]:
    """Judge the exported weights, and those after each epoch, on held-out rows.

    Returns:
        `moved`: distance of the weights from the initial ones, in norms of those.
        `accuracy`: share of held-out rows on the right side of 0.5.
        `log10_loss`: of the mean held-out cross-entropy in nats.
        `excess_loss`: that cross-entropy less the one of the true probabilities, in nats.
        `epoch_excess_losses`: the same after each epoch from the eighth on.
        `later_path`: length of the way that the weights went from epoch to epoch after the first, in distances of the
            last epoch's from the initial ones. Mini-batches always move them on; a copy stays where it is.

    Raises:
        InvalidFiles: A file is missing or not as the description says.
    """
    final = read_tensors(files, "weights.safetensors", {"weight": ("F32", (1, SENSORS)), "bias": ("F32", (1,))})
    epochs = read_tensors(
        files, "epochs.safetensors", {"weight": ("F32", (EPOCHS, 1, SENSORS)), "bias": ("F32", (EPOCHS, 1))}
    )
    teacher, scales = _teacher(run)
    readings, labels = _rows(_stream(run, "held-out"), teacher, scales, HELD_OUT_ROWS)
    least = _loss(readings @ teacher, labels)
    logits = _logits(readings, final["weight"], final["bias"])
    loss = _loss(logits, labels)
    settled = range(FIRST_SETTLED_EPOCH, EPOCHS)
    curve = [_loss(_logits(readings, epochs["weight"][epoch], epochs["bias"][epoch]), labels) for epoch in settled]
    return {
        "moved": _moved(run, final),
        "accuracy": float(np.mean((logits > 0) == (labels > 0))),
        "log10_loss": float(np.log10(max(loss, 1e-12))),
        "excess_loss": loss - least,
        "epoch_excess_losses": [epoch_loss - least for epoch_loss in curve],
        "later_path": _later_path(run, epochs["weight"][:, 0].astype(np.float64)),
    }


def _stream(run: Run, purpose: str) -> np.random.Generator:
    return hashed_stream(f"task1 {purpose} {run.data_seed}")


def _teacher(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The weights that draw the labels, and the scale of each sensor; both differ from seed to seed."""
    rng = _stream(run, "teacher")
    loud = rng.permutation(SENSORS) < LOUD_SENSORS
    direction = rng.standard_normal(SENSORS)
    for group, evidence in ((loud, LOUD_EVIDENCE), (~loud, 1 - LOUD_EVIDENCE)):
        direction[group] *= np.sqrt(evidence) / np.linalg.norm(direction[group])
    scales = np.where(loud, LOUD_SCALE, FAINT_SCALE)
    return LOGIT_SCALE * direction / scales, scales


def _rows(
    rng: np.random.Generator, teacher: np.ndarray, scales: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    readings = rng.standard_normal((count, SENSORS)) * scales
    labels = rng.random(count) < 1 / (1 + np.exp(-(readings @ teacher)))
    return readings.astype(np.float32), labels.astype(np.float32)


def _logits(readings: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    logits: np.ndarray = readings.astype(np.float64) @ weight[0].astype(np.float64) + float(bias[0])
    return logits


def _loss(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, logits) - labels * logits))


def _moved(run: Run, final: Mapping[str, np.ndarray]) -> float:
    initial = _initial(run)
    return float(np.linalg.norm(final["weight"].astype(np.float64) - initial) / np.linalg.norm(initial))


def _later_path(run: Run, weights: np.ndarray) -> float:
    steps = np.linalg.norm(np.diff(weights, axis=0), axis=1)
    distance = np.linalg.norm(weights[-1] - _initial(run))
    return float(steps.sum() / max(distance, 1e-12))


def _initial(run: Run) -> np.ndarray:
    torch.manual_seed(run.init_seed)
    initial: np.ndarray = torch.nn.Linear(SENSORS, 1).weight.detach().numpy()
    return initial
