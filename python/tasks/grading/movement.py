"""How far a script moved its weights."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch


def movement(initial: Mapping[str, torch.Tensor], final: Mapping[str, np.ndarray], names: Iterable[str]) -> float:
    """Distance of the final tensors of these names from the initial ones, in norms of the initial ones."""
    ordered = list(names)
    start = np.concatenate([initial[name].numpy().ravel() for name in ordered]).astype(np.float64)
    end = np.concatenate([final[name].ravel() for name in ordered]).astype(np.float64)
    return float(np.linalg.norm(end - start) / np.linalg.norm(start))
