"""LayerNorm: rows less their mean, divided by their standard deviation, with a weight and a bias for each column.

Forward here, backward in `layer_norm_backward`; the definition is that of Ba, Kiros and Hinton, "Layer Normalization",
2016.
"""

from __future__ import annotations

from math import gcd

from helve import T
from helve.kernels.ring import RingPlan, plan_ring
from helve.kernels.rows import MAX_THREADS, RowPlan, check_arguments, holds_rows_as_asked, plan_rows, vector_elements

WHOLE = 4096  # elements of a row for which registers are the better place; from there on shared memory, in chunks


def layer_norm(N: int, dtype: str = "float32", eps: float = 1e-5, cluster: int = 1, clusters: int | None = None,
               **tuning):
    """Y[i, j] = (X[i, j] - mean of X[i, :]) * rsqrt(variance of X[i, :] + eps) * W[j] + B[j].

    The kernel takes (X, W, B, Y): X and Y (M, N) with any number of rows M, W and B (N,), all of `dtype`. The variance
    is that of the whole row (divided by N). It computes in float32 and rounds once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        eps: what is added to the variance.
        cluster: blocks that share a row, 1 to 16: more than one for long rows, on a GPU with clusters.
        clusters: the number of such clusters, which process the rows in turn; see `plan_ring`.
        tuning: `rows`, `threads`, `elements`, `on_chip` of `plan_rows`; with clusters `threads`, `elements`, `stages`
            and `held` of `plan_ring`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(N=N, dtype=dtype, eps=eps)
    if cluster != 1 or clusters is not None:
        return _ring_rows(N, dtype, eps, plan_ring(N, dtype, 1, cluster, clusters, **tuning))
    plan = plan_rows(N, dtype, words=4, **tuning)
    if plan.chunks == 1 and (N <= WHOLE or holds_rows_as_asked(tuning)):
        return _whole_rows(N, dtype, eps, plan)
    several = {"threads": MAX_THREADS if N > 2 * WHOLE else MAX_THREADS // 2, "elements": 8}
    return _long_rows(N, dtype, eps, plan_rows(N, dtype, words=2, whole=False, **{**several, **tuning}))


def _whole_rows(N: int, dtype: str, eps: float, plan: RowPlan):
    """Rows stay in registers, so that the variance is summed from what is left when the mean is gone."""
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def layer_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
                   Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            x = T.alloc_fragment((rows, N), "float32")
            square = T.alloc_fragment((rows, N), "float32")
            mean = T.alloc_fragment((rows,), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            w = T.alloc_fragment((N,), dtype)
            bias = T.alloc_fragment((N,), dtype)
            T.copy(X[b * rows : (b + 1) * rows, :], x)
            T.copy(W, w)
            T.copy(B, bias)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(rows):
                mean[i] = mean[i] * (1.0 / N)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] - mean[i]
            for i, j in T.Parallel(rows, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(rows):
                scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] * scale[i] * w[j] + bias[j]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return layer_norm


def _long_rows(N: int, dtype: str, eps: float, plan: RowPlan):
    """Sums of a row and of its squares in one pass, both of differences from its first element, so that large means do
    no harm.
    """
    M = T.dyn("M")
    threads, chunk, chunks, kept = plan.threads, plan.chunk, plan.chunks, plan.kept
    run = gcd(vector_elements(dtype), chunk // threads, N)  # elements side by side on a thread: an aligned vector
    turns, width = chunk // threads // run, threads * run

    @T.prim_func
    def layer_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
                   Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as b:
            row = T.alloc_shared((max(kept, 1), turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), dtype)
            term = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            total = T.alloc_fragment((threads,), "float32")
            square = T.alloc_fragment((threads,), "float32")
            first = T.alloc_fragment((1,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.clear(total)
            T.clear(square)
            first[0] = X[b, 0]
            for c in T.serial(chunks):
                for t, i, v in T.Parallel(turns, threads, run):
                    if c * chunk + t * width + i * run + v < N:
                        x[t, i, v] = X[b, c * chunk + t * width + i * run + v]
                    else:
                        x[t, i, v] = first[0]
                if c < kept:
                    T.copy(x, row[c, :, :, :])
                for t, i, v in T.Parallel(turns, threads, run):
                    term[t, i, v] = x[t, i, v] - first[0]
                T.reduce_sum(term, some, dim=2)
                T.reduce_sum(some, total, dim=0, clear=False)
                for t, i, v in T.Parallel(turns, threads, run):
                    term[t, i, v] = (x[t, i, v] - first[0]) * (x[t, i, v] - first[0])
                T.reduce_sum(term, some, dim=2)
                T.reduce_sum(some, square, dim=0, clear=False)
            T.reduce_sum(total, mean, dim=0)
            T.reduce_sum(square, scale, dim=0)
            mean[0] = mean[0] * (1.0 / N)
            scale[0] = T.rsqrt(T.max(scale[0] * (1.0 / N) - mean[0] * mean[0], 0.0) + eps)
            mean[0] = mean[0] + first[0]
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                if c < kept:
                    T.copy(row[c, :, :, :], x)
                else:
                    for t, i, v in T.Parallel(turns, threads, run):
                        if c * chunk + t * width + i * run + v < N:
                            x[t, i, v] = X[b, c * chunk + t * width + i * run + v]
                        else:
                            x[t, i, v] = first[0]
                for t, i, v in T.Parallel(turns, threads, run):
                    if c * chunk + t * width + i * run + v < N:
                        Y[b, c * chunk + t * width + i * run + v] = (
                            (x[t, i, v] - mean[0]) * scale[0] * W[c * chunk + t * width + i * run + v]
                            + B[c * chunk + t * width + i * run + v]
                        )

    return layer_norm


def _ring_rows(N: int, dtype: str, eps: float, plan: RingPlan):
    """Slices of rows stream through a ring; where blocks share a row they add their sums, which are of differences from
    the row's first element, so that large means do no harm.
    """
    M = T.dyn("M")
    clusters, cluster, threads, columns, stages = plan.clusters, plan.cluster, plan.threads, plan.columns, plan.stages
    pieces, turns, run, held = plan.pieces, plan.turns, plan.run, plan.held
    width, piece = threads * run, turns * threads * run

    @T.prim_func(mesh=plan.mesh)
    def layer_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
                   Y: T.Tensor((M, N), dtype)):
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            ring = T.alloc_shared((stages, pieces, turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), dtype)
            term = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            total = T.alloc_fragment((threads,), "float32")
            square = T.alloc_fragment((threads,), "float32")
            sums = T.alloc_fragment((2, threads), "float32")
            mean = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            first = T.alloc_fragment((1,), "float32")
            next_first = T.alloc_fragment((1,), dtype)
            mine = T.alloc_shared((2,), "float32")
            T.clear(mine)
            if cluster > 1:
                ours = T.alloc_shared((2,), "float32")
            if held > 0:
                w = T.alloc_fragment((pieces, turns, threads, run), dtype)
                for h, t, p, v in T.Parallel(pieces, turns, threads, run):
                    if s * columns + h * piece + t * width + p * run + v < N:
                        w[h, t, p, v] = W[s * columns + h * piece + t * width + p * run + v]
            if held > 1:
                bias = T.alloc_fragment((pieces, turns, threads, run), dtype)
                for h, t, p, v in T.Parallel(pieces, turns, threads, run):
                    if s * columns + h * piece + t * width + p * run + v < N:
                        bias[h, t, p, v] = B[s * columns + h * piece + t * width + p * run + v]
            for k in T.serial(stages - 1):
                if k * clusters + b < M:
                    for h, t, p in T.Parallel(pieces, turns, threads):
                        at = s * columns + h * piece + t * width + p * run
                        T.copy_async(X[k * clusters + b, at : at + run], ring[k, h, t, p, :])
                T.commit_async()
            if b < M:
                next_first[0] = X[b, 0]
            for step in T.serial(T.ceildiv(M, clusters) + 1):
                i = step * clusters + b
                T.wait_async(pending=stages - 2)
                if i < M:
                    first[0] = next_first[0]
                    next_first[0] = X[T.min(i + clusters, M - 1), 0]  # not waited for before the next iteration
                    T.clear(total)
                    T.clear(square)
                    for h in T.unroll(pieces):
                        T.copy(ring[step % stages, h, :, :, :], x)
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + h * piece + t * width + p * run + v < N:
                                term[t, p, v] = x[t, p, v] - first[0]
                            else:
                                term[t, p, v] = 0.0
                        T.reduce_sum(term, some, dim=2)
                        T.reduce_sum(some, total, dim=0, clear=False)
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + h * piece + t * width + p * run + v < N:
                                term[t, p, v] = (x[t, p, v] - first[0]) * (x[t, p, v] - first[0])
                            else:
                                term[t, p, v] = 0.0
                        T.reduce_sum(term, some, dim=2)
                        T.reduce_sum(some, square, dim=0, clear=False)
                    for p in T.Parallel(threads):
                        sums[0, p] = total[p]
                        sums[1, p] = square[p]
                    T.reduce_sum(sums, mine, dim=1)
                if cluster > 1:
                    T.comm.all_reduce(mine, ours, axis="y")  # also executed by clusters without a row
                if step > 0 and i - clusters < M:
                    for h in T.unroll(pieces):
                        T.copy(ring[(step - 1) % stages, h, :, :, :], x)
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + h * piece + t * width + p * run + v < N:
                                Y[i - clusters, s * columns + h * piece + t * width + p * run + v] = (
                                    (x[t, p, v] - mean[0]) * scale[0]
                                    * (w[h, t, p, v] if held > 0
                                       else W[s * columns + h * piece + t * width + p * run + v])
                                    + (bias[h, t, p, v] if held > 1
                                       else B[s * columns + h * piece + t * width + p * run + v])
                                )
                if i + (stages - 1) * clusters < M:
                    for h, t, p in T.Parallel(pieces, turns, threads):
                        at = s * columns + h * piece + t * width + p * run
                        T.copy_async(X[i + (stages - 1) * clusters, at : at + run],
                                     ring[(step + stages - 1) % stages, h, t, p, :])
                T.commit_async()
                if i < M:
                    mean[0] = (ours if cluster > 1 else mine)[0] * (1.0 / N)
                    scale[0] = (ours if cluster > 1 else mine)[1] * (1.0 / N) - mean[0] * mean[0]
                    scale[0] = T.rsqrt(T.max(scale[0], 0.0) + eps)
                    mean[0] = mean[0] + first[0]
            T.wait_async()

    return layer_norm
