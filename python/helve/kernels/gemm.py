"""Products of matrices on tensor cores, with what follows a product: bias, activation, residual.

One text is the kernel of all machines: blocks take tiles of the result in turn, copies run ahead of products, and the
instruction is chosen where it is compiled. `plan_gemm` chooses the tiles.
"""

from __future__ import annotations

from collections.abc import Callable

from helve import T
from helve.kernels.gemm_plan import OUTPUTS, check_gemm, choices_by_rows
from helve.kernels.gemm_steps import add_parts, sum_steps
from helve.kernels.rows import check_arguments

ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: T.max(x, 0.0),
    "silu": lambda x: x * T.sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476)),
}


def gemm(dtype: str = "bfloat16", out: str | None = None, *, M: int | None = None, N: int | None = None,
         K: int | None = None, transpose_A: bool = False, transpose_B: bool = False, batch: bool = False,
         scale: bool = False, bias: bool = False, activation: str | Callable | None = None, residual: bool = False,
         **tuning):
    """C = activation(A @ B * SCALE + BIAS) + RESIDUAL, in sums of float32 that are rounded once.

    The kernel takes (A, B, C) with those of SCALE, BIAS, RESIDUAL that are asked for in front of C. A is (M, K), or
    (K, M) if transposed; B is (K, N), or (N, K); BIAS is (N,), RESIDUAL and C are (M, N). `batch` gives all but SCALE
    and BIAS a further dimension in front. Rows that begin at multiples of 16 bytes are copied by TMA; others slower.
    Where tiles of C do not fill the machine, K is divided among several blocks for each tile, whose sums a second
    launch adds, in a fixed order: results repeat bit for bit.

    Args:
        dtype: of A and B: "bfloat16", "float16", "float8_e4m3" or "float8_e5m2". Factors of 8 bits have K as their last
            dimension: transpose_B, and not transpose_A.
        out: of BIAS, RESIDUAL and C: "bfloat16", "float16" or "float32"; by default `dtype`, or bfloat16 for 8 bits.
        M: rows of C; None leaves them to the call, and so for N and K. Tiles are chosen for the numbers.
        N: columns of C.
        K: terms of a sum.
        transpose_A: is A (K, M)?
        transpose_B: is B (N, K), as weights of a linear layer are?
        batch: is it one product for each index of a first dimension?
        scale: are sums multiplied by SCALE, (1,) of float32, as factors of 8 bits need?
        bias: is a row added to all rows?
        activation: "relu", "silu", "gelu", or a function of a value; None for none.
        residual: is a matrix added to the result?
        tuning: parameters of `plan_gemm`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_gemm(dtype, out, transpose_A, transpose_B, activation, ACTIVATIONS)
    check_arguments(**{name: extent for name, extent in (("M", M), ("N", N), ("K", K)) if extent is not None})
    if batch and tuning.setdefault("split", 1) != 1:
        raise ValueError(f"split is 1 for a batch, not {tuning['split']!r}")
    choices = choices_by_rows(M, N, dtype, K=K, **{"count": None if batch else 1, **tuning})
    out = out or (dtype if dtype in OUTPUTS else "bfloat16")
    activate = activation if callable(activation) else ACTIVATIONS[activation]
    M, N, K = (T.dyn(name) if extent is None else extent for name, extent in (("M", M), ("N", N), ("K", K)))
    front = (T.dyn("batch"),) if batch else ()
    left = T.Tensor((*front, K, M) if transpose_A else (*front, M, K), dtype)
    right = T.Tensor((*front, N, K) if transpose_B else (*front, K, N), dtype)
    result = T.Tensor((*front, M, N), out)

    def product(plan, A, B, SCALE, BIAS, RESIDUAL, C):
        rows, columns, depth = plan.rows, plan.columns, plan.depth

        def finish(x, n, added):
            x = x * SCALE[0] if scale else x
            x = activate(x + BIAS[n] if bias else x)
            return x + added() if residual else x

        if plan.split > 1:
            PARTS = T.alloc_global((plan.split, M, N), "float32")
        with T.Kernel(plan.blocks, threads=plan.threads, cluster=plan.cluster):
            a = T.alloc_shared((depth, rows) if transpose_A else (rows, depth), dtype)
            b = T.alloc_shared((columns, depth) if transpose_B else (depth, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")

            def tile(A, B, C, i, j, added):
                sum_steps(A, B, a, b, c, i, j, 0, T.ceildiv(K, depth), plan, transpose_A, transpose_B)
                if scale or bias or residual or activation is not None:
                    for m, n in T.Parallel(rows, columns):
                        if (not residual or i + m < M) and (not (bias or residual) or j + n < N):  # what is read exists
                            c[m, n] = finish(c[m, n], j + n, lambda: added(i + m, j + n))
                T.copy(c, C[i : i + rows, j : j + columns])

            if batch:
                for z, i, j in T.Persistent([front[0], T.ceildiv(M, rows), T.ceildiv(N, columns)]):
                    tile(A[z, :, :], B[z, :, :], C[z, :, :], i * rows, j * columns, lambda m, n: RESIDUAL[z, m, n])
            elif plan.split == 1:
                for i, j in T.Persistent([T.ceildiv(M, rows), T.ceildiv(N, columns)]):
                    tile(A, B, C, i * rows, j * columns, lambda m, n: RESIDUAL[m, n])
            else:
                for part, i, j in T.Persistent([plan.split, T.ceildiv(M, rows), T.ceildiv(N, columns)]):
                    first = part * T.ceildiv(T.ceildiv(K, depth), plan.split)
                    left = T.max(T.ceildiv(K, depth) - first, 0)  # none for the last ones of very many parts
                    steps = T.min(T.ceildiv(T.ceildiv(K, depth), plan.split), left)
                    sum_steps(A, B, a, b, c, i * rows, j * columns, first, steps, plan, transpose_A, transpose_B)
                    T.copy(c, PARTS[part, i * rows : i * rows + rows, j * columns : j * columns + columns])
        if plan.split > 1:
            add_parts(PARTS, C, lambda x, m, n: finish(x, n, lambda: RESIDUAL[m, n]))

    rest = None
    for fits, plan in reversed(choices):
        @T.prim_func
        def gemm(A: left, B: right, SCALE: T.Tensor((1,), "float32") if scale else None,
                 BIAS: T.Tensor((N,), out) if bias else None, RESIDUAL: result if residual else None, C: result):
            if rest is None or fits(M):
                product(plan, A, B, SCALE, BIAS, RESIDUAL, C)
            else:
                rest(A, B, SCALE=SCALE, BIAS=BIAS, RESIDUAL=RESIDUAL, C=C)

        rest = gemm

    return rest
