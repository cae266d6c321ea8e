"""The gradient of cross entropy with respect to the scores.

It starts from the log-sum-exp that the loss left behind, so that it is elementwise: the scores are read once more, and
no row is summed again.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import LOG2E
from helve.kernels.swiglu import block_of


def cross_entropy_backward(N: int, dtype: str = "float32", label_dtype: str = "int64", ignore: int = -100,
                           threads: int = 256, elements: int = 16):
    """DX[i, j] = DLOSS[i] * (exp(X[i, j] - LSE[i]) - [LABEL[i] = j]).

    The kernel takes (X, LABEL, LSE, DLOSS, DX): X and DX (M, N) of `dtype` with any number of rows M, LABEL (M,), LSE
    and DLOSS (M,) float32, LSE as `cross_entropy` leaves it. It computes in float32 and rounds once. A row whose label
    is `ignore` has a gradient of 0; one whose label is no column, NaN.

    Args:
        N: elements of a row, the number of classes.
        dtype: "float32", "float16" or "bfloat16".
        label_dtype: "int64" or "int32".
        ignore: the label of rows that do not count.
        threads: threads per block.
        elements: elements a thread.

    Raises:
        ValueError: an argument is out of its range.
    """
    rows, columns = block_of(N, dtype, threads, elements)
    if label_dtype not in ("int64", "int32"):
        raise ValueError(f"label_dtype is 'int64' or 'int32', not {label_dtype!r}")
    M = T.dyn("M")

    @T.prim_func
    def cross_entropy_backward(X: T.Tensor((M, N), dtype), LABEL: T.Tensor((M,), label_dtype),
                               LSE: T.Tensor((M,), "float32"), DLOSS: T.Tensor((M,), "float32"),
                               DX: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, columns), threads=threads) as (r, c):
            x = T.alloc_fragment((rows, columns), "float32")
            label = T.alloc_fragment((rows,), label_dtype)
            lse = T.alloc_fragment((rows,), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            T.copy(X[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], x)
            T.copy(LABEL[r * rows : (r + 1) * rows], label)
            T.copy(LSE[r * rows : (r + 1) * rows], lse)
            T.copy(DLOSS[r * rows : (r + 1) * rows], scale)
            for i in T.Parallel(rows):
                scale[i] = T.nan() if label[i] < 0 or label[i] >= N else scale[i]
            for i, j in T.Parallel(rows, columns):
                at = 1.0 if label[i] == c * columns + j else 0.0
                x[i, j] = 0.0 if label[i] == ignore else scale[i] * (T.exp2((x[i, j] - lse[i]) * LOG2E) - at)
            T.copy(x, DX[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns])

    return cross_entropy_backward
