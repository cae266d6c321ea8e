"""The gradients of LayerNorm.

Each block runs through its share of the rows and keeps the sums for the gradients of weight and bias to itself; a
second launch adds the blocks' sums, so that results repeat bit for bit.
"""

from __future__ import annotations

from helve import T
from helve.kernels.ring import RingPlan, plan_ring, streams
from helve.kernels.rows import MULTIPROCESSORS, RowPlan, check_arguments, plan_rows
from helve.kernels.sums import two_sums_of_parts


def layer_norm_backward(N: int, dtype: str = "float32", eps: float = 1e-5, blocks: int | None = None,
                        cluster: int = 1, clusters: int | None = None, **tuning):
    """With r = rsqrt(variance of X[i, :] + eps), h = (X - mean) * r and g = DY * W: DX = r * (g - mean(g) - h * mean(g
    * h)), DW = sum over i of DY * h, DB = sum over i of DY.

    The kernel takes (X, W, DY, DX, DW, DB): X, DY and DX (M, N) with any number of rows M, W (N,), all of `dtype`, DW
    and DB (N,) float32. It computes in float32 and rounds DX once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        eps: what was added to the variance.
        blocks: blocks that share the rows; by default what 132 multiprocessors hold at the same time.
        cluster: blocks that share a row, 1 to 16: more than one for long rows, on a GPU with clusters. There are
            `clusters` in place of `blocks` then.
        clusters: how many such clusters share the rows; see `plan_ring`.
        tuning: `threads`, `elements` and `stages` of `plan_ring`; for rows of up to 512 elements and for those that a
            block cannot hold, `rows`, `threads` and `elements` of `plan_rows`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(N=N, dtype=dtype, eps=eps, blocks=blocks, threads=tuning.get("threads"),
                    elements=tuning.get("elements"))
    if blocks is not None and (cluster != 1 or clusters is not None):
        raise ValueError(f"blocks excludes clusters: {blocks} blocks and clusters of {cluster} were given")
    if cluster != 1 or clusters is not None or streams(N, dtype, 2, most=8192, **tuning):
        return _ring_rows(N, dtype, eps, plan_ring(N, dtype, 2, cluster, blocks or clusters, whole=True, **tuning))
    plan = plan_rows(N, dtype, words=5, few=True, **tuning)
    if blocks is None:
        blocks = MULTIPROCESSORS * (max(1, 512 // plan.threads) if plan.chunks == 1 else 4)
    return _whole_rows(N, dtype, eps, blocks, plan) if plan.chunks == 1 else _long_rows(N, dtype, eps, blocks, plan)


def _whole_rows(N: int, dtype: str, eps: float, blocks: int, plan: RowPlan):
    """Both gradients of parameters and one group of rows are kept in registers; the weight itself is near enough in the
    caches.
    """
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads
    add_parts = two_sums_of_parts(blocks, N)

    @T.prim_func
    def layer_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                            DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32"), DB: T.Tensor((N,), "float32")):
        part = T.alloc_global((2, blocks, N), "float32")
        with T.Kernel(blocks, threads=threads) as b:
            dw = T.alloc_fragment((N,), "float32")
            db = T.alloc_fragment((N,), "float32")
            x = T.alloc_fragment((rows, N), dtype)
            dy = T.alloc_fragment((rows, N), dtype)
            product = T.alloc_fragment((rows, N), "float32")
            mean = T.alloc_fragment((rows,), "float32")
            mean_g = T.alloc_fragment((rows,), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            dot = T.alloc_fragment((rows,), "float32")
            T.clear(dw)
            T.clear(db)
            for step in T.serial(T.ceildiv(M, blocks * rows)):
                first = (step * blocks + b) * rows
                if first < M:  # nothing inside asks again whether the row is there
                    T.copy(X[first : first + rows, :], x)
                    T.copy(DY[first : first + rows, :], dy)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = x[i, j]
                    T.reduce_sum(product, mean, dim=1)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = dy[i, j] * W[j]
                    T.reduce_sum(product, mean_g, dim=1)
                    for i in T.Parallel(rows):
                        mean[i] = mean[i] * (1.0 / N)
                        mean_g[i] = mean_g[i] * (1.0 / N)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = (x[i, j] - mean[i]) * (x[i, j] - mean[i])
                    T.reduce_sum(product, scale, dim=1)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = dy[i, j] * W[j] * (x[i, j] - mean[i])
                    T.reduce_sum(product, dot, dim=1)
                    for i in T.Parallel(rows):
                        scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
                        dot[i] = dot[i] * (1.0 / N) * scale[i] * scale[i]
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = dy[i, j] * ((x[i, j] - mean[i]) * scale[i])
                    T.reduce_sum(product, dw, dim=0, clear=False)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = dy[i, j]
                    T.reduce_sum(product, db, dim=0, clear=False)
                    for i, j in T.Parallel(rows, N):
                        x[i, j] = (dy[i, j] * W[j] - mean_g[i] - (x[i, j] - mean[i]) * dot[i]) * scale[i]
                    T.copy(x, DX[first : first + rows, :])
            T.copy(dw, part[0, b, :])
            T.copy(db, part[1, b, :])
        add_parts(part, DW, DB)

    return layer_norm_backward


def _long_rows(N: int, dtype: str, eps: float, blocks: int, plan: RowPlan):
    """Rows pass twice in chunks and leave mean and scale; columns are summed by slabs after that.

    All sums of a row are of differences from its first element, so that large means do no harm.
    """
    M = T.dyn("M")
    threads, chunk, chunks = plan.threads, plan.chunk, plan.chunks
    tall, wide = 16, 256  # rows and columns that a block of the second launch reads at the same time
    slabs = -(-N // wide)
    parts = max(1, blocks // slabs)
    add_parts = two_sums_of_parts(parts, N)

    @T.prim_func
    def layer_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                            DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32"), DB: T.Tensor((N,), "float32")):
        means = T.alloc_global((M,), "float32")
        scales = T.alloc_global((M,), "float32")
        part = T.alloc_global((2, parts, N), "float32")
        with T.Kernel(M, threads=threads) as b:
            x = T.alloc_fragment((chunk,), dtype)
            g = T.alloc_fragment((chunk,), "float32")
            sum_x = T.alloc_fragment((chunk,), "float32")
            sum_xx = T.alloc_fragment((chunk,), "float32")
            sum_g = T.alloc_fragment((chunk,), "float32")
            sum_gx = T.alloc_fragment((chunk,), "float32")
            start = T.alloc_fragment((1,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            mean_g = T.alloc_fragment((1,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            T.clear(sum_x)
            T.clear(sum_xx)
            T.clear(sum_g)
            T.clear(sum_gx)
            start[0] = X[b, 0]
            for c in T.serial(chunks):
                T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                T.copy(DY[b, c * chunk : (c + 1) * chunk], g)
                for j in T.Parallel(chunk):
                    if c * chunk + j < N:
                        sum_x[j] = sum_x[j] + (x[j] - start[0])
                        sum_xx[j] = sum_xx[j] + (x[j] - start[0]) * (x[j] - start[0])
                        sum_g[j] = sum_g[j] + g[j] * W[c * chunk + j]
                        sum_gx[j] = sum_gx[j] + g[j] * W[c * chunk + j] * (x[j] - start[0])
            T.reduce_sum(sum_x, mean, dim=0)
            T.reduce_sum(sum_xx, scale, dim=0)
            T.reduce_sum(sum_g, mean_g, dim=0)
            T.reduce_sum(sum_gx, dot, dim=0)
            mean[0] = mean[0] * (1.0 / N)
            mean_g[0] = mean_g[0] * (1.0 / N)
            scale[0] = T.rsqrt(T.max(scale[0] * (1.0 / N) - mean[0] * mean[0], 0.0) + eps)
            dot[0] = (dot[0] * (1.0 / N) - mean[0] * mean_g[0]) * scale[0]
            mean[0] = mean[0] + start[0]
            for i in T.Parallel(1):
                means[b + i] = mean[i]
                scales[b + i] = scale[i]
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                T.copy(DY[b, c * chunk : (c + 1) * chunk], g)
                for j in T.Parallel(chunk):
                    if c * chunk + j < N:
                        DX[b, c * chunk + j] = (g[j] * W[c * chunk + j] - mean_g[0]
                                                - (x[j] - mean[0]) * scale[0] * dot[0]) * scale[0]
        with T.Kernel(parts, slabs, threads=256) as (p, c):
            x = T.alloc_fragment((tall, wide), dtype)
            dy = T.alloc_fragment((tall, wide), dtype)
            dw = T.alloc_fragment((tall, wide), "float32")
            db = T.alloc_fragment((tall, wide), "float32")
            mean = T.alloc_fragment((tall,), "float32")
            scale = T.alloc_fragment((tall,), "float32")
            total = T.alloc_fragment((wide,), "float32")
            T.clear(dw)
            T.clear(db)
            for step in T.serial(T.ceildiv(M, parts * tall)):
                first = (step * parts + p) * tall
                T.copy(X[first : first + tall, c * wide : (c + 1) * wide], x)
                T.copy(DY[first : first + tall, c * wide : (c + 1) * wide], dy)
                T.copy(means[first : first + tall], mean)
                T.copy(scales[first : first + tall], scale)
                for i, j in T.Parallel(tall, wide):
                    dw[i, j] = dw[i, j] + dy[i, j] * ((x[i, j] - mean[i]) * scale[i])
                    db[i, j] = db[i, j] + dy[i, j]
            T.reduce_sum(dw, total, dim=0)
            T.copy(total, part[0, p, c * wide : (c + 1) * wide])
            T.reduce_sum(db, total, dim=0)
            T.copy(total, part[1, p, c * wide : (c + 1) * wide])
        add_parts(part, DW, DB)

    return layer_norm_backward


def _ring_rows(N: int, dtype: str, eps: float, plan: RingPlan):
    """Slices of rows of X and DY stream through rings; weight and gradients of parameters are kept in registers.

    Where blocks share a row they add their sums, and after the last row each adds a share of its slice over all
    clusters.
    """
    M = T.dyn("M")
    clusters, cluster, threads, columns, stages = plan.clusters, plan.cluster, plan.threads, plan.columns, plan.stages
    turns, run, width = plan.turns, plan.run, plan.threads * plan.run
    share = -(-columns // clusters)
    add_parts = two_sums_of_parts(clusters, N)

    @T.prim_func(mesh=plan.mesh)
    def layer_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                            DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32"), DB: T.Tensor((N,), "float32")):
        part = T.alloc_global((2, clusters, N) if cluster == 1 else (2, clusters * share), "float32")
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            ring_x = T.alloc_shared((stages, turns, threads, run), dtype)
            ring_dy = T.alloc_shared((stages, turns, threads, run), dtype)
            x = T.alloc_fragment((turns, threads, run), dtype)
            dy = T.alloc_fragment((turns, threads, run), dtype)
            w = T.alloc_fragment((turns, threads, run), dtype)
            dw = T.alloc_fragment((turns, threads, run), "float32")
            db = T.alloc_fragment((turns, threads, run), "float32")
            term = T.alloc_fragment((turns, threads, run), "float32")
            some = T.alloc_fragment((turns, threads), "float32")
            sum_x = T.alloc_fragment((threads,), "float32")
            square = T.alloc_fragment((threads,), "float32")
            sum_g = T.alloc_fragment((threads,), "float32")
            product = T.alloc_fragment((threads,), "float32")
            sums = T.alloc_fragment((4, threads), "float32")
            first = T.alloc_fragment((1,), "float32")
            next_first = T.alloc_fragment((1,), dtype)
            mean = T.alloc_fragment((1,), "float32")
            mean_g = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            mine = T.alloc_shared((4,), "float32")
            T.clear(mine)
            T.clear(dw)
            T.clear(db)
            if cluster > 1:
                ours = T.alloc_shared((4,), "float32")
            for t, p, v in T.Parallel(turns, threads, run):
                if s * columns + t * width + p * run + v < N:
                    w[t, p, v] = W[s * columns + t * width + p * run + v]
                else:
                    w[t, p, v] = 0.0
            for k in T.serial(stages - 1):
                if k * clusters + b < M:
                    for t, p in T.Parallel(turns, threads):
                        at = s * columns + t * width + p * run
                        T.copy_async(X[k * clusters + b, at : at + run], ring_x[k, t, p, :])
                    for t, p in T.Parallel(turns, threads):
                        at = s * columns + t * width + p * run
                        T.copy_async(DY[k * clusters + b, at : at + run], ring_dy[k, t, p, :])
                T.commit_async()
            if b < M:
                next_first[0] = X[b, 0]
            for step in T.serial(T.ceildiv(M, clusters) + 1):
                i = step * clusters + b
                T.wait_async(pending=stages - 2)
                if i < M:
                    first[0] = next_first[0]
                    next_first[0] = X[T.min(i + clusters, M - 1), 0]  # not waited for before the next iteration
                    T.copy(ring_x[step % stages, :, :, :], x)
                    T.copy(ring_dy[step % stages, :, :, :], dy)
                    for t, p, v in T.Parallel(turns, threads, run):
                        if s * columns + t * width + p * run + v < N:
                            term[t, p, v] = x[t, p, v] - first[0]
                        else:
                            term[t, p, v] = 0.0
                    T.reduce_sum(term, some, dim=2)
                    T.reduce_sum(some, sum_x, dim=0)
                    for t, p, v in T.Parallel(turns, threads, run):
                        if s * columns + t * width + p * run + v < N:
                            term[t, p, v] = (x[t, p, v] - first[0]) * (x[t, p, v] - first[0])
                        else:
                            term[t, p, v] = 0.0
                    T.reduce_sum(term, some, dim=2)
                    T.reduce_sum(some, square, dim=0)
                    for t, p, v in T.Parallel(turns, threads, run):
                        term[t, p, v] = dy[t, p, v] * w[t, p, v]
                    T.reduce_sum(term, some, dim=2)
                    T.reduce_sum(some, sum_g, dim=0)
                    for t, p, v in T.Parallel(turns, threads, run):
                        term[t, p, v] = dy[t, p, v] * w[t, p, v] * (x[t, p, v] - first[0])
                    T.reduce_sum(term, some, dim=2)
                    T.reduce_sum(some, product, dim=0)
                    for p in T.Parallel(threads):
                        sums[0, p] = sum_x[p]
                        sums[1, p] = square[p]
                        sums[2, p] = sum_g[p]
                        sums[3, p] = product[p]
                    T.reduce_sum(sums, mine, dim=1)
                if cluster > 1:
                    T.comm.all_reduce(mine, ours, axis="y")  # also executed by clusters without a row
                if step > 0 and i - clusters < M:
                    T.copy(ring_x[(step - 1) % stages, :, :, :], x)
                    T.copy(ring_dy[(step - 1) % stages, :, :, :], dy)
                    for t, p, v in T.Parallel(turns, threads, run):
                        dw[t, p, v] = dw[t, p, v] + dy[t, p, v] * ((x[t, p, v] - mean[0]) * scale[0])
                    for t, p, v in T.Parallel(turns, threads, run):
                        db[t, p, v] = db[t, p, v] + dy[t, p, v]
                    for t, p, v in T.Parallel(turns, threads, run):
                        if s * columns + t * width + p * run + v < N:
                            DX[i - clusters, s * columns + t * width + p * run + v] = (
                                (dy[t, p, v] * w[t, p, v] - mean_g[0] - (x[t, p, v] - mean[0]) * dot[0]) * scale[0]
                            )
                if i + (stages - 1) * clusters < M:
                    for t, p in T.Parallel(turns, threads):
                        at = s * columns + t * width + p * run
                        T.copy_async(X[i + (stages - 1) * clusters, at : at + run],
                                     ring_x[(step + stages - 1) % stages, t, p, :])
                    for t, p in T.Parallel(turns, threads):
                        at = s * columns + t * width + p * run
                        T.copy_async(DY[i + (stages - 1) * clusters, at : at + run],
                                     ring_dy[(step + stages - 1) % stages, t, p, :])
                T.commit_async()
                if i < M:
                    mean[0] = (ours if cluster > 1 else mine)[0] * (1.0 / N)
                    scale[0] = (ours if cluster > 1 else mine)[1] * (1.0 / N) - mean[0] * mean[0]
                    scale[0] = T.rsqrt(T.max(scale[0], 0.0) + eps)
                    mean_g[0] = (ours if cluster > 1 else mine)[2] * (1.0 / N)
                    dot[0] = (ours if cluster > 1 else mine)[3] * (1.0 / N) - mean_g[0] * mean[0]
                    dot[0] = dot[0] * scale[0] * scale[0]
                    mean[0] = mean[0] + first[0]
            T.wait_async()
            for t, p, v in T.Parallel(turns, threads, run):
                if cluster > 1:
                    part[0, t * width + p * run + v] = dw[t, p, v]
                elif t * width + p * run + v < N:
                    part[0, b, t * width + p * run + v] = dw[t, p, v]
            for t, p, v in T.Parallel(turns, threads, run):
                if cluster > 1:
                    part[1, t * width + p * run + v] = db[t, p, v]
                elif t * width + p * run + v < N:
                    part[1, b, t * width + p * run + v] = db[t, p, v]
            if cluster > 1:
                T.fill(part[:, columns:], 0.0)
        if cluster > 1:
            total = T.alloc_global((2, share), "float32")
            T.comm.reduce_scatter(part, total, axis="x", dim=1)
            with T.Kernel(clusters, cluster, threads=threads) as (b, s):
                for j in T.Parallel(share):
                    if b * share + j < columns and s * columns + b * share + j < N:
                        DW[s * columns + b * share + j] = total[0, j]
                        DB[s * columns + b * share + j] = total[1, j]
        else:
            add_parts(part, DW, DB)

    return layer_norm_backward
