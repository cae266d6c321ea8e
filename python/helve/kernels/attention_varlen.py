"""Attention over sequences of different lengths, packed one behind the other.

Where a sequence begins is read from memory: its tiles are boxes of the packed tensors that begin there.
`plan_attention` chooses the tiles.
"""

from __future__ import annotations

import math

from helve import T
from helve.kernels.attention_plan import check_attention, plan_attention
from helve.kernels.attention_steps import begin, divide, log_of_sum, mask, weigh


def attention_varlen(heads: int, head: int = 128, dtype: str = "bfloat16", *, heads_kv: int | None = None,
                     causal: bool = False, lse: bool = False, scale: float | None = None, **tuning):
    """O = softmax(Q @ K^T * scale) @ V for every sequence and head, with sums in float32.

    The kernel takes (Q, K, V, queries, keys, longest, O), then LSE if asked for. Q and O are (all queries, heads,
    head), K and V (all keys, heads_kv, head): those of one sequence after the other. `queries` and `keys` are int32,
    one more than there are sequences, and say where each begins and the last ends: 0, n0, n0 + n1, ... `longest` is the
    largest number of queries of a sequence, or more. LSE is (heads, all queries) of float32: the natural logarithm of
    the sum of exp of a row's scaled scores. Lengths are any, 0 too. A row without a key has O = 0, LSE = -inf.

    Tiles of keys reach beyond the end of a sequence; what is there counts with weight 0, so it must be finite.

    Args:
        heads, head, dtype, heads_kv, lse, scale: as of `attention`.
        causal: does a query see no later key of its sequence? The last query is aligned to the last key.
        tuning: parameters of `plan_attention`.

    Raises:
        ValueError: an argument is out of its range.
    """
    check_attention(heads, heads_kv, head, dtype, scale)
    plan = plan_attention(head, dtype, **tuning)
    heads_kv = heads_kv or heads
    group = heads // heads_kv
    to_log2 = (head**-0.5 if scale is None else scale) * math.log2(math.e)  # exp2 takes scores with the scale folded in
    ends, all_queries, all_keys = T.dyn("ends"), T.dyn("all_queries"), T.dyn("all_keys")
    query = T.Tensor((all_queries, heads, head), dtype)
    key = T.Tensor((all_keys, heads_kv, head), dtype)
    places = T.Tensor((ends,), "int32", sorted=True)
    rows, columns, stages = plan.queries, plan.keys, plan.stages

    @T.prim_func
    def attention_varlen(Q: query, K: key, V: key, queries: places, keys: places, longest: T.int32, O: query,
                         LSE: T.Tensor((heads, all_queries), "float32") if lse else None):
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
            for t, z, h in T.Persistent([T.ceildiv(longest, rows), ends - 1, heads]):
                first = T.max(T.index(queries[z]), 0)  # places out of range reach no other memory
                first_key = T.max(T.index(keys[z]), 0)
                M = T.min(T.index(queries[z + 1]), all_queries) - first
                N = T.min(T.index(keys[z + 1]), all_keys) - first_key
                i = (T.ceildiv(longest, rows) - 1 - t) * rows if causal else t * rows  # those of most keys first
                seen = i + 1 + N - M if causal else N  # keys of the first row
                T.copy(Q[first + i : first + i + rows, h, :], q)
                begin(o, top, total)
                last = T.if_then_else(i < M, T.max(T.min(N, seen + rows - 1), 0) if causal else N, 0)
                for j in T.Pipelined(T.ceildiv(last, columns), num_stages=stages):
                    at = first_key + j * columns
                    T.copy(K[at : at + columns, h // group, :], k)
                    T.copy(V[at : at + columns, h // group, :], v)
                    T.gemm(q, k, s, transpose_B=True, clear=True, dispatch=plan.dispatch)
                    mask(s, j * columns, N, seen, causal)
                    weigh(s, p, o, top, before, total, part, to_log2)
                    T.gemm(p, v, o, dispatch=plan.dispatch)
                divide(o, total)
                for m, n in T.Parallel(rows, head):
                    if i + m < M:
                        O[first + i + m, h, n] = T.cast(o[m, n], dtype)
                if lse:
                    for m in T.Parallel(rows):
                        if i + m < M:
                            LSE[h, first + i + m] = log_of_sum(top[m], total[m], to_log2)

    return attention_varlen
