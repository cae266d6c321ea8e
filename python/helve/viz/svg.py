"""Pictures as SVG text.

Written by hand, since a picture is rectangles and short texts; nothing but the standard library is needed to see a
layout.
"""

from __future__ import annotations

from html import escape

from helve.viz.picture import Cell, Grid, Picture

_CHARACTER = 7.2  # width of a character of the 12 px monospace font
_LINE = 14
_PAD = 6
_GAP = 28
_SMALLEST = 26
_FONT = "font-family='ui-monospace,Menlo,Consolas,monospace' font-size='12'"


class _Box:
    """The measures of one grid in pixels."""

    def __init__(self, grid: Grid):
        self.grid = grid
        cells = [cell for row in grid.cells for cell in row]
        longest = max((len(line) for cell in cells for line in cell.lines), default=1)
        longest = max([longest, *(len(label) for label in grid.column_labels)])
        lines = max((len(cell.lines) for cell in cells), default=1)
        self.cell_width = max(_SMALLEST, round(longest * _CHARACTER) + 2 * _PAD)
        self.cell_height = max(_SMALLEST, lines * _LINE + 2 * _PAD - 2)
        self.left = max((round(len(label) * _CHARACTER) + _PAD for label in grid.row_labels), default=0)
        self.top = (_LINE + _PAD if grid.caption else 0) + (_LINE + 2 if grid.column_labels else 0)
        text = max(len(grid.caption), len(grid.note))
        self.width = max(self.left + grid.columns * self.cell_width, round(text * _CHARACTER)) + 1
        self.height = self.top + grid.rows * self.cell_height + (_LINE + _PAD if grid.note else 0) + 1


def render(picture: Picture) -> str:
    """The whole document."""
    parts: list[str] = []
    y = _PAD
    width = round(len(picture.title) * _CHARACTER) + 2 * _PAD
    if picture.title:
        parts.append(_text(_PAD, y + 12, picture.title, "start", " font-weight='bold'"))
        y += _LINE + 2 * _PAD
    for row in picture.grids:
        x = _PAD
        boxes = [_Box(grid) for grid in row]
        for box in boxes:
            _grid(parts, box, x, y)
            x += box.width + _GAP
        width = max(width, x - _GAP + _PAD)
        y += max((box.height for box in boxes), default=0) + _GAP // 2
    if picture.legend:
        x = _PAD
        for fill, meaning in picture.legend:
            parts.append(f"<rect x='{x}' y='{y}' width='14' height='14' fill='{fill}' stroke='#444'/>")
            parts.append(_text(x + 20, y + 12, meaning, "start"))
            x += 20 + round(len(meaning) * _CHARACTER) + 2 * _PAD
        width = max(width, x)
        y += _LINE + _PAD
    height = y + _PAD
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' {_FONT}>")
    return "\n".join([head, f"<rect width='{width}' height='{y + _PAD}' fill='#ffffff'/>", *parts, "</svg>"]) + "\n"


def _grid(parts: list[str], box: _Box, x: int, y: int) -> None:
    grid = box.grid
    if grid.caption:
        parts.append(_text(x, y + 12, grid.caption, "start"))
    left, top = x + box.left, y + box.top
    for column, label in enumerate(grid.column_labels):
        parts.append(_text(left + column * box.cell_width + box.cell_width // 2, top - 5, label, "middle",
                           " fill='#666'"))
    for row, label in enumerate(grid.row_labels):
        middle = top + row * box.cell_height + box.cell_height // 2 + 4
        parts.append(_text(left - _PAD, middle, label, "end", " fill='#666'"))
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            _cell(parts, cell, left + column * box.cell_width, top + row * box.cell_height, box)
    _rulers(parts, box, left, top)
    if grid.note:
        parts.append(_text(x, top + grid.rows * box.cell_height + _LINE + 2, grid.note, "start", " fill='#666'"))


def _cell(parts: list[str], cell: Cell, x: int, y: int, box: _Box) -> None:
    rect = f"<rect x='{x}' y='{y}' width='{box.cell_width}' height='{box.cell_height}' fill='{cell.fill}' stroke='#444'"
    parts.append(rect + (f"><title>{escape(cell.title)}</title></rect>" if cell.title else "/>"))
    first = y + box.cell_height // 2 + 4 - (len(cell.lines) - 1) * _LINE // 2
    for number, line in enumerate(cell.lines):
        parts.append(_text(x + box.cell_width // 2, first + number * _LINE, line, "middle"))


def _rulers(parts: list[str], box: _Box, left: int, top: int) -> None:
    """Thick lines between groups of rows and of columns."""
    grid = box.grid
    right, bottom = left + grid.columns * box.cell_width, top + grid.rows * box.cell_height
    if grid.column_step:
        for column in range(grid.column_step, grid.columns, grid.column_step):
            x = left + column * box.cell_width
            parts.append(f"<line x1='{x}' y1='{top}' x2='{x}' y2='{bottom}' stroke='#000' stroke-width='2.5'/>")
    if grid.row_step:
        for row in range(grid.row_step, grid.rows, grid.row_step):
            y = top + row * box.cell_height
            parts.append(f"<line x1='{left}' y1='{y}' x2='{right}' y2='{y}' stroke='#000' stroke-width='2.5'/>")


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f"<text x='{x}' y='{y}' text-anchor='{anchor}'{more}>{escape(text)}</text>"
