"""The gradients of LayerNorm.

Each block runs through its share of the rows and keeps the sums for the gradients of weight and bias to itself; a
second launch adds the blocks' sums, so that results repeat bit for bit.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import MULTIPROCESSORS, ClusterPlan, RowPlan, plan_held_slices, plan_rows


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
        blocks: blocks that share the rows; by default what 132 multiprocessors hold at the same time, of 512 threads
            each.
        cluster: blocks that share a row, 1 to 8: more than one for long rows, on a GPU with clusters. There are
            `clusters` in place of `blocks` then.
        clusters: how many such clusters share the rows; see `plan_held_slices`.
        tuning: `rows`, `threads`, `elements` of `plan_rows`; with clusters `threads` and `elements` of
            `plan_held_slices`.

    Raises:
        ValueError: an argument is out of its range.
    """
    if cluster != 1 or clusters is not None:
        if blocks is not None:
            raise ValueError(f"clusters of {cluster} blocks take clusters in place of blocks, not {blocks} blocks")
        return _clustered_rows(N, dtype, eps, plan_held_slices(N, dtype, cluster, clusters, words=4, **tuning))
    plan = plan_rows(N, dtype, words=5, few=True, **tuning)
    if blocks is None:
        blocks = MULTIPROCESSORS * (max(1, 512 // plan.threads) if plan.chunks == 1 else 4)
    if blocks < 1:
        raise ValueError(f"blocks is at least 1, not {blocks}")
    return _whole_rows(N, dtype, eps, blocks, plan) if plan.chunks == 1 else _long_rows(N, dtype, eps, blocks, plan)


def _whole_rows(N: int, dtype: str, eps: float, blocks: int, plan: RowPlan):
    """Both gradients of parameters and one group of rows live in registers; the weight itself is near enough in the
    caches.
    """
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

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
        with T.Kernel(2, T.ceildiv(N, 16), threads=512) as (which, c):
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(blocks, 256)):
                T.copy(part[which, step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            if which == 0:
                T.copy(total, DW[c * 16 : (c + 1) * 16])
            else:
                T.copy(total, DB[c * 16 : (c + 1) * 16])

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
        with T.Kernel(2, T.ceildiv(N, 16), threads=512) as (which, c):
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(parts, 256)):
                T.copy(part[which, step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            if which == 0:
                T.copy(total, DW[c * 16 : (c + 1) * 16])
            else:
                T.copy(total, DB[c * 16 : (c + 1) * 16])

    return layer_norm_backward


def _clustered_rows(N: int, dtype: str, eps: float, plan: ClusterPlan):
    """Every block of a cluster has a slice of the row and of the parameters' gradients in registers. After the last row
    each block gets a piece of its slice from all clusters, and adds them.

    All sums of a row are of differences from its first element, so that one meeting is enough and large means do no
    harm.
    """
    M = T.dyn("M")
    clusters, cluster, threads, columns = plan.clusters, plan.cluster, plan.threads, plan.columns
    piece = -(-columns // clusters)

    @T.prim_func(mesh=T.Mesh((clusters, cluster)))
    def layer_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                            DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32"), DB: T.Tensor((N,), "float32")):
        part = T.alloc_global((2, clusters * piece), "float32")
        parts = T.alloc_global((2, clusters * piece), "float32")
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            dw = T.alloc_fragment((columns,), "float32")
            db = T.alloc_fragment((columns,), "float32")
            x = T.alloc_fragment((columns,), dtype)
            dy = T.alloc_fragment((columns,), dtype)
            product = T.alloc_fragment((columns,), "float32")
            start = T.alloc_fragment((1,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            mean_g = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            mine = T.alloc_shared((4,), "float32")
            ours = T.alloc_shared((4,), "float32")
            T.clear(dw)
            T.clear(db)
            T.clear(mine)
            for step in T.serial(T.ceildiv(M, clusters)):
                i = step * clusters + b
                if i < M:
                    start[0] = X[i, 0]
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            x[j] = X[i, s * columns + j]
                        else:
                            x[j] = start[0]
                    T.copy(DY[i, s * columns : (s + 1) * columns], dy)
                    for j in T.Parallel(columns):
                        product[j] = x[j] - start[0]
                    T.reduce_sum(product, mean, dim=0)
                    for j in T.Parallel(columns):
                        product[j] = (x[j] - start[0]) * (x[j] - start[0])
                    T.reduce_sum(product, scale, dim=0)
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            product[j] = dy[j] * W[s * columns + j]
                        else:
                            product[j] = 0.0
                    T.reduce_sum(product, mean_g, dim=0)
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            product[j] = dy[j] * W[s * columns + j] * (x[j] - start[0])
                        else:
                            product[j] = 0.0
                    T.reduce_sum(product, dot, dim=0)
                    mine[0] = mean[0]
                    mine[1] = scale[0]
                    mine[2] = mean_g[0]
                    mine[3] = dot[0]
                T.comm.all_reduce(mine, ours, axis="y")  # a cluster that has no row left meets as well
                if i < M:
                    mean[0] = ours[0] * (1.0 / N)
                    scale[0] = T.rsqrt(T.max(ours[1] * (1.0 / N) - mean[0] * mean[0], 0.0) + eps)
                    mean_g[0] = ours[2] * (1.0 / N)
                    dot[0] = (ours[3] * (1.0 / N) - mean_g[0] * mean[0]) * scale[0] * scale[0]
                    mean[0] = mean[0] + start[0]
                    for j in T.Parallel(columns):
                        dw[j] = dw[j] + dy[j] * ((x[j] - mean[0]) * scale[0])
                    for j in T.Parallel(columns):
                        db[j] = db[j] + dy[j]
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            DX[i, s * columns + j] = (
                                (dy[j] * W[s * columns + j] - mean_g[0] - (x[j] - mean[0]) * dot[0]) * scale[0]
                            )
            T.copy(dw, part[0, 0:columns])
            T.copy(db, part[1, 0:columns])
            T.fill(part[:, columns:], 0.0)
        T.comm.all_to_all(part, parts, axis="x", dim=1)
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            terms = T.alloc_fragment((2, clusters, piece), "float32")
            total = T.alloc_fragment((2, piece), "float32")
            for which, k, j in T.Parallel(2, clusters, piece):
                terms[which, k, j] = parts[which, k * piece + j]
            T.reduce_sum(terms, total, dim=1)
            for j in T.Parallel(piece):
                if b * piece + j < columns and s * columns + b * piece + j < N:
                    DW[s * columns + b * piece + j] = total[0, j]
                    DB[s * columns + b * piece + j] = total[1, j]

    return layer_norm_backward
