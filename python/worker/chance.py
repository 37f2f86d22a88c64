"""The one place that seeds what agent code draws from.

Workers are forks of one zygote: without a fresh seed all of them would draw
the same numbers.
"""

import os
import random
import sys


def seed_everything(seed: int | None) -> None:
    """Seed `random`, and numpy and torch where they are imported.

    Args:
        seed: None takes entropy from the kernel; an integer makes the episode's draws repeatable.
    """
    value = int.from_bytes(os.urandom(8), "big") if seed is None else seed
    random.seed(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        # torch.manual_seed asks after every kind of accelerator, which takes longer than a step.
        seed_torch = torch.default_generator.manual_seed if torch.version.cuda is None else torch.manual_seed
        seed_torch(value % 2**63)
