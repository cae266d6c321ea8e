"""Layouts whose values are coordinates: basis elements, identity layouts, and the pieces that divisions cut.

The judge is a layout of numbers over the same shape: a piece of it has the offsets of the coordinates of the piece.
"""

import copy
import itertools
import pickle
import random
import re

import pytest

import helve
from helve import cute
from helve.cute import CoordinateLayout, E, Layout

def coordinates(layout):
    return [layout(i) for i in range(cute.size(layout))]


def test_basis_elements():
    assert repr(E(0)) == "1@0" and repr(2 * E(1, 0)) == "2@0@1" and repr(E(0) + E(1) * 3) == "1@0+3@1"
    assert E(0) + -E(0) == 0 * E(3) and repr(0 * E(3)) == "0" and E(1) + E(0) == E(0) + E(1)
    assert hash(E(1) + E(0)) == hash(E(0) + E(1)) and pickle.loads(pickle.dumps(2 * E(1, 0))) == 2 * E(1, 0)


def test_identity_layouts():
    layout = cute.make_identity_layout((4, (2, 3)))
    assert str(layout) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))" and layout.stride == (E(0), (E(1, 0), E(1, 1)))
    assert layout(1, (1, 2)) == (1, (1, 2)) == layout(1, 5) == layout(21)
    assert coordinates(layout) == [cute.idx2crd(i, (4, (2, 3))) for i in range(24)]
    assert cute.make_identity_layout(5)(3) == 3
    assert layout(2, None) == cute.slice_((2, None), layout) and str(layout(2, None)) == "((2,3),):((1@0@1,1@1@1),)"
    assert cute.slice_and_offset((2, None), layout) == (layout(2, None), (2, (0, 0)))
    assert (layout.rank(), layout.depth(), len(layout), cute.rank(layout)) == (2, 2, 2, 2)
    assert [str(mode) for mode in layout] == ["4:1@0", "(2,3):(1@0@1,1@1@1)"] and layout[-1] == layout[1]
    assert pickle.loads(pickle.dumps(layout)) == layout == copy.copy(layout)
    assert hash(layout) == hash(copy.deepcopy(layout))


def test_other_coordinate_layouts():
    swapped = CoordinateLayout((2, 3), (E(1), 2 * E(0)))
    assert coordinates(swapped) == [(2 * (i // 2), i % 2) for i in range(6)]
    diagonal = CoordinateLayout((2, 3), (0, -E(0) + E(1)))
    assert diagonal(1, 2) == (-2, 2) and str(diagonal) == "(2,3):(0,-1@0+1@1)"
    assert str(cute.coalesce(CoordinateLayout((2, 4, 3), (E(0), 2 * E(0), E(1))))) == "(8,3):(1@0,1@1)"
    assert str(cute.group(cute.make_identity_layout((2, 3, 4)), 0, 2)) == "((2,3),4):((1@0,1@1),1@2)"
    assert str(cute.flatten(cute.make_identity_layout((2, (3, 4))))) == "(2,3,4):(1@0,1@0@1,1@1@1)"


@pytest.mark.parametrize("shape, tiler", [((8, 12), (4, 6)), ((9, 10), (4, 4)), ((6, (4, 2)), (2, 4)), ((5,), (7,))])
@pytest.mark.parametrize("divide", ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"])
def test_divided_coordinates_are_those_of_the_divided_layout(shape, tiler, divide):
    """The same tiles of a layout of numbers: its offset is that of the coordinate which the identity layout gives."""
    identity, numbers = cute.make_identity_layout(shape), Layout(shape)
    mine, theirs = getattr(cute, divide)(identity, tiler), getattr(cute, divide)(numbers, tiler)
    assert cute.product_each(mine.shape) == cute.product_each(theirs.shape)
    for i in range(cute.size(theirs)):
        entries = list(cute.flatten(mine(i))) if isinstance(mine(i), tuple) else [mine(i)]
        strides = cute.flatten(numbers.stride)
        assert sum(entry * stride for entry, stride in zip(entries, strides)) == theirs(i)


def test_tiles_of_coordinates_tell_what_is_outside():
    identity = cute.make_identity_layout((10, 9))
    tile, origin = cute.local_tile(identity, (4, 4), (2, 1))
    assert origin == (8, 4) and str(tile) == "(4,4):(1@0,1@1)"
    inside = [all(o + c < e for o, c, e in zip(origin, tile(i), (10, 9))) for i in range(16)]
    assert sum(inside) == 2 * 4
    part, first = cute.local_partition(tile, Layout((2, 2)), 3)
    assert first == (1, 1) and coordinates(part) == [(0, 0), (2, 0), (0, 2), (2, 2)]
    assert str(cute.composition(identity, (Layout(5, 2), 3))) == "(5,3):(2@0,1@1)"
    assert cute.composition(identity, Layout(3, 10))(2) == (0, 2)
    with pytest.raises(helve.DivisibilityError):
        cute.composition(cute.make_identity_layout((4, 6)), Layout(6, 3))


SQUARE = cute.make_identity_layout((2, 2))


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda: CoordinateLayout((2, 2), (E(0), E(0, 1))), helve.UnsupportedError, "a stride goes along 1@0 as well"),
        (lambda: CoordinateLayout((2, 2), E(0)), helve.ShapeError, "1@0 does not fit the profile of (2,2)"),
        (lambda: CoordinateLayout((2**30, 2), (E(0), E(1))), helve.UnsupportedError, "each stays below 536870912"),
        (lambda: CoordinateLayout((2, 2), (E(0), 1)), helve.LayoutError, "1 is no step along a coordinate"),
        (lambda: CoordinateLayout((2, 2), (E(0), "1")), TypeError, "the strides of a CoordinateLayout are E(...)"),
        (lambda: Layout(4, E(0)), helve.LayoutError, "1@0 is no integer\nhelp: cute.CoordinateLayout(shape, stride)"),
        (lambda: cute.make_layout((4, 2), (E(0), E(1))), helve.LayoutError, "1@0 is no integer"),
        (lambda: E(-1), helve.LayoutError, "-1 is no mode"),
        (lambda: E(0) * 1.5, helve.LayoutError, "1.5 is no integer"),
        (lambda: E("0"), TypeError, "a mode is a number from 0"),
        (lambda: cute.make_identity_layout((1,) * 16), helve.UnsupportedError, "16 entries of a coordinate is beyond"),
        (lambda: cute.composition(SQUARE, Layout(2, 2**40)), helve.UnsupportedError, "each stays below"),
    ],
)  # fmt: skip
def test_refused_coordinates(make, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        make()


# -- composition with coordinates on the right ------------------------------------------------------------------------


def value(mode, index):
    """The offset of any integer below a flat layout [(extent, stride), ...], whose last mode has no end."""
    total = 0
    for extent, stride in mode[:-1]:
        index, digit = divmod(index, extent)
        total += digit * stride
    return total + index * mode[-1][1]


def has_layout(values):
    """Whether a list of values, the first of which is 0, is a layout of one leaf's shape or of a division of it."""
    if len(values) == 1:
        return True
    step = values[1]
    even = next((x for x, v in enumerate(values) if v != x * step), len(values))
    if even == len(values):
        return True
    if len(values) % even:
        return False
    outer = values[::even]
    return all(v == outer[x // even] + (x % even) * step for x, v in enumerate(values)) and has_layout(outer)


def reference(modes, shape, strides):
    """The values of a(b(c)) by shape coordinates, left fastest; strides: for each leaf {mode: step}."""
    out = {}
    for reverse in itertools.product(*(range(extent) for extent in reversed(shape))):
        digits = reverse[::-1]
        entries = [sum(d * s.get(i, 0) for d, s in zip(digits, strides)) for i in range(len(modes))]
        out[digits] = sum(value(mode, entry) for mode, entry in zip(modes, entries))
    return out


def exists(values, shape):
    """Whether a layout of the shape, with leaves divided further, has the values."""
    alone = []
    for leaf, extent in enumerate(shape):
        alone.append([values[tuple(x if k == leaf else 0 for k in range(len(shape)))] for x in range(extent)])
    sums = all(v == sum(alone[k][d] for k, d in enumerate(digits)) for digits, v in values.items())
    return sums and all(has_layout(each) for each in alone)


def basis(stride):
    return sum((step * E(mode) for mode, step in stride.items()), start=0 * E(0))


def random_case(rng, several):
    def leaf():
        return rng.choice((1, 2, 2, 3, 4)), rng.choice((-1, 0, 1, 2, 3, 4, 6, 8))

    modes = [[leaf() for _ in range(rng.choice((1, 1, 2, 3)))] for _ in range(rng.choice((1, 2, 2, 3)))]
    shape = [rng.choice((1, 2, 2, 3, 4, 6)) for _ in range(rng.choice((1, 2, 2, 3)))]
    lowest = 0 if several else -2
    strides = []
    for _ in shape:
        along = rng.sample(range(len(modes)), min(len(modes), rng.choice((1, 2)) if several else 1))
        strides.append({mode: step for mode in along if (step := rng.randint(lowest, 4))})
    return modes, shape, strides


@pytest.mark.parametrize("several", [False, True], ids=["one entry a stride", "sums of entries"])
def test_composition_with_coordinates_is_exact(several):
    """R(c) = a(b(c)) where such a layout exists, and a refusal where none does."""
    rng = random.Random(7 + several)
    composed = refused = 0
    for _ in range(3000):
        modes, shape, strides = random_case(rng, several)
        a = cute.make_layout(*(Layout(tuple(e for e, _ in mode), tuple(s for _, s in mode)) if len(mode) > 1
                               else Layout(*mode[0]) for mode in modes))
        b = CoordinateLayout(tuple(shape), tuple(map(basis, strides)))
        values = reference(modes, shape, strides)
        case = f"{a} o {b}"
        try:
            result = cute.composition(a, b)
        except helve.LayoutError as fault:
            refused += 1
            assert fault.name == "CuteComposition", f"{case}: {fault}"
            assert not exists(values, shape), case
            continue
        composed += 1
        assert cute.compatible(tuple(shape), result.shape), case
        for digits, expected in values.items():
            assert result(*digits) == expected, (case, digits)
    assert composed > 500 and refused > 30


def test_composition_with_coordinates_by_hand():
    a = Layout((4, 8), (8, 1))
    assert str(cute.composition(a, CoordinateLayout((2, 3), (E(0), E(1))))) == "(2,3):(8,1)"
    assert str(cute.composition(a, CoordinateLayout((3, 2), (2 * E(1), E(0))))) == "(3,2):(2,8)"
    assert cute.composition(a, cute.make_identity_layout((4, 8))) == a
    assert str(cute.composition(a, CoordinateLayout((4,), (E(0) + E(1),)))) == "(4,):(9,)"  # the diagonal
    nested = Layout(((2, 3), 4), ((12, 4), 1))
    assert str(cute.composition(nested, CoordinateLayout((3, 2), (E(0, 1), E(1))))) == "(3,2):(4,1)"
    assert str(cute.composition(nested, CoordinateLayout((6, 2), (E(0), E(1))))) == "((2,3),2):((12,4),1)"
    with pytest.raises(helve.BoundsError):
        cute.composition(a, CoordinateLayout((2, 3), (E(0), E(2))))
    with pytest.raises(helve.UnsupportedError) as caught:
        cute.composition(a, CoordinateLayout((3,), (E(0) + -E(1),)))
    assert "goes down" in str(caught.value)
