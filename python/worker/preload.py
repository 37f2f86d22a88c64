"""What a zygote imports, and how its memory is made ready to be shared."""

import gc
import importlib
import os
import sys

from worker.huge_pages import collapse_private_memory
from worker.instrument import CATALOGUE

PRELOAD = {
    "base": [
        "asyncio",
        "collections",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "fractions",
        "json",
        "random",
        "re",
    ],
    # torch imports _dynamo at the first step of an optimizer, which takes seconds: better once than in each worker.
    "torch": ["numpy", "torch", "torch.nn.functional", "torch.optim", "torch.utils.data", "torch._dynamo"],
}


class PreloadError(Exception):
    """The packages can't be imported, or are of no use in a zygote; the message says why."""


def import_packages(preload: str) -> str | None:
    """Import a preload set.

    Returns:
        The version of torch, None without it.

    Raises:
        PreloadError: A package is missing, or importing started a thread.
    """
    try:
        packages = PRELOAD["base"] if preload == "base" else PRELOAD["base"] + PRELOAD["torch"]
        # The instruments last: they hold on to what is imported. Inside a sandbox their files can't be read.
        for name in [*packages, CATALOGUE]:
            importlib.import_module(name)
    except ImportError as error:
        hint = "Without torch: FORKYARD_TORCH=none"
        raise PreloadError(f"{sys.executable} can not import what workers need: {error}. {hint}") from error
    threads = len(os.listdir("/proc/self/task")) - 1
    if threads > 0:
        # Locks that a thread holds at the moment of a fork stay locked in the child for ever.
        raise PreloadError(f"importing the packages started {threads} threads, and a fork would hang")
    return str(sys.modules["torch"].__version__) if preload == "torch" else None


def settle_memory() -> None:
    """Collect once, exempt what is left from collection, and put it on huge pages.

    A collection in a worker would otherwise write to every object it looks at,
    and so copy the whole heap.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    collapse_private_memory()
