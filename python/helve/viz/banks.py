"""Accesses to shared memory as pictures: rows of 32 banks, with the threads that touch them.

A conflict is a column with several threads in different rows; it is red.
"""

from __future__ import annotations

from helve._core import BankPhase, BankReport
from helve.viz.elements import wrong_argument
from helve.viz.grid import ALARM, WHITE, Cell, Grid, color
from helve.viz.picture import Picture

_BANKS = 32


def draw_banks(report: BankReport) -> Picture:
    """What `bank_conflicts` found, one grid a phase.

    Returns:
        A picture whose rows are rows of 32 four-byte words, whose columns are banks. A cell names the threads that read
        or write the word, coloured by thread; in banks where two words or more are touched in one phase, cells are red.

    Raises:
        LayoutError: it is no report (HV0507).
    """
    if not isinstance(report, BankReport):
        raise wrong_argument(report, "report of bank conflicts", "pass what helve.layout.bank_conflicts returns")
    grids = tuple((_phase(number, phase),) for number, phase in enumerate(report.phases))
    return Picture(f"bank conflicts: depth {report.depth}", grids, ((ALARM, "several words of one bank in one phase"),))


def _phase(number: int, phase: BankPhase) -> Grid:
    threads: dict[int, list[int]] = {}
    for thread, words in enumerate(phase.words, start=phase.first_thread):
        for word in words:
            threads.setdefault(word, []).append(thread)
    depths = [0] * _BANKS
    for word in threads:
        depths[word % _BANKS] += 1
    rows = sorted({word // _BANKS for word in threads})
    cells = tuple(tuple(_cell(row * _BANKS + bank, threads, depths[bank]) for bank in range(_BANKS)) for row in rows)
    last = phase.first_thread + len(phase.words) - 1
    return Grid(
        cells,
        caption=f"phase {number}: threads {phase.first_thread} to {last}, depth {phase.depth}",
        row_labels=tuple(str(row * _BANKS) for row in rows),
        column_labels=tuple(str(bank) for bank in range(_BANKS)),
        note="" if len(rows) == (rows[-1] + 1 if rows else 0) else "rows without accesses are left out",
    )


def _cell(word: int, threads: dict[int, list[int]], depth: int) -> Cell:
    mine = threads.get(word, [])
    if not mine:
        return Cell((), WHITE, f"word {word}")
    text = str(mine[0]) if len(mine) == 1 else f"{mine[0]}+{len(mine) - 1}"
    names = ", ".join(str(thread) for thread in mine)
    return Cell((text,), ALARM if depth > 1 else color(mine[0]), f"word {word}, bank {word % _BANKS}: threads {names}")
