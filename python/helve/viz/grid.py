"""Pictures as data: grids of cells with texts and colours.

What is to be seen (thread, register, address, bank, device) is decided once, in this form; the renderings (SVG, text,
LaTeX, Matplotlib) read it and nothing else, and `Picture` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass

# Fills that can be told apart beside each other and bear black text; a number picks one modulo their count.
PALETTE = (
    "#cfe2f3", "#f9cb9c", "#d9ead3", "#f4cccc", "#d9d2e9", "#fff2cc", "#c9daf8", "#ead1dc",
    "#a2d2c9", "#e6b8af", "#b6d7a8", "#ffe599", "#b4a7d6", "#a4c2f4", "#d5a6bd", "#d0cece",
)  # fmt: skip
WHITE = "#ffffff"
ALARM = "#e06666"


def color(number: int) -> str:
    """The fill that stands for `number`: 16 different ones, then again from the first."""
    return PALETTE[number % len(PALETTE)]


@dataclass(frozen=True, slots=True)
class Cell:
    """One square: at most a few short lines of text on a fill; `title` is the whole story, shown on hover."""

    lines: tuple[str, ...] = ()
    fill: str = WHITE
    title: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A matrix of cells with labels.

    Attributes:
        cells: rows of equal length.
        caption: what the grid shows, above it.
        row_labels, column_labels: one each, or empty.
        note: a remark below, for example what was left out.
        row_step, column_step: a thicker line after every so many cells; 0 for none.
    """

    cells: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    note: str = ""
    row_step: int = 0
    column_step: int = 0

    @property
    def rows(self) -> int:
        return len(self.cells)

    @property
    def columns(self) -> int:
        return len(self.cells[0]) if self.cells else 0


@dataclass(frozen=True, slots=True)
class Sheet:
    """Grids side by side in rows, under a title: all that a rendering needs."""

    title: str
    grids: tuple[tuple[Grid, ...], ...]
    legend: tuple[tuple[str, str], ...] = ()  # (fill, meaning)
