"""What kernels of products do with a tile of C, and with sums of parts of K, as parts of their programs.

The terms of a sum are taken in steps of `depth`. A part is a number of steps, which a block sums for itself; the parts
of an element are added in their order, so that results repeat bit for bit.
"""

from __future__ import annotations

from helve import T

COLUMNS = 512  # of a block that adds parts: eight for each thread, a vector of 16 bits
THREADS = 64


@T.macro
def sum_steps(A, B, a, b, c, i, j, first, steps, plan, transpose_A, transpose_B):
    """c = the tile of A @ B from row i and column j on, in the terms of so many steps from the first on."""
    T.clear(c)
    for step in T.Pipelined(steps, num_stages=plan.stages):
        k = (first + step) * plan.depth
        if transpose_A:
            T.copy(A[k : k + plan.depth, i : i + plan.rows], a)
        else:
            T.copy(A[i : i + plan.rows, k : k + plan.depth], a)
        if transpose_B:
            T.copy(B[j : j + plan.columns, k : k + plan.depth], b)
        else:
            T.copy(B[k : k + plan.depth, j : j + plan.columns], b)
        T.gemm(a, b, c, transpose_A=transpose_A, transpose_B=transpose_B, dispatch="tensor_cores")


@T.macro
def add_parts(PARTS, C, finish):
    """The launch that adds PARTS, (parts, M, N) of float32: C[m, n] = finish(sum, m, n)."""
    with T.Kernel(PARTS.shape[1], T.ceildiv(PARTS.shape[2], COLUMNS), threads=THREADS) as (m, j):
        c = T.alloc_fragment((COLUMNS,), "float32")
        part = T.alloc_fragment((COLUMNS,), "float32")
        T.copy(PARTS[0, m, j * COLUMNS : j * COLUMNS + COLUMNS], c)
        for p in T.unroll(1, PARTS.shape[0]):
            T.copy(PARTS[p, m, j * COLUMNS : j * COLUMNS + COLUMNS], part)
            for n in T.Parallel(COLUMNS):
                c[n] = c[n] + part[n]
        for n in T.Parallel(COLUMNS):
            if j * COLUMNS + n < PARTS.shape[2]:
                c[n] = finish(c[n], m, j * COLUMNS + n)
        T.copy(c, C[m, j * COLUMNS : j * COLUMNS + COLUMNS])
