"""What is written with numbers and is not what an argument should be is a LayoutError that shows it, everywhere."""

import re

import helve
import numpy as np
import pytest
from helve import cute
from helve.cute import E
from helve.dist import distribution
from helve.layout import Displacement, Layout, R, S, Swizzle, bank_conflicts, choose_swizzle, direct_sum, laneid, m
from helve.layout import outer_of, tile

HUGE = 2**70
TOO_LONG = f"{HUGE} does not fit in 64 bits"
L = S[(4, 8) : (8, 1)]
C = cute.Layout((4, 8))
MESH = helve.Mesh((2, 4))
PLACED = distribution("ij -> i j", (4, 8), MESH)

# An integer stands at the question mark: (what is asked of a value there).
INTEGERS = {
    "S[?:1]": lambda v: S[v:1],
    "S[8:?]": lambda v: S[8:v],
    "R[?:1]": lambda v: R[v:1],
    "S[(4, 2):(?, 1)]": lambda v: S[(4, 2) : (v, 1)],
    "Layout([(2, ?)])": lambda v: Layout([(2, v)]),
    "Layout(offset={m: ?})": lambda v: Layout(offset={m: v}),
    "?@laneid": lambda v: v @ laneid,
    "Displacement(?, m)": lambda v: Displacement(v, m),
    "L + ?": lambda v: L + v,
    "L - ?": lambda v: L - v,
    "L.apply(?)": L.apply,
    "L.apply((0, ?), shape)": lambda v: L.apply((0, v), (4, 8)),
    "L.apply((0, 0), (4, ?))": lambda v: L.apply((0, 0), (4, v)),
    "L.inverse({m: ?})": lambda v: L.inverse({m: v}),
    "L.inverse({m: 0}, (4, ?))": lambda v: L.inverse({m: 0}, (4, v)),
    "L.group((4, ?))": lambda v: L.group((4, v)),
    "L.group_many([(4, ?)])": lambda v: L.group_many([(4, v)]),
    "L.slice([(0, 2), (0, ?)], shape)": lambda v: L.slice([(0, 2), (0, v)], (4, 8)),
    "L.permute(shape, (1, ?))": lambda v: L.permute((4, 8), (1, v)),
    "L.pack(?)": L.pack,
    "L.unpack(?)": L.unpack,
    "L.to_cute((4, ?))": lambda v: L.to_cute((4, v)),
    "L.to_bases((4, ?))": lambda v: L.to_bases((4, v)),
    "L.to_relation((4, ?))": lambda v: L.to_relation((4, v)),
    "Layout.from_bases({m: [(0, ?)]}, shape)": lambda v: Layout.from_bases({m: [(0, v)]}, (4, 8)),
    "tile(L, (4, ?), L, shape)": lambda v: tile(L, (4, v), L, (4, 8)),
    "direct_sum(L, shape, L, (4, ?))": lambda v: direct_sum(L, (4, 8), L, (4, v)),
    "outer_of(L, shape, L, (4, ?))": lambda v: outer_of(L, (4, 8), L, (4, v)),
    "bank_conflicts(L, [?], 4)": lambda v: bank_conflicts(L, [v], 4),
    "bank_conflicts(L, [0], ?)": lambda v: bank_conflicts(L, [0], v),
    "choose_swizzle(?, 64, 2)": lambda v: choose_swizzle(v, 64, 2),
    "Swizzle(1, ?, 3)": lambda v: Swizzle(1, v, 3),
    "Swizzle(1, 0, 3)(?)": Swizzle(1, 0, 3),
    "distribution(..., (4, ?), mesh)": lambda v: distribution("ij -> i j", (4, v), MESH),
    "local_shape((0, ?))": lambda v: PLACED.local_shape((0, v)),
    "owners((0, ?))": lambda v: PLACED.owners((0, v)),
    "cute.Layout(?)": cute.Layout,
    "cute.Layout((4, ?))": lambda v: cute.Layout((4, v)),
    "cute.Layout((4, 2), (1, ?))": lambda v: cute.Layout((4, 2), (1, v)),
    "cute.make_layout(?)": cute.make_layout,
    "cute.make_layout((4, 2), (1, ?))": lambda v: cute.make_layout((4, 2), (1, v)),
    "cute.make_identity_layout((4, ?))": lambda v: cute.make_identity_layout((4, v)),
    "cute.make_ordered_layout((4, 2), (1, ?))": lambda v: cute.make_ordered_layout((4, 2), (1, v)),
    "cute.ComposedLayout(Swizzle, ?, C)": lambda v: cute.ComposedLayout(Swizzle(1, 0, 3), v, C),
    "C(?)": C,
    "C(0, ?)": lambda v: C(0, v),
    "C[?]": lambda v: C[v],
    "cute.composition(C, ?)": lambda v: cute.composition(C, v),
    "cute.composition(?, C)": lambda v: cute.composition(v, C),
    "cute.complement(C, ?)": lambda v: cute.complement(C, v),
    "cute.logical_divide(C, (2, ?))": lambda v: cute.logical_divide(C, (2, v)),
    "cute.blocked_product(C, ?)": lambda v: cute.blocked_product(C, v),
    "cute.tile_to_shape(C, (8, ?))": lambda v: cute.tile_to_shape(C, (8, v)),
    "cute.crd2idx((0, ?), shape)": lambda v: cute.crd2idx((0, v), (4, 8)),
    "cute.idx2crd(?, shape)": lambda v: cute.idx2crd(v, (4, 8)),
    "cute.shape_div(shape, ?)": lambda v: cute.shape_div((4, 8), v),
    "cute.inner_product((1, 2), (3, ?))": lambda v: cute.inner_product((1, 2), (3, v)),
    "cute.group(C, 0, ?)": lambda v: cute.group(C, 0, v),
    "cute.take(C, 0, ?)": lambda v: cute.take(C, 0, v),
    "cute.select(C, [?])": lambda v: cute.select(C, [v]),
    "cute.append(C, ?)": lambda v: cute.append(C, v),
    "cute.replace(C, ?, C)": lambda v: cute.replace(C, v, C),
    "cute.get(C, ?)": lambda v: cute.get(C, v),
    "cute.size(C, [?])": lambda v: cute.size(C, [v]),
    "cute.rank(C, [?])": lambda v: cute.rank(C, [v]),
    "cute.upcast(C, ?)": lambda v: cute.upcast(C, v),
    "cute.recast(C, 32, ?)": lambda v: cute.recast(C, 32, v),
    "cute.domain_distribute(C, ?)": lambda v: cute.domain_distribute(C, v),
    "cute.local_tile(C, (2, 2), (0, ?))": lambda v: cute.local_tile(C, (2, 2), (0, v)),
    "cute.local_partition(C, 2, ?)": lambda v: cute.local_partition(C, cute.Layout((2, 1)), v),
    "E(?)": E,
    "? * E(0)": lambda v: v * E(0),
}


@pytest.mark.parametrize("ask", INTEGERS.values(), ids=INTEGERS)
def test_numbers_that_are_no_integers(ask):
    for value, text in ((2.5, "2.5"), (np.float64(2.0), "2.0"), (np.array([2, 3]), "array([2, 3])")):
        with pytest.raises(helve.LayoutError, match=re.escape(text) + r"\)? is no integer\n") as refusal:
            ask(value)
        assert refusal.value.code == "HV0507"
    with pytest.raises(helve.UnsupportedError, match=TOO_LONG):
        ask(HUGE)


@pytest.mark.parametrize("ask", INTEGERS.values(), ids=INTEGERS)
def test_integers_of_numpy_are_integers(ask):
    """They are answered, or refused, as Python's are."""

    def outcome(value):
        try:
            return str(ask(value))
        except helve.LayoutError as error:
            return error.message

    for value in (0, 1, 2, 4, 8):
        assert outcome(np.int64(value)) == outcome(np.uint8(value)) == outcome(value)
    assert outcome(np.int64(-3)) == outcome(-3)


# (what is asked, the message, the remedy)
LISTS = [
    (lambda: L.group(8), "8 is no list of integers", "write a tuple, as (8, 4) or (8,)"),
    (lambda: L.apply(0, (4, 8)), "0 is no list of integers", "write a tuple, as (8, 4) or (8,)"),
    (lambda: L.apply((0, 0)), "(0, 0) is no flat index", "give the shape of a coordinate as well: apply(coord, shape)"),
    (lambda: L.group(((4, 2), 4)), "(4, 2) is no integer",
     "extents, strides, coordinates and factors are whole numbers"),
    (lambda: L.group_many(8), "8 is no list of lists of integers", "write a list of tuples, as [(8, 4), (32,)]"),
    (lambda: L.slice([(0, 2, 4), (0, 8)], (4, 8)), "(0, 2, 4) is no range",
     "a region has one (begin, end) for each dimension"),
    (lambda: PLACED.local_shape(0), "0 is no list of integers", "write a tuple, as (8, 4) or (8,)"),
    (lambda: Layout(8), "8 is no list of iters",
     "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)"),
    (lambda: Layout([8]), "8 is no iter",
     "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)"),
    (lambda: Layout([(8, 1@laneid, m)]), "(8, 1@laneid, m) is no iter",  # fmt: skip
     "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)"),
    (lambda: S["a":1], "('a', 1) is no iter",
     "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)"),
    (lambda: Layout(offset=4), "4 is no point", "a point is a dict from axes to integers, as {laneid: 3}"),
    (lambda: L.inverse({"m": 4}), "{'m': 4} is no point", "a point is a dict from axes to integers, as {laneid: 3}"),
    (lambda: S[8], "S[8] is no layout", "write S[extents : strides], as S[(8, 4) : (4@laneid, 1)]"),
    (lambda: S[:1], "S[ : 1] is no layout", "write S[extents : strides], as S[(8, 4) : (4@laneid, 1)]"),
    (lambda: R[8:1:2], "R[8 : 1 : 2] is no layout", "write R[extents : strides], as R[(8, 4) : (4@laneid, 1)]"),
    (lambda: cute.make_layout(C, 8), "8 is no layout", "make_layout takes layouts, or a shape and strides"),
    (lambda: cute.size(C, 0), "0 is no list of modes", "write a tuple of their numbers, as (0, 1) or (0,)"),
    (lambda: cute.group(C, -1, 2), "-1 is no mode", "modes count from 0"),
    (lambda: cute.recast(C, "float16", "float7"), "'float7' is no dtype",
     'give the name of a dtype, as "float16", or its width in bits'),
    (lambda: L.group([0.5] * 99), "0.5 is no integer", "extents, strides, coordinates and factors are whole numbers"),
    (lambda: Layout([tuple(range(99))]), str(tuple(range(99)))[:77] + "... is no iter",
     "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)"),
]  # fmt: skip


@pytest.mark.parametrize("ask, message, help", LISTS, ids=[f"{k}: {row[1][:40]}" for k, row in enumerate(LISTS)])
def test_numbers_in_another_form(ask, message, help):
    with pytest.raises(helve.LayoutError) as refusal:
        ask()
    assert (refusal.value.code, refusal.value.message, refusal.value.help) == ("HV0507", message, help)


def test_any_sequence_of_integers_is_a_shape():
    for shape in ([4, 8], np.array([4, 8]), range(4, 9, 4), (np.int32(4), np.uint8(8))):
        assert L.group(shape)[1] == (0, 1, 2)
        assert L.slice(np.array([[0, 2], [0, 4]]), shape) == L.slice([(0, 2), (0, 4)], (4, 8))


def test_a_layout_is_no_stride():
    with pytest.raises(TypeError, match="make_layout takes layouts, or a shape and strides"):
        cute.make_layout((4, 2), C)


def test_a_composed_layout_is_made_of_layouts():
    assert cute.ComposedLayout(4, 0, 8) == cute.ComposedLayout(cute.Layout(4, 1), 0, cute.Layout(8, 1))
    with pytest.raises(TypeError, match="the outside of a ComposedLayout is a layout or a swizzle"):
        cute.ComposedLayout("4", 0, C)
    with pytest.raises(TypeError, match="the inside of a ComposedLayout is a layout"):
        cute.ComposedLayout(Swizzle(1, 0, 3), 0, (4, 8))


def test_what_is_printed_is_a_layout():
    refused = [(range(8), 8, "8 is no layout of helve.cute"), (8, C, "8 is no sequence of numbers")]
    for values, layout, message in refused:
        with pytest.raises(helve.LayoutError, match=f"HV0507.: {message}"):
            cute.print_tensor(values, layout)
