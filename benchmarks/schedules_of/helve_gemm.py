"""A product of matrices by plain loops, and the schedule that makes it as fast as a library's.

The tutorial docs/tutorials/gemm_by_loops.md explains each line; benchmarks/gemm_by_loops.py measures them.
"""

from __future__ import annotations

import helve
from helve import T, _core

# Rows and columns of the sums in registers: 12 of the 16 that AVX2 has, 24 of the 32 of AVX-512.
ROWS, COLUMNS = (12, 32) if _core.host_machine().vector_bytes >= 64 else (6, 16)
MANY, DEEP = 96, 512  # rows of A, and length of sums, that fit the second-level cache at once
WIDE = 1024  # columns of B, of which DEEP rows fit it or the third-level cache


def product(m: int, n: int, depth: int):
    """C = A B, as in a textbook."""

    @T.prim_func
    def product(A: T.Tensor((m, depth), "float32"), B: T.Tensor((depth, n), "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(m) as x:
            for y in T.Parallel(n):
                C[x, y] = 0.0
        with T.Kernel(1) as b:
            for i in T.serial(m):
                for j in T.serial(n):
                    for k in T.serial(depth):
                        C[i, j] = C[i, j] + A[i, k] * B[k, j]

    return product


def schedule(program, columns: int, depth: int) -> helve.Schedule:
    """Each core computes `columns` columns of C; a sum has `depth` terms."""
    # lines of the schedule: begin
    s = helve.Schedule(program)
    jb, j = s.split("j", columns)
    jo, ji = s.split(j, COLUMNS)
    ic, i = s.split("i", MANY)
    io, ii = s.split(i, ROWS)
    ko, ki = s.split("k", min(depth, DEEP))
    s.reorder(jb, ko, ic, jo, io, ki, ii, ji)
    s.cache_read(ic, "B", "shared")
    s.set_layout("B_shared", f"tile({min(depth, DEEP)}, {COLUMNS})")
    s.cache_read(jo, "A", "shared")
    s.cache_write(ki, "C")
    for lanes in ("w1", "w1_1", "w1_2", "v1", ji):
        s.vectorize(s.split(lanes, COLUMNS)[1])
    s.unroll(ii)
    s.bind(jb)
    # lines of the schedule: end
    return s


def columns_of(n: int, threads: int) -> int:
    """Whole tiles, as many for each thread, of at most WIDE columns."""
    return min(-(-n // (COLUMNS * threads)) * COLUMNS, WIDE)
