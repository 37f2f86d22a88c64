"""The images of a run: what a script gets, what it is asked, and what it never sees."""

from dataclasses import dataclass

import numpy as np
from grading.inputs import hashed_stream
from grading.run import Run
from network import CLASSES

SIDE = 32
TRAINING_IMAGES = 800
PROBE_IMAGES = 80
QUERY_IMAGES = 160
HELD_OUT_IMAGES = 1000

# A template is made of square blocks. The last row and column of blocks hold most of the evidence.
_BLOCKS = 8
_BORDER_EVIDENCE = 1.0
_CENTRE_EVIDENCE = 0.35

# In grey levels, standard deviations.
_CONTRAST = 18.0
_PIXEL_NOISE = 35.0
_BRIGHTNESS = 14.0
_COLOUR_CAST = 8.0


@dataclass(frozen=True, slots=True)
class Images:
    """Labelled images: `pixels` uint8 (n, 32, 32, 3), height first and colours last; `ids` int64 (n,)."""

    pixels: np.ndarray
    ids: np.ndarray

    @property
    def one_hot(self) -> np.ndarray:
        """The classes as uint8 (n, classes)."""
        return np.eye(CLASSES, dtype=np.uint8)[self.ids]


def training_images(run: Run) -> Images:
    """The images that a script learns from."""
    return _draw(run, "training images", TRAINING_IMAGES)


def probe_images(run: Run) -> Images:
    """Labelled images that a script shows its preparation on."""
    return _draw(run, "probe images", PROBE_IMAGES)


def query_images(run: Run) -> Images:
    """Images whose classes a script is asked for."""
    return _draw(run, "query images", QUERY_IMAGES)


def held_out_images(run: Run) -> Images:
    """Images that no script sees."""
    return _draw(run, "held-out images", HELD_OUT_IMAGES)


def _draw(run: Run, purpose: str, count: int) -> Images:
    generator = _generator(run, purpose)
    ids = generator.permutation(np.arange(count) % CLASSES)
    levels = 128 + _CONTRAST * _templates(run)[ids]
    # Every image has a light of its own, which shows whether an answer was made from this image.
    levels += _BRIGHTNESS * generator.normal(size=(count, 1, 1, 1))
    levels += _COLOUR_CAST * generator.normal(size=(count, 1, 1, 3))
    levels += _PIXEL_NOISE * generator.normal(size=levels.shape)
    return Images(np.clip(np.rint(levels), 0, 255).astype(np.uint8), ids.astype(np.int64))


def _templates(run: Run) -> np.ndarray:
    # Continuous, so that no two runs share a class.
    blocks = _generator(run, "templates").normal(size=(CLASSES, _BLOCKS, _BLOCKS, 3))
    evidence = np.full((_BLOCKS, _BLOCKS, 1), _CENTRE_EVIDENCE)
    evidence[-1, :] = evidence[:, -1] = _BORDER_EVIDENCE
    size = SIDE // _BLOCKS
    return (blocks * evidence).repeat(size, axis=1).repeat(size, axis=2)


def _generator(run: Run, purpose: str) -> np.random.Generator:
    return hashed_stream(f"task6 {purpose} {run.data_seed}")
