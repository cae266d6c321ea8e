"""Every way in which the layout and CuTe rooms refuse is refused somewhere with its text.

`tests/errors` has a case for each code. One code can have several reasons; here the sources are read for all prose that
they put into messages, and each piece must stand in a test.
"""

import re
from pathlib import Path

import helve
import pytest
from helve import cute
from helve.cute import ComposedLayout, CoordinateLayout, E, Layout, Swizzle
from helve.dist import distribution
from helve.layout import S, bank_conflicts, choose_swizzle, m

HUGE = 2**62
SMALLER = "use smaller extents and strides"
POSITIVE = "give a positive number"
STAGES = "keep the stages as a ComposedLayout"
TWO_STAGES = ComposedLayout(Layout(4, 2), 0, Layout(4, 1))
# (what is asked, message, help): those that no other file states.
REFUSALS = [
    (lambda: bank_conflicts(S[(2, 2) : (HUGE, 1)], [2], 16), "an address in bytes does not fit in 64 bits", SMALLER),
    (lambda: bank_conflicts(S[(2, 2) : (2**59, 1)] + (2**60 - 1), [0, 2], 8),
     "an address in bytes does not fit in 64 bits", SMALLER),
    (lambda: choose_swizzle(2**32, 2**32, 4), "the size of a tile does not fit in 64 bits", SMALLER),
    (lambda: cute.composition(Layout((2, 2), (1, HUGE)), Layout(2, 6)),
     "the stride of a composition does not fit in 64 bits", SMALLER),
    (lambda: cute.composition(cute.make_identity_layout(4), Layout(2, 2**63 - 3)),
     "the reach of a tiler does not fit in 64 bits", SMALLER),
    (lambda: cute.inner_product((HUGE,), (4,)), "an inner product does not fit in 64 bits", SMALLER),
    (lambda: cute.inner_product((HUGE, HUGE), (1, 1)), "an inner product does not fit in 64 bits", SMALLER),
    (lambda: cute.product((HUGE, 4)), "the product of a tuple does not fit in 64 bits", SMALLER),
    (lambda: cute.complement(Layout(2, HUGE)), "the end of a layout does not fit in 64 bits", SMALLER),
    (lambda: Layout((HUGE, 4), (0, 0)), "the size of a layout does not fit in 64 bits", SMALLER),
    (lambda: cute.downcast(Layout(HUGE, 1), 4), "the size of a layout does not fit in 64 bits", SMALLER),
    (lambda: S[(2, 2) : (1, 2)].apply((0, 0), (HUGE, 4)),
     "the number of elements of shape (4611686018427387904, 4) does not fit in 64 bits", SMALLER),
    (lambda: ((S[2 : 2**63 - 2] - HUGE) ^ Swizzle(1, 0, 1)).span(m),
     "the span of axis 'm' does not fit in 64 bits", SMALLER),
    (lambda: distribution("x -> x", (2**63 - 1,), helve.Mesh((2,))), "the domain does not fit in 64 bits", SMALLER),
    (lambda: cute.format_layout(Layout((2048, 1024))),
     "print_layout of (2048,1024):(1,2048): a table has at most 1048576 cells", "slice the layout first"),
    (lambda: Layout.parse("(4;2)"), "layout text '(4;2)', column 3: expected ',' or ')'",
     "a CuTe layout reads like '(4,(2,3)):(1,(4,8))'"),
    (lambda: cute.upcast(TWO_STAGES, 2), "a change of units of 4:2 o 0 o 4:1: a stage is a layout",
     "change the units before composing"),
    (lambda: cute.upcast(ComposedLayout(Swizzle(1, 4, 3), 3, Layout((8, 8), (8, 1))), 2),
     "upcast of SW_1_4_3 o 3 o (8,8):(8,1) by 2: offset 3 is inside a unit",
     "a stride is a multiple of the factor, or divides it and the extent fills or fits the unit"),
    (lambda: cute.composition(Swizzle(1, 0, 3), Swizzle(1, 2, 3)),
     "composition of SW_1_0_3 o SW_1_2_3: the bits that are read are not neighbours", STAGES),
    (lambda: cute.composition(Swizzle(1, 0, 3), Swizzle(1, 3, 3)),
     "composition of SW_1_0_3 o SW_1_3_3: the first writes bits that the second reads", STAGES),
    (lambda: helve.Layout.from_cute(TWO_STAGES),
     "4:2 o 0 o 4:1 has no Axe form: only a swizzle may follow the layout",
     "convert the part on the memory axis: storage(), without replicas and offset"),
    (lambda: helve.Layout.from_bases({m: [(0,)] * 63}, (1,)),
     "these bits are not a layout: axis m has more than 62 bits",
     "each index bit moves one bit of one axis, apart from one swizzle of the memory axis"),
    (lambda: helve.Layout.from_bases({m: [(1,)]}, (3,)),
     "these bits are not a layout: extent 3 of shape (3,) is no power of two",
     "each index bit moves one bit of one axis, apart from one swizzle of the memory axis"),
    (lambda: S[6:1].to_bases((2, 3)),
     "S[6 : 1] is not linear in bits: extent 3 of shape (2, 3) is no power of two",
     "extents and strides of a layout over bits are powers of two, offsets touch no bit that a digit moves"),
    (lambda: S[8:1].pack(0), "pack: 0 is below 1", POSITIVE),
    (lambda: S[8:1].unpack(-2), "unpack: -2 is below 1", POSITIVE),
    (lambda: choose_swizzle(0, 64, 4), "choose_swizzle: 0 is below 1", POSITIVE),
    (lambda: choose_swizzle(32, 64, 4, -1), "choose_swizzle: -1 is below 1", POSITIVE),
    (lambda: cute.shape_div((-HUGE, 2), 0), "shape_div: -4611686018427387904 and 0: neither divides the other",
     "choose extents of which one divides the other"),
    (lambda: cute.evenly_divides((4, 0), (2, 1)), "shape (4,0) has extent 0", "an extent is 1 or more"),
    (lambda: cute.slice_((4, None), Layout((4, 8))), "coordinate (4,_) is outside shape (4,8)",
     "coordinate d is at least 0 and below extent d"),
    (lambda: Layout((4, 8))(4, None), "coordinate (4,_) is outside shape (4,8)",
     "coordinate d is at least 0 and below extent d"),
    (lambda: S[1:1].group((2, 1)), "shape (2, 1) has 2 elements, the layout has 1",
     "a layout admits every shape with as many elements as its shard"),
    (lambda: S[2:1].group((1,)), "shape (1,) has 1 element, the layout has 2",
     "a layout admits every shape with as many elements as its shard"),
    (lambda: S[1:1].pack(2), "S[1 : 1] cannot be packed by 2: it has 1 element",
     "packed elements are neighbours in index and in memory, and start at multiples of the factor"),
    (lambda: S[2:1].permute((2,), ()), "() is not an order of 1 dimension", "name each dimension from 0 once"),
    (lambda: CoordinateLayout((2, 2), (E(0), E(0, 1))),
     "CoordinateLayout of 1@1@0: a stride goes along 1@0 as well", "name entries that are not inside one another"),
    (lambda: CoordinateLayout((2**30, 2), (E(0), E(1))),
     "CoordinateLayout of (1073741824,2):(1@0,1@1): of 2 entries, each stays below 536870912",
     "keep fewer entries or smaller extents"),
    (lambda: cute.composition(Layout((4, 4)), CoordinateLayout(3, -1 * E(0) + E(1))),
     "composition of 3:-1@0+1@1: a stride along several entries goes down",
     "reverse that mode, or take the entries one by one"),
    (lambda: cute.composition(Layout((1, HUGE), (0, 0)), CoordinateLayout((2, 2), (E(0) + E(1), 2**28 * E(0)))),
     "the number of coordinates does not fit in 64 bits", SMALLER),
]  # fmt: skip


@pytest.mark.parametrize("ask, message, help", REFUSALS, ids=[f"{k}: {row[1][:40]}" for k, row in enumerate(REFUSALS)])
def test_refusal(ask, message, help):
    with pytest.raises(helve.LayoutError) as refusal:
        ask()
    assert refusal.value.message == message
    assert (refusal.value.help or "") == help


ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "src/layout").rglob("*.cc"), *(ROOT / "src/layout").rglob("*.h")])
TESTS = [
    *(ROOT / "tests/errors").glob("*.cases"),
    *(path for path in (ROOT / "tests/python").glob("*.py") if path.name != Path(__file__).name),
    *(ROOT / "tests/cpp/layout").glob("*.cc"),
]
REFUSES = re.compile(r"throw_layout_error|refuse\w*\(|fail\(|reason\b|overflow\(|checked_\w+\(|narrow\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def statements(text):
    """The statements of C++ text that refuse, without comments: those that throw, and those that set a reason."""
    text = re.sub(r"//[^\n]*", "", text)
    for statement in re.split(r";\s*\n", text):
        if REFUSES.search(statement) and "#include" not in statement:
            yield statement


def prose(path):
    """The literals with blanks of the refusals of a source: what stands in messages beside numbers."""
    found = set()
    for statement in statements(path.read_text()):
        joined = re.sub(r'"\s*\n\s*"', "", statement)
        found |= {literal for literal in LITERAL.findall(joined) if " " in literal.strip()}
    return found


PIECES = sorted((str(path.relative_to(ROOT)), text) for path in SOURCES for text in prose(path))


def said():
    """All text of the tests, literals joined as compilers join them."""
    text = "\n".join(path.read_text() for path in TESTS)
    text += "\n".join(f"{message} {help}" for _, message, help in REFUSALS)
    return re.sub(r'"\s*\n\s*f?"', "", text).replace('\\"', '"').replace("\\\\", "\\")


SAID = said()


@pytest.mark.parametrize("source, piece", PIECES)
def test_each_reason_is_tested(source, piece):
    parts = re.split(r"\{[^{}]*\}", piece.replace('\\"', '"'))
    words = [re.escape(part.strip()) for part in parts if part.strip(" '")]
    pattern = r"[^\n]*?".join(words)
    assert re.search(pattern, SAID) or re.search(pattern, SAID.replace("\\", "")), f"no test says: {piece}"


def test_the_sources_are_read():
    assert len(PIECES) > 60
