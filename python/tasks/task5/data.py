"""The rows of a run, and the backbone that is delivered with them."""

from dataclasses import dataclass

import numpy as np
import torch
from grading.inputs import hashed_stream
from grading.run import Run
from network import CLASSES, SENSORS, WIDTH, Classifier
from torch import nn
from torch.nn import functional

TRAINING_ROWS = 2000
HELD_OUT_ROWS = 4000

# The source task reads the first half of the sensors; the new one needs both halves.
_SOURCE_SENSORS = 16
_SOURCE_CLASSES = 8
_SOURCE_ROWS = 512
_SOURCE_STEPS = 100
# What is left of the weights of a sensor that the source task did not read.
_UNUSED_SENSOR = 0.02

# Share of the evidence in the sensors that the delivered backbone reads.
_KNOWN_EVIDENCE = 0.6
_BENT_EVIDENCE = 0.4
_BENDS = 24


@dataclass(frozen=True, slots=True)
class Rows:
    """Labelled rows: `x` float32 (n, sensors), `y` int64 (n,)."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, slots=True)
class Domain:
    """Where rows come from: a teacher of classes, and sensors with other zero points and scales than the source's."""

    linear: np.ndarray
    bends: np.ndarray
    mix: np.ndarray
    offset: np.ndarray
    scale: np.ndarray

    def draw(self, generator: np.random.Generator, count: int) -> Rows:
        """Labelled rows of this domain."""
        z = generator.normal(size=(count, SENSORS))
        evidence = z @ self.linear.T + _BENT_EVIDENCE * np.tanh(2 * z @ self.bends.T) @ self.mix.T
        return Rows((z * self.scale + self.offset).astype(np.float32), evidence.argmax(1))


def target_domain(run: Run) -> Domain:
    """The domain of a run. The teacher is continuous, so no two runs share an answer."""
    generator = _generator(run, "teacher")
    known = _directions(generator, CLASSES, _SOURCE_SENSORS) * _KNOWN_EVIDENCE**0.5
    other = _directions(generator, CLASSES, SENSORS - _SOURCE_SENSORS) * (1 - _KNOWN_EVIDENCE) ** 0.5
    return Domain(
        linear=np.concatenate([known, other], axis=1),
        bends=generator.normal(size=(_BENDS, SENSORS)) / SENSORS**0.5,
        mix=generator.normal(size=(CLASSES, _BENDS)) / _BENDS**0.5,
        offset=generator.choice([-1.0, 1.0], size=SENSORS) * generator.uniform(3, 5, size=SENSORS),
        scale=np.exp(0.2 * generator.normal(size=SENSORS)),
    )


def training_rows(run: Run) -> Rows:
    """The rows that a script gets."""
    return target_domain(run).draw(_generator(run, "training rows"), TRAINING_ROWS)


def held_out_rows(run: Run) -> Rows:
    """The rows that no script sees."""
    return target_domain(run).draw(_generator(run, "held-out rows"), HELD_OUT_ROWS)


def delivered_backbone(run: Run) -> dict[str, np.ndarray]:
    """A backbone that was trained on the source task, by name in the state dict of a classifier."""
    generator = _generator(run, "source")
    teacher = _directions(generator, _SOURCE_CLASSES, _SOURCE_SENSORS)
    z = torch.from_numpy(generator.normal(size=(_SOURCE_ROWS, _SOURCE_SENSORS)))
    y = (z @ torch.from_numpy(teacher).T).argmax(1)
    x = functional.pad(z, (0, SENSORS - _SOURCE_SENSORS))
    torch.manual_seed(int(generator.integers(2**31)))
    # In double precision: a bias before a normalisation has gradients of rounding errors only, which Adam would scale
    # up in single precision, and the backbone that is measured against would not be the one that was delivered.
    backbone, head = Classifier().backbone.double(), nn.Linear(WIDTH, _SOURCE_CLASSES).double()
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(_SOURCE_STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(head(backbone(x)), y).backward()
        optimizer.step()
    with torch.no_grad():
        backbone[0].weight[:, _SOURCE_SENSORS:] *= _UNUSED_SENSOR
    return {f"backbone.{name}": tensor.numpy().copy() for name, tensor in backbone.float().state_dict().items()}


def _directions(generator: np.random.Generator, count: int, dimensions: int) -> np.ndarray:
    # Orthonormal rows, so that the classes are about equally frequent.
    return np.linalg.qr(generator.normal(size=(dimensions, count)))[0].T


def _generator(run: Run, purpose: str) -> np.random.Generator:
    return hashed_stream(f"task5 {purpose} {run.data_seed}")
