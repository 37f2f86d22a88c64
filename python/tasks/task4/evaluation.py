"""task4: tickets with any number of six tags, and how good the exported probabilities and predictions are."""

from collections.abc import Mapping

import numpy as np
import torch
from grading.inputs import hashed_stream, pack_inputs
from grading.movement import movement
from grading.run import Run
from grading.tensor_files import InvalidFiles, read_tensors
from torch import nn

FEATURES = 24
HIDDEN = 64
TAGS = 6
ROWS = 1500
QUERY_ROWS = 800
HELD_OUT_ROWS = 4000
#: Shares of the tickets that have a tag; which tag has which is drawn. A ticket has 2.3 of the 6 on average.
RATES = (0.15, 0.25, 0.35, 0.45, 0.5, 0.6)
#: Standard deviation of what decides on a tag besides the features, whose own part has 1.
NOISE = 0.15

SPEC = {
    "0.weight": ("F32", (HIDDEN, FEATURES)),
    "0.bias": ("F32", (HIDDEN,)),
    "2.weight": ("F32", (TAGS, HIDDEN)),
    "2.bias": ("F32", (TAGS,)),
}
PREDICTIONS_SPEC = {"tags": ("U8", (QUERY_ROWS, TAGS))}


def make_inputs(run: Run) -> dict[str, bytes]:
    """Tickets with tags for training, tickets without for the predictions; and the seed of the weights."""
    features, tags = _tickets(run, "training rows", ROWS)
    query, _ = _tickets(run, "query rows", QUERY_ROWS)
    return pack_inputs(run, features=features, tags=tags.astype(np.int64), query=query)


def measure(run: Run, files: dict[str, bytes]) -> dict[str, float | list[float]]:
    """Measure what a run left.

    Returns:
        moved: Distance of the weights from the seeded ones, relative to these.
        auc: Area under the ROC curve of the exported weights on held-out tickets, mean over the tags.
        skill: 1 less the ratio of two cross-entropies on these tickets: of the exported probabilities, and of
            knowing nothing but how frequent each tag is.
        decoded: Share of the query tickets whose predicted tags are exactly those that the exported weights give
            more than one half.
        exact: Share of the query tickets whose predicted tags are exactly the true ones.

    Raises:
        InvalidFiles: A file is missing or not as specified.
    """
    weights = read_tensors(files, "weights.safetensors", SPEC)
    predicted = read_tensors(files, "predictions.safetensors", PREDICTIONS_SPEC)["tags"]
    if predicted.max() > 1:
        raise InvalidFiles("predictions.safetensors: tags has to hold 0 and 1 only")
    features, tags = _tickets(run, "held-out rows", HELD_OUT_ROWS)
    query, query_tags = _tickets(run, "query rows", QUERY_ROWS)
    log_odds = _log_odds(weights, features)
    rates = tags.mean(axis=0)
    unskilled = float(np.mean(_cross_entropy(np.log(rates / (1 - rates)), tags)))
    return {
        "moved": _moved(run, weights),
        "auc": float(np.mean([_auc(log_odds[:, tag], tags[:, tag]) for tag in range(TAGS)])),
        "skill": 1 - float(np.mean(_cross_entropy(log_odds, tags))) / unskilled,
        "decoded": float(np.mean((predicted == (_log_odds(weights, query) > 0)).all(axis=1))),
        "exact": float(np.mean((predicted == query_tags).all(axis=1))),
    }


def _tickets(run: Run, purpose: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of some tickets, and which tags each has."""
    directions, offsets = _teacher(run)
    chance = _chance(run, purpose)
    features = chance.normal(size=(count, FEATURES)).astype(np.float32)
    return features, features @ directions + NOISE * chance.normal(size=(count, TAGS)) + offsets > 0


def _teacher(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """For each tag a direction among the features, and an offset that makes it as frequent as its rate says."""
    chance = _chance(run, "teacher")
    directions = np.linalg.qr(chance.normal(size=(FEATURES, TAGS)))[0]
    quantiles = torch.special.ndtri(torch.from_numpy(chance.permutation(RATES))).numpy()
    return directions, quantiles * np.sqrt(1 + NOISE**2)


def _chance(run: Run, purpose: str) -> np.random.Generator:
    return hashed_stream(f"task4 / {purpose} / {run.data_seed}")


def _log_odds(weights: Mapping[str, np.ndarray], features: np.ndarray) -> np.ndarray:
    layers = {name: tensor.astype(np.float64) for name, tensor in weights.items()}
    hidden = np.maximum(features.astype(np.float64) @ layers["0.weight"].T + layers["0.bias"], 0)
    return hidden @ layers["2.weight"].T + layers["2.bias"]


def _cross_entropy(log_odds: np.ndarray, tags: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, log_odds) - log_odds * tags


def _auc(log_odds: np.ndarray, tagged: np.ndarray) -> float:
    """The chance that a ticket with the tag is rated above one without it (Mann-Whitney); ties count half."""
    _, places, counts = np.unique(log_odds, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    with_tag = int(tagged.sum())
    above = ranks[tagged].sum() - with_tag * (with_tag + 1) / 2
    return float(above / (with_tag * (len(tagged) - with_tag)))


def _moved(run: Run, weights: Mapping[str, np.ndarray]) -> float:
    torch.manual_seed(run.init_seed)
    seeded = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, TAGS)).state_dict()
    return movement(seeded, weights, SPEC)
