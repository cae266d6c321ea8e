"""Cross entropy of rows of scores against one label each.

The scores are read once and nothing of their size is written: the loss needs a row's maximum and sum only, and the
logarithm of the sum is what a backward pass starts from.
"""

from __future__ import annotations

from math import gcd

from helve import T
from helve.kernels.rows import LOG2E, RowPlan, check_arguments, plan_rows, vector_elements
from helve.kernels.softmax import LOWEST


def cross_entropy(N: int, dtype: str = "float32", label_dtype: str = "int64", ignore: int = -100, **tuning):
    """LSE[i] = log(sum over j of exp(X[i, j])); LOSS[i] = LSE[i] - X[i, LABEL[i]].

    The kernel takes (X, LABEL, LOSS, LSE): X (M, N) of `dtype` with any number of rows M, LABEL (M,), LOSS and LSE (M,)
    float32. The loss of a row whose label is `ignore` is 0; of a row whose label is no column, NaN.

    Args:
        N: elements of a row, the number of classes.
        dtype: "float32", "float16" or "bfloat16".
        label_dtype: "int64" or "int32".
        ignore: the label of rows that do not count.
        tuning: `rows`, `threads`, `elements` of `plan_rows`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(N=N, dtype=dtype)
    if label_dtype not in ("int64", "int32"):
        raise ValueError(f"label_dtype is 'int64' or 'int32', not {label_dtype!r}")
    if not tuning:
        tuning = _usual(N)
    plan = plan_rows(N, dtype, words=2, **tuning)
    form = _whole_rows if plan.chunks == 1 else _long_rows
    return form(N, dtype, label_dtype, ignore, plan)


def _usual(N: int) -> dict:
    """Tuning by measurement on an H200: nothing is stored, so that small blocks hide each other's waits best."""
    if 512 < N <= 1024:
        return {"threads": 32, "elements": 64}
    if 4096 < N <= 65536:
        return {"threads": 256, "elements": 16}
    return {}


def _whole_rows(N: int, dtype: str, label_dtype: str, ignore: int, plan: RowPlan):
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def cross_entropy(X: T.Tensor((M, N), dtype), LABEL: T.Tensor((M,), label_dtype), LOSS: T.Tensor((M,), "float32"),
                      LSE: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            x = T.alloc_fragment((rows, N), "float32")
            peak = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(X[b * rows : (b + 1) * rows, :], x, pad=-T.infinity())
            T.reduce_max(x, peak, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = T.exp2((x[i, j] - peak[i]) * LOG2E)
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(rows):
                total[i] = peak[i] + T.log(total[i])
            for i in T.Parallel(rows):
                if b * rows + i < M:
                    label = T.index(LABEL[b * rows + i])
                    LSE[b * rows + i] = total[i]
                    if label >= 0 and label < N and label != ignore:
                        LOSS[b * rows + i] = total[i] - X[b * rows + i, label]
                    else:
                        LOSS[b * rows + i] = 0.0 if label == ignore else T.nan()

    return cross_entropy


def _long_rows(N: int, dtype: str, label_dtype: str, ignore: int, plan: RowPlan):
    """Every thread keeps the maximum and the sum of what it has seen of the row; the row's follow from them."""
    M = T.dyn("M")
    threads, chunk, chunks = plan.threads, plan.chunk, plan.chunks
    run = gcd(vector_elements(dtype), chunk // threads, N)  # elements side by side on a thread: an aligned vector
    turns, width = chunk // threads // run, threads * run

    @T.prim_func
    def cross_entropy(X: T.Tensor((M, N), dtype), LABEL: T.Tensor((M,), label_dtype), LOSS: T.Tensor((M,), "float32"),
                      LSE: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=threads) as b:
            x = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            peak = T.alloc_fragment((threads,), "float32")
            before = T.alloc_fragment((threads,), "float32")
            total = T.alloc_fragment((threads,), "float32")
            top = T.alloc_fragment((1,), "float32")
            lse = T.alloc_fragment((1,), "float32")
            T.fill(peak, LOWEST)
            T.clear(total)
            for c in T.serial(chunks):
                for t, i, v in T.Parallel(turns, threads, run):
                    if c * chunk + t * width + i * run + v < N:
                        x[t, i, v] = X[b, c * chunk + t * width + i * run + v]
                    else:
                        x[t, i, v] = -T.infinity()
                T.copy(peak, before)
                T.reduce_max(x, some, dim=2)
                T.reduce_max(some, peak, dim=0, clear=False)
                for t, i, v in T.Parallel(turns, threads, run):
                    x[t, i, v] = T.exp2((x[t, i, v] - peak[i]) * LOG2E)
                T.reduce_sum(x, some, dim=2)
                for i in T.Parallel(threads):
                    total[i] = total[i] * T.exp2((before[i] - peak[i]) * LOG2E)
                T.reduce_sum(some, total, dim=0, clear=False)
            T.reduce_max(peak, top, dim=0)
            for i in T.Parallel(threads):
                total[i] = total[i] * T.exp2((peak[i] - top[0]) * LOG2E)
            T.reduce_sum(total, lse, dim=0)
            lse[0] = top[0] + T.log(lse[0])
            for i in T.Parallel(1):
                label = T.index(LABEL[b + i])
                LSE[b + i] = lse[i]
                if label >= 0 and label < N and label != ignore:
                    LOSS[b + i] = lse[i] - X[b + i, label]
                else:
                    LOSS[b + i] = 0.0 if label == ignore else T.nan()

    return cross_entropy
