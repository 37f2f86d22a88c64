"""What a run of the task starts with, and what is measured of the networks that it left."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from data import Rows, delivered_backbone, held_out_rows, training_rows
from grading.inputs import pack_inputs
from grading.run import Run
from grading.tensor_files import read_tensors
from network import BACKBONE, CLASSES, HEAD, WEIGHTS, features, logits, seeded_head
from torch.nn import functional

_EQUAL_ODDS = math.log(CLASSES)
_PROBE_STEPS = 50
_PROBE_DECAY = 1e-3


def make_inputs(run: Run) -> dict[str, bytes]:
    """The files that a script starts with: training rows, the delivered backbone, and the seed of the head."""
    torch.set_num_threads(1)
    rows = training_rows(run)
    return pack_inputs(run, x=rows.x, y=rows.y, **delivered_backbone(run))


def measure(run: Run, files: Mapping[str, bytes]) -> dict[str, float]:
    """Measure the networks after either stage.

    Returns:
        `accuracy` of the final network on held-out rows; `head_moved`, the length of the head's way from its seeded
        weights as a share of their length; `stage1_drift`, the largest difference of a backbone tensor after stage 1
        from the delivered one as a share of its length; `stage1_fit`, how far the network after stage 1 came from the
        held-out loss of equal odds (0) to that of the best linear head on the delivered features (1).

    Raises:
        InvalidFiles: A file is missing or not as specified.
    """
    torch.set_num_threads(1)
    stage1 = read_tensors(files, "stage1.safetensors", WEIGHTS)
    final = read_tensors(files, "weights.safetensors", WEIGHTS)
    delivered = delivered_backbone(run)
    held_out = held_out_rows(run)
    seeded = seeded_head(run.init_seed)
    return {
        "accuracy": _accuracy(logits(final, held_out.x), held_out),
        "head_moved": _distance(final, seeded, list(HEAD)),
        "stage1_drift": max(_distance(stage1, delivered, [name]) for name in BACKBONE),
        "stage1_fit": (_EQUAL_ODDS - _loss(logits(stage1, held_out.x), held_out))
        / (_EQUAL_ODDS - _linear_head_loss(delivered, training_rows(run), held_out)),
    }


def _accuracy(answers: torch.Tensor, rows: Rows) -> float:
    return float((answers.argmax(1).numpy() == rows.y).mean())


def _loss(answers: torch.Tensor, rows: Rows) -> float:
    return float(functional.cross_entropy(answers.double(), torch.from_numpy(rows.y)))


def _distance(tensors: Mapping[str, np.ndarray], origin: Mapping[str, np.ndarray], names: list[str]) -> float:
    def length(parts: list[np.ndarray]) -> float:
        return float(np.sqrt(sum(np.square(part.astype(np.float64)).sum() for part in parts)))

    return length([tensors[name] - origin[name] for name in names]) / length([origin[name] for name in names])


def _linear_head_loss(backbone: Mapping[str, np.ndarray], rows: Rows, held_out: Rows) -> float:
    # Logistic regression on the frozen features; a stage 1 that trained on other features doesn't come near it.
    x, y = features(backbone, rows.x), torch.from_numpy(rows.y)
    weight = torch.zeros(CLASSES, x.shape[1], requires_grad=True)
    bias = torch.zeros(CLASSES, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=_PROBE_STEPS, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(x @ weight.T + bias, y) + _PROBE_DECAY * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        return _loss(features(backbone, held_out.x) @ weight.T + bias, held_out)
