"""Numbers that compare tensors: losses, information, likeness."""

from collections.abc import Mapping

import numpy as np
from network import CLASSES

# Below any length that counts; keeps a division by nothing from being one by zero.
_TINY = 1e-12


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax over classes."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    share: np.ndarray = powers / powers.sum(1, keepdims=True)
    return share


def loss(logits: np.ndarray, ids: np.ndarray) -> float:
    """Mean cross-entropy in nats."""
    shifted = logits - logits.max(1, keepdims=True)
    return float((np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(ids)), ids]).mean())


def entropy(ids: np.ndarray) -> float:
    """Of the frequencies of classes, in nats: the loss of whoever knows nothing else."""
    share = np.bincount(ids, minlength=CLASSES) / len(ids)
    return float(-(share[share > 0] * np.log(share[share > 0])).sum())


def information(answers: np.ndarray, ids: np.ndarray) -> float:
    """What answers tell about classes, whatever the classes are called: mutual information in nats."""
    joint = np.zeros((CLASSES, CLASSES))
    np.add.at(joint, (answers, ids), 1 / len(ids))
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def likeness(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of each row of `a` with that of `b`, averaged over rows; blind to brightness and contrast."""
    left, right = (_centred(rows) for rows in (a, b))
    lengths = np.sqrt(np.square(left).sum(1) * np.square(right).sum(1))
    return float(((left * right).sum(1) / np.maximum(lengths, _TINY)).mean())


def distance(tensors: Mapping[str, np.ndarray], origin: Mapping[str, np.ndarray]) -> float:
    """The length of the way between two sets of tensors, as a share of the length of the second."""

    def length(parts: list[np.ndarray]) -> float:
        return float(np.sqrt(sum(np.square(part.astype(np.float64)).sum() for part in parts)))

    return length([tensors[name] - origin[name] for name in origin]) / length(list(origin.values()))


def share_of(part: float, whole: float) -> float:
    """A quotient; not a number where the whole is nothing."""
    return part / whole if abs(whole) > _TINY else float("nan")


def _centred(values: np.ndarray) -> np.ndarray:
    rows = values.reshape(len(values), -1).astype(np.float64)
    centred: np.ndarray = rows - rows.mean(1, keepdims=True)
    return centred
