"""Softmax over the rows of a matrix, forward and backward.

A row that fits is read once and reduced twice; a longer one passes in chunks with a running maximum and sum, as in
Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

from math import gcd

from helve import T
from helve.kernels.ring import RingPlan, plan_ring
from helve.kernels.rows import (LOG2E, ClusterPlan, RowPlan, check_arguments, holds_rows_as_asked, plan_rows,
                                plan_waiting_slices, vector_elements)

WHOLE = 8192  # elements of a row for which registers are the better place; twice as many wait in shared memory
LOWEST = -3.0e38  # below every score; unlike -infinity it can be subtracted from itself


def softmax(N: int, dtype: str = "float32", cluster: int = 1, clusters: int | None = None, **tuning):
    """Y[i, j] = exp(X[i, j]) / sum over k of exp(X[i, k]).

    The kernel takes (X, Y), both (M, N) of `dtype` with any number of rows M. It computes in float32, from the row's
    maximum, and rounds once. A row of nothing but -infinity gives NaN.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        cluster: blocks that share a row, 1 to 16: more than one for long rows, on a GPU with clusters.
        clusters: the number of such clusters, which process the rows in turn; see `plan_waiting_slices`.
        tuning: `rows`, `threads`, `elements`, `on_chip` of `plan_rows`; with clusters `threads` and `elements` of
            `plan_waiting_slices`; with `stages`, for rows that stream, `threads`, `elements` and `stages` of
            `plan_ring`.

    Raises:
        ValueError: an argument is out of its range.
    """
    if "stages" in tuning:
        return _ring_rows(N, dtype, plan_ring(N, dtype, 1, cluster, clusters, **tuning))
    if cluster != 1 or clusters is not None:
        return _clustered_rows(N, dtype, plan_waiting_slices(N, dtype, cluster, clusters, narrow=True, **tuning))
    check_arguments(N=N, dtype=dtype)
    if WHOLE < N <= 2 * WHOLE and not holds_rows_as_asked(tuning):
        return _long_rows(N, dtype, plan_rows(N, dtype, words=2, whole=False, elements=8, **tuning))
    plan = plan_rows(N, dtype, words=2, **tuning)
    return _whole_rows(N, dtype, plan) if plan.chunks == 1 else _long_rows(N, dtype, plan)


def softmax_backward(N: int, dtype: str = "float32", **tuning):
    """DX[i, j] = Y[i, j] * (DY[i, j] - sum over k of DY[i, k] * Y[i, k]), from the softmax Y itself.

    The kernel takes (Y, DY, DX), all (M, N) of `dtype` with any number of rows M. It computes in float32 and rounds
    once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        tuning: `rows`, `threads`, `elements`, `on_chip` of `plan_rows`.

    Raises:
        ValueError: an argument is out of its range.
    """
    plan = plan_rows(N, dtype, words=3, **tuning)
    return _whole_rows_backward(N, dtype, plan) if plan.chunks == 1 else _long_rows_backward(N, dtype, plan)


def _whole_rows(N: int, dtype: str, plan: RowPlan):
    """Rows stay in registers from the load to the store."""
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
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
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] * total[i]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return softmax


def _long_rows(N: int, dtype: str, plan: RowPlan):
    """Every thread keeps the maximum and the sum of what it has seen of the row; the row's follow from them."""
    M = T.dyn("M")
    threads, chunk, chunks, kept = plan.threads, plan.chunk, plan.chunks, plan.kept
    run = gcd(vector_elements(dtype), chunk // threads, N)  # elements side by side on a thread: an aligned vector
    turns, width = chunk // threads // run, threads * run

    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as b:
            row = T.alloc_shared((max(kept, 1), turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            peak = T.alloc_fragment((threads,), "float32")
            before = T.alloc_fragment((threads,), "float32")
            total = T.alloc_fragment((threads,), "float32")
            top = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.fill(peak, LOWEST)
            T.clear(total)
            for c in T.serial(chunks):
                for t, i, v in T.Parallel(turns, threads, run):
                    if c * chunk + t * width + i * run + v < N:
                        x[t, i, v] = X[b, c * chunk + t * width + i * run + v]
                    else:
                        x[t, i, v] = -T.infinity()
                if c < kept:
                    T.copy(x, row[c, :, :, :])
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
            T.reduce_sum(total, scale, dim=0)
            scale[0] = 1.0 / scale[0]
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                if c < kept:
                    T.copy(row[c, :, :, :], x)
                else:
                    for t, i, v in T.Parallel(turns, threads, run):
                        if c * chunk + t * width + i * run + v < N:
                            x[t, i, v] = X[b, c * chunk + t * width + i * run + v]
                        else:
                            x[t, i, v] = -T.infinity()
                for t, i, v in T.Parallel(turns, threads, run):
                    if c * chunk + t * width + i * run + v < N:
                        Y[b, c * chunk + t * width + i * run + v] = T.exp2((x[t, i, v] - top[0]) * LOG2E) * scale[0]

    return softmax


def _clustered_rows(N: int, dtype: str, plan: ClusterPlan):
    """Every block of a cluster has a slice of the row, which waits in shared memory; the blocks tell each other their
    maximum and sum.
    """
    M = T.dyn("M")
    clusters, cluster, threads, columns, chunk = plan.clusters, plan.cluster, plan.threads, plan.columns, plan.chunk
    chunks = columns // chunk
    run = gcd(vector_elements(dtype), chunk // threads, N)  # elements side by side on a thread: an aligned vector
    turns, width = chunk // threads // run, threads * run

    @T.prim_func(mesh=T.Mesh((clusters, cluster)))
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            row = T.alloc_shared((chunks, turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            peak = T.alloc_fragment((threads,), "float32")
            before = T.alloc_fragment((threads,), "float32")
            total = T.alloc_fragment((threads,), "float32")
            top = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            mine = T.alloc_shared((2,), "float32")
            ours = T.alloc_shared((cluster, 2), "float32")
            each = T.alloc_fragment((cluster,), "float32")
            T.clear(mine)
            for step in T.serial(T.ceildiv(M, clusters)):
                i = step * clusters + b
                if i < M:
                    T.fill(peak, LOWEST)
                    T.clear(total)
                    for c in T.serial(chunks):
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + c * chunk + t * width + p * run + v < N:
                                x[t, p, v] = X[i, s * columns + c * chunk + t * width + p * run + v]
                            else:
                                x[t, p, v] = -T.infinity()
                        T.copy(x, row[c, :, :, :])
                        T.copy(peak, before)
                        T.reduce_max(x, some, dim=2)
                        T.reduce_max(some, peak, dim=0, clear=False)
                        for t, p, v in T.Parallel(turns, threads, run):
                            x[t, p, v] = T.exp2((x[t, p, v] - peak[p]) * LOG2E)
                        T.reduce_sum(x, some, dim=2)
                        for p in T.Parallel(threads):
                            total[p] = total[p] * T.exp2((before[p] - peak[p]) * LOG2E)
                        T.reduce_sum(some, total, dim=0, clear=False)
                    T.reduce_max(peak, top, dim=0)
                    for p in T.Parallel(threads):
                        total[p] = total[p] * T.exp2((peak[p] - top[0]) * LOG2E)
                    T.reduce_sum(total, scale, dim=0)
                    mine[0] = top[0]
                    mine[1] = scale[0]
                T.comm.all_gather(mine, ours, axis="y", dim=0)  # also executed by clusters without a row
                if i < M:
                    for k in T.Parallel(cluster):
                        each[k] = ours[k, 0]
                    T.reduce_max(each, top, dim=0)
                    for k in T.Parallel(cluster):
                        each[k] = ours[k, 1] * T.exp2((ours[k, 0] - top[0]) * LOG2E)
                    T.reduce_sum(each, scale, dim=0)
                    scale[0] = 1.0 / scale[0]
                    for c in T.serial(chunks):
                        T.copy(row[c, :, :, :], x)
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + c * chunk + t * width + p * run + v < N:
                                Y[i, s * columns + c * chunk + t * width + p * run + v] = (
                                    T.exp2((x[t, p, v] - top[0]) * LOG2E) * scale[0]
                                )

    return softmax


def _ring_rows(N: int, dtype: str, plan: RingPlan):
    """Slices of rows stream through a ring; the blocks of a cluster tell each other their maximum and sum."""
    M = T.dyn("M")
    clusters, cluster, threads, columns, stages = plan.clusters, plan.cluster, plan.threads, plan.columns, plan.stages
    pieces, turns, run = plan.pieces, plan.turns, plan.run
    width, piece = threads * run, turns * threads * run

    @T.prim_func(mesh=T.Mesh((clusters, cluster)))
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            ring = T.alloc_shared((stages, pieces, turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            peak = T.alloc_fragment((threads,), "float32")
            before = T.alloc_fragment((threads,), "float32")
            total = T.alloc_fragment((threads,), "float32")
            high = T.alloc_fragment((1,), "float32")
            sum_ = T.alloc_fragment((1,), "float32")
            top = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            each = T.alloc_fragment((cluster,), "float32")
            mine = T.alloc_shared((2,), "float32")
            ours = T.alloc_shared((cluster, 2), "float32")
            T.clear(mine)
            for k in T.serial(stages - 1):
                if k * clusters + b < M:
                    for h, t, p in T.Parallel(pieces, turns, threads):
                        at = s * columns + h * piece + t * width + p * run
                        T.copy_async(X[k * clusters + b, at : at + run], ring[k, h, t, p, :])
                T.commit_async()
            for step in T.serial(T.ceildiv(M, clusters) + 1):
                i = step * clusters + b
                T.wait_async(pending=stages - 2)
                if i < M:
                    T.fill(peak, LOWEST)
                    T.clear(total)
                    for h in T.serial(pieces):
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + h * piece + t * width + p * run + v < N:
                                x[t, p, v] = ring[step % stages, h, t, p, v]
                            else:
                                x[t, p, v] = -T.infinity()
                        T.copy(peak, before)
                        T.reduce_max(x, some, dim=2)
                        T.reduce_max(some, peak, dim=0, clear=False)
                        for t, p, v in T.Parallel(turns, threads, run):
                            x[t, p, v] = T.exp2((x[t, p, v] - peak[p]) * LOG2E)
                        T.reduce_sum(x, some, dim=2)
                        for p in T.Parallel(threads):
                            total[p] = total[p] * T.exp2((before[p] - peak[p]) * LOG2E)
                        T.reduce_sum(some, total, dim=0, clear=False)
                    T.reduce_max(peak, high, dim=0)
                    for p in T.Parallel(threads):
                        total[p] = total[p] * T.exp2((peak[p] - high[0]) * LOG2E)
                    T.reduce_sum(total, sum_, dim=0)
                    mine[0] = high[0]
                    mine[1] = sum_[0]
                T.comm.all_gather(mine, ours, axis="y", dim=0)  # also executed by clusters without a row
                if step > 0 and i - clusters < M:
                    for h in T.serial(pieces):
                        for t, p, v in T.Parallel(turns, threads, run):
                            if s * columns + h * piece + t * width + p * run + v < N:
                                Y[i - clusters, s * columns + h * piece + t * width + p * run + v] = T.exp2(
                                    (T.cast(ring[(step - 1) % stages, h, t, p, v], "float32") - top[0]) * LOG2E
                                    - scale[0]
                                )
                if i + (stages - 1) * clusters < M:
                    for h, t, p in T.Parallel(pieces, turns, threads):
                        at = s * columns + h * piece + t * width + p * run
                        T.copy_async(X[i + (stages - 1) * clusters, at : at + run],
                                     ring[(step + stages - 1) % stages, h, t, p, :])
                T.commit_async()
                if i < M:
                    for k in T.Parallel(cluster):
                        each[k] = ours[k, 0]
                    T.reduce_max(each, top, dim=0)
                    for k in T.Parallel(cluster):
                        each[k] = ours[k, 1] * T.exp2((ours[k, 0] - top[0]) * LOG2E)
                    T.reduce_sum(each, scale, dim=0)
                    scale[0] = T.log2(scale[0])
            T.wait_async()

    return softmax


def _whole_rows_backward(N: int, dtype: str, plan: RowPlan):
    """Rows stay in registers from the load to the store."""
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def softmax_backward(Y: T.Tensor((M, N), dtype), DY: T.Tensor((M, N), dtype), DX: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            y = T.alloc_fragment((rows, N), "float32")
            dy = T.alloc_fragment((rows, N), "float32")
            product = T.alloc_fragment((rows, N), "float32")
            dot = T.alloc_fragment((rows,), "float32")
            T.copy(Y[b * rows : (b + 1) * rows, :], y)
            T.copy(DY[b * rows : (b + 1) * rows, :], dy)
            for i, j in T.Parallel(rows, N):
                product[i, j] = dy[i, j] * y[i, j]
            T.reduce_sum(product, dot, dim=1)
            for i, j in T.Parallel(rows, N):
                y[i, j] = y[i, j] * (dy[i, j] - dot[i])
            T.copy(y, DX[b * rows : (b + 1) * rows, :])

    return softmax_backward


def _long_rows_backward(N: int, dtype: str, plan: RowPlan):
    """A row passes twice in chunks; the first of them wait in shared memory, half as many as of one tensor."""
    M = T.dyn("M")
    threads, chunk, chunks, kept = plan.threads, plan.chunk, plan.chunks, plan.kept // 2

    @T.prim_func
    def softmax_backward(Y: T.Tensor((M, N), dtype), DY: T.Tensor((M, N), dtype), DX: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as b:
            row_y = T.alloc_shared((max(kept, 1), chunk), dtype)
            row_dy = T.alloc_shared((max(kept, 1), chunk), dtype)
            y = T.alloc_fragment((chunk,), dtype)
            dy = T.alloc_fragment((chunk,), dtype)
            product = T.alloc_fragment((chunk,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            T.clear(product)
            for c in T.serial(chunks):
                T.copy(Y[b, c * chunk : (c + 1) * chunk], y)
                T.copy(DY[b, c * chunk : (c + 1) * chunk], dy)
                for j in T.Parallel(chunk):
                    product[j] = product[j] + dy[j] * y[j]
                if c < kept:
                    T.copy(y, row_y[c, :])
                    T.copy(dy, row_dy[c, :])
            T.reduce_sum(product, dot, dim=0)
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                if c < kept:
                    T.copy(row_y[c, :], y)
                    T.copy(row_dy[c, :], dy)
                else:
                    T.copy(Y[b, c * chunk : (c + 1) * chunk], y)
                    T.copy(DY[b, c * chunk : (c + 1) * chunk], dy)
                for j in T.Parallel(chunk):
                    y[j] = y[j] * (dy[j] - dot[0])
                T.copy(y, DX[b, c * chunk : (c + 1) * chunk])

    return softmax_backward
