"""The gradient of attention on tensor cores, without the matrix of scores in memory.

Weights are made once more from the saved logarithms of sums (Dao, "FlashAttention-2", arXiv 2307.08691): a tile of
queries sums its gradient over tiles of keys, a tile of keys and values its own over tiles of queries, so that nothing
is added atomically and results repeat bit for bit.
"""

from __future__ import annotations

import math

from helve import T
from helve.kernels.attention_plan import BackwardPlan, check_attention, plan_attention_backward


def attention_backward(heads: int, head: int = 128, dtype: str = "bfloat16", *, heads_kv: int | None = None,
                       causal: bool = False, scale: float | None = None, **tuning):
    """The gradients of `attention` for Q, K and V, with sums in float32 that are rounded once.

    The kernel takes (Q, K, V, O, LSE, DO, DQ, DK, DV): what `attention` took, O and LSE as it made them, the gradient
    that comes in at O, and the results. DO, DQ are like Q, and DK, DV like K. LSE is (batch, heads, queries) of
    float32. Weights and the gradients of scores are rounded to the dtype before they are multiplied.

    Args:
        heads: heads of Q.
        head: elements of a query: 64 or 128.
        dtype: of all but LSE: "bfloat16", "float16" or "float32".
        heads_kv: heads of K and V, which divide `heads`.
        causal: as in `attention`.
        scale: of scores, positive; by default 1 / sqrt(head).
        tuning: parameters of `plan_attention_backward`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_attention(heads, heads_kv, head, dtype, scale)
    constants = (heads, head, dtype, heads_kv or heads, causal, head**-0.5 if scale is None else scale)
    batch, M, N = T.dyn("batch"), T.dyn("M"), T.dyn("N")
    query = T.Tensor((batch, heads, M, head), dtype)
    key = T.Tensor((batch, heads_kv or heads, N, head), dtype)
    row = T.Tensor((batch, heads, M), "float32")
    sums = sums_of_rows(heads, head, dtype)
    of_queries = queries_backward(*constants, plan_attention_backward(head, dtype, "queries", **tuning))
    of_keys = keys_backward(*constants, plan_attention_backward(head, dtype, "keys", **tuning))

    @T.prim_func
    def attention_backward(Q: query, K: key, V: key, O: query, LSE: row, DO: query, DQ: query, DK: key, DV: key):
        D = T.alloc_global((batch, heads, M), "float32")
        sums(O, DO, D)
        of_queries(Q, K, V, LSE, D, DO, DQ)
        of_keys(Q, K, V, LSE, D, DO, DK, DV)

    return attention_backward


def sums_of_rows(heads: int, head: int, dtype: str):
    """D = the sum over a row of O * DO: what a row's weights have in common in the gradient of its scores."""
    batch, M = T.dyn("batch"), T.dyn("M")
    query = T.Tensor((batch, heads, M, head), dtype)

    @T.prim_func
    def sums_of_rows(O: query, DO: query, D: T.Tensor((batch, heads, M), "float32")):
        with T.Kernel(T.ceildiv(M, 32), heads, batch, threads=128) as (t, h, z):
            o = T.alloc_fragment((32, head), "float32")
            do = T.alloc_fragment((32, head), "float32")
            d = T.alloc_fragment((32,), "float32")
            T.copy(O[z, h, t * 32 : t * 32 + 32, :], o)
            T.copy(DO[z, h, t * 32 : t * 32 + 32, :], do)
            for m, n in T.Parallel(32, head):
                o[m, n] = o[m, n] * do[m, n]
            T.reduce_sum(o, d, dim=1)
            T.copy(d, D[z, h, t * 32 : t * 32 + 32])

    return sums_of_rows


def queries_backward(heads: int, head: int, dtype: str, heads_kv: int, causal: bool, scale: float,
                     plan: BackwardPlan):
    """DQ = DS @ K * scale, for a tile of queries, where DS = P * (DO @ V^T - D)."""
    batch, M, N = T.dyn("batch"), T.dyn("M"), T.dyn("N")
    query = T.Tensor((batch, heads, M, head), dtype)
    key = T.Tensor((batch, heads_kv, N, head), dtype)
    row = T.Tensor((batch, heads, M), "float32")
    group, to_log2 = heads // heads_kv, scale * math.log2(math.e)
    rows, columns, dispatch = plan.rows, plan.columns, plan.dispatch

    @T.prim_func
    def queries_backward(Q: query, K: key, V: key, LSE: row, D: row, DO: query, DQ: query):
        with T.Kernel(T.ceildiv(M, rows), heads, batch, threads=plan.threads) as (t, h, z):
            q = T.alloc_shared((rows, head), dtype)
            do = T.alloc_shared((rows, head), dtype)
            k = T.alloc_shared((columns, head), dtype)
            v = T.alloc_shared((columns, head), dtype)
            s = T.alloc_fragment((rows, columns), "float32")
            dp = T.alloc_fragment((rows, columns), "float32")
            if plan.registers:
                ds = T.alloc_fragment((rows, columns), dtype)
            else:
                ds = T.alloc_shared((rows, columns), dtype)
            dq = T.alloc_fragment((rows, head), "float32")
            lse = T.alloc_fragment((rows,), "float32")
            d = T.alloc_fragment((rows,), "float32")
            i = t * rows
            T.copy(Q[z, h, i : i + rows, :], q)
            T.copy(DO[z, h, i : i + rows, :], do)
            T.copy(LSE[z, h, i : i + rows], lse)
            T.copy(D[z, h, i : i + rows], d)
            for m in T.Parallel(rows):
                lse[m] = lse[m] * math.log2(math.e)
            T.clear(dq)
            seen = i + 1 + N - M if causal else N  # keys of the first row
            turns = T.ceildiv(T.max(T.min(N, seen + rows - 1), 0) if causal else N, columns)
            for j in T.Pipelined(turns, num_stages=plan.stages):
                T.copy(K[z, h // group, j * columns : j * columns + columns, :], k)
                T.copy(V[z, h // group, j * columns : j * columns + columns, :], v)
                T.gemm(q, k, s, transpose_B=True, clear=True, dispatch=dispatch)
                T.gemm(do, v, dp, transpose_B=True, clear=True, dispatch=dispatch)
                for m, n in T.Parallel(rows, columns):
                    p = T.exp2_approx(T.fma(s[m, n], to_log2, -lse[m]))
                    hidden = j * columns + n >= (T.min(N, seen + m) if causal else N)
                    s[m, n] = T.if_then_else(hidden, 0.0, p * (dp[m, n] - d[m]))
                T.copy(s, ds)
                T.gemm(ds, k, dq, dispatch=dispatch)
            for m, n in T.Parallel(rows, head):
                dq[m, n] = dq[m, n] * scale
            T.copy(dq, DQ[z, h, i : i + rows, :])

    return queries_backward


def keys_backward(heads: int, head: int, dtype: str, heads_kv: int, causal: bool, scale: float, plan: BackwardPlan):
    """DV = P^T @ DO and DK = DS^T @ Q * scale, for a tile of keys, over the queries of all heads that it serves.

    Scores are made transposed, keys by queries, so that they are the first factor of what follows as they are.
    """
    batch, M, N = T.dyn("batch"), T.dyn("M"), T.dyn("N")
    query = T.Tensor((batch, heads, M, head), dtype)
    key = T.Tensor((batch, heads_kv, N, head), dtype)
    row = T.Tensor((batch, heads, M), "float32")
    group, to_log2 = heads // heads_kv, scale * math.log2(math.e)
    rows, columns, dispatch = plan.rows, plan.columns, plan.dispatch

    @T.prim_func
    def keys_backward(Q: query, K: key, V: key, LSE: row, D: row, DO: query, DK: key, DV: key):
        with T.Kernel(T.ceildiv(N, rows), heads_kv, batch, threads=plan.threads) as (t, h, z):
            k = T.alloc_shared((rows, head), dtype)
            v = T.alloc_shared((rows, head), dtype)
            q = T.alloc_shared((columns, head), dtype)
            do = T.alloc_shared((columns, head), dtype)
            s = T.alloc_fragment((rows, columns), "float32")
            dp = T.alloc_fragment((rows, columns), "float32")
            if plan.registers:
                p = T.alloc_fragment((rows, columns), dtype)
                ds = T.alloc_fragment((rows, columns), dtype)
            else:
                p = T.alloc_shared((rows, columns), dtype)
                ds = T.alloc_shared((rows, columns), dtype)
            lse = T.alloc_fragment((columns,), "float32")
            d = T.alloc_fragment((columns,), "float32")
            dk = T.alloc_fragment((rows, head), "float32")
            dv = T.alloc_fragment((rows, head), "float32")
            j = t * rows
            T.copy(K[z, h, j : j + rows, :], k)
            T.copy(V[z, h, j : j + rows, :], v)
            T.clear(dk)
            T.clear(dv)
            first = T.max(j + M - N, 0) // columns if causal else 0  # tile of the first query that sees these keys
            tiles = T.max(T.ceildiv(M, columns) - first, 0)
            for turn in T.Pipelined(group * tiles, num_stages=plan.stages):
                g = h * group + turn // tiles
                i = (first + turn % tiles) * columns
                T.copy(Q[z, g, i : i + columns, :], q)
                T.copy(DO[z, g, i : i + columns, :], do)
                T.copy(LSE[z, g, i : i + columns], lse)
                T.copy(D[z, g, i : i + columns], d)
                T.gemm(k, q, s, transpose_B=True, clear=True, dispatch=dispatch)
                T.gemm(v, do, dp, transpose_B=True, clear=True, dispatch=dispatch)
                for n, m in T.Parallel(rows, columns):
                    weight = T.exp2_approx(T.fma(s[n, m], to_log2, -lse[m] * math.log2(math.e)))
                    hidden = (i + m >= M) or (j + n >= (T.min(N, i + m + 1 + N - M) if causal else N))
                    s[n, m] = T.if_then_else(hidden, 0.0, weight)
                    dp[n, m] = T.if_then_else(hidden, 0.0, weight * (dp[n, m] - d[m]))
                T.copy(s, p)
                T.copy(dp, ds)
                T.gemm(p, do, dv, dispatch=dispatch)
                T.gemm(ds, q, dk, dispatch=dispatch)
            for n, m in T.Parallel(rows, head):
                dk[n, m] = dk[n, m] * scale
            T.copy(dk, DK[z, h, j : j + rows, :])
            T.copy(dv, DV[z, h, j : j + rows, :])

    return keys_backward
