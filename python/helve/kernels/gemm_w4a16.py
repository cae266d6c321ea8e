"""Products with weights of four bits: what a linear layer computes whose weights are read at a quarter of the bytes.

Weights become factors of 16 bits in registers, a tile at a time, and are the left factor, whose rows a product of
warpgroups takes from registers: C^T = W @ X^T. `plan_w4a16` chooses the tiles.
"""

from __future__ import annotations

from helve import T
from helve.kernels.gemm_steps import add_parts
from helve.kernels.rows import check_arguments
from helve.kernels.w4a16_plan import PADDING, check_w4a16, plans_by_rows



def gemm_w4a16(N: int, K: int, dtype: str = "bfloat16", *, group: int = 128, scales: str | None = None,
               M: int | None = None, **tuning):
    """C = X @ (W * SCALES)^T with W of int4, -8 to 7, in sums of float32 that are rounded once.

    The kernel takes (X, W, SCALES, C). X is (M, K), W is (N, K) of int4, so an array of uint8 (N, K / 2) of which each
    byte has two neighbours along K, the first one in the low half. SCALES is (N, K / group): each of its elements
    scales `group` neighbours of a row of W. C is (M, N). A weight times its scale is rounded to `dtype` before it is
    multiplied, as in a matrix of such weights. Tensors that begin at multiples of 16 bytes are copied by TMA; others
    slower.

    Args:
        N: columns of C, rows of W.
        K: terms of a sum, a multiple of `group`.
        dtype: of X and C: "bfloat16" or "float16".
        group: weights that share a scale, a multiple of 32; K for one scale a row.
        scales: dtype of SCALES: `dtype`, the default and the fastest, or "float32".
        M: rows of X; None leaves them to the call, which launches the kernel for as many.
        tuning: parameters of `plan_w4a16`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_w4a16(N, K, dtype, group, scales)
    check_arguments(**({} if M is None else {"M": M}))
    plans = plans_by_rows(M, N, K, group, **tuning)
    scales = scales or dtype
    M = T.dyn("M") if M is None else M
    left, result = T.Tensor((M, K), dtype), T.Tensor((M, N), dtype)
    groups = K // group

    def convert(plan, q, s, w, SCALES, j, k, first):
        """A half of a tile of weights, from column `first` of it on."""
        if plan.scales:
            for n, d in T.Parallel(plan.rows, plan.half):
                w[n, d] = T.cast(q[n, first + d], "float32") * s[n]
        else:
            for n, d in T.Parallel(plan.rows, plan.half):  # weights behind the last row are 0
                w[n, d] = T.cast(q[n, first + d], "float32") * SCALES[T.min(j + n, N - 1), (k + first + d) // group]

    def product(plan, X, W, SCALES, C):
        rows, columns, depth, half, split = plan.rows, plan.columns, plan.depth, plan.half, plan.split
        turns = K // depth // split
        if split > 1:
            part = T.alloc_global((split, M, N), "float32")
        with T.Kernel(plan.blocks, threads=plan.threads, cluster=plan.cluster):
            x0 = T.alloc_shared((columns, half), dtype)
            x1 = T.alloc_shared((columns, half), dtype)
            q = T.alloc_shared((rows, depth), "int4")
            if plan.registers:
                w0 = T.alloc_fragment((rows, half), dtype)
                w1 = T.alloc_fragment((rows, half), dtype)
            else:
                w0 = T.alloc_shared((rows, half), dtype)
                w1 = T.alloc_shared((rows, half), dtype)
            s0 = T.alloc_fragment((rows,), scales)
            s1 = T.alloc_fragment((rows,), scales)
            c = T.alloc_fragment((rows, columns), "float32")

            def sums(j, i, first):
                """Of a tile of C^T, over the terms from `first` on. One half of the weights is converted while tensor
                cores multiply the other.
                """
                T.clear(c)
                for turn in T.Pipelined(turns, num_stages=plan.stages):
                    k = first + turn * depth
                    T.copy(W[j : j + rows, k : k + depth], q)
                    T.copy(X[i : i + columns, k : k + half], x0)
                    T.copy(X[i : i + columns, k + half : k + depth], x1)
                    if plan.scales:  # while products of the last turn run
                        T.copy(SCALES[j : j + rows, k // group], s0)
                        T.copy(SCALES[j : j + rows, (k + half) // group], s1)
                    convert(plan, q, s0, w0, SCALES, j, k, 0)
                    T.gemm(w0, x0, c, transpose_B=True, dispatch="tensor_cores")
                    convert(plan, q, s1, w1, SCALES, j, k, half)
                    T.gemm(w1, x1, c, transpose_B=True, dispatch="tensor_cores")

            if split > 1:
                for z, b, a in T.Persistent([split, T.ceildiv(N, rows), T.ceildiv(M, columns)]):
                    sums(b * rows, a * columns, z * turns * depth)
                    for n, m in T.Parallel(rows, columns):
                        if a * columns + m < M and b * rows + n < N:
                            part[z, a * columns + m, b * rows + n] = c[n, m]
            else:
                for b, a in T.Persistent([T.ceildiv(N, rows), T.ceildiv(M, columns)]):
                    sums(b * rows, a * columns, 0)
                    if plan.staged:
                        turned = T.alloc_shared((columns, rows + PADDING), dtype)
                        for n, m in T.Parallel(rows, columns):
                            turned[m, n] = c[n, m]
                        T.copy(turned[:, 0:rows], C[a * columns : (a + 1) * columns, b * rows : (b + 1) * rows])
                    else:
                        for n, m in T.Parallel(rows, columns):
                            if a * columns + m < M and b * rows + n < N:
                                C[a * columns + m, b * rows + n] = c[n, m]
        if split > 1:
            add_parts(part, C, lambda x, m, n: x)

    rest = None
    for most, plan in reversed(plans):
        @T.prim_func
        def gemm_w4a16(X: left, W: T.Tensor((N, K), "int4"), SCALES: T.Tensor((N, groups), scales), C: result):
            if rest is None or M <= most:
                product(plan, X, W, SCALES, C)
            else:
                rest(X, W, SCALES, C)

        rest = gemm_w4a16

    return rest
