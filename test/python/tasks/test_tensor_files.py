import unittest

import numpy as np
from grading.tensor_files import InvalidFiles, read_tensors

from .run_files import written


class RefusalTest(unittest.TestCase):
    def test_it_names_what_is_missing_and_repeats_no_word_of_the_script(self) -> None:
        files = written("weights", {"bias": np.zeros(1, np.float32), "row 0: 0.25": np.zeros(1, np.float32)})
        spec = {"bias": ("F32", (1,)), "weight": ("F32", (1,))}
        with self.assertRaises(InvalidFiles) as refused:
            read_tensors(files, "weights.safetensors", spec)
        told = "weights.safetensors: expected the tensors bias, weight; missing weight, and 1 of other names"
        self.assertEqual(str(refused.exception), told)
