"""Distributions in Python: DISTAL's rows, faces, copies, uneven blocks, two levels, and the text of refusals."""

import copy
import itertools
import pickle
import re

import helve
import pytest
from helve.dist import distribution
from helve.layout import S, x, y


@pytest.mark.parametrize(
    "notation, shape, mesh, block",
    [
        ("x -> x", (100,), (10,), (10,)),
        ("xy -> x", (100, 100), (10,), (10, 100)),
        ("xy -> xy", (100, 100), (10, 10), (10, 10)),
        ("xy -> xy0", (100, 100), (10, 10, 10), (10, 10)),
        ("xy -> x y *", (100, 100), (10, 10, 10), (10, 10)),
        ("xyz -> xy", (100, 100, 100), (10, 10), (10, 10, 100)),
        ("xy -> yx", (100, 60), (10, 4), (25, 6)),
        ("row col -> * row", (7, 3), (2, 3), (3, 3)),
        (["xy -> x y", "xy -> y *"], (8, 24), (2, 2, 3, 2), (4, 4)),
    ],
)
def test_blocks(notation, shape, mesh, block):
    mesh = helve.Mesh(mesh, tuple("abcd"[: len(mesh)]))
    made = distribution(notation, shape, mesh)
    assert made.block == block
    held = {
        device: made.local_shape(device) for device in itertools.product(*(range(extent) for extent in mesh.shape))
    }
    assert all(part is None or part <= block for part in held.values())
    last = notation[-1] if isinstance(notation, list) else notation
    if last.endswith("0"):
        assert sum(part is not None for part in held.values()) == 100
    else:
        assert None not in held.values()


def test_the_layout_is_on_device_axes():
    made = distribution("xy -> x y", (64, 128), helve.Mesh((2, 2)))
    assert made.layout == S[(2, 32, 2, 64) : (1@x, 64, 1@y, 1)]
    assert made.layout.project([x, y]) == S[(2, 2) : (1@x, 1@y)]
    assert made.domain == made.shape == (64, 128) and made.partial == {}


def test_owners_of_a_tensor_on_two_planes():
    """Colours are the blocks, a device of each plane holds each: element (2, 0) is of block (1, 0)."""
    made = distribution("xy -> x y *", (4, 4), helve.Mesh((2, 2, 2), ("a", "b", "c")))
    for i, j in itertools.product(range(4), range(4)):
        assert made.owners((i, j)) == [(i // 2, j // 2, 0), (i // 2, j // 2, 1)]


def test_a_face_owns_alone():
    made = distribution("xy -> 1 y", (4, 6), helve.Mesh((2, 3)))
    assert made.owners((3, 5)) == [(1, 2)]
    assert made.local_shape((0, 0)) is None and made.local_begin((0, 0)) is None
    assert made.local_shape((1, 2)) == (4, 2) and made.local_begin((1, 2)) == (0, 4)


@pytest.mark.parametrize("extent, cores", [(10, 4), (9, 4), (5, 4), (3, 4), (1, 4), (8, 4), (0, 3), (7, 1)])
def test_uneven_blocks(extent, cores):
    made = distribution("x -> x", (extent,), helve.Mesh((cores,)))
    block = max(1, -(-extent // cores))
    parts = [made.local_shape((core,))[0] for core in range(cores)]
    assert parts == [max(0, min(block, extent - core * block)) for core in range(cores)] and sum(parts) == extent
    assert made.domain == (block * cores,)
    for i in range(extent):
        assert made.owners((i,)) == [(i // block,)]
        assert made.layout.apply((i,), made.domain)[0].get(helve.layout.m, 0) == i % block


def test_two_levels_are_dealt_row_major():
    made = distribution(["xy -> x y", "xy -> x *"], (12, 4), helve.Mesh((2, 2, 3, 2), tuple("abcd")))
    assert made.block == (2, 2)
    assert made.owners((9, 1)) == [(1, 0, 1, 0), (1, 0, 1, 1)]
    assert made.local_begin((1, 1, 2, 0)) == (10, 2)


def test_terms_of_a_sum_are_everywhere():
    made = distribution("x -> x +", (4,), helve.Mesh((2, 3)))
    assert made.partial == {y: "sum"} and made.layout == S[(2, 2) : (1@x, 1)]
    assert made.owners((3,)) == [(1, 0), (1, 1), (1, 2)]


def test_other_reductions_have_words():
    made = distribution("rows cols -> max rows min", (4, 6), helve.Mesh((2, 3, 5), ("x", "y", "z")))
    assert {axis.name: op for axis, op in made.partial.items()} == {"x": "max", "z": "min"} and made.block == (2, 6)
    assert distribution("i -> prod sum", (4,), helve.Mesh((2, 3))).partial == {x: "prod", y: "sum"}
    assert distribution("i -> max max", (4,), helve.Mesh((2, 3))).partial == {x: "max", y: "max"}
    named = distribution("max j -> max j", (4, 6), helve.Mesh((2, 3)))  # here `max` is a dimension
    assert named.partial == {} and named.block == (2, 2)


def test_distributions_travel():
    made = distribution(["ij -> i +", "ij -> i j"], (9, 10), helve.Mesh((2, 3, 2, 5), ("x", "y", "z", "w")))
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert again == made and again.partial == made.partial and again.owners((8, 9)) == made.owners((8, 9))


def test_distributions_compare_by_value():
    mesh = helve.Mesh((2, 2))
    assert distribution("xy -> x y", (4, 4), mesh) == distribution("ij -> ij", (4, 4), mesh)
    assert distribution("xy -> x y", (4, 4), mesh) != distribution("xy -> y x", (4, 4), mesh)
    assert hash(distribution("xy -> x y", (4, 4), mesh)) == hash(distribution("ij -> ij", (4, 4), mesh))


@pytest.mark.parametrize(
    "notation, reason",
    [
        ("xy", "it has one '->' a level"),
        ("x -> x *", "it names 1 dimension of a tensor of 2"),
        ("xx -> x *", "dimension 'x' is named twice on the left"),
        ("xy -> x", "it has 1 entry for a mesh of 2 axes"),
        ("xy -> x x", "dimension 'x' is cut twice in one level; give two levels"),
        ("xy -> x z", "'z' is no dimension on the left, no number, '*' nor '+'"),
        ("xy -> w:x *", "'w' is no axis of the mesh"),
        ("xy -> x:x x:*", "axis 'x' has two entries"),
        ("xy -> x 3", "coordinate 3 is outside axis 'y' of extent 3"),
    ],
)
def test_refusals(notation, reason):
    with pytest.raises(helve.LayoutError, match=re.escape(f"error[HV0506]: distribution '{notation}': {reason}\n")):
        distribution(notation, (4, 6), helve.Mesh((2, 3)))


@pytest.mark.parametrize("notation, mesh, message, help", [
    ("x -> x *", (2, 3), "(2, 3) is no mesh", "pass a helve.Mesh, as helve.Mesh((2, 4))"),
    (5, helve.Mesh((2, 3)), "5 is no notation of a distribution",
     'write a text as "x y -> x y", or a list of texts, one for each level'),
    (["x -> x *", None], helve.Mesh((2, 3)), "['x -> x *', None] is no notation of a distribution",
     'write a text as "x y -> x y", or a list of texts, one for each level'),
])  # fmt: skip
def test_arguments_of_another_kind_are_refused(notation, mesh, message, help):
    with pytest.raises(helve.LayoutError) as refusal:
        distribution(notation, (4,), mesh)
    assert (refusal.value.code, refusal.value.message, refusal.value.help) == ("HV0507", message, help)


def test_other_refusals():
    with pytest.raises(helve.ShapeError, match="extent -1"):
        distribution("x -> x", (-1,), helve.Mesh((2,)))
    made = distribution("xy -> x y", (4, 6), helve.Mesh((2, 3)))
    for question in (made.local_shape, made.local_begin):
        with pytest.raises(helve.BoundsError, match=re.escape("coordinate (2, 0) is outside shape (2, 3)")):
            question((2, 0))
    with pytest.raises(helve.BoundsError, match=re.escape("coordinate (4, 0) is outside shape (4, 6)")):
        made.owners((4, 0))
