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
        # manual_seed takes the range of a signed 64-bit integer; the CUDA seed is set lazily.
        torch.manual_seed(value % 2**63)
