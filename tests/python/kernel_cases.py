"""What the kernels of helve.kernels compute, in float64 NumPy, with random arguments for each.

Tests of the CPU and of a GPU share these definitions; they are written from the formulas, not from the kernels.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from helve import kernels

DTYPES = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
STEP = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}  # from 1 to the next number


@dataclass
class Call:
    """A kernel's function with its arguments: inputs, then outputs, with what those have to be and how far from it they
    may lie.
    """

    function: object
    inputs: list
    expected: list  # float64, one for each output
    dtypes: list  # of the outputs
    rtol: float
    atol: float

    def arguments(self):
        """Fresh arguments; the outputs hold NaN."""
        return [*self.inputs, *(np.full(e.shape, np.nan, d) for e, d in zip(self.expected, self.dtypes, strict=True))]

    def check(self, arguments):
        """Compares outputs with the definition."""
        for got, wanted in zip(arguments[len(self.inputs) :], self.expected, strict=True):
            np.testing.assert_allclose(np.asarray(got).astype(np.float64), wanted, rtol=self.rtol, atol=self.atol)


class Source:
    """Random tensors of one dtype, rounded to it, and the same in float64."""

    def __init__(self, dtype, seed=0):
        self.rng = np.random.default_rng(seed)
        self.dtype = DTYPES[dtype]

    def __call__(self, *shape, mean=0.0):
        x = (self.rng.standard_normal(shape) + mean).astype(self.dtype)
        return x, x.astype(np.float64)


def call(function, dtype, inputs, expected, sums=()):
    """A call whose outputs have the kernel's dtype, those numbered in `sums` float32."""
    size = max((np.abs(e[np.isfinite(e)]).max(initial=0.0) for e in expected), default=0.0)
    dtypes = [np.dtype(np.float32) if n in sums else DTYPES[dtype] for n in range(len(expected))]
    return Call(function, inputs, expected, dtypes, rtol=STEP[dtype] + 3e-6, atol=3e-6 * max(size, 1.0))


def rms_norm(M, N, dtype, **tuning):
    random = Source(dtype)
    (x, X), (w, W) = random(M, N), random(N)
    y = X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-6) * W
    return call(kernels.rms_norm(N, dtype, **tuning), dtype, [x, w], [y])


def layer_norm(M, N, dtype, **tuning):
    random = Source(dtype)
    (x, X), (w, W), (b, B) = random(M, N, mean=8.0), random(N), random(N)
    y = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5) * W + B
    return call(kernels.layer_norm(N, dtype, **tuning), dtype, [x, w, b], [y])


def rms_norm_backward(M, N, dtype, **tuning):
    random = Source(dtype)
    (x, X), (w, W), (dy, DY) = random(M, N), random(N), random(M, N)
    r = 1 / np.sqrt((X**2).mean(1, keepdims=True) + 1e-6)
    g = DY * W
    dx = r * g - X * r**3 * (g * X).mean(1, keepdims=True)
    return call(kernels.rms_norm_backward(N, dtype, **tuning), dtype, [x, w, dy], [dx, (DY * X * r).sum(0)], sums=(1,))


def layer_norm_backward(M, N, dtype, **tuning):
    random = Source(dtype)
    (x, X), (w, W), (dy, DY) = random(M, N, mean=8.0), random(N), random(M, N)
    r = 1 / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    h = (X - X.mean(1, keepdims=True)) * r
    g = DY * W
    dx = r * (g - g.mean(1, keepdims=True) - h * (g * h).mean(1, keepdims=True))
    function = kernels.layer_norm_backward(N, dtype, **tuning)
    return call(function, dtype, [x, w, dy], [dx, (DY * h).sum(0), DY.sum(0)], sums=(1, 2))


def softmax(M, N, dtype, **tuning):
    x, X = Source(dtype)(M, N, mean=5.0)
    e = np.exp(X - X.max(1, keepdims=True))
    return call(kernels.softmax(N, dtype, **tuning), dtype, [x], [e / e.sum(1, keepdims=True)])


def softmax_backward(M, N, dtype, **tuning):
    random = Source(dtype)
    e = np.exp(random(M, N)[1])
    y = (e / e.sum(1, keepdims=True)).astype(random.dtype)
    Y = y.astype(np.float64)
    dy, DY = random(M, N)
    return call(kernels.softmax_backward(N, dtype, **tuning), dtype, [y, dy],
                [Y * (DY - (DY * Y).sum(1, keepdims=True))])


def cross_entropy(M, N, dtype, label_dtype="int64", ignore=-100, **tuning):
    """Row 1 does not count, row 2 has a label that is no column; `ignore` may be a column too."""
    random = Source(dtype)
    x, X = random(M, N, mean=5.0)
    label = random.rng.integers(0, N, M).astype(label_dtype)
    peak = X.max(1)
    lse = peak + np.log(np.exp(X - peak[:, None]).sum(1))
    loss = lse - X[np.arange(M), label]
    label[1:2], label[2:3], loss[2:3] = ignore, N, np.nan
    loss[label == ignore] = 0.0
    function = kernels.cross_entropy(N, dtype, label_dtype=label_dtype, ignore=ignore, **tuning)
    return call(function, "float32", [x, label], [loss, lse], sums=(0, 1))


def cross_entropy_backward(M, N, dtype, label_dtype="int64", ignore=-100, **tuning):
    """Row 1 does not count, row 2 has a label that is no column; `ignore` may be a column too."""
    random = Source(dtype)
    x, X = random(M, N, mean=5.0)
    label = random.rng.integers(0, N, M).astype(label_dtype)
    lse = (X.max(1) + np.log(np.exp(X - X.max(1, keepdims=True)).sum(1))).astype(np.float32)
    scale = random.rng.standard_normal(M).astype(np.float32)
    softmax = np.exp(X - lse.astype(np.float64)[:, None])
    dx = scale.astype(np.float64)[:, None] * (softmax - (np.arange(N) == label[:, None]))
    label[1:2], label[2:3], dx[2:3] = ignore, N, np.nan
    dx[label == ignore] = 0.0
    function = kernels.cross_entropy_backward(N, dtype, label_dtype=label_dtype, ignore=ignore, **tuning)
    return call(function, dtype, [x, label, lse, scale], [dx])


def rope(M, N, dtype, **tuning):
    """M positions; a head is two elements or more, and as many heads as give about N elements."""
    random = Source(dtype)
    D = max(2, N // 3 // 2 * 2)
    x, X = random(2, M, 3, D)
    angle = np.outer(np.arange(M), 1e4 ** (-np.arange(D // 2) / (D // 2)))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    C, S = cos.astype(np.float64)[None, :, None], sin.astype(np.float64)[None, :, None]
    left, right = X[..., : D // 2], X[..., D // 2 :]
    y = np.concatenate([left * C - right * S, right * C + left * S], axis=-1)
    return call(kernels.rope(3, D, dtype, **tuning), dtype, [x, cos, sin], [y])


def swiglu(M, N, dtype, **tuning):
    random = Source(dtype)
    (a, A), (b, B) = random(M, N), random(M, N)
    return call(kernels.swiglu(N, dtype, **tuning), dtype, [a, b], [A / (1 + np.exp(-A)) * B])


def swiglu_backward(M, N, dtype, **tuning):
    random = Source(dtype)
    (a, A), (b, B), (dy, DY) = random(M, N), random(M, N), random(M, N)
    s = 1 / (1 + np.exp(-A))
    da = DY * B * s * (1 + A * (1 - s))
    return call(kernels.swiglu_backward(N, dtype, **tuning), dtype, [a, b, dy], [da, DY * A * s])


def transpose(M, N, dtype, fixed=False, **tuning):
    x, X = Source(dtype)(M, N)
    if fixed:
        tuning.update(M=M, N=N)
    return call(kernels.transpose(dtype, **tuning), dtype, [x], [np.ascontiguousarray(X.T)])


def row_sums(M, N, dtype, **tuning):
    x, X = Source(dtype)(M, N, mean=1.0)
    return call(kernels.row_sums(N, dtype, **tuning), "float32", [x], [X.sum(1)], sums=(0,))


def column_sums(M, N, dtype, **tuning):
    x, X = Source(dtype)(M, N, mean=1.0)
    return call(kernels.column_sums(N, dtype, **tuning), "float32", [x], [X.sum(0)], sums=(0,))


BY_ROWS = [rms_norm, layer_norm, softmax, softmax_backward, cross_entropy, row_sums]
BACKWARD = [rms_norm_backward, layer_norm_backward]
OTHERS = [rope, swiglu, swiglu_backward, transpose, column_sums]
ALL = [*BY_ROWS, *BACKWARD, *OTHERS]
