"""Layouts in Python: the notation, the map, the algebra against enumeration, batches, and what is refused."""

import copy
import pickle
import re
from pathlib import Path

import helve
import helve.layout
import numpy as np
import pytest
from helve.dist import distribution
from helve.layout import Layout, R, S, Swizzle, bank_conflicts, direct_sum, inner_of, laneid, left_of, m, outer_of
from helve.layout import right_of, tile, warpid, wgid, x, y
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layout_oracle import coordinates, image, layouts, place, points, size, swizzled, swizzles, unflatten

ROOT = Path(__file__).resolve().parents[2]
examples = settings(max_examples=80, deadline=None)

TENSOR_CORE = "S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid"


def tensor_core_tile():
    return S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid  # fmt: skip


# -- notation ---------------------------------------------------------------------------------------------------------


def test_the_notation_is_python():
    layout = tensor_core_tile()
    assert str(layout) == repr(layout) == TENSOR_CORE
    assert layout == Layout.parse(TENSOR_CORE)
    assert layout.shard == ((8, 4, laneid), (2, 1, warpid), (4, 1, laneid), (2, 1, m))
    assert layout.replica == ((2, 4, warpid),)
    assert layout.offset == {warpid: 5} and layout.swizzle is None
    assert layout.axes == (laneid, warpid, m)
    assert layout == Layout(shard=[(8, 4, laneid), (2, 1, warpid), (4, 1, laneid), (2, 1, m)],
                            replica=[(2, 4, warpid)], offset={warpid: 5}, swizzle=None)  # fmt: skip


def test_the_tensor_core_tile_of_the_paper():
    layout = tensor_core_tile()
    assert layout.size() == 128 and layout.size(laneid) == 32 and layout.size(x) == 1
    assert layout.span(warpid) == 6 and layout.span(laneid) == 32 and layout.span(m) == 2
    assert layout.apply((1, 9), (8, 16)) == [{laneid: 4, warpid: 6, m: 1}, {laneid: 4, warpid: 10, m: 1}]
    assert layout.inverse({laneid: 4, warpid: 10, m: 1}, (8, 16)) == (1, 9)
    assert layout.inverse({laneid: 4, warpid: 6, m: 1}) == 25
    assert layout.inverse({laneid: 4, warpid: 7, m: 1}) is None


def test_other_spellings():
    assert S[8 : 2@m] == S[(8,) : (2,)] == S[8:2] == Layout([(8, 2)]) == Layout([(8, 2@m)]) == Layout([[8, 2, m]])
    assert str(S[():()]) == "S[() : ()]" and S[():()].size() == 1
    assert S[8:1] + 3 - 1@laneid + 2 == Layout([(8, 1)], offset={m: 5, laneid: -1})  # fmt: skip
    assert S[8:1] + -(2@laneid) == S[8:1] - 2@laneid  # fmt: skip
    assert (S[8:1] + R[2 : 1@x] + R[2 : 1@y]).replica == ((2, 1, x), (2, 1, y))
    both = R[(2, 3) : (1@x, 4)]
    assert repr(both) == "R[(2, 3) : (1@x, 4)]" and both == pickle.loads(pickle.dumps(both)) != R[2 : 1@x]
    assert len({both, R[(2, 3) : (1@x, 4)]}) == 1
    assert str(S[8:1] + 1 ^ Swizzle(1, 0, 2)) == "S[8 : 1] + 1 ^ Swizzle(1, 0, 2)"
    assert Layout([(np.int64(4), np.int32(2))]) == S[4:2]


def test_every_built_in_axis_has_a_name():
    table = (ROOT / "include/helve/layout/axis_table.inc").read_text()
    rows = re.findall(r"^HELVE_AXIS\((\w+), (\w+)\)", table, re.M)
    assert len(rows) > 10
    for name, kind in rows:
        axis = getattr(helve.layout, name)
        assert (axis.name, axis.kind, repr(axis)) == (name, kind.lower(), name)
        assert name in helve.layout.__all__


def test_user_axes():
    head = helve.axis("head", "device")
    assert head == helve.axis("head", "device") and head != x and hash(head) == hash(helve.axis("head", "device"))
    assert S[4 : 2@head] == Layout.parse("S[4 : 2@head]")
    assert sorted([m, warpid, laneid, x]) == [x, laneid, warpid, m]
    with pytest.raises(helve.LayoutError, match="'core' is no kind of axis\nhelp: an axis is of kind 'device'"):
        helve.axis("head", "core")


@examples
@given(layouts())
def test_text_and_pickles_give_the_layout_back(layout):
    assert Layout.parse(str(layout)) == layout
    assert eval(str(layout), dict(vars(helve.layout))) == layout
    for other in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
        assert other == layout and hash(other) == hash(layout)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: S[8:1] + "x", "unsupported operand"),
        (lambda: S[8:1] ^ 3, "unsupported operand"),
        (lambda: S[8:1].apply("1"), "apply takes a flat index, or a coordinate and its shape"),
        (lambda: S[8:1].apply(("1",), (8,)), "a coordinate is a list of integers"),
        (lambda: S[8:1].apply_many("1"), "apply_many takes an array of integers"),
        (lambda: S[8:1].group("8"), "incompatible function arguments"),
        (lambda: S[8:1].span("m"), "incompatible function arguments"),
        (lambda: Layout(S[8:1]), "incompatible constructor arguments"),
        (lambda: bank_conflicts(S[8:1], ["0"], 4), "an access lists a flat index, or None, for each thread"),
    ],
)
def test_what_is_not_written_with_numbers_is_a_type_error(make, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


# -- the map ----------------------------------------------------------------------------------------------------------


@examples
@given(layouts())
def test_the_map(layout):
    every = image(layout)
    assert layout.size() == len(every)
    for index, expected in enumerate(every):
        found = layout.apply(index)
        assert {place(point) for point in found} == expected and len(found) == len(expected)
    for axis in (m, laneid, x, warpid):
        values = [dict(point).get(axis, 0) for each in every for point in each]
        assert layout.span(axis) == max(values) - min(values) + 1
    assert image(layout.canonicalize()) == every and layout.equivalent(layout.canonicalize())


@examples
@given(layouts())
def test_inverse_and_injectivity(layout):
    every = image(layout)
    owner = {}
    injective = True
    for index, places in enumerate(every):
        injective &= all(owner.setdefault(point, index) == index for point in places)
    assert layout.is_injective() == injective
    if not injective:
        first, second, point = layout.find_collision()
        assert first < second and place(point) in every[first] & every[second]
        with pytest.raises(helve.InjectivityError, match=f"indices {first} and {second} share the point"):
            layout.inverse(point)
        return
    assert layout.find_collision() is None
    for point, index in owner.items():
        assert layout.inverse(dict(point)) == index
    for value in range(-3, 12):
        assert layout.inverse({m: value}) == owner.get(place({m: value}))


@examples
@given(layouts(2), layouts(2))
def test_equivalence_is_equality_of_maps(a, b):
    assert a.equivalent(b) == (image(a) == image(b))
    assert (a == b) == (str(a) == str(b))


# -- batches ----------------------------------------------------------------------------------------------------------


@examples
@given(layouts(4, 5), st.integers(0, 2**32))
def test_many_indices(layout, seed):
    indices = np.random.default_rng(seed).integers(0, layout.size(), (3, 7))
    found = layout.apply_many(indices)
    assert tuple(found) == layout.axes
    for at in np.ndindex(indices.shape):
        coordinates = {axis: np.atleast_1d(array[at]) for axis, array in found.items()}
        count = len(points(layout, int(indices[at])))
        listed = {place({axis: int(c[r]) for axis, c in coordinates.items()}) for r in range(count)}
        assert listed == points(layout, int(indices[at]))
    for array in found.values():
        assert array.dtype == np.int64
        assert array.shape[:2] == (3, 7) and array.ndim == (3 if layout.replica else 2)


def test_batches_in_place():
    layout = S[(3, 4) : (1@laneid, 2)] + 7
    indices = np.arange(12, dtype=np.int32)[::-1]
    out = {laneid: np.zeros(12, np.int64), m: np.zeros(12, np.int64), x: None}
    assert layout.apply_many(indices, out) is out
    assert out[laneid].tolist() == [i // 4 for i in indices] and out[m].tolist() == [i % 4 * 2 + 7 for i in indices]
    shared = np.arange(12)
    layout.apply_many(shared, {laneid: shared, m: out[m]})
    assert shared.tolist() == [i // 4 for i in range(12)] and out[m].tolist() == [i % 4 * 2 + 7 for i in range(12)]
    assert layout.apply_many(np.zeros((0, 3), np.int64))[m].shape == (0, 3)
    assert layout.apply_many([1, 2])[m].tolist() == [9, 11] and layout.apply_many(5)[m].shape == ()
    assert S[():()].apply_many([0, 0]) == {}


@pytest.mark.parametrize(
    "arguments, kind, text",
    [
        (([0.5],), helve.LayoutError, "[0.5] is no array of integers"),
        (([2**70],), helve.LayoutError, "[1180591620717411303424] is no array of integers"),
        (([0], {laneid: np.zeros(1, np.int64)}), helve.LayoutError,
         "out without axis m is no place for the coordinates"),
        (([0], {laneid: np.zeros(1, np.int64), m: np.zeros(1)}), helve.LayoutError,
         "out[m] is no NumPy array of int64"),
        (([0], {laneid: np.zeros(1, np.int64), m: np.zeros(2, np.int64)}), helve.LayoutError,
         "out[m] of shape (2,) is no array of shape (1,)"),
        (([0, 1], {laneid: np.zeros(4, np.int64)[::2], m: np.zeros(2, np.int64)}), helve.LayoutError,
         "out[laneid] is no writeable C-contiguous array"),
        (([12],), helve.BoundsError, "coordinate (12,) is outside shape (12,)"),
        (([-1],), helve.BoundsError, "coordinate (-1,) is outside shape (12,)"),
    ],
)  # fmt: skip
def test_refused_batches(arguments, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        S[(3, 4) : (1@laneid, 2)].apply_many(*arguments)
    with pytest.raises(helve.BoundsError):
        S[():()].apply_many([1])


def test_overlapping_outputs_are_refused():
    shared = np.zeros(3, np.int64)
    overlap = "out[m], which overlaps out[laneid], is no array of its own"
    with pytest.raises(helve.LayoutError, match=re.escape(overlap)):
        S[(3, 4) : (1@laneid, 2)].apply_many([0, 1], {laneid: shared[:2], m: shared[1:]})


# -- the algebra ------------------------------------------------------------------------------------------------------


@examples
@given(layouts(4, 4), st.data())
def test_group(layout, data):
    n = size(layout)
    outer = data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    try:
        grouped, separators = layout.group((outer, n // outer))
    except helve.DivisibilityError:
        return
    assert image(grouped) == image(layout)
    blocks = [grouped.shard[a:b] for a, b in zip(separators, separators[1:], strict=False)]
    assert [size(Layout(block)) for block in blocks] == [outer, n // outer]
    assert layout.group_many([(outer, n // outer), (n,)]) == (grouped, [separators, (0, separators[-1])])


@examples
@given(layouts(2, 3), layouts(2, 3), st.booleans())
def test_products(a, b, scaled):
    assume(a.swizzle is None and (scaled or b.swizzle is None))
    assume(b.swizzle is None or b.span(m) % b.swizzle.size() == 0)
    shapes = (a.size(),), (b.size(),)
    whole = (tile if scaled else direct_sum)(a, shapes[0], b, shapes[1])
    every = image(b)
    for i, j in coordinates((a.size(), b.size())):
        expected = set()
        for p in points(a, i):
            for q in every[j]:
                sums = dict(q)
                for axis, value in p:
                    sums[axis] = sums.get(axis, 0) + value * (b.span(axis) if scaled else 1)
                expected.add(place(sums))
        assert points(whole, i * b.size() + j) == expected
    if b.swizzle is None:
        shape = (a.size() * b.size(),)
        slow = (outer_of if scaled else left_of)(whole, shape, b, shapes[1])
        fast = (inner_of if scaled else right_of)(whole, shape, a, shapes[0])
        assert (tile if scaled else direct_sum)(slow, shapes[0], b, shapes[1]).equivalent(whole)
        assert (tile if scaled else direct_sum)(a, shapes[0], fast, shapes[1]).equivalent(whole)


@examples
@given(layouts(4, 4), st.data())
def test_slices(layout, data):
    shape = tuple(extent for extent, _, _ in layout.shard)
    region = [data.draw(st.tuples(st.integers(0, n - 1), st.integers(1, n)).map(sorted)) for n in shape]
    region = [(begin, max(begin + 1, end)) for begin, end in region]
    part = layout.slice(region, shape)
    extents = tuple(end - begin for begin, end in region)
    for at in coordinates(extents):
        there = tuple(t + begin for t, (begin, _) in zip(at, region, strict=True))
        assert part.apply(at, extents) == layout.apply(there, shape) or {place(p) for p in part.apply(at, extents)} == {
            place(p) for p in layout.apply(there, shape)
        }
    flat_begin = data.draw(st.integers(0, layout.size() - 1))
    flat_end = data.draw(st.integers(flat_begin + 1, layout.size()))
    try:
        part = layout.slice([(flat_begin, flat_end)], (layout.size(),))
    except helve.UnsupportedError:
        return
    assert image(part) == image(layout)[flat_begin:flat_end]


@examples
@given(layouts(3, 4), st.permutations(range(3)))
def test_permuted_dimensions(layout, order):
    shape = (*(extent for extent, _, _ in layout.shard), 1, 1, 1)[:3]
    turned = layout.permute(shape, order)
    extents = [shape[d] for d in order]
    for at in coordinates(extents):
        there = [0, 0, 0]
        for value, d in zip(at, order, strict=True):
            there[d] = value
        assert {place(p) for p in turned.apply(at, extents)} == {place(p) for p in layout.apply(there, shape)}


@examples
@given(layouts(3, 3), st.sampled_from([1, 2, 4, 8]))
def test_packs(layout, factor):
    parts = layout.unpack(factor)
    for index in range(parts.size()):
        wider = {
            place({**dict(p), m: dict(p).get(m, 0) * factor + index % factor}) for p in points(layout, index // factor)
        }
        assert points(parts, index) == wider
    assert parts.pack(factor).equivalent(layout)


def test_fewer_axes():
    layout = tensor_core_tile()
    assert str(layout.storage()) == "S[2 : 1]"
    assert str(layout.project([laneid])) == "S[(8, 4) : (4@laneid, 1@laneid)]"
    assert str(layout.fuse_axes(helve.layout.tx)) == (
        "S[(8, 2, 4, 2) : (4@tx, 32@tx, 1@tx, 1)] + R[2 : 128@tx] + 160@tx"
    )
    assert layout.execution_scopes() == ("thread", "cta") and layout.storage().execution_scopes() is None


@examples
@given(swizzles(), st.integers(0, 10**6))
def test_swizzles(swizzle, address):
    assert swizzle(address) == swizzled(swizzle, address) and swizzle(swizzle(address)) == address
    assert swizzle.size() == 2 ** (swizzle.bits + swizzle.base + abs(swizzle.shift))
    assert pickle.loads(pickle.dumps(swizzle)) == swizzle == Swizzle(swizzle.bits, swizzle.base, swizzle.shift)
    assert swizzle(address) // swizzle.size() == address // swizzle.size()


# -- holes of the published algebra and its public code ---------------------------------------------------------------


def test_a_slice_whose_wrap_has_no_room_is_refused():
    """The paper's slice answers 12, 13, 20, 21 here; the map is 12, 13, 100, 101."""
    layout = S[(2, 2, 4) : (100, 10, 1)]
    assert [layout.apply(i)[0][m] for i in range(6, 10)] == [12, 13, 100, 101]
    part = layout.slice([(6, 10)], (16,))
    assert [part.apply(i)[0][m] for i in range(4)] == [12, 13, 100, 101]


def test_an_interleaving_in_the_wrong_order_is_no_tile():
    assert outer_of(S[(2, 2) : (1, 2)], (4,), S[2:1], (2,)) is None


def test_a_swizzle_that_moves_nothing_is_no_swizzle():
    """Operations depend on the map: these addresses lie below the bits that the swizzle reads."""
    idle = S[4:1] ^ Swizzle(1, 2, 3)
    assert idle.equivalent(S[4:1])
    assert tile(idle, (4,), idle, (4,)) == tile(S[4:1], (4,), S[4:1], (4,))
    assert direct_sum(idle, (4,), idle, (4,)) == direct_sum(S[4:1], (4,), S[4:1], (4,))
    assert outer_of(S[16:1] ^ Swizzle(1, 2, 3), (16,), idle, (4,)) == S[4:1]


def test_replicas_and_offset_of_an_outer_are_scaled_and_divided():
    outer = S[2:1] + R[2:2] + 1
    whole = tile(outer, (2,), S[4:1], (4,))
    assert str(whole) == "S[(2, 4) : (4, 1)] + R[2 : 8] + 4"
    assert outer_of(whole, (8,), S[4:1], (4,)) == outer


def test_a_span_counts_neither_offset_nor_signs():
    assert (S[4:-3] + 100).span(m) == 10
    assert (S[2:1] + R[2 : 1@laneid]).span(laneid) == 2


def test_equal_replica_sets_are_equal():
    assert (S[2:1] + R[(4, 2) : (1, 2)]).equivalent(S[2:1] + R[6:1])
    assert (S[2:1] + R[(2, 2) : (2, 1)]).canonicalize() == (S[2:1] + R[4:1]).canonicalize()
    assert not (S[2:1] + R[(4, 2) : (1, 2)]).equivalent(S[2:1] + R[(4, 2) : (1, 4)])


def test_the_end_of_a_slice_is_exact():
    assert S[(2, 2, 4) : (100, 10, 1)].slice([(0, 16)], (16,)).equivalent(S[(2, 2, 4) : (100, 10, 1)])
    assert str(S[(4, 4) : (4, 1)].slice([(4, 12)], (16,)).canonicalize()) == "S[8 : 1] + 4"


def test_axes_never_fuse_by_themselves():
    layout = S[(4, 32) : (1@warpid, 1@laneid)]
    assert layout.canonicalize() == layout
    assert str(layout.fuse_axes(helve.layout.tx).canonicalize()) == "S[128 : 1@tx]"


def test_a_stride_of_zero_is_a_map_but_not_injective():
    layout = S[(2, 3) : (0, 1)]
    assert [layout.apply(i)[0][m] for i in range(6)] == [0, 1, 2, 0, 1, 2] and not layout.is_injective()
    assert layout.equivalent(S[(2, 3) : (0@laneid, 1)])


def test_gaps_between_thread_axes_are_refused_where_a_chain_is_needed():
    gap = S[(2, 32) : (1@wgid, 1@laneid)]
    assert gap.size() == 64 and gap.is_injective()
    for question in (gap.execution_scopes, lambda: gap.fuse_axes(helve.layout.tx)):
        text = re.escape("axes 'laneid' (thread in warp) and 'wgid' (warpgroup in cta)")
        with pytest.raises(helve.UnsupportedError, match=text):
            question()


def test_apply_gives_every_replica_once():
    assert [p[m] for p in (S[1:1] + R[(4, 2) : (1, 2)]).apply(0)] == [0, 1, 2, 3, 4, 5]


def test_errors_are_value_errors():
    with pytest.raises(ValueError) as caught:
        S[0:1]
    assert isinstance(caught.value, helve.ShapeError) and caught.value.code == "HV0510"
    assert unflatten(25, (8, 16)) == (1, 9)
    assert (S[2 : 1@wgid] + 1@laneid).offset == {laneid: 1}  # fmt: skip
