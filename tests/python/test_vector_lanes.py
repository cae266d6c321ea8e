"""Vectors of any number of lanes: loads and stores side by side, by gather and scatter, with lanes that are off.

Machine code is run, for what a compiler makes of odd counts shows nowhere else.
"""

import helve
import numpy as np
import pytest
from helve import T


def every_access(lanes, dtype):
    """Each way to read and to write `lanes` elements, with and without a mask."""

    @T.prim_func
    def main(A: T.Tensor((64,), dtype), on: T.Tensor((64,), "int8"), at: T.Tensor((64,), "int64"),
             X: T.Tensor((6, 64), dtype)):
        with T.Kernel(1):
            for i in T.vectorized(lanes):
                X[0, i] = A[63 - i]
            for i in T.vectorized(lanes):
                if on[i] > 0:
                    X[1, i] = A[63 - i]
            for i in T.vectorized(lanes):
                X[2, 63 - i] = A[i]
            for i in T.vectorized(lanes):
                if on[i] > 0:
                    X[3, 63 - i] = A[i]
            for i in T.vectorized(lanes):
                X[4, i] = A[T.index(at[i])]
            for i in T.vectorized(lanes):
                if on[63 - i] > 0:
                    X[5, i] = A[T.index(at[i])]

    return main


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64"])
def test_every_number_of_lanes(dtype, llvm):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2 if dtype == "bool" else 100, 64).astype(dtype)
    for lanes in range(1, 65):
        kernel = helve.compile(every_access(lanes, dtype))
        on, at = rng.integers(0, 2, 64).astype("int8"), rng.integers(0, 64, 64)
        before = rng.integers(0, 2, (6, 64)).astype(dtype)
        expected = before.copy()
        for i in range(lanes):
            expected[0, i] = a[63 - i]
            expected[2, 63 - i] = a[i]
            expected[4, i] = a[at[i]]
            if on[i] > 0:
                expected[1, i] = a[63 - i]
                expected[3, 63 - i] = a[i]
            if on[63 - i] > 0:
                expected[5, i] = a[at[i]]
        x = before.copy()
        kernel(a, on, at, x)
        np.testing.assert_array_equal(x, expected, f"{lanes} lanes")
