"""Pictures as data: grids of cells with texts and colours.

What is to be seen (thread, register, address, bank, device) is decided once, here; SVG and text are renderings of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

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
class Picture:
    """Grids side by side in rows, under a title. Notebooks show it as it is; `save` writes it."""

    title: str
    grids: tuple[tuple[Grid, ...], ...]
    legend: tuple[tuple[str, str], ...] = field(default=())  # (fill, meaning)

    def svg(self) -> str:
        """The picture as one self-contained SVG document; equal pictures give equal text."""
        from helve.viz.svg import render

        return render(self)

    def text(self) -> str:
        """The picture for a terminal: cells in frames, without colours."""
        from helve.viz.text import render

        return render(self)

    def latex(self) -> str:
        """The picture as a LaTeX document of its own, drawn with TikZ."""
        from helve.viz.latex import render

        return render(self)

    def save(self, path: str | Path) -> None:
        """Writes the picture to `path`, in the format of its suffix: ".svg", or by Matplotlib ".png" and ".pdf".

        Raises:
            helve.Error: HV0588 for another suffix, and for the latter two where Matplotlib is missing.
        """
        path = Path(path)
        kind = path.suffix.lower().removeprefix(".")
        if kind == "svg":
            path.write_text(self.svg(), encoding="utf-8")
        elif kind in ("png", "pdf"):
            from helve.viz.plot import save

            save(self, path, kind)
        else:
            from helve.errors import error

            reason = f"'.{kind}' is no format of pictures" if kind else "it has no suffix, which says the format"
            raise error("PictureFormat", name=path.name, reason=reason, remedy="name it .svg, .png or .pdf")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg()
