"""Functions below `T` that are written in the language itself.

A kernel that calls one gets its body in place of the call, as with a function of the user's; so each has one
definition, which is the same on every target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from helve import _core

# The language: set where its names are made, since they include these functions.
T: Any = None


MOST_SLOTS = 512  # of a ring


class Refused(LookupError):
    """What an argument cannot be: (parameter, reason, remedy). No answer belongs to it; the caller writes the error."""


def isnan(x):
    """Whether x is NaN, with `fast_math` too."""
    return x != x


def isinf(x):
    """Whether x is infinity or -infinity, with `fast_math` too."""
    return T.abs(x) == T.infinity()


def isfinite(x):
    """Whether x is neither infinite nor NaN, with `fast_math` too."""
    return T.abs(x) < T.infinity()


def sign(x):
    """1, -1 or x itself, which is then 0 or NaN, in the type of x."""
    return T.if_then_else(x > 0, 1, T.if_then_else(x < 0, -1, x))


def expm1(x):
    """exp(x) - 1, accurate near 0 too (Kahan)."""
    t = T.tanh(0.5 * x)
    return T.if_then_else(T.abs(x) > 0.5, T.exp(x) - 1.0, 2.0 * t / (1.0 - t))


def log1p(x):
    """log(1 + x), accurate near 0 too (Goldberg, What every computer scientist should know, theorem 4)."""
    u = 1.0 + x
    return T.if_then_else(T.abs(x) > 0.5, T.log(u), T.if_then_else(u == 1.0, x, T.log(u) * x / (u - 1.0)))


def e8m0(x):
    """The power of two that a uint8 means in the OCP format E8M0, a scale of MXFP4, as float32; NaN of 255."""
    s = T.uint32(x)
    return T.reinterpret(T.if_then_else(s == 0, 0x400000, T.if_then_else(s == 255, 0x7FC00000, s << 23)), "float32")


def _philox_round(c0, c1, c2, c3, k0, k1):
    p0, p1 = T.uint64(c0) * 0xD2511F53, T.uint64(c2) * 0xCD9E8D57
    return T.uint32(p1 >> 32) ^ c1 ^ k0, T.uint32(p1), T.uint32(p0 >> 32) ^ c3 ^ k1, T.uint32(p0)


def philox(c0, c1, c2, c3, k0, k1):
    """Four random uint32, of a counter of four uint32 and a key of two: Philox 4x32-10.

    The bits are the same on every target (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011).
    """
    a, b, c, d, k, m = T.uint32(c0), T.uint32(c1), T.uint32(c2), T.uint32(c3), T.uint32(k0), T.uint32(k1)
    a, b, c, d = _philox_round(a, b, c, d, k, m)
    a, b, c, d = _philox_round(a, b, c, d, k + 0x9E3779B9, m + 0xBB67AE85)
    a, b, c, d = _philox_round(a, b, c, d, k + 0x3C6EF372, m + 0x76CF5D0A)
    a, b, c, d = _philox_round(a, b, c, d, k + 0xDAA66D2B, m + 0x32370B8F)
    a, b, c, d = _philox_round(a, b, c, d, k + 0x78DDE6E4, m + 0xED9EBA14)
    a, b, c, d = _philox_round(a, b, c, d, k + 0x1715609D, m + 0xA9066899)
    a, b, c, d = _philox_round(a, b, c, d, k + 0xB54CDA56, m + 0x646E171E)
    a, b, c, d = _philox_round(a, b, c, d, k + 0x5384540F, m + 0x1FD5C5A3)
    a, b, c, d = _philox_round(a, b, c, d, k + 0xF1BBCDC8, m + 0xDB3D7428)
    return _philox_round(a, b, c, d, k + 0x8FF34781, m + 0x96A522AD)


def _words(x):
    return T.uint32(x), T.uint32(T.int64(x) >> 32)


def random_bits(seed, offset):
    """A random uint32: the first of Philox's four for the counter (offset, 0) and the key `seed`, of 64 bits each."""
    c0, c1 = _words(offset)
    k0, k1 = _words(seed)
    return philox(c0, c1, 0, 0, k0, k1)[0]


def rand(seed, offset):
    """A random float32, evenly spaced from 0 to 1 (not included): the upper 24 bits of T.random_bits."""
    return T.float32(random_bits(seed, offset) >> 8) * 5.9604644775390625e-08


def alloc_barrier(slots):
    """The mbarriers of a ring of `slots` slots, initialized: two for each, for its data and for its room."""
    ring = T.alloc_shared((2, slots), "uint64")
    T.mbarrier_init(ring)
    T.sync_threads()
    return ring


def tma_load(src, dst, barrier):
    """Starts the copy of a box of a tensor to the acquired slot of a ring: T.cp_async_bulk_tensor."""
    T.cp_async_bulk_tensor(src, dst, barriers=barrier)


def _check_barrier(slots):
    """What T.alloc_barrier takes: it counts slots, not the threads that arrive."""
    if not isinstance(slots, int) or not 1 <= slots <= MOST_SLOTS:
        raise Refused("slots", f"a ring has 1 to {MOST_SLOTS} slots",
                      "give as many as its buffers have; which threads arrive follows from the roles")


def _seen(shape, dim):
    """(dimension, extents before it, its own, extents after it) of a shape."""
    axis = dim % len(shape)
    return axis, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _without(shape, axis):
    return shape[:axis] + shape[axis + 1 :] if len(shape) > 1 else (1,)


def _check_extreme(src, dst, dim):
    """What T.argmax and T.argmin take."""
    shape, axis = _checked(src, dim)
    _require_integers(dst, "dst")
    allowed = (_without(shape, axis), shape[:axis] + (1,) + shape[axis + 1 :])
    if _extents(dst) not in allowed:
        raise Refused("dst", f"its shape is {_extents(dst)}", f"allocate it as {allowed[0]}")


def _check_topk(src, values, indices, dim):
    """What T.topk takes."""
    shape, axis = _checked(src, dim)
    _require_integers(indices, "indices")
    found = _extents(values)
    count = found[axis] if len(found) == len(shape) else None
    wanted = shape[:axis] + (count,) + shape[axis + 1 :]
    if count is None or found != wanted or not 1 <= count <= shape[axis]:
        raise Refused("values", f"its shape is {found}, that of src {shape}",
                      f"allocate it as src, with 1 to {shape[axis]} elements in dimension {axis}")
    if _extents(indices) != found:
        raise Refused("indices", f"its shape is {_extents(indices)}", f"allocate it as values, {found}")
    if values.dtype != src.dtype:
        raise Refused("values", f"it is {values.dtype}, src is {src.dtype}", f"allocate it of {src.dtype}")


def _checked(src, dim):
    shape = _extents(src)
    if not isinstance(dim, int) or not -len(shape) <= dim < len(shape):
        raise Refused("dim", f"src has {len(shape)} dimensions", "name one of them")
    if None in shape:
        raise Refused("src", "its extents are not constants", "copy it to a buffer of the block first")
    return shape, dim % len(shape)


def _extents(buffer):
    return tuple(getattr(extent, "value", None) for extent in buffer.shape)


def _require_integers(buffer, name):
    if "int" not in buffer.dtype:
        raise Refused(name, f"it is {buffer.dtype}", "allocate it of int32")


def _nearest(reduce, src, dst, dim):
    axis, outer, n, inner = _seen(src.shape, dim)
    best = T.alloc_fragment(_without(src.shape, axis), src.dtype)
    place = T.alloc_fragment(src.shape, "int32")
    first = T.alloc_fragment(_without(src.shape, axis), "int32")
    reduce(src, best, dim=axis)
    x, p, b = T.reshape(src, (outer, n, inner)), T.reshape(place, (outer, n, inner)), T.reshape(best, (outer, inner))
    for i, j, k in T.Parallel(outer, n, inner):
        p[i, j, k] = j if x[i, j, k] == b[i, k] or _isnan_of(x[i, j, k], src.dtype) else n
    T.reduce_min(place, first, dim=axis)
    f, d = T.reshape(first, (outer, inner)), T.reshape(dst, (outer, inner))
    for i, k in T.Parallel(outer, inner):
        d[i, k] = T.cast(f[i, k], dst.dtype)


def _isnan_of(x, dtype):
    """Whether x is NaN, which numbers of an integer type are not."""
    return x != x if "float" in dtype else False


def argmax(src, dst, dim=-1):
    """The index of the greatest element of src along dimension dim into dst; of several the first. NaN is the greatest.

    src is a buffer of the block, dst one of integers with the shape of a reduction.
    """
    _nearest(T.reduce_max, src, dst, dim)


def argmin(src, dst, dim=-1):
    """The index of the least element of src along dimension dim into dst; of several the first. NaN is the least.

    src is a buffer of the block, dst one of integers with the shape of a reduction.
    """
    _nearest(T.reduce_min, src, dst, dim)


def topk(src, values, indices, dim=-1):
    """The greatest elements of src along dimension dim into values, and their indices into indices.

    As many as dimension dim of values has, the greatest first; of equal ones the first comes first, NaN is the
    greatest. src, values and indices are buffers of the block, indices of integers.
    """
    axis, outer, n, inner = _seen(src.shape, dim)
    count = values.shape[axis]
    left = T.alloc_fragment((outer, n, inner), "bool")
    rest = T.alloc_fragment((outer, n, inner), src.dtype)
    place = T.alloc_fragment((outer, n, inner), "int32")
    best = T.alloc_fragment((outer, inner), src.dtype)
    first = T.alloc_fragment((outer, inner), "int32")
    x, v, w = (T.reshape(src, (outer, n, inner)), T.reshape(values, (outer, count, inner)),
               T.reshape(indices, (outer, count, inner)))
    T.fill(left, True)
    for r in T.serial(count):
        for i, j, k in T.Parallel(outer, n, inner):
            rest[i, j, k] = x[i, j, k] if left[i, j, k] else _core.extreme_imm(src.dtype, True)
        T.reduce_max(rest, best, dim=1)
        for i, j, k in T.Parallel(outer, n, inner):
            same = x[i, j, k] == best[i, k] or _isnan_of(x[i, j, k], src.dtype)
            place[i, j, k] = j if left[i, j, k] and same else n
        T.reduce_min(place, first, dim=1)
        for i, k in T.Parallel(outer, inner):
            v[i, r, k] = best[i, k]
            w[i, r, k] = T.cast(first[i, k], indices.dtype)
        for i, j, k in T.Parallel(outer, n, inner):
            left[i, j, k] = left[i, j, k] and first[i, k] != j


# Each function, with the check of its arguments where their types alone do not decide, which raises Refused; and
# whether these are buffers, of which it writes some.
FUNCTIONS: tuple[tuple[Callable, Callable | None, bool], ...] = (
    *((each, None, False) for each in (isnan, isinf, isfinite, sign, expm1, log1p, e8m0, philox, random_bits, rand,
                                       tma_load)),
    (alloc_barrier, _check_barrier, False),
    (argmax, _check_extreme, True),
    (argmin, _check_extreme, True),
    (topk, _check_topk, True),
)
