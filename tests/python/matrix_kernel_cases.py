"""What the kernels of helve.kernels on tensor cores compute, in float64 NumPy, with random arguments for each.

Tests of the CPU and of a GPU share these definitions; they are written from the formulas, not from the kernels.
"""

import math

import ml_dtypes
import numpy as np
from kernel_cases import STEP, Call

from helve import kernels
from helve.kernels.attention_backward import keys_backward, queries_backward
from helve.kernels.attention_plan import plan_attention_backward

DTYPES = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16),
          "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2)}
ERF = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {None: lambda x: x, "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
               "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2}


def gemm(M, N, K, dtype="bfloat16", batch=None, known=(), seed=0, **options):
    """`batch` products, or one; `known`: names of extents that are constants of the kernel."""
    rng = np.random.default_rng(M + 7 * N + 31 * K + 1009 * seed)
    out = options.get("out") or (dtype if "8_" not in dtype else "bfloat16")
    front = () if batch is None else (batch,)

    def draw(kind, *shape):
        x = rng.standard_normal(shape).astype(DTYPES[kind])
        return x, x.astype(np.float64)

    (a, A), (b, B) = draw(dtype, *front, M, K), draw(dtype, *front, K, N)
    turned = lambda x, on: np.ascontiguousarray(np.swapaxes(x, -1, -2)) if on else x  # noqa: E731
    inputs = [turned(a, options.get("transpose_A")), turned(b, options.get("transpose_B"))]
    x, size = A @ B, np.abs(A) @ np.abs(B)
    if options.get("scale"):
        inputs.append(np.array([0.25], "float32"))
        x, size = x / 4, size / 4
    if options.get("bias"):
        bias, added = draw(out, N)
        inputs.append(bias)
        x, size = x + added, size + np.abs(added)
    x = ACTIVATIONS[options.get("activation")](x)
    if options.get("residual"):
        residual, added = draw(out, *front, M, N)
        inputs.append(residual)
        x, size = x + added, size + np.abs(added)
    extents = {name: extent for name, extent in (("M", M), ("N", N), ("K", K)) if name in known}
    function = kernels.gemm(dtype, **extents, batch=batch is not None, **options)
    # Products of 16 bits are exact in float32; tensor cores keep some bits less of sums, of 8 bits far fewer.
    lost = 2.0**-10 if "8_" in dtype else 2.0**-18
    return Call(function, inputs, [x], [DTYPES[out]], rtol=STEP[out], atol=lost * size.max(initial=1.0))


def gemm_w4a16(M, N, K, dtype="bfloat16", group=128, known=(), scales=None, **tuning):
    """Weights are all of int4; `known`: "M" if it is a constant of the kernel."""
    rng = np.random.default_rng(M + 7 * N + 31 * K)
    x = rng.standard_normal((M, K)).astype(DTYPES[dtype])
    codes = rng.integers(-8, 8, (N, K))
    low, high = codes[:, ::2] & 15, codes[:, 1::2] & 15
    s = np.exp2(rng.uniform(-5, 1, (N, K // group))).astype(DTYPES[scales or dtype])
    s = np.where(rng.random(s.shape) < 0.5, s, -s)
    scaled = codes.astype(np.float32) * np.repeat(s.astype(np.float32), group, axis=1)
    weights = scaled.astype(DTYPES[dtype]).astype(np.float64)
    X = x.astype(np.float64)
    size = np.abs(X) @ np.abs(weights).T
    function = kernels.gemm_w4a16(N, K, dtype, group=group, scales=scales, **({"M": M} if known else {}), **tuning)
    return Call(function, [x, (low | high << 4).astype(np.uint8), s], [X @ weights.T], [DTYPES[dtype]],
                rtol=STEP[dtype], atol=2.0**-18 * size.max(initial=1.0))


def grouped_gemm(lengths, N, K, dtype="bfloat16", known=(), before=0, room=0, **options):
    """A product for each group of so many rows; rows of no group before the first and behind the last keep NaN."""
    own = {name: options[name] for name in ("out", "transpose_B", "scale", "bias", "activation") if name in options}
    alone = [gemm(M, N, K, dtype, seed=group, **own) for group, M in enumerate(lengths)]
    out = alone[0].dtypes[0]
    rows = np.concatenate([each.inputs[0] for each in alone])
    inputs = [np.pad(rows, ((before, room), (0, 0))), np.stack([each.inputs[1] for each in alone]),
              np.cumsum([before, *lengths]).astype(np.int32)]
    inputs += [np.stack([each.inputs[n] for each in alone]).reshape((len(lengths), -1) if each.dtype == out else -1)
               for n, each in enumerate(alone[0].inputs) if n > 1]
    result = np.concatenate([each.expected[0] for each in alone])
    result = np.pad(result, ((before, room), (0, 0)), constant_values=np.nan)
    extents = {name: extent for name, extent in (("N", N), ("K", K)) if name in known}
    function = kernels.grouped_gemm(len(lengths), dtype, **extents, **options)
    return Call(function, inputs, [result], [out], rtol=alone[0].rtol, atol=max(each.atol for each in alone))


def attention(M, N, head=64, dtype="bfloat16", batch=1, heads=2, heads_kv=None, causal=False, lse=False, scale=None,
              **tuning):
    """M queries and N keys."""
    rng = np.random.default_rng(M + 7 * N + 31 * head)
    group = heads // (heads_kv or heads)
    shapes = [(batch, heads, M, head), *[(batch, heads // group, N, head)] * 2]
    inputs = [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]
    Q, K, V = (each.astype(np.float64) for each in inputs)
    K, V = (np.repeat(each, group, axis=1) for each in (K, V))
    scores = Q @ np.swapaxes(K, 2, 3) * (head**-0.5 if scale is None else scale)
    if causal:
        scores[..., np.arange(N) > np.arange(M)[:, None] + N - M] = -np.inf
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        sums = np.where(total == 0, -np.inf, top + np.log(total))[..., 0]
    result = weights @ V / np.where(total == 0, 1, total)
    function = kernels.attention(heads, head, dtype, heads_kv=heads_kv, causal=causal, lse=lse, scale=scale, **tuning)
    # Weights, at most 1, are rounded to the dtype before they multiply values.
    return Call(function, inputs, [result, sums][: 1 + lse], [DTYPES[dtype], np.dtype(np.float32)][: 1 + lse],
                rtol=STEP[dtype], atol=(STEP[dtype] / 2 + 1e-6) * np.abs(V).max(initial=1.0))


def attention_varlen(lengths, head=64, dtype="bfloat16", heads=2, heads_kv=None, causal=False, lse=False, scale=None,
                     room=0, **tuning):
    """Sequences of so many queries and keys, packed; the tensors have room for more behind them, which keeps NaN."""
    alone = [attention(M, N, head, dtype, heads=heads, heads_kv=heads_kv, causal=causal, lse=True, scale=scale)
             for M, N in lengths]
    packed = [np.concatenate([np.swapaxes(each.inputs[n][0], 0, 1) for each in alone]) for n in range(3)]
    packed = [np.pad(each, ((0, room), (0, 0), (0, 0))) for each in packed]
    result = np.concatenate([np.swapaxes(each.expected[0][0], 0, 1) for each in alone])
    sums = np.concatenate([each.expected[1][0] for each in alone], axis=1)
    result = np.pad(result, ((0, room), (0, 0), (0, 0)), constant_values=np.nan)
    sums = np.pad(sums, ((0, 0), (0, room)), constant_values=np.nan)
    ends = [np.cumsum([0, *(pair[n] for pair in lengths)]).astype(np.int32) for n in (0, 1)]
    function = kernels.attention_varlen(heads, head, dtype, heads_kv=heads_kv, causal=causal, lse=lse, scale=scale,
                                        **tuning)
    return Call(function, [*packed, *ends, max(M for M, _ in lengths)], [result, sums][: 1 + lse],
                [DTYPES[dtype], np.dtype(np.float32)][: 1 + lse], rtol=STEP[dtype],
                atol=max(each.atol for each in alone))


def attention_backward(M, N, head=64, dtype="bfloat16", batch=1, heads=2, heads_kv=None, causal=False, scale=None,
                       part=None, **tuning):
    """The gradients of attention of M queries and N keys; `part`: those of the kernel for "queries", or for "keys"."""
    rng = np.random.default_rng(M + 7 * N + 31 * head)
    group = heads // (heads_kv or heads)
    shapes = [(batch, heads, M, head), *[(batch, heads // group, N, head)] * 2, (batch, heads, M, head)]
    inputs = [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]
    q, k, v, do = inputs
    Q, K, V, DO = (each.astype(np.float64) for each in inputs)
    K, V = (np.repeat(each, group, axis=1) for each in (K, V))
    factor = head**-0.5 if scale is None else scale
    scores = Q @ np.swapaxes(K, 2, 3) * factor
    if causal:
        scores[..., np.arange(N) > np.arange(M)[:, None] + N - M] = -np.inf
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(total == 0, -np.inf, top + np.log(total))[..., 0].astype(np.float32)
    weights = weights / np.where(total == 0, 1, total)
    o = (weights @ V).astype(DTYPES[dtype])
    D = (o.astype(np.float64) * DO).sum(axis=-1)
    ds = weights * (DO @ np.swapaxes(V, 2, 3) - D[..., None]) * factor
    shape = (batch, heads // group, group, N, head)
    own = lambda x: x.reshape(shape).sum(axis=2)  # noqa: E731 - of the heads that one of K serves
    dq, dk, dv = ds @ K, own(np.swapaxes(ds, 2, 3) @ Q), own(np.swapaxes(weights, 2, 3) @ DO)
    size = max(np.abs(each).max(initial=1.0) for each in (dq, dk, dv))
    if part is None:
        function = kernels.attention_backward(heads, head, dtype, heads_kv=heads_kv, causal=causal, scale=scale,
                                              **tuning)
        given, expected = [q, k, v, o, lse, do], [dq, dk, dv]
    else:
        builder = {"queries": queries_backward, "keys": keys_backward}[part]
        function = builder(heads, head, dtype, heads_kv or heads, causal, factor,
                           plan_attention_backward(head, dtype, part, **tuning))
        given, expected = [q, k, v, lse, D.astype(np.float32), do], [dq] if part == "queries" else [dk, dv]
    # Weights and gradients of scores are rounded to the dtype before they are multiplied.
    return Call(function, given, expected, [DTYPES[dtype]] * len(expected), rtol=STEP[dtype],
                atol=(STEP[dtype] + 3e-6) * size)
