"""SwiGLU: one half of a layer gates the other.

The gate is A * sigmoid(A), from Shazeer, "GLU variants improve transformer", 2020; what stands between is never
written.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import LOG2E, check_arguments


def swiglu(N: int, dtype: str = "float32", threads: int = 256, elements: int = 16):
    """Y[i, j] = A[i, j] * sigmoid(A[i, j]) * B[i, j].

    The kernel takes (A, B, Y), all (M, N) of `dtype` with any number of rows M. It computes in float32 and rounds once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        threads: threads per block.
        elements: elements a thread.

    Raises:
        ValueError: an argument is out of its range.
    """
    rows, columns = block_of(N, dtype, threads, elements)
    M = T.dyn("M")

    @T.prim_func
    def swiglu(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, columns), threads=threads) as (r, c):
            a = T.alloc_fragment((rows, columns), "float32")
            b = T.alloc_fragment((rows, columns), "float32")
            T.copy(A[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], a)
            T.copy(B[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], b)
            for i, j in T.Parallel(rows, columns):
                a[i, j] = a[i, j] * T.sigmoid(a[i, j]) * b[i, j]
            T.copy(a, Y[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns])

    return swiglu


def swiglu_backward(N: int, dtype: str = "float32", threads: int = 256, elements: int = 16):
    """DA = DY * B * s * (1 + A * (1 - s)) and DB = DY * A * s, with s = sigmoid(A), elementwise.

    The kernel takes (A, B, DY, DA, DB), all (M, N) of `dtype` with any number of rows M. It computes in float32 and
    rounds once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        threads: threads per block.
        elements: elements a thread.

    Raises:
        ValueError: an argument is out of its range.
    """
    rows, columns = block_of(N, dtype, threads, elements)
    M = T.dyn("M")

    @T.prim_func
    def swiglu_backward(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), DY: T.Tensor((M, N), dtype),
                        DA: T.Tensor((M, N), dtype), DB: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, columns), threads=threads) as (r, c):
            a = T.alloc_fragment((rows, columns), "float32")
            b = T.alloc_fragment((rows, columns), "float32")
            dy = T.alloc_fragment((rows, columns), "float32")
            s = T.alloc_fragment((rows, columns), "float32")
            T.copy(A[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], a)
            T.copy(B[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], b)
            T.copy(DY[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], dy)
            for i, j in T.Parallel(rows, columns):
                s[i, j] = T.rsqrt(1.0 + T.exp2(a[i, j] * -LOG2E))
                s[i, j] = s[i, j] * s[i, j]  # the sigmoid; a division would cost more than all the rest
                b[i, j] = dy[i, j] * b[i, j] * s[i, j] * (1.0 + a[i, j] * (1.0 - s[i, j]))
                a[i, j] = dy[i, j] * a[i, j] * s[i, j]
            T.copy(b, DA[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns])
            T.copy(a, DB[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns])

    return swiglu_backward


def block_of(N: int, dtype: str, threads: int, elements: int) -> tuple[int, int]:
    """(rows, columns) of a block with about `elements` elements a thread.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(N=N, dtype=dtype, threads=threads, elements=elements)
    columns = min(N, threads * elements)
    return max(1, threads * elements // columns), columns
