"""The classifier of the task: its tensors, the weights it starts with, and what it answers."""

from collections.abc import Mapping

import numpy as np
import torch
from grading.tensor_files import Spec
from torch import nn
from torch.nn import functional

CLASSES = 5
SIDE = 28
_FILTERS = 12
_PATCH = 4


class Classifier(nn.Module):
    """Patches, then one linear layer over all of them. Scripts build it with these names, in this order."""

    def __init__(self) -> None:
        """Draw the weights from torch's generator, the patches first."""
        super().__init__()
        self.patches = nn.Conv2d(3, _FILTERS, _PATCH, stride=_PATCH)
        self.head = nn.Linear(_FILTERS * (SIDE // _PATCH) ** 2, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of images, CHW."""
        logits: torch.Tensor = self.head(functional.leaky_relu(self.patches(x - 0.5), 0.1).flatten(1))
        return logits


#: The tensors of the weights that a script writes.
WEIGHTS: Spec = {
    "patches.weight": ("F32", (_FILTERS, 3, _PATCH, _PATCH)),
    "patches.bias": ("F32", (_FILTERS,)),
    "head.weight": ("F32", (CLASSES, _FILTERS * (SIDE // _PATCH) ** 2)),
    "head.bias": ("F32", (CLASSES,)),
}


def seeded_weights(seed: int) -> dict[str, np.ndarray]:
    """The weights that a script starts with."""
    torch.manual_seed(seed)
    return {name: tensor.numpy().copy() for name, tensor in Classifier().state_dict().items()}


def logits(weights: Mapping[str, np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """What the network answers to images, CHW: float64 (n, classes)."""
    network = Classifier()
    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    with torch.no_grad():
        answers: np.ndarray = network(torch.from_numpy(inputs)).double().numpy()
    return answers
