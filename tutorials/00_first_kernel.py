"""First kernels: vector add and softmax.

A kernel is a Python function decorated with ``@T.prim_func``. helve parses it once, where it is defined, and compiles
it; Python never runs it. Values from the surrounding function (sizes, dtypes) are constants of the kernel.

Run it: ``python tutorials/00_first_kernel.py``
"""

# %% Vector add
import numpy as np

import helve
from helve import T


def vector_add(n, block=1024, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        # One block of the grid adds `block` elements. The last block may reach past the end.
        with T.Kernel(T.ceildiv(n, block)) as b:
            a = T.alloc_shared((block,), dtype)
            c = T.alloc_shared((block,), dtype)
            T.copy(A[b * block : (b + 1) * block], a)  # what lies past the end reads as 0
            T.copy(B[b * block : (b + 1) * block], c)
            for i in T.Parallel(block):  # independent iterations
                c[i] = a[i] + c[i]
            T.copy(c, C[b * block : (b + 1) * block])  # what lies past the end is not written

    return add


# %% Softmax over rows, any number of rows
def softmax(n, rows=4, dtype="float32"):
    M = T.dyn("M")  # a dynamic extent: one compiled kernel serves all sizes

    @T.prim_func
    def main(X: T.Tensor((M, n), dtype), Y: T.Tensor((M, n), dtype)):
        with T.Kernel(T.ceildiv(M, rows)) as b:
            x = T.alloc_shared((rows, n), dtype)
            peak = T.alloc_shared((rows,), dtype)
            total = T.alloc_shared((rows,), dtype)
            T.copy(X[b * rows : (b + 1) * rows, :], x)
            T.reduce_max(x, peak, dim=1)
            for i, j in T.Parallel(rows, n):
                x[i, j] = T.exp(x[i, j] - peak[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, n):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return main


# %% Compile, call, inspect
def main():
    rng = np.random.default_rng(0)

    a, b = rng.standard_normal((2, 100_001), dtype=np.float32)
    c = np.empty_like(a)
    add = helve.compile(vector_add(a.size))
    add(a, b, c)
    assert np.array_equal(c, a + b)
    print(f"vector add of {c.size} elements: equal to NumPy")

    kernel = helve.compile(softmax(777))
    for rows in (1, 5, 1000):
        x = rng.standard_normal((rows, 777), dtype=np.float32)
        y = np.empty_like(x)
        kernel(x, y)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        error = np.abs(y - e / e.sum(axis=1, keepdims=True)).max()
        assert error < 1e-6, error
        print(f"softmax of {rows} x 777: largest error {error:.1e}")

    print("\nThe program as helve reads it:\n")
    add.show("script")


if __name__ == "__main__":
    main()
