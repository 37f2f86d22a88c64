"""Ways to make the network's inputs from camera images: the deployed one, and those a script may have taken."""

import numpy as np
import torch
from network import SIDE
from torch.nn import functional


def deployed(pixels: np.ndarray) -> np.ndarray:
    """Colours first, resized bilinearly, levels from 0 to 1: what the deployment feeds the network."""
    return _resized(_colours_first(pixels))


def resized_ways(pixels: np.ndarray) -> list[np.ndarray]:
    """The deployed way, and resized images whose axes were read in another order."""
    return [_resized(layout) for layout in _layouts(pixels)]


def all_ways(pixels: np.ndarray) -> list[np.ndarray]:
    """Resized and cropped images of every layout."""
    cropped = [np.ascontiguousarray(layout[:, :, :SIDE, :SIDE]) for layout in _layouts(pixels)]
    return [*resized_ways(pixels), *cropped]


def _layouts(pixels: np.ndarray) -> list[np.ndarray]:
    levels = pixels.astype(np.float32) / 255
    count, height, width, colours = levels.shape
    return [
        _colours_first(pixels),
        levels.reshape(count, colours, height, width),
        np.ascontiguousarray(levels.transpose(0, 3, 2, 1)),
    ]


def _colours_first(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((pixels.astype(np.float32) / 255).transpose(0, 3, 1, 2))


def _resized(images: np.ndarray) -> np.ndarray:
    tensor = functional.interpolate(torch.from_numpy(images), size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return np.ascontiguousarray(tensor.numpy())
