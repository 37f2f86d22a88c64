import math
from typing import Any

import numpy as np
import torch
from instruments.inspect_tensor import inspect_tensor
from torch import nn
from worker.instrument import Scene

from .inspecting import NUMBERS, InspectTest


class Hostile(torch.Tensor):
    """Nothing of it may be called."""

    @classmethod
    def __torch_function__(cls, *_arguments: Any, **_named: Any) -> Any:
        raise RuntimeError("torch function")

    @property
    def shape(self) -> Any:
        raise RuntimeError("shape")

    @property
    def __class__(self) -> Any:
        raise RuntimeError("class")

    def __repr__(self, **_named: Any) -> str:
        raise SystemExit(3)


class Undispatched(torch.Tensor):
    """Has no data, and no operation."""

    @staticmethod
    def __new__(cls) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, (2, 3), dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_arguments: Any, **_named: Any) -> Any:
        raise RuntimeError(f"no {function}")


class InspectValuesTest(InspectTest):
    def test_nan_and_infinities_are_counted_and_left_out(self) -> None:
        report = self.inspect(torch.tensor([1.0, math.nan, 3.0, math.inf, -math.inf, math.nan]))
        self.assert_numbers(report, [1.0, 3.0])
        self.assertEqual((report["is_nan"], report["nan_count"]), (True, 2))
        self.assertEqual((report["is_inf"], report["inf_count"]), (True, 2))
        self.assertEqual(report["statistics_note"], "of the 2 finite values")
        nothing_finite = self.inspect(torch.full((3,), math.nan))
        self.assertEqual([nothing_finite[name] for name in NUMBERS], [None] * 4)

    def test_every_numeric_type(self) -> None:
        values = torch.tensor([0.0, 1.0, 3.0])
        names = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 int16 int32 int64 uint8 uint16 uint32"
        for name in [*names.split(), "uint64"]:
            with self.subTest(name):
                report = self.inspect(values.to(getattr(torch, name)))
                self.assert_numbers(report, values)
                self.assertEqual(report["dtype"], f"torch.{name}")

    def test_extremes_of_whole_numbers_are_exact(self) -> None:
        scene = Scene({"torch": torch}, "")
        for expression, low, high in (
            ("torch.tensor([2**63 - 1, -2**63, 5])", -(2**63), 2**63 - 1),
            ("torch.tensor([2**64 - 1, 2**63 + 1], dtype=torch.uint64)", 2**63 + 1, 2**64 - 1),
        ):
            inspect_tensor(scene, {"expression": expression})
            self.assertEqual((scene.report["min_val"], scene.report["max_val"]), (low, high))

    def test_truth_values_count_as_0_and_1(self) -> None:
        self.assert_numbers(self.inspect(torch.tensor([True, False, False])), [1, 0, 0])

    def test_complex_values_are_told_by_their_magnitude(self) -> None:
        for dtype in (torch.complex64, torch.complex128, torch.complex32):
            report = self.inspect(torch.tensor([3 + 4j, 0]).to(dtype))
            self.assert_numbers(report, [5, 0])
            self.assertEqual(report["statistics_note"], "of the magnitudes")
        report = self.inspect(torch.tensor([complex(math.nan, 1), 1j]).conj())
        self.assertEqual((report["nan_count"], report["max_val"]), (1, 1))

    def test_tensors_of_one_value_and_of_none(self) -> None:
        single = self.inspect(torch.tensor(2.5))
        self.assert_numbers(single, [2.5])
        self.assertEqual((single["shape"], single["numel"]), ([], 1))
        empty = self.inspect(torch.zeros(0, 3))
        self.assertEqual([empty[name] for name in NUMBERS], [None] * 4)
        self.assertEqual((empty["shape"], empty["is_nan"], empty["nan_count"]), ([0, 3], False, 0))

    def test_sparse_tensors_with_the_zeros_that_they_leave_out(self) -> None:
        dense = torch.tensor([[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 5.0]])
        twice = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 3]]), torch.tensor([0.5, 1.5, 5.0]), (2, 4))
        forms = [
            dense.to_sparse(),
            twice,
            dense.to_sparse_csr(),
            dense.to_sparse_csc(),
            dense.to_sparse_bsr((1, 2)),
        ]
        for sparse in forms:
            with self.subTest(sparse.layout):
                report = self.inspect(sparse)
                self.assert_numbers(report, dense)
                self.assertEqual((report["layout"], report["shape"]), (str(sparse.layout), [2, 4]))

    def test_quantized_tensors_as_the_values_that_they_stand_for(self) -> None:
        x = torch.randn(4, 6)
        forms = [
            torch.quantize_per_tensor(x, 0.1, 7, torch.quint8).t(),
            torch.quantize_per_tensor(x, 0.01, 0, torch.qint32)[1:, ::2],
            torch.quantize_per_channel(x, torch.rand(6) + 0.1, torch.arange(6), 1, torch.qint8),
        ]
        for quantized in forms:
            with self.subTest(str(quantized.qscheme())):
                report = self.inspect(quantized)
                self.assert_numbers(report, quantized.dequantize())
                self.assertEqual(report["statistics_note"], "of the dequantized values")

    def test_nested_tensors_have_ragged_sizes(self) -> None:
        parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])]
        forms = [torch.nested.nested_tensor(parts, layout=layout) for layout in (torch.strided, torch.jagged)]
        for nested in forms:
            report = self.inspect(nested)
            self.assert_numbers(report, torch.cat(parts))
            self.assertEqual((report["shape"], report["numel"]), ([2, -1], 5))

    def test_tensors_without_data(self) -> None:
        freed = torch.ones(3)
        freed.untyped_storage().resize_(0)
        lazy = nn.LazyLinear(2).weight
        for value, note in (
            (torch.empty(3, device="meta"), "a meta tensor has no data"),
            (freed, "its storage has 0 bytes of 12"),
            (lazy, "an uninitialized parameter has no data"),
        ):
            report = self.inspect(value)
            self.assertIsNone(report["error"])
            self.assertEqual([report[name] for name in (*NUMBERS, "is_nan", "nan_count")], [None] * 6)
            self.assertIn(note, report["statistics_note"])

    def test_inference_tensors(self) -> None:
        with torch.inference_mode():
            value = torch.arange(3.0)
        self.assert_numbers(self.inspect(value), [0, 1, 2])

    def test_hostile_subclasses_are_read_without_their_methods(self) -> None:
        report = self.inspect(torch.arange(3.0).as_subclass(Hostile))
        self.assert_numbers(report, [0, 1, 2])
        self.assertEqual((report["shape"], report["repr"]), ([3], "tensor([0., 1., 2.])"))
        report = self.inspect(Undispatched())
        self.assertEqual((report["error"], report["shape"], report["min_val"]), (None, [2, 3], None))
        self.assertRegex(report["statistics_note"], "no statistics: RuntimeError: no aten")

    def test_arrays_of_any_order_and_type(self) -> None:
        plain = np.arange(12.0).reshape(3, 4)
        masked = np.ma.array([1.0, 2.0], mask=[False, True])
        for array in (
            plain,
            plain[::-1, ::2],
            plain.T,
            plain.astype(">f4"),
            plain.astype(np.longdouble),
            plain > 5,
            masked,
        ):
            with self.subTest(str(array.dtype)):
                report = self.inspect(array)
                self.assert_numbers(report, np.asarray(array))
                self.assertEqual((report["kind"], report["shape"]), ("array", list(array.shape)))
        self.assert_numbers(self.inspect(np.array([3 + 4j, 0])), [5, 0])
        self.assertEqual(self.inspect(np.array([1.0, np.nan, np.inf]))["nan_count"], 1)
        self.assertEqual(self.inspect(np.zeros(0))["min_val"], None)
        for array in (np.array(["a"]), np.array([None, 1]), np.array([(1,)], dtype=[("a", int)])):
            self.assertRegex(self.inspect(array)["statistics_note"], "have no statistics")

    def test_numbers(self) -> None:
        for value, dtype in (
            (3, "int"),
            (2.5, "float"),
            (True, "bool"),
            (np.float32(2), "float32"),
            (np.True_, "bool"),
        ):
            report = self.inspect(value)
            self.assertEqual((report["kind"], report["dtype"], report["shape"]), ("scalar", dtype, []))
            self.assert_numbers(report, [float(value)])
        self.assertEqual(self.inspect(3 + 4j)["max_val"], 5)
        self.assertEqual(self.inspect(math.nan)["is_nan"], True)
        self.assertEqual(self.inspect(-math.inf)["is_inf"], True)
        self.assertEqual(self.inspect(10**400)["statistics_note"], "the number is beyond a double")
