"""Vectors of any number of lanes: loads and stores side by side, by gather and scatter, with lanes that are off.

Machine code is run, for what a compiler makes of odd counts shows nowhere else.
"""

import helve
import helve.testing
import numpy as np
import pytest
from differential import check
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


# All of them for what a machine packs and for what it loads as it is; for the others those around whole registers.
EVERY, SOME = range(1, 65), [1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64]
LANES = {"bool": EVERY, "int8": SOME, "float16": SOME, "float32": EVERY, "int64": SOME}


@pytest.mark.parametrize("dtype", LANES)
def test_every_number_of_lanes(dtype, llvm):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2 if dtype == "bool" else 100, 64).astype(dtype)
    for lanes in LANES[dtype]:
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


M = T.dyn("M")


@T.prim_func
def mirrored_ends(A: T.Tensor((M,), "float32"), X: T.Tensor((16, 37), "float32")):
    with T.Kernel(2) as b:
        for i in T.Parallel(8):
            for j in T.vectorized(37):
                X[b * 8 + i, j] = A[b] + (A[36 - j] if 36 - j < M else 2.5)


@pytest.mark.parametrize("size", [2, 20, 74])
def test_a_gather_of_the_lanes_that_are_inside(size):
    a = np.random.default_rng(size).random(size).astype("float32")
    last = np.arange(36, -1, -1)
    row = np.where(last < size, a[np.minimum(last, size - 1)], np.float32(2.5))
    expected = np.concatenate([np.tile(a[b] + row, (8, 1)) for b in range(2)])
    check(mirrored_ends, [a, np.zeros((16, 37), "float32")], {1: expected})
    helve.testing.check_stages(mirrored_ends, lambda: [a, np.zeros((16, 37), "float32")], target="cuda")


@pytest.mark.parametrize("lanes", [4, 6, 64])
def test_names_that_move_and_cancel_out(lanes):
    """One value for all lanes, of names that differ between them, as a subscript and as the bounds of loops."""

    @T.prim_func
    def main(A: T.Tensor((2,), "int64"), X: T.Tensor((2, lanes), "int64")):
        with T.Kernel(2) as b:
            for i in T.vectorized(lanes):
                up = i * 3 + b
                down = -(up + i * 2)
                one = up + i * 2 + down + 1
                X[b, i] = A[one % 2] + A[(i - one - i) % 2 - (up + down + i * 2)]
                for k in T.serial(up + down + i * 2, up + down + i * 2 + one * 3):
                    X[b, i] = X[b, i] + A[one % 2] * T.cast(k, "int64")
                for k in T.unroll(up + down + i * 2, up + down + i * 2 + 2):
                    X[b, i] = X[b, i] + A[one % 2] * T.cast(k + up, "int64") - A[1] * T.cast(b, "int64")

    a = np.array([7, 11])
    i = np.arange(lanes)
    wanted = np.tile(22 + 11 * (0 + 1 + 2) + 11 * (6 * i + 1), (2, 1))
    check(main, [a, np.zeros((2, lanes), np.int64)], {1: wanted})


@pytest.mark.parametrize("lanes", [5, 7, 100])
def test_lanes_that_are_left_over_fold_their_subscripts(lanes):
    """The last lane of an odd number is no vector: its number is a constant, also behind a sign."""

    @T.prim_func
    def main(A: T.Tensor((5,), "int32"), X: T.Tensor((100,), "int32")):
        with T.Kernel(1):
            for i in T.vectorized(lanes):
                X[i] = A[-i % 5] + A[-i // 5 % 5] + A[(1 - i) % 5]

    a, i = np.arange(5, dtype="int32"), np.arange(lanes)
    helve.testing.check_stages(main, lambda: [a, np.zeros(100, "int32")], target="llvm")
    x = np.zeros(100, "int32")
    helve.compile(main, "llvm")(a, x)
    np.testing.assert_array_equal(x[:lanes], a[-i % 5] + a[-i // 5 % 5] + a[(1 - i) % 5])
