"""The gradients of RMSNorm.

Each block runs through its share of the rows and keeps the sums for the weight's gradient to itself; a second launch
adds the blocks' sums, so that results repeat bit for bit.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import MULTIPROCESSORS, ClusterPlan, RowPlan, plan_held_slices, plan_rows


def rms_norm_backward(N: int, dtype: str = "float32", eps: float = 1e-6, blocks: int | None = None,
                      ahead: bool | None = None, cluster: int = 1, clusters: int | None = None, **tuning):
    """With r = rsqrt(mean of X[i, :] squared + eps) and g = DY * W: DX = r * g - X * r^3 * mean(g * X), DW = sum over i
    of DY * X * r.

    The kernel takes (X, W, DY, DX, DW): X, DY and DX (M, N) with any number of rows M, W (N,), all of `dtype`, and DW
    (N,) float32. It computes in float32 and rounds DX once.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        eps: what was added to the mean square.
        blocks: blocks that share the rows; by default what 132 multiprocessors hold at the same time.
        ahead: read the next rows while these are worked on; by default where that was measured to be faster. Without
            effect on rows of several chunks.
        cluster: blocks that share a row, 1 to 8: more than one for long rows, on a GPU with clusters. There are
            `clusters` in place of `blocks` then, and nothing is read ahead.
        clusters: how many such clusters share the rows; see `plan_held_slices`.
        tuning: `rows`, `threads`, `elements` of `plan_rows`; with clusters `threads` and `elements` of
            `plan_held_slices`.

    Raises:
        ValueError: an argument is out of its range.
    """
    if cluster != 1 or clusters is not None:
        if blocks is not None or ahead:
            raise ValueError(f"clusters of {cluster} blocks take clusters in place of blocks, and read nothing ahead")
        return _clustered_rows(N, dtype, eps, plan_held_slices(N, dtype, cluster, clusters, few=True, **tuning))
    if ahead is None and blocks is None and not tuning:
        tuning, blocks, ahead = _usual(N)
    if ahead is None:
        ahead = N > 4096
    plan = plan_rows(N, dtype, words=6 if ahead else 4, few=True, **tuning)
    if plan.chunks > 1:
        plan = plan_rows(N, dtype, words=4, whole=False, **tuning)
    if blocks is None:
        blocks = MULTIPROCESSORS * (max(1, (256 if ahead else 768) // plan.threads) if plan.chunks == 1 else 4)
    if blocks < 1:
        raise ValueError(f"blocks is at least 1, not {blocks}")
    if plan.chunks == 1:
        return _whole_rows(N, dtype, eps, blocks, ahead, plan)
    return _long_rows(N, dtype, eps, blocks, plan)


def _usual(N: int) -> tuple:
    """(tuning, blocks, ahead) by measurement on an H200; nothing where none was measured."""
    if 512 < N <= 4096:
        threads = 1 << max(5, (N - 1).bit_length() - 4)
        return {"threads": threads, "elements": 16}, MULTIPROCESSORS * (768 // threads), True
    if 4096 < N <= 8192:
        return {"threads": 256, "elements": 32}, MULTIPROCESSORS * 2, False
    if 8192 < N <= 16384:
        return {"threads": 512, "elements": 32}, MULTIPROCESSORS, False
    return {}, None, None


def _whole_rows(N: int, dtype: str, eps: float, blocks: int, ahead: bool, plan: RowPlan):
    """The weight's gradient and one group of rows live in registers; the weight itself is near enough in the caches."""
    M = T.dyn("M")
    rows, threads = plan.rows, plan.threads

    @T.prim_func
    def rms_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                          DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32")):
        part = T.alloc_global((blocks, N), "float32")
        with T.Kernel(blocks, threads=threads) as b:
            dw = T.alloc_fragment((N,), "float32")
            x = T.alloc_fragment((rows, N), dtype)
            dy = T.alloc_fragment((rows, N), dtype)
            product = T.alloc_fragment((rows, N), "float32")
            scale = T.alloc_fragment((rows,), "float32")
            dot = T.alloc_fragment((rows,), "float32")
            T.clear(dw)
            if ahead:
                next_x = T.alloc_fragment((rows, N), dtype)
                next_dy = T.alloc_fragment((rows, N), dtype)
                if b * rows < M:
                    T.copy(X[b * rows : (b + 1) * rows, :], next_x)
                    T.copy(DY[b * rows : (b + 1) * rows, :], next_dy)
            for step in T.serial(T.ceildiv(M, blocks * rows)):
                first = (step * blocks + b) * rows
                if first < M:  # nothing inside asks again whether the row is there
                    if ahead:
                        T.copy(next_x, x)
                        T.copy(next_dy, dy)
                        # The last turn reads a row that nobody needs, in place of asking whether there is a next one.
                        for i, j in T.Parallel(rows, N):
                            next_x[i, j] = X[T.min(first + blocks * rows + i, M - 1), j]
                        for i, j in T.Parallel(rows, N):
                            next_dy[i, j] = DY[T.min(first + blocks * rows + i, M - 1), j]
                    else:
                        T.copy(X[first : first + rows, :], x)
                        T.copy(DY[first : first + rows, :], dy)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = x[i, j] * x[i, j]
                    T.reduce_sum(product, scale, dim=1)
                    for i, j in T.Parallel(rows, N):
                        product[i, j] = dy[i, j] * W[j] * x[i, j]
                    T.reduce_sum(product, dot, dim=1)
                    for i in T.Parallel(rows):
                        scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
                        dot[i] = dot[i] * (1.0 / N) * scale[i] * scale[i]
                    for i, j in T.Parallel(rows, N):
                        if first + i < M:  # what is read ahead past the end is the last row again
                            product[i, j] = dy[i, j] * x[i, j] * scale[i]
                        else:
                            product[i, j] = 0.0
                    T.reduce_sum(product, dw, dim=0, clear=False)
                    for i, j in T.Parallel(rows, N):
                        x[i, j] = (dy[i, j] * W[j] - x[i, j] * dot[i]) * scale[i]
                    T.copy(x, DX[first : first + rows, :])
            T.copy(dw, part[b, :])
        with T.Kernel(T.ceildiv(N, 16), threads=512) as c:
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(blocks, 256)):
                T.copy(part[step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, DW[c * 16 : (c + 1) * 16])

    return rms_norm_backward


def _long_rows(N: int, dtype: str, eps: float, blocks: int, plan: RowPlan):
    """Rows pass twice in chunks and leave their scale; columns are summed by slabs after that."""
    M = T.dyn("M")
    threads, chunk, chunks = plan.threads, plan.chunk, plan.chunks
    tall, wide = 16, 256  # rows and columns that a block of the second launch reads at the same time
    slabs = -(-N // wide)
    parts = max(1, blocks // slabs)

    @T.prim_func
    def rms_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                          DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32")):
        scales = T.alloc_global((M,), "float32")
        part = T.alloc_global((parts, N), "float32")
        with T.Kernel(M, threads=threads) as b:
            x = T.alloc_fragment((chunk,), dtype)
            dy = T.alloc_fragment((chunk,), dtype)
            square = T.alloc_fragment((chunk,), "float32")
            product = T.alloc_fragment((chunk,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            T.clear(square)
            T.clear(product)
            for c in T.serial(chunks):
                T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                T.copy(DY[b, c * chunk : (c + 1) * chunk], dy)
                for j in T.Parallel(chunk):
                    if c * chunk + j < N:
                        square[j] = square[j] + x[j] * x[j]
                        product[j] = product[j] + dy[j] * W[c * chunk + j] * x[j]
            T.reduce_sum(square, scale, dim=0)
            T.reduce_sum(product, dot, dim=0)
            scale[0] = T.rsqrt(scale[0] * (1.0 / N) + eps)
            dot[0] = dot[0] * (1.0 / N) * scale[0] * scale[0]
            for i in T.Parallel(1):
                scales[b + i] = scale[i]
            for back in T.serial(chunks):  # what was read last is in the cache
                c = chunks - 1 - back
                T.copy(X[b, c * chunk : (c + 1) * chunk], x)
                T.copy(DY[b, c * chunk : (c + 1) * chunk], dy)
                for j in T.Parallel(chunk):
                    if c * chunk + j < N:
                        DX[b, c * chunk + j] = (dy[j] * W[c * chunk + j] - x[j] * dot[0]) * scale[0]
        with T.Kernel(parts, slabs, threads=256) as (p, c):
            x = T.alloc_fragment((tall, wide), dtype)
            dy = T.alloc_fragment((tall, wide), dtype)
            sums = T.alloc_fragment((tall, wide), "float32")
            scale = T.alloc_fragment((tall,), "float32")
            total = T.alloc_fragment((wide,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(M, parts * tall)):
                first = (step * parts + p) * tall
                T.copy(X[first : first + tall, c * wide : (c + 1) * wide], x)
                T.copy(DY[first : first + tall, c * wide : (c + 1) * wide], dy)
                T.copy(scales[first : first + tall], scale)
                for i, j in T.Parallel(tall, wide):
                    sums[i, j] = sums[i, j] + dy[i, j] * x[i, j] * scale[i]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, part[p, c * wide : (c + 1) * wide])
        with T.Kernel(T.ceildiv(N, 16), threads=512) as c:
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(parts, 256)):
                T.copy(part[step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, DW[c * 16 : (c + 1) * 16])

    return rms_norm_backward


def _clustered_rows(N: int, dtype: str, eps: float, plan: ClusterPlan):
    """Every block of a cluster has a slice of the row and of the weight's gradient in registers. After the last row
    each block gets a piece of its slice from all clusters, and adds them.
    """
    M = T.dyn("M")
    clusters, cluster, threads, columns = plan.clusters, plan.cluster, plan.threads, plan.columns
    piece = -(-columns // clusters)

    @T.prim_func(mesh=T.Mesh((clusters, cluster)))
    def rms_norm_backward(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), DY: T.Tensor((M, N), dtype),
                          DX: T.Tensor((M, N), dtype), DW: T.Tensor((N,), "float32")):
        part = T.alloc_global((clusters * piece,), "float32")
        parts = T.alloc_global((clusters * piece,), "float32")
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            dw = T.alloc_fragment((columns,), "float32")
            x = T.alloc_fragment((columns,), dtype)
            dy = T.alloc_fragment((columns,), dtype)
            product = T.alloc_fragment((columns,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            dot = T.alloc_fragment((1,), "float32")
            mine = T.alloc_shared((2,), "float32")
            ours = T.alloc_shared((2,), "float32")
            T.clear(dw)
            T.clear(mine)
            for step in T.serial(T.ceildiv(M, clusters)):
                i = step * clusters + b
                if i < M:
                    T.copy(X[i, s * columns : (s + 1) * columns], x)
                    T.copy(DY[i, s * columns : (s + 1) * columns], dy)
                    for j in T.Parallel(columns):
                        product[j] = x[j] * x[j]
                    T.reduce_sum(product, scale, dim=0)
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            product[j] = dy[j] * W[s * columns + j] * x[j]
                        else:
                            product[j] = 0.0
                    T.reduce_sum(product, dot, dim=0)
                    mine[0] = scale[0]
                    mine[1] = dot[0]
                T.comm.all_reduce(mine, ours, axis="y")  # a cluster that has no row left meets as well
                if i < M:
                    scale[0] = T.rsqrt(ours[0] * (1.0 / N) + eps)
                    dot[0] = ours[1] * (1.0 / N) * scale[0] * scale[0]
                    for j in T.Parallel(columns):
                        dw[j] = dw[j] + dy[j] * x[j] * scale[0]
                    for j in T.Parallel(columns):
                        if s * columns + j < N:
                            DX[i, s * columns + j] = (dy[j] * W[s * columns + j] - x[j] * dot[0]) * scale[0]
            T.copy(dw, part[0:columns])
            T.fill(part[columns:], 0.0)
        T.comm.all_to_all(part, parts, axis="x")
        with T.Kernel(clusters, cluster, threads=threads) as (b, s):
            terms = T.alloc_fragment((clusters, piece), "float32")
            total = T.alloc_fragment((piece,), "float32")
            for k, j in T.Parallel(clusters, piece):
                terms[k, j] = parts[k * piece + j]
            T.reduce_sum(terms, total, dim=0)
            for j in T.Parallel(piece):
                if b * piece + j < columns and s * columns + b * piece + j < N:
                    DW[s * columns + b * piece + j] = total[j]

    return rms_norm_backward
