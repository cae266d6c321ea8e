"""Halide: the product, the blur and the illegal steps.

A Halide program is pure definitions and updates over reduction domains; what is no such thing is not expressible.
"""

from __future__ import annotations

import time

import halide as hl
import numpy as np
from schedules_of.cases import LONG, WIDE, N

NAME = "Halide"
REFUSALS = (hl.HalideError, RuntimeError)


def _vars(names: str):
    return [hl.Var(name) for name in names.split()]


def gemm(n: int):
    """Accumulators of 6 x 16 in registers, a packed panel of B."""
    a, b = hl.ImageParam(hl.Float(32), 2, "A"), hl.ImageParam(hl.Float(32), 2, "B")
    x, y, xi, yi = _vars("x y xi yi")
    sums, out, k = hl.Func("sums"), hl.Func("out"), hl.RDom([(0, n)], "k")
    sums[x, y] = hl.f32(0.0)
    sums[x, y] += a[k, y] * b[x, k]
    out[x, y] = sums[x, y]
    start = time.perf_counter()
    # lines of the schedule: begin
    out.bound(x, 0, n).bound(y, 0, n)
    out.tile(x, y, xi, yi, 16, 6).reorder(xi, yi, y, x).vectorize(xi, 8).unroll(xi).unroll(yi)
    sums.compute_at(out, y).vectorize(x, 8).unroll(x).unroll(y)
    sums.update(0).reorder(x, y, k).vectorize(x, 8).unroll(x).unroll(y)
    panel = b.in_()
    panel.compute_at(out, x).vectorize(panel.args()[0], 8).unroll(panel.args()[0])
    # lines of the schedule: end
    scheduled = time.perf_counter()
    out.compile_jit()
    compiled = time.perf_counter()
    return _call(out, [a, b]), scheduled - start, compiled - scheduled


def blur(rows: int, columns: int):
    """Rows of the first stage are computed in strips of rows of the second."""
    image = hl.ImageParam(hl.Float(32), 2, "I")
    x, y, yo, yi = _vars("x y yo yi")
    first, out = hl.Func("X"), hl.Func("O")
    first[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) * hl.f32(1 / 3)
    out[x, y] = (first[x, y] + first[x, y + 1] + first[x, y + 2]) * hl.f32(1 / 3)
    start = time.perf_counter()
    # lines of the schedule: begin
    out.split(y, yo, yi, 32).vectorize(x, 8)
    first.store_at(out, yo).compute_at(out, yi).vectorize(x, 8)
    # lines of the schedule: end
    scheduled = time.perf_counter()
    out.compile_jit()
    compiled = time.perf_counter()
    return _call(out, [image]), scheduled - start, compiled - scheduled


def _call(out, parameters):
    known = {}

    def call(*arrays):
        key = tuple(a.ctypes.data for a in arrays)
        if key not in known:
            known.clear()
            known[key] = [hl.Buffer(a) for a in arrays]
        *given, result = known[key]
        for parameter, buffer in zip(parameters, given, strict=True):
            parameter.set(buffer)
        out.realize(result)

    return call


def _into(target: np.ndarray, function) -> None:
    target[...] = np.asarray(function.realize(list(reversed(target.shape))))


def _of(array: np.ndarray, name: str = "given"):
    """A function of the array's elements, to be updated."""
    function, names = hl.Func(name), _vars(" ".join(f"d{d}" for d in range(array.ndim)))
    buffer = hl.Buffer(array.copy())
    function[tuple(names)] = buffer[tuple(names)]
    return function


def carried_reorder(A):
    f, r = _of(A), hl.RDom([(0, N - 1), (1, N - 1)])
    f[r.x, r.y] = f[r.x + 1, r.y - 1] + 1.0
    f.update(0).reorder(r.y, r.x)
    _into(A, f)


def vectorized_recurrence(A):
    f, r = _of(A), hl.RDom([(1, N - 1)])
    f[r.x] = f[r.x - 1] + 1.0
    f.update(0).vectorize(r.x, 9)
    _into(A, f)


def parallel_sum(A, S):
    f, a, r = _of(S), hl.Buffer(A), hl.RDom([(0, LONG)])
    f[0] += a[r]
    f.update(0).parallel(r.x)
    _into(S, f)


def parallel_recurrence(A):
    f, r = _of(A), hl.RDom([(1, LONG - 1)])
    f[r.x] = f[r.x - 1] + 1.0
    f.update(0).parallel(r.x)
    _into(A, f)


def scattered_stores(A, I, B):  # noqa: E741
    f, a, i, r = _of(B), hl.Buffer(A), hl.Buffer(I), hl.RDom([(0, WIDE)])
    f[hl.clamp(i[r], 0, WIDE)] = a[r]
    f.update(0).parallel(r.x)
    _into(B, f)


def inexact_split(A, B):
    x, xo, xi = _vars("x xo xi")
    f, a = hl.Func("f"), hl.Buffer(A)
    f[x] = a[x] * 2.0
    f.split(x, xo, xi, 4, hl.TailStrategy.RoundUp)
    _into(B, f)


def float_sum_reorder(A, S):
    f, a, r = _of(S), hl.Buffer(A), hl.RDom([(0, N), (0, N)])
    f[0] += a[r.x, r.y]
    f.update(0).reorder(r.y, r.x)
    _into(S, f)


def unskewed_tiles(A):
    f, r, xo, xi = _of(A), hl.RDom([(0, N - 2), (0, 8)]), hl.RVar("xo"), hl.RVar("xi")
    f[r.x + 1] = f[r.x] + f[r.x + 2]
    f.update(0).split(r.x, xo, xi, 8).reorder(xi, r.y, xo)
    _into(A, f)


def _stages(A, B):
    x = hl.Var("x")
    d, e, a, b = hl.Func("D"), hl.Func("E"), hl.Buffer(A), hl.Buffer(B)
    d[x] = (a[x] + b[x]) * 2.0
    e[x] = d[x] + a[x]
    return x, d, e


def dynamic_consumer(A, B, E):
    x, d, e = _stages(A, B)
    xo, xi = _vars("xo xi")
    e.split(x, xo, xi, 32)
    d.compute_at(e, xo)
    _into(E, e)


def producer_in_vector(A, B, E):
    x, d, e = _stages(A, B)
    xo, xi = _vars("xo xi")
    e.split(x, xo, xi, 8).vectorize(xi)
    d.compute_at(e, xi)
    _into(E, e)


def parallel_product(A, B, C):
    x, y = _vars("x y")
    f, a, b, k = hl.Func("f"), hl.Buffer(A), hl.Buffer(B), hl.RDom([(0, LONG)])
    f[x, y] = hl.f32(0.0)
    f[x, y] += a[k, y] * b[x, k]
    f.update(0).parallel(k.x)
    _into(C, f)


# Values are never overwritten, loops are never joined, and the shape of a domain is no loop that could be exchanged.
shared_temporary = join_past_dependence = fission_past_dependence = stale_inline = stale_copy = None
changing_condition = triangular_reorder = unshifted_join = late_producer = None

# Where the lines of the schedules are counted.
gemm_schedule, blur_schedule = gemm, blur
