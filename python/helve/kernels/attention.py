"""Attention on tensor cores: softmax(Q @ K^T * scale) @ V, without the matrix of scores in memory.

Scores of a tile of queries are made, and used, a tile of keys at a time (attention_steps.py). `plan_attention` chooses
the tiles.
"""

from __future__ import annotations

import math

from helve import T
from helve.kernels.attention_plan import check_attention, plan_attention
from helve.kernels.attention_steps import begin, divide, log_of_sum, mask, weigh


def attention(heads: int, head: int = 128, dtype: str = "bfloat16", *, heads_kv: int | None = None,
              causal: bool = False, lse: bool = False, scale: float | None = None, **tuning):
    """O = softmax(Q @ K^T * scale) @ V for every head, with sums in float32.

    The kernel takes (Q, K, V, O), then LSE if asked for. Q and O are (batch, heads, queries, head), K and V (batch,
    heads_kv, keys, head), LSE is (batch, heads, queries) of float32: the natural logarithm of the sum of exp of a row's
    scaled scores. Numbers of queries and keys are those of the call, any. A row without a key has O = 0, LSE = -inf.

    Args:
        heads: heads of Q.
        head: elements of a query: 64, 128 or 256.
        dtype: of Q, K, V and O: "bfloat16" or "float16", or "float32", which is multiplied without tensor cores.
        heads_kv: heads of K and V, which divide `heads`: each serves heads / heads_kv heads of Q in sequence.
        causal: does a query see no later key? The last query is aligned to the last key: query i of M sees keys
            0 .. i + N - M of N.
        lse: is LSE stored?
        scale: of scores, positive; by default 1 / sqrt(head).
        tuning: parameters of `plan_attention`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_attention(heads, heads_kv, head, dtype, scale)
    plan = plan_attention(head, dtype, **tuning)
    heads_kv = heads_kv or heads
    group = heads // heads_kv
    to_log2 = (head**-0.5 if scale is None else scale) * math.log2(math.e)  # exp2 takes scores with the scale folded in
    batch, M, N = T.dyn("batch"), T.dyn("M"), T.dyn("N")
    query = T.Tensor((batch, heads, M, head), dtype)
    key = T.Tensor((batch, heads_kv, N, head), dtype)
    rows, columns, stages = plan.queries, plan.keys, plan.stages

    @T.prim_func
    def attention(Q: query, K: key, V: key, O: query, LSE: T.Tensor((batch, heads, M), "float32") if lse else None):
        with T.Kernel(plan.blocks, threads=plan.threads):
            q = T.alloc_shared((rows, head), dtype)
            k = T.alloc_shared((columns, head), dtype)
            v = T.alloc_shared((columns, head), dtype)
            s = T.alloc_fragment((rows, columns), "float32")
            if plan.registers:
                p = T.alloc_fragment((rows, columns), dtype)
            else:
                p = T.alloc_shared((rows, columns), dtype)
            o = T.alloc_fragment((rows, head), "float32")
            top = T.alloc_fragment((rows,), "float32")
            before = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            part = T.alloc_fragment((rows,), "float32")
            for t, z, h in T.Persistent([T.ceildiv(M, rows), batch, heads]):
                i = (T.ceildiv(M, rows) - 1 - t) * rows if causal else t * rows  # those of most keys first
                seen = i + 1 + N - M if causal else N  # keys of the first row
                T.copy(Q[z, h, i : i + rows, :], q)
                begin(o, top, total)
                turns = T.ceildiv(T.max(T.min(N, seen + rows - 1), 0) if causal else N, columns)
                for j in T.Pipelined(turns, num_stages=stages):
                    T.copy(K[z, h // group, j * columns : j * columns + columns, :], k)
                    T.copy(V[z, h // group, j * columns : j * columns + columns, :], v)
                    T.gemm(q, k, s, transpose_B=True, clear=True, dispatch=plan.dispatch)
                    mask(s, j * columns, N, seen, causal)
                    weigh(s, p, o, top, before, total, part, to_log2)
                    T.gemm(p, v, o, dispatch=plan.dispatch)
                divide(o, total)
                T.copy(o, O[z, h, i : i + rows, :])
                if lse:
                    for m in T.Parallel(rows):
                        if i + m < M:
                            LSE[z, h, i + m] = log_of_sum(top[m], total[m], to_log2)

    return attention
