"""RMSNorm: rows divided by their root mean square, times a weight for each column.

Forward here, backward in `rms_norm_backward`; the definition is that of Zhang and Sennrich, "Root Mean Square Layer Normalization",
2019.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import RowPlan, plan_rows


def rms_norm(N: int, dtype: str = "float32", eps: float = 1e-6, **tuning):
    """Y[i, j] = X[i, j] * rsqrt(mean of X[i, :] squared + eps) * W[j].

    The kernel takes (X, W, Y): X and Y (M, N) with any number of rows M, W (N,), all of `dtype`. It computes in float32 and rounds
    once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        eps: what is added to the mean square.
        tuning: `rows`, `threads`, `elements`, `on_chip` of `plan_rows`.

    Raises:
        ValueError: an argument is out of its range.
    """
    plan = plan_rows(N, dtype, **tuning)
    return _whole_rows(N, dtype, eps, plan) if plan.chunks == 1 else _long_rows(N, dtype, eps, plan)


def _whole_rows(N: int, dtype: str, eps: float, plan: RowPlan):
    """Rows stay in registers from the load to the store."""
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            x = T.alloc_fragment((rows, N), "float32")
            square = T.alloc_fragment((rows, N), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            w = T.alloc_fragment((N,), dtype)
            T.copy(X[b * rows : (b + 1) * rows, :], x)
            T.copy(W, w)
            for i, j in T.Parallel(rows, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(rows):
                scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] * scale[i] * w[j]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return rms_norm


def _long_rows(N: int, dtype: str, eps: float, plan: RowPlan):
    """A row passes in chunks; the first of them wait in block memory for their scale, the others are read again."""
    M = T.dyn("M")
    threads, chunk, chunks, kept = plan.threads, plan.chunk, plan.chunks, plan.kept

    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as b:
            row = T.alloc_shared((max(kept, 1), chunk), dtype)
            x = T.alloc_fragment((chunk,), dtype)
            w = T.alloc_fragment((chunk,), dtype)
            square = T.alloc_fragment((chunk,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.clear(square)
            for c in T.serial(chunks):
                T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                for j in T.Parallel(chunk):
                    square[j] = square[j] + x[j] * x[j]
                if c < kept:
                    T.copy(x, row[c, :])
            T.reduce_sum(square, scale, dim=0)
            scale[0] = T.rsqrt(scale[0] * (1.0 / N) + eps)
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                if c < kept:
                    T.copy(row[c, :], x)
                else:
                    T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                T.copy(W[c * chunk : (c + 1) * chunk], w)
                for j in T.Parallel(chunk):
                    x[j] = x[j] * scale[0] * w[j]
                T.copy(x, Y[b, c * chunk : (c + 1) * chunk])

    return rms_norm
