"""Sums over the rows and over the columns of a matrix.

Row sums are a reduction in each block. Column sums go over two launches: every block leaves the sums of its rows, and a
second kernel adds them, so that results repeat bit for bit.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import MULTIPROCESSORS, check_arguments, plan_rows


def row_sums(N: int, dtype: str = "float32", **tuning):
    """S[i] = sum over j of X[i, j].

    The kernel takes (X, S): X (M, N) of `dtype` with any number of rows M, S (M,) float32.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        tuning: `rows`, `threads`, `elements` of `plan_rows`.

    Raises:
        ValueError: an argument is out of its range.
    """
    plan = plan_rows(N, dtype, words=2, **tuning)
    M = T.dyn("M")
    rows, threads, chunk, chunks = plan.rows, plan.threads, plan.chunk, plan.chunks

    @T.prim_func
    def row_sums(X: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            x = T.alloc_fragment((rows, chunk), "float32")
            total = T.alloc_fragment((rows, chunk), "float32")
            s = T.alloc_fragment((rows,), "float32")
            T.clear(total)
            for c in T.serial(chunks):
                T.copy(X[b * rows : (b + 1) * rows, c * chunk : (c + 1) * chunk], x)
                for i, j in T.Parallel(rows, chunk):
                    total[i, j] = total[i, j] + x[i, j]
            T.reduce_sum(total, s, dim=1)
            for i in T.Parallel(rows):
                if b * rows + i < M:
                    S[b * rows + i] = s[i]

    return row_sums


def column_sums(N: int, dtype: str = "float32", blocks: int = 3 * MULTIPROCESSORS, threads: int = 256, rows: int = 32):
    """S[j] = sum over i of X[i, j].

    The kernel takes (X, S): X (M, N) of `dtype` with any number of rows M, S (N,) float32.

    Args:
        N: elements of a row.
        dtype: "float32", "float16" or "bfloat16".
        blocks: about how many blocks share the matrix: a small multiple of the device's multiprocessors.
        threads: threads per block.
        rows: rows that a block reads at the same time.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(N=N, dtype=dtype, blocks=blocks, threads=threads, rows=rows)
    M = T.dyn("M")
    width = max(1, min(N, 32 * threads // rows))
    slabs = -(-N // width)
    parts = max(1, blocks // slabs)
    add_parts = sum_of_parts(parts, N)

    @T.prim_func
    def column_sums(X: T.Tensor((M, N), dtype), S: T.Tensor((N,), "float32")):
        part = T.alloc_global((parts, N), "float32")
        with T.Kernel(parts, slabs, threads=threads) as (p, c):
            x = T.alloc_fragment((rows, width), "float32")
            total = T.alloc_fragment((rows, width), "float32")
            s = T.alloc_fragment((width,), "float32")
            T.clear(total)
            for step in T.serial(T.ceildiv(M, parts * rows)):
                first = (step * parts + p) * rows
                T.copy(X[first : first + rows, c * width : (c + 1) * width], x)
                for i, j in T.Parallel(rows, width):
                    total[i, j] = total[i, j] + x[i, j]
            T.reduce_sum(total, s, dim=0)
            T.copy(s, part[p, c * width : (c + 1) * width])
        add_parts(part, S)

    return column_sums


def sum_of_parts(parts: int, N: int):
    """The second launch of sums over rows: S[j] = sum over p of P[p, j], for P (parts, N) and S (N,) of float32."""

    @T.prim_func
    def sum_of_parts(P: T.Tensor((parts, N), "float32"), S: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 16), threads=512) as c:
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(parts, 256)):
                T.copy(P[step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, S[c * 16 : (c + 1) * 16])

    return sum_of_parts


def two_sums_of_parts(parts: int, N: int):
    """As `sum_of_parts`, of P[0] to S and of P[1] to R in one launch, for P (2, parts, N)."""

    @T.prim_func
    def two_sums_of_parts(P: T.Tensor((2, parts, N), "float32"), S: T.Tensor((N,), "float32"),
                          R: T.Tensor((N,), "float32")):
        with T.Kernel(2, T.ceildiv(N, 16), threads=512) as (which, c):
            sums = T.alloc_fragment((256, 16), "float32")
            more = T.alloc_fragment((256, 16), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(parts, 256)):
                T.copy(P[which, step * 256 : (step + 1) * 256, c * 16 : (c + 1) * 16], more)
                for i, j in T.Parallel(256, 16):
                    sums[i, j] = sums[i, j] + more[i, j]
            T.reduce_sum(sums, total, dim=0)
            if which == 0:
                T.copy(total, S[c * 16 : (c + 1) * 16])
            else:
                T.copy(total, R[c * 16 : (c + 1) * 16])

    return two_sums_of_parts
