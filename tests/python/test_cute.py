"""helve.cute: values that are known from elsewhere, laws on random layouts, and manners of the Python objects.

The exhaustive laws stand in tests/cpp/layout; here they pass through Python once more, on layouts that hypothesis
shrinks. The judge is plain digit counting.
"""

import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helve
from helve import cute, viz
from helve.cute import ComposedLayout, Layout, Swizzle

# -- the judge ---------------------------------------------------------------------------------------------------------


def leaves(tree):
    return [leaf for entry in tree for leaf in leaves(entry)] if isinstance(tree, tuple) else [tree]


def product(extents):
    result = 1
    for extent in extents:
        result *= extent
    return result


def offset(layout, index):
    """The value of a layout: floor digits from the left, the last leaf takes the rest."""
    total = 0
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    for extent, stride in modes[:-1]:
        total += index % extent * stride
        index //= extent
    return total + index * modes[-1][1]


def image(layout):
    return [offset(layout, i) for i in range(product(leaves(layout.shape)))]


def swizzled(bits, base, shift, value):
    low = (1 << bits) - 1
    if shift >= 0:
        return value ^ ((value & low << (base + shift)) >> shift)
    return value ^ ((value & low << base) << -shift)


EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8])
SHAPES = st.recursive(EXTENTS, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=4)


@st.composite
def layouts(draw, strides=(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32), shapes=SHAPES):
    shape = draw(shapes)

    def fill(entry):
        return tuple(fill(e) for e in entry) if isinstance(entry, tuple) else draw(st.sampled_from(strides))

    return Layout(shape) if draw(st.booleans()) else Layout(shape, fill(shape))


# -- known values ------------------------------------------------------------------------------------------------------


def test_notation():
    assert cute.parse(" ( 4 , ( 2 ,\n\t3 ) ) :\t( 1 , ( 4 , 8 ) ) \n") == Layout((4, (2, 3)), (1, (4, 8)))
    layout = Layout((4, (2, 3)), (1, (4, 8)))
    assert str(layout) == "(4,(2,3)):(1,(4,8))"
    assert repr(layout) == "Layout((4,(2,3)),(1,(4,8)))"
    assert eval(repr(layout)) == layout == Layout.parse(str(layout)) == cute.parse(" ( 4, (2,3) ) : (1,(4,8))")
    assert Layout(8) == Layout(8, 1) and str(Layout(8)) == "8:1"
    assert str(Layout((8,))) == "(8,):(1,)"
    assert Layout(((2, 4), (3, 5)), ((3, 6), (1, 24)))(((1, 3), (2, 4))) == 3 + 18 + 2 + 96


@pytest.mark.parametrize(
    "shape, stride, coordinate, expected",
    [((2, 3), (3, 6), (1, 2), 15), ((2, 3), (1, 2), (1, 2), 5), ((4, (2, 2)), (4, (1, 2)), (2, (1, 0)), 9),
     ((4, (2, 2)), (2, (1, 8)), (2, (1, 0)), 5), ((4, (2, 2)), (2, (1, 8)), (3, 3), 15)],
)
def test_values(shape, stride, coordinate, expected):
    layout = Layout(shape, stride)
    assert layout(coordinate) == layout(*coordinate) == cute.crd2idx(coordinate, shape, stride) == expected
    assert layout(cute.crd2idx(coordinate, shape)) == expected


def test_sizes():
    assert cute.cosize(Layout(8, 2)) == 15
    assert cute.cosize(Layout(8, 0)) == 1
    assert cute.cosize(Layout((4, 4), (-1, 8))) == 28
    assert cute.size(Layout((2, 3), (3, 6))) == 6 and cute.cosize(Layout((2, 3), (3, 6))) == 16
    assert [cute.rank(s) for s in [8, (4, 2), ((2, 2), 2)]] == [1, 2, 2]
    assert [cute.depth(s) for s in [6, (4, 3), (3, (6, 2), 8), ((2, (1, 3)), 4)]] == [0, 1, 2, 3]


def test_coordinates():
    shape = (3, (2, 3))
    expected = [(i % 3, (i // 3 % 2, i // 6)) for i in range(18)]
    assert [cute.idx2crd(i, shape) for i in range(18)] == expected
    assert cute.idx2crd(16, shape) == cute.idx2crd((1, 5), shape) == cute.idx2crd((1, (1, 2)), shape) == (1, (1, 2))
    assert [cute.crd2idx(c, shape) for c in expected] == list(range(18))
    assert cute.idx2crd(196, (64, 32)) == (4, 3)
    assert cute.idx2crd(7, (3, 32), (32, 1)) == (0, 7)
    assert cute.crd2crd(7, (2, 4), 8) == (1, 3)


def test_slices():
    layout = Layout(((2, 4), (3, 5)), ((3, 6), (1, 24)))
    assert str(layout((1, 1), (None, None))) == "(3,5):(1,24)"
    assert str(layout(None, 3)) == "((2,4),):((3,6),)"
    assert layout(None) == layout
    assert cute.slice_and_offset(((1, 1), (None, None)), layout) == (Layout((3, 5), (1, 24)), 9)
    assert str(cute.dice(((1, 1), (None, None)), layout)) == "(2,4):(3,6)"
    assert cute.slice_((1, None), (4, (2, 3))) == ((2, 3),)
    assert cute.slice_((None, 9), Layout((4, 8))) == Layout((4,), (1,))  # the last mode continues


def test_algebra_of_the_introductions():
    """Values that introductions to CuTe print."""
    assert str(cute.complement(Layout((2, 3), (3, 6)))) == "3:1"
    assert str(cute.complement(Layout((2, 3), (3, 6)), 54)) == "(3,3):(1,18)"
    assert str(cute.composition(Layout(8, 4), Layout(4, 1))) == "4:4"
    assert str(cute.composition(Layout(4, 1), Layout(8, 4))) == "8:4"
    rows = Layout((128, 32), (32, 1))
    assert str(cute.logical_divide(rows[0], 8)) == "(8,16):(32,256)"
    assert str(cute.logical_divide(rows[0], 4)) == "(4,32):(32,128)"
    assert str(cute.zipped_divide(rows, (8, 4))) == "((8,4),(16,8)):((32,1),(256,4))"
    assert str(cute.tiled_divide(rows, (8, 4))) == "((8,4),16,8):((32,1),256,4)"
    assert str(cute.flat_divide(rows, (8, 4))) == "(8,4,16,8):(32,1,256,4)"
    assert str(cute.logical_divide(48, 32)) == "(32,2):(1,32)"
    assert str(cute.logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))) == "((2,2),(2,3)):((4,1),(2,8))"
    block, copies = Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))
    assert str(cute.logical_product(block, copies)) == "((2,5),(3,4)):((5,1),(10,30))"
    assert str(cute.blocked_product(block, copies)) == "((2,3),(5,4)):((5,10),(1,30))"
    assert str(cute.raked_product(block, copies)) == "((3,2),(4,5)):((10,5),(30,1))"
    with pytest.warns(helve.Warning, match="not injective"):
        assert str(cute.zipped_product(rows, (8, 4))) == "((128,32),(8,4)):((32,1),(1,32))"
    inverse = cute.right_inverse(Layout((32, 64), (64, 1)))
    assert str(inverse) == "(64,32):(32,1)" and inverse(196) == 131


def test_thread_value_layouts():
    tiler, layout = cute.make_tv_layout(Layout((4, 32), (32, 1)), Layout((4, 8), (8, 1)))
    assert tiler == (16, 256) and str(layout) == "((32,4),(8,4)):((128,4),(16,1))"
    assert str(cute.composition(Layout((16, 256), (512, 1)), layout)) == "((32,4),(8,4)):((8,2048),(1,512))"
    assert str(cute.composition(Layout((16, 256), (1, 512)), layout)) == "((32,4),(8,4)):((4096,4),(512,1))"
    assert str(cute.composition(Layout((16, 256), (2048, 1)), layout)) == "((32,4),(8,4)):((8,8192),(1,2048))"


def test_compositions_that_only_exactness_decides():
    assert str(cute.composition(Layout((8, 8), (8, 1)), Layout(2, 3))) == "2:24"
    assert str(cute.composition(Layout((10, 2), (16, 4)), Layout((3, 4), (1, 5)))) == "(3,(2,2)):(16,(80,4))"
    assert str(cute.composition(Layout((2, 2, 2), (1, 3, 5)), Layout((2, 2), (1, 3)))) == "(2,2):(1,4)"
    assert str(cute.composition(Layout((4, 3, 1), (3, 1, 0)), 24)) == "(4,3,2):(3,1,0)"
    assert str(cute.composition(Layout(1, 1), 4)) == "4:1"
    for a, b in [((4, 6, 8), (2, 3, 5)), (6, 3)], [((6, 2), (1, 7)), ((3, 2), (2, 3))]:
        with pytest.raises(helve.DivisibilityError, match="at coordinate"):
            cute.composition(Layout(*a), Layout(*b))
    with pytest.raises(helve.DivisibilityError):
        cute.logical_product(Layout(3, 2), Layout(3, 1))


def test_more_of_the_table():
    assert str(cute.right_inverse(Layout((2, 2, 2), (4, 0, 1)))) == "2:4"
    assert str(cute.left_inverse(Layout(4, 2))) == "(2,4):(0,1)"
    assert str(cute.coalesce(Layout((2, (1, 6)), (1, (6, 2))))) == "12:1"
    assert str(cute.coalesce(Layout((2, (1, 6)), (1, (6, 2))), (1, 1))) == "(2,6):(1,2)"
    assert str(cute.filter(Layout((2, 1, 4), (0, 5, 3)))) == "4:3"
    assert str(cute.filter_zeros(Layout((2, (3, 4)), (0, (1, 0))))) == "(1,(3,1)):(0,(1,0))"
    assert str(cute.make_ordered_layout((3, (2, 5)), (1, (0, 2)))) == "(3,(2,5)):(2,(1,6))"
    assert str(cute.make_layout_like(Layout((4, 2, 3), (20, 0, 1)))) == "(4,2,3):(3,0,1)"
    assert str(cute.tile_to_shape(Layout((2, 2)), (8, 4), (1, 0))) == "((2,4),(2,2)):((1,8),(2,4))"
    assert str(cute.group(Layout((2, 3, 5)), 1, 3)) == "(2,(3,5)):(1,(2,6))"
    assert str(cute.domain_distribute((15, 14), 6)) == "(3,2):(1,15)"
    assert str(cute.nullspace(Layout((7, 5, 16), (3, 1, 0)))) == "16:35"
    assert str(cute.upcast(Layout((4, 8), (8, 1)), 4)) == "(4,2):(2,1)"
    assert str(cute.downcast(Layout((4, 8), (8, 1)), 4)) == "(4,32):(32,1)"
    assert cute.recast(Layout((4, 8), (8, 1)), "float16", "float32") == cute.recast(Layout((4, 8), (8, 1)), 16, 32)
    assert cute.max_common_vector(Layout((4, 8)), Layout((4, 8), (16, 1))) == 1
    assert cute.max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 16))) == 4
    assert cute.compatible(24, (2, 12)) and not cute.compatible((2, 12), 24)
    assert cute.weakly_congruent(4, (2, 2)) and not cute.congruent(4, (2, 2))
    assert cute.evenly_divides((8, 6), (4, 3)) and not cute.evenly_divides((8, 6), (4, 4))
    assert cute.shape_div((4, 5, 6), 40) == (1, 1, 3)


def test_the_least_integer_is_divided_too():
    """-2^63 by -1 has no quotient in 64 bits; processors trap there."""
    least = (-(2**62), 2)
    assert cute.shape_div(-1, least) == 1
    assert cute.weakly_compatible(-1, least) and not cute.weakly_compatible(3, least)
    assert cute.ceil_div((-7, 7, 8), (2, 2, 2)) == (-3, 4, 4)


def test_modes_by_path():
    layout = Layout(((2, 4), (3, 5)), ((3, 6), (1, 24)))
    assert cute.get(layout, 0, 1) == Layout(4, 6) and cute.get(layout) == layout
    assert cute.size(layout, mode=[1]) == 15 and cute.cosize(layout, mode=[1]) == 99
    assert cute.rank(layout, mode=[1]) == 2 and cute.depth(layout, mode=[0, 1]) == 0
    assert cute.size(layout.shape, mode=[0, 0]) == 2
    with pytest.raises(helve.BoundsError):
        cute.get(layout, 2)


def test_parts_of_threads():
    """The tiles of a matrix, and in each the elements of every thread, are its elements, each once."""
    matrix = Layout((8, 12), (12, 1))
    found = []
    for m in range(2):
        for n in range(2):
            tile, start = cute.local_tile(matrix, (4, 6), (m, n))
            assert tile.shape == (4, 6) and start == m * 48 + n * 6
            threads = Layout((2, (3, 1)), (3, (1, 6)))
            for thread in range(6):
                part, offset = cute.local_partition(tile, threads, thread)
                assert part.size() == 4 and offset == thread // 3 * 12 + thread % 3
                found += [start + offset + part(i) for i in range(part.size())]
    assert sorted(found) == list(range(96))
    assert str(cute.local_tile(matrix, (4, 6), (1, None))[0]) == "(4,6,2):(12,1,6)"
    with pytest.raises(helve.BoundsError):
        cute.local_tile(matrix, (4, 6), (2, 0))
    with pytest.raises(helve.ShapeError):
        cute.local_tile(matrix, (4, 6), (0, 0, 0))
    with pytest.raises(helve.BoundsError):
        cute.local_partition(matrix, Layout((2, 3)), 6)
    with pytest.raises(helve.InjectivityError):
        cute.local_partition(matrix, Layout((2, 3), (1, 4)), 0)


def test_fragments():
    assert str(cute.make_fragment_like(Layout(((2, 4), 3, 5), ((0, 7), 100, 1)))) == "((2,4),3,5):((0,1),20,4)"
    assert str(cute.make_fragment_like(Layout(8, 3))) == "8:1"


def test_steps_are_limited():
    """Carries that cancel over and over are looked at one by one, up to a limit."""
    with pytest.raises(helve.UnsupportedError) as caught:
        cute.composition(Layout((2**30, 2, 4), (0, 1, 1)), Layout(2**24, 2**31 - 1))
    assert caught.value.message == "composition of operands whose carries cancel needs more than 4194304 steps"
    with pytest.raises(helve.UnsupportedError) as caught:
        cute.cosize(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(2**23)))
    assert caught.value.message == "cosize of SW_1_0_2 o 0 o 8388608:1 needs more than 4194304 steps"
    with pytest.raises(helve.UnsupportedError) as caught:
        cute.print_layout(Layout((2**11, 2**11)))
    assert caught.value.message == "print_layout of (2048,2048):(1,2048): a table has at most 1048576 cells"


def test_a_huge_carry_is_found_at_once():
    with pytest.raises(helve.DivisibilityError, match=r"at coordinate \(1073741824,1\)"):
        cute.composition(Layout((2**31, 4), (1, 5)), Layout((2**30 + 1, 2), (1, 2**30)))


def test_tables(capsys):
    cute.print_layout(Layout((2, 3), (3, 1)))
    expected = """(2,3):(3,1)
      0   1   2
    +---+---+---+
 0  | 0 | 1 | 2 |
    +---+---+---+
 1  | 3 | 4 | 5 |
    +---+---+---+
"""
    assert capsys.readouterr().out == expected == cute.format_layout(Layout((2, 3), (3, 1)))
    wide = cute.format_layout(Layout((4, (2, 2)), (4, (1, 2)))).splitlines()
    assert wide[1:4] == ["       0    1    2    3", "    +----+----+----+----+", " 0  |  0 |  1 |  2 |  3 |"]
    assert wide[9] == " 3  | 12 | 13 | 14 | 15 |"


def test_tables_of_tensors(capsys):
    cute.print_tensor(list(range(6)), Layout((2, 3), (1, 2)))
    assert capsys.readouterr().out == "(2,3):(1,2):\n    0    2    4\n    1    3    5\n"
    assert cute.format_tensor([1, -2, 300000], Layout(3, 1)) == "3:1:\n    1\n   -2\n300000\n"
    values = np.arange(8) / 4
    assert cute.format_tensor(values, Layout((2, 2, 2))) == (
        "(2,2,2):(1,2,4):\n"
        "  0.00e+00  5.00e-01\n  2.50e-01  7.50e-01\n"
        "----------\n"
        "  1.00e+00  1.50e+00\n  1.25e+00  1.75e+00\n"
    )
    four = cute.format_tensor(range(8), Layout((1, 2, 2, 2))).splitlines()
    assert four[1:] == ["    0    1", "-" * 10, "    2    3", "=" * 10, "    4    5", "-" * 10, "    6    7"]
    swizzled = cute.composition(Swizzle(1, 0, 1), Layout((2, 2), (2, 1)))
    assert cute.format_tensor(b"abcd", swizzled).splitlines()[2] == f"{ord('d'):5d}{ord('c'):5d}"
    nested = cute.format_tensor(range(8), Layout((2, (2, 2)), (4, (1, 2)))).splitlines()
    assert nested[1:] == ["    0    1    2    3", "    4    5    6    7"]


def test_tensors_that_cannot_be_printed():
    many = "print_tensor: (2,2,2,2,2):(1,2,4,8,16) has 5 modes, a tensor has 1 to 4"
    with pytest.raises(helve.ShapeError, match=re.escape(many)):
        cute.print_tensor(range(32), Layout((2, 2, 2, 2, 2)))
    with pytest.raises(helve.BoundsError, match=re.escape("coordinate (6,) is outside shape (6,)")):
        cute.print_tensor(range(6), Layout((2, 2), (1, 6)))
    with pytest.raises(helve.BoundsError, match=re.escape("coordinate (-1,) is outside shape (6,)")):
        cute.print_tensor(range(6), Layout((2, 2), (1, -1)))
    for value in ("a", None):
        with pytest.raises(helve.LayoutError, match=f"{value!r} is no number\nhelp: print_tensor prints numbers"):
            cute.print_tensor([value] * 4, Layout(4))
    with pytest.raises(helve.LayoutError, match="HV0507.: 5 is no layout of helve.cute"):
        cute.print_latex(5)


def test_latex(capsys):
    cute.print_latex(Layout((2, 2), (1, 2)))
    text = capsys.readouterr().out
    assert text == viz.draw_offsets(Layout((2, 2), (1, 2))).latex()
    assert text.startswith("\\documentclass{standalone}\n\\usepackage{tikz}\n\\definecolor{fill")
    cells = re.findall(r"\\filldraw\[fill=fill\w{6}\] \(.*?\) rectangle \+\(.*?\) node\[.*?\] \{(.*?)\};", text)
    assert cells == ["0", "2", "1", "3"]
    assert text.count("{") == text.count("}") and text.endswith("\\end{tikzpicture}\n\\end{document}\n")


# -- swizzles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits, base, shift", [(0, 0, 0), (5, 0, 6), (3, 2, 4), (2, 2, -3), (1, 4, -1), (0, 3, 2)])
def test_swizzles(bits, base, shift):
    swizzle = Swizzle(bits, base, shift)
    assert swizzle.size() == swizzle.cosize() == 2 ** (bits + base + abs(shift))
    values = [swizzle(i) for i in range(2 * swizzle.size())]
    assert values == [swizzled(bits, base, shift, i) for i in range(2 * swizzle.size())]
    assert [swizzle(v) for v in values] == list(range(2 * swizzle.size()))
    assert str(swizzle) == f"SW_{bits}_{base}_{shift}" and eval(repr(swizzle)) == swizzle


def test_swizzles_in_units():
    assert cute.upcast(Swizzle(3, 3, 3), 16) == Swizzle(2, 0, 3)
    assert cute.upcast(Swizzle(3, 4, 3), 2) == Swizzle(3, 3, 3) == cute.recast(Swizzle(3, 4, 3), 8, 16)
    assert cute.downcast(Swizzle(2, 0, 3), 8) == Swizzle(2, 3, 3)
    for swizzle, n in [(Swizzle(3, 3, 3), 16), (Swizzle(2, 1, 4), 2), (Swizzle(2, 3, -3), 4)]:
        units = cute.upcast(swizzle, n)
        assert all(units(i // n) == swizzle(i) // n for i in range(4 * swizzle.size()))


def test_swizzles_compose():
    assert cute.composition(Swizzle(1, 0, 3), Swizzle(1, 1, 3)) == Swizzle(2, 0, 3)
    assert cute.composition(Swizzle(2, 0, 3), Swizzle(2, 0, 3)) == Swizzle(0, 0, 3)
    with pytest.raises(helve.UnsupportedError, match="shifts differ"):
        cute.composition(Swizzle(1, 0, 2), Swizzle(1, 0, 3))
    both = ComposedLayout(Swizzle(1, 0, 2), 0, cute.composition(Swizzle(1, 0, 3), Layout(64)))
    assert [both(i) for i in range(64)] == [swizzled(1, 0, 2, swizzled(1, 0, 3, i)) for i in range(64)]
    assert [offset for offset, _ in both.stages] == [0, 0] and both.inner.outer == Swizzle(1, 0, 3)


def test_a_layout_of_swizzled_indices_is_a_swizzled_layout():
    found = cute.composition(Layout((8, 8), (8, 1)), Swizzle(2, 0, -3))
    assert str(found) == "SW_2_0_3 o 0 o (8,8):(8,1)"
    assert [found(i) for i in range(64)] == [offset(Layout((8, 8), (8, 1)), Swizzle(2, 0, -3)(i)) for i in range(64)]


SWIZZLES = [(1, 0, 2), (2, 0, 3), (1, 1, -2), (2, 1, 2)]


@settings(max_examples=200, deadline=None)
@given(layouts(), st.sampled_from([*SWIZZLES, (0, 0, 0)]), st.integers(0, 40), st.data())
def test_composed_layouts(layout, numbers, start, data):
    swizzle = Swizzle(*numbers)
    composed = ComposedLayout(swizzle, start, layout)
    values = [swizzled(*numbers, start + v) for v in image(layout)]
    assert [composed(i) for i in range(layout.size())] == values
    assert composed.cosize() == max(values) + 1 and composed.shape == layout.shape
    assert len(composed) == len(layout) and composed[0](0) == values[0]
    natural = cute.idx2crd(data.draw(st.integers(0, layout.size() - 1)), layout.shape)
    if isinstance(natural, tuple) and len(natural) > 1:
        kept = (None, *natural[1:])
        part = composed(kept)
        assert [part(i) for i in range(part.size())] == [composed((i, *natural[1:])) for i in range(part.size())]
    decayed = cute.affine(composed)
    if decayed is not None:
        plain, origin = decayed
        assert [origin + v for v in image(plain)] == values
        assert cute.compatible(layout, plain)


@settings(max_examples=200, deadline=None)
@given(layouts(strides=(1, 2, 4, 8, 16, 32), shapes=st.sampled_from([8, 16, (4, 4), (2, 8), ((2, 2), 8), (8, 8)])),
       st.sampled_from(SWIZZLES))
def test_inverses_of_composed_layouts(layout, numbers):
    composed = cute.composition(Swizzle(*numbers), layout)
    right = cute.right_inverse(composed)
    assert all(composed(right(i)) == i for i in range(right.size()))
    try:
        left = cute.left_inverse(composed)
    except helve.LayoutError:
        return
    assert all(composed(left(composed(i))) == composed(i) for i in range(layout.size()))


# -- laws --------------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(layouts(), layouts())
def test_composition(a, b):
    try:
        found = cute.composition(a, b)
    except helve.DivisibilityError as error:
        assert "at coordinate" in error.message
        return
    assert cute.compatible(b, found)
    assert image(found) == [offset(a, v) for v in image(b)]


@settings(max_examples=300, deadline=None)
@given(layouts(), st.integers(1, 200))
def test_complement(layout, bound):
    try:
        rest = cute.complement(layout, bound)
    except (helve.InjectivityError, helve.DivisibilityError):
        modes = sorted((d, s) for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if d and s > 1)
        assert any(d * s > e for (d, s), (e, _) in zip(modes, modes[1:], strict=False))
        return
    sums = [v + w for v in set(image(layout)) for w in image(rest)]
    assert len(sums) == len(set(sums)) and image(rest) == sorted(image(rest))


@settings(max_examples=300, deadline=None)
@given(layouts(), layouts(shapes=st.sampled_from([2, 3, 4, (2, 2), (2, 3), ((2, 2), 2)])))
def test_division_and_product(a, tile):
    try:
        divided = cute.logical_divide(a, tile)
    except (helve.InjectivityError, helve.DivisibilityError):
        pass
    else:
        assert divided[0] == cute.composition(a, tile)
        assert cute.zipped_divide(a, tile) == divided
        assert set(image(divided)) >= set(image(a))
    try:
        repeated = cute.logical_product(a, tile)
    except (helve.InjectivityError, helve.DivisibilityError):
        return
    assert repeated[0] == a and cute.compatible(tile, repeated[1])


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_inverses(layout):
    right = cute.right_inverse(layout)
    assert [offset(layout, v) for v in image(right)] == list(range(right.size()))
    try:
        left = cute.left_inverse(layout)
    except helve.LayoutError:
        return
    values = image(layout)
    assert [offset(layout, offset(left, v)) for v in values] == values
    if len(set(values)) == len(values):
        assert [offset(left, v) for v in values] == list(range(len(values)))


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_shortening_and_text(layout):
    assert image(cute.coalesce(layout)) == image(layout)
    assert set(image(cute.filter(layout))) == set(image(layout))
    assert Layout.parse(str(layout)) == layout == eval(repr(layout)) == pickle.loads(pickle.dumps(layout))
    assert hash(layout) == hash(Layout(layout.shape, layout.stride))
    assert [layout(i) for i in range(layout.size())] == image(layout)


# -- manners -----------------------------------------------------------------------------------------------------------


def test_objects():
    layout = Layout((4, (2, 3)))
    assert len(layout) == 2 and [str(mode) for mode in layout] == ["4:1", "(2,3):(4,8)"]
    assert layout[-1] == layout[1] and layout[1][0] == Layout(2, 4)
    assert layout != "x" and layout != Layout((4, 6)) and len({layout, Layout((4, (2, 3)))}) == 1
    assert layout.shape is layout.shape and str(layout) is str(layout)
    assert Layout(np.int64(4), np.int32(2)) == Layout(4, 2) and Layout([4, [2, 3]]) == layout
    assert layout(np.int64(5)) == layout(5)
    assert cute.is_layout(layout) and not cute.is_layout(4)
    assert cute.make_layout(layout, Layout(2)) == cute.make_layout([layout, Layout(2)])
    assert cute.make_layout(m for m in layout) == layout and cute.make_layout((4, 2), (2, 1)) == Layout((4, 2), (2, 1))


@pytest.mark.parametrize("value", ["4", (4, "2"), {4}])
def test_what_is_no_shape(value):
    with pytest.raises(TypeError):
        Layout(value)


def test_numbers_of_numpy_are_layouts_too():
    assert cute.composition(np.int64(8), np.uint8(2)) == cute.composition(8, 2)
    assert cute.make_layout(np.int64(4)) == Layout(4) and cute.size(np.int32(4)) == 4


def test_layout_errors_are_value_errors():
    with pytest.raises(ValueError, match="HV0542"):
        Layout(0)


def test_products_that_do_not_overlap_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.zipped_product(Layout((4, 8), (1, 8)), (2, 1))
        cute.blocked_product(Layout((4, 8)), Layout((2, 3)))
        cute.logical_product(Layout((4, 8), (1, 4)), Layout(3))


def test_everything_is_public():
    assert set(cute.__all__) >= {
        name for name in vars(helve._core.cute) if not name.startswith("_")
    }
    for name in cute.__all__:
        assert getattr(cute, name).__doc__, name
