"""Products of groups of rows, each with a matrix of its own, as the experts of a mixture have them.

Where a group begins is read from memory. Tiles of rows begin where groups do, and are numbered so that a tile's group
is found by its number alone: no block waits for a tile of nothing, however much the groups differ in length.
"""

from __future__ import annotations

from collections.abc import Callable

from helve import T
from helve.kernels.gemm import ACTIVATIONS
from helve.kernels.gemm_plan import OUTPUTS, check_gemm, plans_by_rows
from helve.kernels.gemm_steps import sum_steps
from helve.kernels.rows import check_arguments

MOST_GROUPS = 4096
WIDE = 8  # tiles of columns of a strip: its rows follow each other, so that those of a group share what they read of B


def grouped_gemm(groups: int, dtype: str = "bfloat16", out: str | None = None, *, M: int | None = None,
                 N: int | None = None, K: int | None = None, transpose_B: bool = False, scale: bool = False,
                 bias: bool = False, activation: str | Callable | None = None, **tuning):
    """C[rows of g] = activation(A[rows of g] @ B[g] * SCALE[g] + BIAS[g]) for every group g of rows.

    The kernel takes (A, B, places, C) with those of SCALE and BIAS that are asked for in front of C. A is (all rows,
    K), the rows of one group after those of the other; B is (groups, K, N), or (groups, N, K) if transposed; C is (all
    rows, N). `places` is int32, (groups + 1,), and says where each group begins and the last ends: 0, n0, n0 + n1, ...
    Lengths are any, 0 too; rows of no group are not written. Places do not decrease: so no two tiles write one row.
    Sums are float32 and rounded once.

    Args:
        groups: how many there are, up to 4096.
        dtype: of A and B, as of `gemm`.
        out: of BIAS and C, as of `gemm`.
        M: rows that a group is expected to have. By default a call takes tiles for its mean, where N is known.
        N: columns of C; None leaves them to the call, and so for K.
        K: terms of a sum.
        transpose_B: is B (groups, N, K), as weights of linear layers are?
        scale: are sums of a group multiplied by its element of SCALE, (groups,) of float32?
        bias: is a group's row of BIAS, (groups, N), added to all its rows?
        activation: as of `gemm`.
        tuning: parameters of `plan_gemm`; `cluster` and `split` are 1.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_gemm(dtype, out, False, transpose_B, activation, ACTIVATIONS)
    extents = {name: extent for name, extent in (("M", M), ("N", N), ("K", K)) if extent is not None}
    check_arguments(groups=groups, **extents)
    if groups > MOST_GROUPS:
        raise ValueError(f"groups is at most {MOST_GROUPS}, not {groups}")
    for name in ("cluster", "split"):
        if tuning.setdefault(name, 1) != 1:
            raise ValueError(f"{name} is 1 for products of groups, not {tuning[name]!r}")
    if "count" in tuning:
        raise ValueError("count is the number of groups, and no parameter of its own")
    plans = [(most, plan, _strip(N, plan.columns))
             for most, plan in plans_by_rows(M, N, dtype, K=K, count=groups, **tuning)]
    out = out or (dtype if dtype in OUTPUTS else "bfloat16")
    activate = activation if callable(activation) else ACTIVATIONS[activation]
    R, N, K = T.dyn("rows"), T.dyn("N") if N is None else N, T.dyn("K") if K is None else K
    right = T.Tensor((groups, N, K) if transpose_B else (groups, K, N), dtype)

    def products(plan, wide, A, B, places, SCALE, BIAS, C):
        rows, columns, depth = plan.rows, plan.columns, plan.depth

        def begin(g):
            return T.max(T.index(places[g]), 0)  # places out of range reach no other memory

        def first(g):  # the number of a group's first tile, behind those of all groups before it
            return begin(g) // rows + g

        with T.Kernel(plan.blocks, threads=plan.threads):
            a = T.alloc_shared((rows, depth), dtype)
            b = T.alloc_shared((columns, depth) if transpose_B else (depth, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")

            def tile(t, j):
                g = last_group(t, first, groups)
                number = t - first(g)  # of the group's tiles; below 0 in front of the first group
                i = begin(g) + T.max(number, 0) * rows
                end = T.min(T.index(places[g + 1]), R)
                steps = T.ceildiv(K, depth) * T.max(T.min(T.min(end - i, N - j), 1), 0)  # none for a tile of nothing
                sum_steps(A, B[g, :, :], a, b, c, i, j, 0, steps, plan, False, transpose_B)
                if scale or bias or activation is not None:
                    for m, n in T.Parallel(rows, columns):
                        if j + n < N:
                            x = c[m, n] * SCALE[g] if scale else c[m, n]
                            c[m, n] = activate(x + BIAS[g, j + n] if bias else x)
                if number >= 0:
                    if i + rows <= end:
                        T.copy(c, C[i : i + rows, j : j + columns])
                    else:
                        for m, n in T.Parallel(rows, columns):
                            if i + m < end and j + n < N:  # rows behind the end are those of the next group
                                C[i + m, j + n] = T.cast(c[m, n], out)

            if wide > 0:
                for strip, t, column in T.Persistent([T.ceildiv(N, columns * wide), R // rows + groups, wide]):
                    tile(t, (strip * wide + column) * columns)
            else:
                for t, column in T.Persistent([R // rows + groups, T.ceildiv(N, columns)]):
                    tile(t, column * columns)

    rest = None
    for most, plan, wide in reversed(plans):
        @T.prim_func
        def grouped_gemm(A: T.Tensor((R, K), dtype), B: right, places: T.Tensor((groups + 1,), "int32", sorted=True),
                         SCALE: T.Tensor((groups,), "float32") if scale else None,
                         BIAS: T.Tensor((groups, N), out) if bias else None, C: T.Tensor((R, N), out)):
            if rest is None or R <= most * groups:
                products(plan, wide, A, B, places, SCALE, BIAS, C)
            else:
                rest(A, B, places, SCALE=SCALE, BIAS=BIAS, C=C)

        rest = grouped_gemm

    return rest


def _strip(N: int | None, columns: int) -> int:
    """Tiles of columns of a strip: of equal ones, where N is known; 0 where it is not."""
    if N is None:
        return 0
    tiles = -(-N // columns)
    return -(-tiles // -(-tiles // WIDE))


def last_group(t, first, groups: int):
    """The last group whose first tile is tile t or one before it, by a search of 12 steps at most.

    Written as what a value is, not as a loop: then warps that copy ahead can make the search for themselves.
    """
    return _sixteenths(_sixteenths(_sixteenths(0, t, first, groups, 256), t, first, groups, 16), t, first, groups, 1)


def _sixteenths(g, t, first, groups: int, step: int):
    g = _half(_half(g, t, first, groups, 8 * step), t, first, groups, 4 * step)
    return _half(_half(g, t, first, groups, 2 * step), t, first, groups, step)


def _half(g, t, first, groups: int, step: int):
    """The group `step` after g if its first tile is tile t or one before it, else g, of which that is known."""
    further = T.min(g + step, groups - 1)
    return T.if_then_else(first(further) <= t, further, g) if step < groups else g
