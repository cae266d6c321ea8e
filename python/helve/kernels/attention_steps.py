"""What kernels of attention do with a tile of scores, as parts of their programs.

A row's maximum and sum are kept as far as it has come, and what was summed before is scaled when the maximum grows
(Dao, "FlashAttention-2", arXiv 2307.08691).
"""

from __future__ import annotations

import math

from helve import T


@T.macro
def begin(o, top, total):
    """No key has been seen: sums, maxima and totals of rows."""
    T.clear(o)
    T.clear(total)
    T.fill(top, -T.infinity("float32"))


@T.macro
def mask(s, first, keys, seen, causal):
    """Scores of a tile of keys from `first` on: those behind the last key, or behind the `seen` + m of row m, are -inf.
    """
    if first + s.shape[1] > T.min(keys, seen):
        for m, n in T.Parallel(s.shape[0], s.shape[1]):
            if first + n >= (T.min(keys, seen + m) if causal else keys):
                s[m, n] = -T.infinity("float32")


@T.macro
def weigh(s, p, o, top, before, total, part, to_log2):
    """Scores `s` of a tile of keys become weights `p`; sums and totals so far are scaled to the new maxima."""
    T.copy(top, before)
    T.reduce_max(s, top, dim=1, clear=False)
    for m in T.Parallel(s.shape[0]):  # no maximum: no key yet
        part[m] = T.if_then_else(top[m] == -T.infinity("float32"), 0.0, top[m] * to_log2)
        before[m] = T.exp2_approx(T.fma(before[m], to_log2, -part[m]))
    for m, n in T.Parallel(s.shape[0], s.shape[1]):
        s[m, n] = T.exp2_approx(T.fma(s[m, n], to_log2, -part[m]))
    T.reduce_sum(s, part, dim=1)
    for m in T.Parallel(s.shape[0]):
        total[m] = total[m] * before[m] + part[m]
    for m, n in T.Parallel(o.shape[0], o.shape[1]):
        o[m, n] = o[m, n] * before[m]
    T.copy(s, p)


@T.macro
def divide(o, total):
    """The weighted means; 0 of a row without a key."""
    for m, n in T.Parallel(o.shape[0], o.shape[1]):
        o[m, n] = T.if_then_else(total[m] == 0.0, 0.0, o[m, n] / total[m])


def log_of_sum(top, total, to_log2):
    """The natural logarithm of the sum of exp of a row's scaled scores; -inf of a row without a key."""
    return (T.if_then_else(total == 0.0, 0.0, top * to_log2) + T.log2(total)) * math.log(2)
