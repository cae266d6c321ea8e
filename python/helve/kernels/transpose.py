"""Transposition of a matrix.

A tile passes through shared memory, so that both the reads and the writes of neighbouring threads lie side by side;
the compiler chooses its layout there, so that accesses to columns have no bank conflicts.
"""

from __future__ import annotations

from helve import T
from helve.kernels.rows import check_arguments


def transpose(dtype: str = "float32", tile: int = 64, threads: int = 256, M: int | None = None, N: int | None = None):
    """Y[j, i] = X[i, j].

    The kernel takes (X, Y): X (M, N), Y (N, M), both of `dtype`. Rows that are multiples of 16 bytes are read and
    written in vectors; where the call decides the extents, it also decides which version of the kernel runs.

    Args:
        dtype: "float32", "float16" or "bfloat16".
        tile: rows and columns that a block turns.
        threads: threads per block.
        M: rows of X; None leaves them to the call.
        N: columns of X; None leaves them to the call.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_arguments(dtype=dtype, tile=tile, threads=threads)
    check_arguments(**{name: extent for name, extent in (("M", M), ("N", N)) if extent is not None})
    if tile > 128:
        raise ValueError(f"tile is at most 128, not {tile}")
    rows = T.dyn("M") if M is None else M
    columns = T.dyn("N") if N is None else N

    @T.prim_func
    def transpose(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((columns, rows), dtype)):
        with T.Kernel(T.ceildiv(rows, tile), T.ceildiv(columns, tile), threads=threads) as (r, c):
            x = T.alloc_shared((tile, tile), dtype)
            T.copy(X[r * tile : (r + 1) * tile, c * tile : (c + 1) * tile], x)
            for j, i in T.Parallel(tile, tile):
                if c * tile + j < columns and r * tile + i < rows:
                    Y[c * tile + j, r * tile + i] = x[i, j]

    return transpose
