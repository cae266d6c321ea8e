"""Layouts as bit matrices and as CuTe layouts, in Python: round trips and the coordinates both sides agree on."""

import itertools
import re

import helve
import pytest
from helve import cute
from helve.layout import Layout, R, S, Swizzle, laneid, m, reg, warpid, x
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_oracle import coordinates, image, layouts, points, size

examples = settings(max_examples=100, deadline=None)


def bit_layouts():
    """Layouts whose digits are runs of the bits of two axes, in a random order: linear by construction."""

    def build(order, swizzle, replicas):
        iters = [(2, 1 << bit, axis) for bit, axis in order]
        split = len(iters) - replicas
        return Layout(iters[:split], iters[split:], swizzle=swizzle)

    bits = [(bit, axis) for axis, count in ((m, 5), (laneid, 2)) for bit in range(count)]
    swizzles = st.sampled_from([None, Swizzle(1, 0, 2), Swizzle(2, 1, 2), Swizzle(1, 1, -1)])
    return st.builds(build, st.permutations(bits), swizzles, st.integers(0, 2))


@examples
@given(bit_layouts())
def test_bits_round_trip(layout):
    index, replica, offset = layout.to_linear()
    assert Layout.from_linear(index, replica, offset).equivalent(layout)
    for at in range(size(layout)):
        place = {}
        for k, point in enumerate(index):
            for axis, value in point.items():
                place[axis] = place.get(axis, 0) ^ (value if at >> k & 1 else 0)
        assert frozenset((axis, value) for axis, value in place.items() if value) in points(layout, at)
    bases = layout.to_bases((layout.size(),))
    assert {axis: len(columns) for axis, columns in bases.items()} == {m: 5, laneid: 2}
    assert image(Layout.from_bases(bases, (layout.size(),))) == image(layout)
    for at in range(size(layout)):
        for point in points(layout, at):
            found = 0
            for axis, value in point:
                for k, (column,) in enumerate(bases[axis]):
                    found ^= column if value >> k & 1 else 0
            assert found == at


def test_the_accumulator_of_an_mma_as_triton_states_it():
    fragment = S[(2, 8, 4, 2) : (2@reg, 4@laneid, 1@laneid, 1@reg)]  # 16x8 over 32 lanes: m16n8
    bases = fragment.to_bases((16, 8))
    assert bases == {reg: [(0, 1), (8, 0)], laneid: [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]}
    assert Layout.from_bases(bases, (16, 8)).equivalent(fragment)
    bases[warpid] = [(0, 0), (0, 0)]
    assert Layout.from_bases(bases, (16, 8)).equivalent(fragment + R[4 : 1@warpid])


def test_replicas_that_add_nothing_play_no_part_in_bits():
    assert (S[(2, 4) : (4, 1)] + R[(3, 1) : (0, 5)]).to_linear() == S[8:1].to_linear()


def test_a_swizzled_tile_is_linear():
    tile = S[(64, 64) : (64, 1)] ^ Swizzle(3, 3, 3)
    index, _, _ = tile.to_linear()
    assert [point[m] for point in index[:6]] == [1, 2, 4, 8, 16, 32] and index[6][m] == 64 ^ 8
    assert Layout.from_bases(tile.to_bases((64, 64)), (64, 64)) == S[4096:1] ^ Swizzle(3, 3, 3)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: S[(24, 24) : (1, 24)].to_linear(), "iter 24:24 has no power of two as its extent"),
        (lambda: S[4:3].to_linear(), "bit 1 of iter 4:3 shares bit 1 of axis m with another"),
        (lambda: (S[4:1] + 4).to_bases((4,)), "bases have no offset"),
        (lambda: Layout.from_linear([{m: 1, x: 1}]), "index bit 0 moves along x and m"),
        (lambda: Layout.from_bases({m: [(1,)]}, (4,)), "element (2,) has no place"),
    ],
)
def test_refused_bits(make, text):
    with pytest.raises(helve.UnsupportedError, match=re.escape(text)):
        make()


# -- CuTe -------------------------------------------------------------------------------------------------------------


def test_columns_stay_columns():
    assert Layout.from_cute(cute.Layout((4, 8), (1, 4))) == S[(4, 8) : (1, 4)]
    assert Layout.from_cute(cute.Layout((4, (2, 3)), (6, (1, 2)))) == S[(4, 3, 2) : (6, 2, 1)]
    assert S[(8, 4) : (4, 1)].to_cute((8, 4)) == cute.Layout((8, 4), (4, 1))
    assert S[32:1].to_cute() == cute.Layout(32, 1)
    swizzled = (S[(8, 8) : (8, 1)] ^ Swizzle(3, 0, 3)).to_cute((8, 8))
    assert swizzled == cute.composition(cute.Swizzle(3, 0, 3), cute.Layout((8, 8), (8, 1)))
    assert Layout.from_cute(swizzled) == S[(8, 8) : (8, 1)] ^ Swizzle(3, 0, 3)


@examples
@given(layouts(4, 4, plain=True), st.none() | st.just(Swizzle(1, 0, 2)), st.data())
def test_coordinates_agree(layout, swizzle, data):
    layout = Layout([(extent, stride) for extent, stride, _ in layout.shard], swizzle=swizzle)
    n = layout.size()
    outer = data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    shape = (outer, n // outer)
    try:
        other = layout.to_cute(shape)
    except helve.DivisibilityError:
        return
    for at in coordinates(shape):
        assert other(at) == layout.apply(at, shape)[0].get(m, 0)
    assert image(Layout.from_cute(other)) == image(layout)
    flat = layout.to_cute()
    assert [flat(i) for i in range(n)] == [layout.apply(i)[0].get(m, 0) for i in range(n)]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: (S[4:1] + R[2:4]).to_cute(), "S[4 : 1] + R[2 : 4] has no CuTe form: it has replicas"),
        (lambda: (S[4:1] + 4).to_cute(), "it has an offset"),
        (lambda: S[4 : 1@x].to_cute(), "iter 4:1@x is on another axis than m"),
        (lambda: S[(3, 4) : (8, 1)].to_cute((4, 3)), "does not group"),
    ],
)
def test_refused_conversions(make, text):
    with pytest.raises(helve.LayoutError, match=re.escape(text)):
        make()
    with pytest.raises(TypeError, match="from_cute takes a helve.cute layout"):
        Layout.from_cute(S[4:1])


# -- relations ---------------------------------------------------------------------------------------------------------


def pairs_of(text, names, ranges):
    """The tuples of an isl relation's text, by trying all: its disjuncts are read as Python conditions."""
    conditions = []
    for disjunct in text.strip("{} ").split(";"):
        tuples, _, condition = disjunct.partition(":")
        fixed = [entry for entry in re.split(r"[\[\],]", tuples) if "=" in entry]  # "m = 3x0" inside the tuple
        condition = " and ".join(each.strip() for each in [*fixed, condition] if each.strip())
        while "floor(" in condition:  # the innermost first, with other brackets once it is read
            condition = re.sub(r"floor\(\(([^()]*)\)/(\d+)\)", r"⟦⟦\1⟧//\2⟧", condition)
        condition = condition.replace("⟦", "(").replace("⟧", ")").replace(" mod ", " % ")
        condition = re.sub(r"(\d)([a-z(])", r"\1*\2", re.sub(r"(?<![<>=])=(?!=)", "==", condition))
        conditions.append(compile(condition.strip(), "relation", "eval"))
    places = itertools.product(*ranges)
    return {place for place in places if any(eval(each, {}, dict(zip(names, place))) for each in conditions)}


@pytest.mark.parametrize(
    "text, shape",
    [
        ("S[(2, 3) : (3, 1)]", (2, 3)),
        ("S[(2, 2, 2) : (2@reg, 1@laneid, 1@reg)]", (4, 2)),
        ("S[(2, 4) : (1@laneid, 1)] + R[2 : 2@laneid]", (8,)),
        ("S[(2, 3) : (1@x, -1)] + R[(2, 2) : (2, 3)] + 4", (3, 2)),
        ("S[(4, 4) : (4, 1)] ^ Swizzle(2, 0, 2)", (4, 4)),
        ("S[(2, 2) : (1, 0)] + 3@warpid", (4,)),
    ],
)
def test_relations_are_the_map(text, shape):
    layout = Layout.parse(text)
    points = {coordinate: layout.apply(coordinate, shape) for coordinate in itertools.product(*map(range, shape))}
    expected = {(*coordinate, *point.values()) for coordinate, found in points.items() for point in found}
    relation = layout.to_relation(shape)
    names = [f"x{d}" for d in range(len(shape))] + [axis.name for axis in layout.axes]
    assert relation.startswith(f"{{ [{', '.join(names[: len(shape)])}] -> [")
    around = [range(-1, extent + 1) for extent in shape] + [range(-4, 17)] * len(layout.axes)
    assert pairs_of(relation, names, around) == expected


def test_words_of_isl_do_not_name_entries():
    mod, x0 = helve.axis("mod", "memory"), helve.axis("x0", "memory")
    relation = S[(2, 2) : (1 @ mod, 1 @ x0)].to_relation((4,))
    assert relation.startswith("{ [x0] -> [mod_, x0'] : ")


def test_refused_relations():
    with pytest.raises(helve.ShapeError, match=re.escape("shape (3, 3) has 9 elements, the layout has 8")):
        S[8:1].to_relation((3, 3))
