"""Serial loops that walk a buffer in strides and begin anew at its end, by a remainder of a power of two.

LLVM may vectorize such loops under checks of its own, which it has been seen to leave out.
"""

import helve
import numpy as np
import pytest
from helve import T

SIZES = (64, 1024)
STEPS = (1, 2, 3, 5, 9, 63, -1, -3)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32"])
@pytest.mark.parametrize("step", STEPS)
def test_reads(dtype, step):
    for size in SIZES:

        @T.prim_func
        def main(A: T.Tensor((size,), dtype), X: T.Tensor((size,), dtype)):
            with T.Kernel(1):
                for i in T.serial(size):
                    X[i] = A[(i * step) % size] + A[i]

        a = (np.arange(size) % 7).astype(dtype)
        got = np.zeros(size, dtype)
        helve.compile(main, target="llvm")(a, got)
        np.testing.assert_array_equal(got, a[(np.arange(size) * step) % size] + a, err_msg=f"{size}")


@pytest.mark.parametrize("dtype", ["int8", "int64"])
@pytest.mark.parametrize("step", STEPS)
def test_loops_that_read_what_they_wrote(dtype, step):
    one = np.ones(1, dtype)[0]
    for size in SIZES:
        for turns in (size, size // 2):

            @T.prim_func
            def main(A: T.Tensor((size,), dtype), X: T.Tensor((size,), dtype)):
                with T.Kernel(1):
                    s = T.alloc_shared((size,), dtype)
                    T.copy(A, s)
                    for i in T.serial(turns):
                        s[i] = s[(i * step + 3) % size] + T.cast(1, dtype)
                    for i in T.serial(turns):
                        s[(i * step) % size] = s[i] + s[(i * step + 3) % size]
                    T.copy(s, X)

            a = (np.arange(size) % 7).astype(dtype)
            got, wanted = np.zeros(size, dtype), a.copy()
            helve.compile(main, target="llvm")(a, got)
            with np.errstate(over="ignore"):
                for i in range(turns):
                    wanted[i] = wanted[(i * step + 3) % size] + one
                for i in range(turns):
                    wanted[(i * step) % size] = wanted[i] + wanted[(i * step + 3) % size]
            np.testing.assert_array_equal(got, wanted, err_msg=f"{size}, {turns} turns")
