"""Layouts whose values are coordinates: basis elements, identity layouts, and the pieces that divisions cut.

The judge is a layout of numbers over the same shape: a piece of it has the offsets of the coordinates of the piece.
"""

import copy
import pickle
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
        entries = [each for each in cute.flatten(mine(i))] if isinstance(mine(i), tuple) else [mine(i)]
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
