"""The definition of a layout by enumeration, in plain Python, and random layouts.

Nothing of the library's algebra is used: all indices, all replicas, every digit counted through.
"""

import itertools
import math

from helve.layout import Layout, Swizzle, laneid, m, x
from hypothesis import strategies as st

AXES = (m, laneid, x)


def swizzled(swizzle, address):
    if swizzle is None:
        return address
    result = address
    for k in range(swizzle.bits):
        source = swizzle.base + k + max(swizzle.shift, 0)
        target = swizzle.base + k + max(-swizzle.shift, 0)
        if (address >> source) & 1:
            result ^= 1 << target
    return result


def points(layout, index):
    """{D(x) + r + O}, swizzled, as a set of frozen {axis: coordinate} without zeros."""
    base = dict(layout.offset)
    for extent, stride, axis in reversed(layout.shard):
        base[axis] = base.get(axis, 0) + index % extent * stride
        index //= extent
    result = set()
    for digits in itertools.product(*(range(extent) for extent, _, _ in layout.replica)):
        point = dict(base)
        for digit, (_, stride, axis) in zip(digits, layout.replica, strict=True):
            point[axis] = point.get(axis, 0) + digit * stride
        point[m] = swizzled(layout.swizzle, point.get(m, 0))
        result.add(place(point))
    return result


def place(point):
    return frozenset((axis, value) for axis, value in point.items() if value)


def size(layout):
    return math.prod(extent for extent, _, _ in layout.shard)


def image(layout):
    return [points(layout, index) for index in range(size(layout))]


def unflatten(index, shape):
    digits = []
    for extent in reversed(shape):
        digits.append(index % extent)
        index //= extent
    return tuple(reversed(digits))


def coordinates(shape):
    return itertools.product(*(range(extent) for extent in shape))


def iters(max_count, max_extent):
    one = st.tuples(st.integers(1, max_extent), st.integers(-4, 9), st.sampled_from(AXES))
    return st.lists(one, max_size=max_count)


def swizzles():
    made = st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 1), st.booleans())
    return made.map(lambda s: Swizzle(s[0], s[1], (s[0] + s[2]) * (-1 if s[3] else 1)))


def layouts(max_count=3, max_extent=4, plain=False):
    """Random layouts; plain ones have neither replicas, offset nor swizzle."""
    if plain:
        return st.builds(Layout, iters(max_count, max_extent))
    offsets = st.dictionaries(st.sampled_from(AXES), st.integers(-9, 20), max_size=2)
    return st.builds(Layout, iters(max_count, max_extent), iters(2, 3), offsets, st.none() | swizzles())
