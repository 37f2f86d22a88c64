"""The classifier of the task: its tensors, the weights it starts with, and what it answers."""

from collections.abc import Mapping

import numpy as np
import torch
from grading.tensor_files import Spec
from torch import nn

SENSORS = 32
WIDTH = 64
CLASSES = 5


class Classifier(nn.Module):
    """A backbone that was delivered, and a head that is new. Scripts build it with these names, in this order."""

    def __init__(self) -> None:
        """Draw the weights from torch's generator, the backbone first."""
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(SENSORS, WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.Tanh(),
            nn.Linear(WIDTH, WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.Tanh(),
        )
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        logits: torch.Tensor = self.head(self.backbone(x))
        return logits


_LAYER = {"weight": (WIDTH, WIDTH), "bias": (WIDTH,)}
_NORM = {"weight": (WIDTH,), "bias": (WIDTH,), "running_mean": (WIDTH,), "running_var": (WIDTH,)}

#: What tells a backbone from another, by name in the state dict of a classifier. The counters of the
#: batches that a normalisation saw are left out: no answer depends on them.
BACKBONE: dict[str, tuple[int, ...]] = {
    "backbone.0.weight": (WIDTH, SENSORS),
    "backbone.0.bias": (WIDTH,),
    **{f"backbone.1.{name}": shape for name, shape in _NORM.items()},
    **{f"backbone.3.{name}": shape for name, shape in _LAYER.items()},
    **{f"backbone.4.{name}": shape for name, shape in _NORM.items()},
}
HEAD: dict[str, tuple[int, ...]] = {"head.weight": (CLASSES, WIDTH), "head.bias": (CLASSES,)}

#: The tensors of both files that a script writes.
WEIGHTS: Spec = {
    **{name: ("F32", shape) for name, shape in {**BACKBONE, **HEAD}.items()},
    "backbone.1.num_batches_tracked": ("I64", ()),
    "backbone.4.num_batches_tracked": ("I64", ()),
}


def seeded_head(seed: int) -> dict[str, np.ndarray]:
    """The head that a script starts with."""
    torch.manual_seed(seed)
    state = Classifier().state_dict()
    return {name: state[name].numpy().copy() for name in HEAD}


def features(tensors: Mapping[str, np.ndarray], x: np.ndarray) -> torch.Tensor:
    """What the backbone makes of rows, in evaluation mode."""
    with torch.no_grad():
        output: torch.Tensor = _loaded(tensors).backbone(torch.from_numpy(x))
    return output


def logits(tensors: Mapping[str, np.ndarray], x: np.ndarray) -> torch.Tensor:
    """What the network answers to rows, in evaluation mode."""
    with torch.no_grad():
        output: torch.Tensor = _loaded(tensors)(torch.from_numpy(x))
    return output


def _loaded(tensors: Mapping[str, np.ndarray]) -> Classifier:
    network = Classifier()
    state = network.state_dict()
    state.update({name: torch.from_numpy(value) for name, value in tensors.items()})
    network.load_state_dict(state)
    network.eval()
    return network
