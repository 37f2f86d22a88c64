"""Train, load data with workers and start children behind every layer; prints one JSON object.

Run by test_torch.py in an interpreter of its own: torch has to be imported
with one thread and before the confinement, as a zygote does it.
"""

import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from .confined import Setup, run


class Numbers(Dataset[tuple[torch.Tensor, int]]):
    """Sixteen constant tensors."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((32, 32), float(index)), index


def square(value: int) -> int:
    """Something a process pool can be asked for."""
    return value * value


def episode() -> dict[str, Any]:
    """What torch users do in a notebook."""
    torch.set_num_threads(2)
    model = torch.nn.Linear(8, 1)
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    assert model.weight.grad is not None
    batches = DataLoader(Numbers(), batch_size=4, num_workers=2)
    with multiprocessing.Pool(2) as pool:
        squares = pool.map(square, range(4))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
        futures = list(executor.map(square, range(4)))
    context = torch.multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    received = context.Event()

    def produce() -> None:
        queue.put(torch.arange(5))
        received.wait()  # The memory is the producer's until somebody holds it too.

    child = context.Process(target=produce)
    child.start()
    arrived = queue.get().tolist()
    received.set()
    child.join()
    torch.save(model.state_dict(), "model.pt")
    loaded = torch.load("model.pt", weights_only=True)
    command = [sys.executable, "-c", "print(6 * 7)"]
    return {
        "gradient": model.weight.grad.sum().item(),
        "data": sum(float(data.sum()) for data, _ in batches),
        "pool": squares,
        "executor": futures,
        "queue": arrived,
        "saved": sorted(loaded),
        "subprocess": subprocess.run(command, capture_output=True, text=True).stdout,
    }


if __name__ == "__main__":
    threads = len(os.listdir("/proc/self/task"))
    levels = {level: run(episode, Setup(level=level)) for level in sys.argv[1:]}  # type: ignore[arg-type]
    sys.stdout.write(json.dumps({"threads": threads, "levels": levels}))
