"""Examples that introductions to CuTe, DISTAL and Axe print, number by number.

Where such a text is wrong the right value stands here, with the reason. The bank tables are in test_banks.py.
"""

import itertools

import numpy as np
import pytest

import helve
from helve import cute
from helve.cute import Layout, Swizzle
from helve.dist import distribution
from helve.layout import F, P, R, S, TCol, TLane, gpuid, laneid, reg, warpid

# -- CuTe: layouts -----------------------------------------------------------------------------------------------------

TABLES = """
(2,3):(1,2)
      0   1   2
    +---+---+---+
 0  | 0 | 2 | 4 |
    +---+---+---+
 1  | 1 | 3 | 5 |
    +---+---+---+

(2,3):(3,1)
      0   1   2
    +---+---+---+
 0  | 0 | 1 | 2 |
    +---+---+---+
 1  | 3 | 4 | 5 |
    +---+---+---+

(4,(2,2)):(4,(1,2))
       0    1    2    3
    +----+----+----+----+
 0  |  0 |  1 |  2 |  3 |
    +----+----+----+----+
 1  |  4 |  5 |  6 |  7 |
    +----+----+----+----+
 2  |  8 |  9 | 10 | 11 |
    +----+----+----+----+
 3  | 12 | 13 | 14 | 15 |
    +----+----+----+----+

(4,(2,2)):(2,(1,8))
       0    1    2    3
    +----+----+----+----+
 0  |  0 |  1 |  8 |  9 |
    +----+----+----+----+
 1  |  2 |  3 | 10 | 11 |
    +----+----+----+----+
 2  |  4 |  5 | 12 | 13 |
    +----+----+----+----+
 3  |  6 |  7 | 14 | 15 |
    +----+----+----+----+

(2,(2,2)):(1,(2,4))
      0   1   2   3
    +---+---+---+---+
 0  | 0 | 2 | 4 | 6 |
    +---+---+---+---+
 1  | 1 | 3 | 5 | 7 |
    +---+---+---+---+
"""


@pytest.mark.parametrize("table", TABLES.strip("\n").split("\n\n"))
def test_tables(table):
    assert cute.format_layout(Layout.parse(table.splitlines()[0])) == table + "\n"


def test_the_compact_layout_of_a_shape():
    given = Layout((2, (2, 2)), (4, (2, 1)))
    assert Layout(given.shape) == Layout((2, (2, 2)), (1, (2, 4)))


def test_size_and_cosize():
    assert (cute.size(Layout(8, 2)), cute.size(Layout(8, 0)), cute.cosize(Layout(8, 0))) == (8, 8, 1)
    # Printed as 16: but the last offset is 7 * 2, and cosize is one beyond the last offset.
    assert cute.cosize(Layout(8, 2)) == 15
    bound = cute.complement(Layout((2, 3), (3, 6)), 54)
    assert (cute.size(bound), cute.cosize(bound)) == (9, 39)
    whole = cute.make_layout(Layout((2, 3), (3, 6)), cute.complement(Layout((2, 3), (3, 6))))
    assert str(whole) == "((2,3),3):((3,6),1)" and cute.size(whole) == cute.cosize(whole) == 18


COORDINATES = """
0 (0,0) (0,(0,0))   9 (0,3) (0,(1,1))
1 (1,0) (1,(0,0))   10 (1,3) (1,(1,1))
2 (2,0) (2,(0,0))   11 (2,3) (2,(1,1))
3 (0,1) (0,(1,0))   12 (0,4) (0,(0,2))
4 (1,1) (1,(1,0))   13 (1,4) (1,(0,2))
5 (2,1) (2,(1,0))   14 (2,4) (2,(0,2))
6 (0,2) (0,(0,1))   15 (0,5) (0,(1,2))
7 (1,2) (1,(0,1))   16 (1,5) (1,(1,2))
8 (2,2) (2,(0,1))   17 (2,5) (2,(1,2))
"""


def test_three_forms_of_a_coordinate():
    words = COORDINATES.split()
    rows = [(int(words[i]), eval(words[i + 1]), eval(words[i + 2])) for i in range(0, len(words), 3)]
    assert len(rows) == 18
    layout = Layout((3, (2, 3)), (7, (100, 1)))
    for index, pair, natural in rows:
        assert cute.idx2crd(index, (3, (2, 3))) == cute.idx2crd(pair, (3, (2, 3))) == natural
        assert cute.idx2crd(index, (3, 6)) == pair and cute.crd2idx(natural, (3, (2, 3))) == index
        assert layout(index) == layout(pair) == layout(natural)


def test_hierarchies():
    assert [cute.crd2idx((1, 3), (2, 4)), cute.crd2idx((2, 4), (3, 5))] == [7, 14]
    layout = Layout(((2, 4), (3, 5)), ((3, 6), (1, 24)))
    assert layout((1, 3), (2, 4)) == layout(7, 14) == 1 * 3 + 3 * 6 + 2 * 1 + 4 * 24
    assert str(cute.slice_(((1, 1), (None, None)), layout)) == "(3,5):(1,24)"
    inside, outside = Layout((4, 2), (2, 1)), Layout((1, 4), (4, 1))
    assert cute.blocked_product(inside, outside)(3, 7) == Layout((4, (2, 4)), (2, (1, 8)))(3, 7) == 31
    nested = cute.blocked_product(Layout((2, 2), (1, 2)), Layout((2, 4), (1, 2)))
    assert nested == Layout(((2, 2), (2, 4)), ((1, 4), (2, 8)))


# -- CuTe: products ----------------------------------------------------------------------------------------------------

BLOCK, COPIES = Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))
BLOCKED = """
  0   1   2   3   4  30  31  32  33  34  60  61  62  63  64  90  91  92  93  94
  5   6   7   8   9  35  36  37  38  39  65  66  67  68  69  95  96  97  98  99
 10  11  12  13  14  40  41  42  43  44  70  71  72  73  74 100 101 102 103 104
 15  16  17  18  19  45  46  47  48  49  75  76  77  78  79 105 106 107 108 109
 20  21  22  23  24  50  51  52  53  54  80  81  82  83  84 110 111 112 113 114
 25  26  27  28  29  55  56  57  58  59  85  86  87  88  89 115 116 117 118 119
"""
RAKED = """
  0  30  60  90   1  31  61  91   2  32  62  92   3  33  63  93   4  34  64  94
 10  40  70 100  11  41  71 101  12  42  72 102  13  43  73 103  14  44  74 104
 20  50  80 110  21  51  81 111  22  52  82 112  23  53  83 113  24  54  84 114
  5  35  65  95   6  36  66  96   7  37  67  97   8  38  68  98   9  39  69  99
 15  45  75 105  16  46  76 106  17  47  77 107  18  48  78 108  19  49  79 109
 25  55  85 115  26  56  86 116  27  57  87 117  28  58  88 118  29  59  89 119
"""
LOGICAL = """
  0  10  20  30  40  50  60  70  80  90 100 110
  5  15  25  35  45  55  65  75  85  95 105 115
  1  11  21  31  41  51  61  71  81  91 101 111
  6  16  26  36  46  56  66  76  86  96 106 116
  2  12  22  32  42  52  62  72  82  92 102 112
  7  17  27  37  47  57  67  77  87  97 107 117
  3  13  23  33  43  53  63  73  83  93 103 113
  8  18  28  38  48  58  68  78  88  98 108 118
  4  14  24  34  44  54  64  74  84  94 104 114
  9  19  29  39  49  59  69  79  89  99 109 119
"""


@pytest.mark.parametrize(
    "product, table",
    [(cute.logical_product, LOGICAL), (cute.blocked_product, BLOCKED), (cute.raked_product, RAKED)],
)
def test_offsets_of_products(product, table):
    layout = product(BLOCK, COPIES)
    rows, columns = (layout[mode].size() for mode in range(2))
    offsets = np.array([[layout(i, j) for j in range(columns)] for i in range(rows)])
    assert (offsets == np.array([line.split() for line in table.strip().splitlines()], dtype=int)).all()


def test_blocks_of_a_product():
    tile, copies = cute.logical_product(BLOCK, COPIES)
    for i, j in itertools.product(range(3), range(4)):
        block = np.array([[copies(i, j) + tile(m, n) for n in range(5)] for m in range(2)])
        assert (block == 10 * i + 30 * j + np.arange(10).reshape(2, 5)).all()


def test_steps_of_a_product():
    tile, times = Layout((2, 2), (4, 1)), Layout(6, 1)
    assert tile.size() * times.cosize() == 24
    rest = cute.complement(tile, 24)
    assert str(rest) == str(cute.composition(rest, times)) == "(2,3):(2,8)"
    rows = Layout((128, 32), (32, 1))
    with pytest.warns(helve.Warning, match="not injective"):  # each mode is repeated for itself
        assert str(cute.tiled_product(rows, (8, 4))) == "((128,32),8,4):((32,1),1,32)"


# -- CuTe: inverses, threads, swizzles ---------------------------------------------------------------------------------


def test_an_index_from_an_offset():
    layout = Layout((32, 64), (64, 1))
    inverse = cute.right_inverse(layout)
    assert cute.crd2idx((3, 4), layout.shape) == 131 and layout(3, 4) == 196
    assert inverse(cute.idx2crd(196, inverse.shape)) == inverse(layout(3, 4)) == 131 and layout(131) == layout(3, 4)


def test_what_a_thread_reads():
    threads, values = Layout((4, 32), (32, 1)), Layout((4, 8), (8, 1))
    tiler, tv = cute.make_tv_layout(threads, values)
    assert tiler == (16, 256)
    tensor = cute.composition(Layout((16, 256), (2048, 1)), tv)
    # Printed with a thread stride of 4: but neighbouring threads of a row are the 8 columns of a thread apart.
    assert str(tensor) == "((32,4),(8,4)):((8,8192),(1,2048))"
    for thread, value in itertools.product(range(128), range(32)):
        row, column = thread // 32 * 4 + value // 8, thread % 32 * 8 + value % 8
        assert tensor(thread, value) == 2048 * row + column


def test_a_swizzle_moves_columns_to_other_banks():
    swizzle, matrix = Swizzle(5, 0, 6), Layout((32, 64), (64, 1))
    assert [divmod(swizzle(matrix(t, 0)), 32) for t in range(32)] == [(2 * t, t) for t in range(32)]


# -- DISTAL ------------------------------------------------------------------------------------------------------------


def test_blocks_of_a_matrix_on_two_planes():
    """Rows of the example: elements to blocks, blocks to devices. It prints the last block as (0, 0); it is (1, 1)."""
    made = distribution("xy -> x y *", (4, 4), helve.Mesh((2, 2, 2), ("a", "b", "c")))
    blocks = {
        (0, 0): {(0, 0), (1, 0), (0, 1), (1, 1)},
        (1, 0): {(2, 0), (3, 0), (2, 1), (3, 1)},
        (0, 1): {(0, 2), (1, 2), (0, 3), (1, 3)},
        (1, 1): {(2, 2), (3, 2), (2, 3), (3, 3)},
    }
    for block, elements in blocks.items():
        assert all(made.owners(element) == [(*block, 0), (*block, 1)] for element in elements)


# -- Axe ---------------------------------------------------------------------------------------------------------------


def test_a_tile_of_a_tensor_core():
    tile = S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1@reg)] + R[2 : 4@warpid] + 5@warpid
    warps = {point[warpid] for i in range(tile.size()) for point in tile.apply(i)}
    assert warps == {5, 6, 9, 10} and (tile.span(laneid), tile.span(reg), tile.span(warpid)) == (32, 2, 6)


def test_a_matrix_on_four_devices():
    cut = S[(2, 32, 2, 64) : (1@gpuid, 128, 2@gpuid, 1)]
    copied = S[(2, 32, 128) : (1@gpuid, 128, 1)] + R[2 : 2@gpuid]
    for i, j in itertools.product(range(64), range(128)):
        assert [p[gpuid] for p in cut.apply((i, j), (64, 128))] == [i // 32 + 2 * (j // 64)]
        assert [p[gpuid] for p in copied.apply((i, j), (64, 128))] == [i // 32, i // 32 + 2]
    m = helve.layout.m
    assert (cut.span(m), copied.span(m)) == (31 * 128 + 64, 4096)  # rows are 128 apart: 4032 addresses, not 2048


def test_memories_of_two_dimensions():
    trainium, tmem = S[(2, 128, 512) : (512@F, 1@P, 1@F)], S[(2, 128, 112) : (112@TCol, 1@TLane, 1@TCol)]
    assert trainium.apply((1, 5, 7), (2, 128, 512)) == [{F: 519, P: 5}] and trainium.span(F) == 1024
    assert tmem.apply((1, 127, 111), (2, 128, 112)) == [{TCol: 223, TLane: 127}] and tmem.span(TCol) == 224


def test_a_map_that_is_linear_but_not_in_bits():
    columns = S[(24, 24) : (1, 24)]
    m = helve.layout.m
    assert [columns.apply(x)[0][m] for x in (1, 2, 3)] == [24, 48, 72] and 24 ^ 48 != 72
    with pytest.raises(helve.UnsupportedError, match="no power of two"):
        columns.to_linear()
