import subprocess
import sys
import unittest

import numpy as np
import torch
from instruments.array_statistics import array_statistics
from instruments.moments import Moments, constant
from instruments.tensor_statistics import PIECE_VALUES, own_methods, pieces, tensor_statistics

# In a process of its own: the peak of this one is whatever was highest in any test.
MEASURE_PEAK = """
import resource, torch
from instruments.tensor_statistics import own_methods, tensor_statistics
torch.set_num_threads(1)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def check(tensor):
    before = peak()
    with own_methods(torch):
        assert tensor_statistics(torch, tensor).moments.count == tensor.numel()
    return peak() - before
whole = torch.arange(20_000_000)
real = torch.ones(30_000_000)
check(real[:2])
rows = real.view(1000, -1)
print(check(real), check(rows.t()), check(rows[::2, ::3]), check(whole.view(1000, -1).t()))
"""


def moments_of(tensor: torch.Tensor) -> Moments:
    with own_methods(torch):
        found = tensor_statistics(torch, tensor).moments
    assert found is not None
    return found


class TensorStatisticsTest(unittest.TestCase):
    def test_many_pieces_give_what_torch_has_of_the_whole(self) -> None:
        torch.manual_seed(0)
        base = torch.randn(7, 50_000, 3, dtype=torch.float64) * 3 + 1e6
        for tensor in (base, base.permute(2, 0, 1), base[::2, 1:-1:7], base[:, :, 1], base.flatten()):
            found = moments_of(tensor)
            self.assertEqual((found.count, found.low, found.high), (tensor.numel(), tensor.min(), tensor.max()))
            self.assertAlmostEqual(found.mean, tensor.mean().item(), places=6)
            self.assertAlmostEqual(found.std() or 0, tensor.std().item(), places=6)
            self.assertAlmostEqual((found.norm() or 0) / tensor.norm().item(), 1, places=9)

    def test_pieces_are_small_and_cover_each_value_once(self) -> None:
        marks = torch.zeros(3, 5, 7, 2)
        for tensor in (marks, marks.permute(3, 1, 0, 2), marks[1:, ::2], marks.flatten()):
            for limit in (1, 4, 16, 1000):
                marks.zero_()
                for piece in pieces(tensor, limit):
                    self.assertLessEqual(piece.numel(), limit)
                    piece.add_(1)
                self.assertTrue(bool((tensor == 1).all()))

    def test_memory_stays_small_whatever_the_tensor(self) -> None:
        command = [sys.executable, "-c", MEASURE_PEAK]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        growths_kib = [int(word) for word in done.stdout.split()]
        self.assertEqual(len(growths_kib), 4)
        self.assertLess(sum(growths_kib), 8 * 1024)

    def test_repeated_values_are_read_once(self) -> None:
        found = moments_of(torch.tensor([[1.0], [3.0]]).expand(2, 10**12))
        self.assertEqual((found.count, found.low, found.high, found.mean), (2 * 10**12, 1, 3, 2))
        self.assertAlmostEqual(found.std() or 0, 1)
        array, _ = array_statistics(np, np.broadcast_to(np.array([[1.0], [3.0]]), (2, 10**12)))
        self.assertEqual(array, found)

    def test_arrays_of_many_pieces(self) -> None:
        array = np.random.default_rng(0).normal(size=3 * PIECE_VALUES + 5)[::-1]
        found, note = array_statistics(np, array)
        assert found is not None
        self.assertEqual((found.count, found.low, found.high, note), (array.size, array.min(), array.max(), ""))
        self.assertAlmostEqual(found.std() or 0, array.std(ddof=1), places=9)

    def test_constant_values_merge_with_others(self) -> None:
        found = constant(2, 3)
        found.merge(constant(5, 1), times=2)
        found.merge(Moments())
        self.assertEqual((found.count, found.low, found.high), (5, 2, 5))
        self.assertAlmostEqual(found.mean, np.mean([2, 2, 2, 5, 5]))
        self.assertAlmostEqual(found.std() or 0, np.std([2, 2, 2, 5, 5], ddof=1))
