"""Bank conflicts and swizzles in Python: the eight known tables as text, and reports as data."""

import copy
import pickle
import re
from pathlib import Path

import helve
import pytest
from helve.layout import R, S, Swizzle, bank_conflicts, choose_swizzle

GOLDEN = (Path(__file__).resolve().parents[1] / "golden" / "bank_tables.txt").read_text()
TABLES = dict(block.split("\n", 1) for block in GOLDEN.strip("\n").split("\n\n"))


def matrix(rows, stride, swizzle=None):
    layout = S[(rows, stride) : (stride, 1)]
    return layout ^ swizzle if swizzle else layout


def column(threads, stride, at=0):
    return [row * stride + at for row in range(threads)]


@pytest.mark.parametrize(
    "title, stride, width, swizzle, depth",
    [
        ("32x64 by scalars, no swizzle", 64, 1, None, 32),
        ("32x64 by scalars, Swizzle(5, 0, 6)", 64, 1, Swizzle(5, 0, 6), 1),
        ("32x64 by vectors of 4, no swizzle", 64, 4, None, 8),
        ("32x64 by vectors of 4, Swizzle(3, 2, 4)", 64, 4, Swizzle(3, 2, 4), 1),
        ("32x48 by vectors of 4, no swizzle", 48, 4, None, 4),
        ("32x48 by vectors of 4, Swizzle(3, 2, 4)", 48, 4, Swizzle(3, 2, 4), 2),
        ("32x48 by vectors of 4, Swizzle(2, 2, 3)", 48, 4, Swizzle(2, 2, 3), 1),
        ("32x40 by vectors of 4, Swizzle(2, 2, 3)", 40, 4, Swizzle(2, 2, 3), 2),
    ],
)
def test_known_tables(title, stride, width, swizzle, depth):
    threads = 32 if width == 1 else 8
    report = bank_conflicts(matrix(32, stride, swizzle), column(threads, stride), 4, width)
    assert report.depth == depth and len(report.phases) == 1
    assert str(report) == report.phases[0].table() == TABLES[title] + "\n"


def test_every_known_table_is_there():
    assert len(TABLES) == 8 and all(text.count("\n") > 9 for text in TABLES.values())


@pytest.mark.parametrize(
    "stride, width, swizzle",
    [(64, 1, (5, 0, 6)), (64, 4, (3, 2, 4)), (48, 4, (2, 2, 3)), (40, 4, (1, 2, 3)), (36, 4, None)],
)
def test_the_chosen_swizzle_is_proved(stride, width, swizzle):
    choice = choose_swizzle(32, stride, 4, width)
    assert choice.swizzle == (swizzle and Swizzle(*swizzle)) and choice.verdict == "proved" and choice.depth == 1
    for at in range(0, stride, width):
        assert bank_conflicts(matrix(32, stride, choice.swizzle), column(32, stride, at), 4, width).depth == 1
    columns = [column(32, stride, at) for at in range(0, stride, width)]
    plain = matrix(32, stride)
    assert choice.plain_depth == max(bank_conflicts(plain, each, 4, width).depth for each in columns)


def test_a_choice_reads_well():
    assert str(choose_swizzle(32, 64, 4, 4)) == (
        "Swizzle(3, 2, 4): proved, depth 1 (plain 8, 4 elements of padding a row 1)"
    )
    assert str(choose_swizzle(32, 64, 4)).endswith("depth 1 (plain 32, 1 element of padding a row 1)")
    assert str(choose_swizzle(32, 36, 4, 4)) == "no swizzle: proved, depth 1 (plain 1, 0 elements of padding a row 1)"


def test_a_report_is_data():
    report = bank_conflicts(S[64:2], [0, 0, None, 33], 4)
    (phase,) = report.phases
    assert phase.words == [[0], [0], [], [66]] and phase.first_thread == 0 and phase.depth == 1
    assert report.extra_steps == 0
    halves = bank_conflicts(S[1024:1], range(0, 64, 2), 4, 2)
    assert [(p.first_thread, p.depth, len(p.words)) for p in halves.phases] == [(0, 1, 16), (16, 1, 16)]
    assert halves.phases[1].words[3] == [38, 39]


    assert repr(halves) == "BankReport(2 phases, depth 1)" and repr(phase) == "BankPhase(threads 0 to 3, depth 1)"


def test_replicas_that_add_nothing_give_one_address():
    assert bank_conflicts(S[64:1] + R[(1, 2) : (4, 0)], range(32), 4).depth == 1
    with pytest.raises(helve.ShapeError, match="has replicas on m, an access has one address"):
        bank_conflicts(S[64:1] + R[2:64], range(32), 4)


def test_long_rows_are_searched_too():
    choice = choose_swizzle(2, 1 << 14, 1)
    assert (choice.swizzle, choice.verdict, choice.depth) == (Swizzle(1, 6, 8), "searched", 1)


def test_reports_and_choices_can_be_pickled():
    report = bank_conflicts(S[(32, 32) : (32, 1)], [*range(0, 992, 32), None], 4)
    again = pickle.loads(pickle.dumps(report))
    assert str(again) == str(report) and again.depth == 31 and copy.deepcopy(report).phases[0].words[31] == []
    for choice in (choose_swizzle(64, 64, 2, 8), choose_swizzle(8, 12, 4), choose_swizzle(8, 8, 1)):
        other = pickle.loads(pickle.dumps(choice))
        for name in ("swizzle", "verdict", "depth", "plain_depth", "padding", "padded_depth", "padding_bytes"):
            assert getattr(other, name) == getattr(choice, name)


def test_other_accesses_are_served_too():
    rows = [(list(range(row * 32, row * 32 + 32)), 1) for row in range(32)]
    choice = choose_swizzle(32, 32, 4, others=rows)
    assert choice.verdict == "searched" and choice.depth == 1 and choice.plain_depth == 32
    tile = matrix(32, 32, choice.swizzle)
    assert all(bank_conflicts(tile, access, 4).depth == 1 for access, _ in rows)
    assert all(bank_conflicts(tile, column(32, 32, at), 4).depth == 1 for at in range(32))
    assert sorted(p[helve.layout.m] for i in range(1024) for p in tile.apply(i)) == list(range(1024))


@pytest.mark.parametrize(
    "arguments, kind, text",
    [
        (([0], 4, 3), helve.ShapeError, "3 elements of 4 bytes are no access of one thread"),
        (([2], 4, 4), helve.ShapeError, "thread 0 begins at element 2, which is no multiple of 4"),
        (([-1], 4), helve.BoundsError, "is outside shape (64,)"),
        (([64], 4), helve.BoundsError, "coordinate (64,) is outside shape (64,)"),
        ((["a"], 4), TypeError, "an access lists a flat index, or None, for each thread"),
    ],
)
def test_refusals(arguments, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        bank_conflicts(S[64:1], *arguments)
