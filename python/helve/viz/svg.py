"""Pictures as marks on a sheet, and as SVG text.

Written by hand, since a picture is rectangles and short texts; nothing but the standard library is needed to see a
layout. Other renderings draw the same marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from helve.viz.grid import Cell, Grid, Sheet

_CHARACTER = 7.2  # width of a character of the 12 px monospace font
_LINE = 14
_PAD = 6
_GAP = 28
_SMALLEST = 26
_FONT = "font-family='ui-monospace,Menlo,Consolas,monospace' font-size='12'"


_FRAME = "#444"
_FAINT = "#666"


@dataclass(frozen=True, slots=True)
class Rectangle:
    x: int
    y: int
    width: int
    height: int
    fill: str
    stroke: str = ""
    title: str = ""  # shown on hover

    def svg(self) -> str:
        place = f"x='{self.x}' y='{self.y}' " if self.stroke else ""
        stroke = f" stroke='{self.stroke}'" if self.stroke else ""
        rect = f"<rect {place}width='{self.width}' height='{self.height}' fill='{self.fill}'{stroke}"
        return rect + (f"><title>{escape(self.title)}</title></rect>" if self.title else "/>")


@dataclass(frozen=True, slots=True)
class Line:
    x1: int
    y1: int
    x2: int
    y2: int

    def svg(self) -> str:
        return (f"<line x1='{self.x1}' y1='{self.y1}' x2='{self.x2}' y2='{self.y2}' stroke='#000' "
                "stroke-width='2.5'/>")


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text whose baseline is at y."""

    x: int
    y: int
    text: str
    anchor: str  # "start", "middle" or "end"
    color: str = "#000"
    bold: bool = False

    def svg(self) -> str:
        more = " font-weight='bold'" if self.bold else f" fill='{self.color}'" if self.color == _FAINT else ""
        return f"<text x='{self.x}' y='{self.y}' text-anchor='{self.anchor}'{more}>{escape(self.text)}</text>"


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


def render(sheet: Sheet) -> str:
    """The whole document."""
    width, height, marks = layout(sheet)
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' {_FONT}>")
    return "\n".join([head, *(mark.svg() for mark in marks), "</svg>"]) + "\n"


def layout(sheet: Sheet) -> tuple[int, int, list[Rectangle | Line | Text]]:
    """(width, height) of the sheet in pixels, and what is drawn on it, in order."""
    marks: list[Rectangle | Line | Text] = []
    y = _PAD
    width = round(len(sheet.title) * _CHARACTER) + 2 * _PAD
    if sheet.title:
        marks.append(Text(_PAD, y + 12, sheet.title, "start", bold=True))
        y += _LINE + 2 * _PAD
    for row in sheet.grids:
        x = _PAD
        boxes = [_Box(grid) for grid in row]
        for box in boxes:
            _grid(marks, box, x, y)
            x += box.width + _GAP
        width = max(width, x - _GAP + _PAD)
        y += max((box.height for box in boxes), default=0) + _GAP // 2
    if sheet.legend:
        x = _PAD
        for fill, meaning in sheet.legend:
            marks.append(Rectangle(x, y, 14, 14, fill, _FRAME))
            marks.append(Text(x + 20, y + 12, meaning, "start"))
            x += 20 + round(len(meaning) * _CHARACTER) + 2 * _PAD
        width = max(width, x)
        y += _LINE + _PAD
    return width, y + _PAD, [Rectangle(0, 0, width, y + _PAD, "#ffffff"), *marks]


def _grid(marks: list[Rectangle | Line | Text], box: _Box, x: int, y: int) -> None:
    grid = box.grid
    if grid.caption:
        marks.append(Text(x, y + 12, grid.caption, "start"))
    left, top = x + box.left, y + box.top
    for column, label in enumerate(grid.column_labels):
        marks.append(Text(left + column * box.cell_width + box.cell_width // 2, top - 5, label, "middle", _FAINT))
    for row, label in enumerate(grid.row_labels):
        middle = top + row * box.cell_height + box.cell_height // 2 + 4
        marks.append(Text(left - _PAD, middle, label, "end", _FAINT))
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            _cell(marks, cell, left + column * box.cell_width, top + row * box.cell_height, box)
    _rulers(marks, box, left, top)
    if grid.note:
        marks.append(Text(x, top + grid.rows * box.cell_height + _LINE + 2, grid.note, "start", _FAINT))


def _cell(marks: list[Rectangle | Line | Text], cell: Cell, x: int, y: int, box: _Box) -> None:
    marks.append(Rectangle(x, y, box.cell_width, box.cell_height, cell.fill, _FRAME, cell.title))
    first = y + box.cell_height // 2 + 4 - (len(cell.lines) - 1) * _LINE // 2
    for number, line in enumerate(cell.lines):
        marks.append(Text(x + box.cell_width // 2, first + number * _LINE, line, "middle"))


def _rulers(marks: list[Rectangle | Line | Text], box: _Box, left: int, top: int) -> None:
    """Thick lines between groups of rows and of columns."""
    grid = box.grid
    right, bottom = left + grid.columns * box.cell_width, top + grid.rows * box.cell_height
    if grid.column_step:
        for column in range(grid.column_step, grid.columns, grid.column_step):
            x = left + column * box.cell_width
            marks.append(Line(x, top, x, bottom))
    if grid.row_step:
        for row in range(grid.row_step, grid.rows, grid.row_step):
            y = top + row * box.cell_height
            marks.append(Line(left, y, right, y))
