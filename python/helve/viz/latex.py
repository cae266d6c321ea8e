"""Pictures as LaTeX text.

For papers and slides: a document of its own with TikZ alone, the same cells and fills as the SVG.
"""

from __future__ import annotations

from helve.viz.grid import Grid, Sheet

_CELL_HEIGHT = 0.55  # centimetres
_CHARACTER = 0.17
_GAP = 0.9
_ESCAPES = str.maketrans(
    {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "^": r"\textasciicircum{}", "&": r"\&", "%": r"\%",
     "#": r"\#", "$": r"\$", "~": r"\textasciitilde{}", "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}"}
)  # fmt: skip


def render(sheet: Sheet) -> str:
    """The whole document; it needs the packages standalone and tikz."""
    fills = sorted({cell.fill for row in sheet.grids for grid in row for line in grid.cells for cell in line})
    lines = [r"\documentclass{standalone}", r"\usepackage{tikz}"]
    lines += [rf"\definecolor{{{_name(fill)}}}{{HTML}}{{{fill[1:].upper()}}}" for fill in fills]
    lines += [r"\begin{document}\frenchspacing", r"\begin{tikzpicture}[x=1cm,y=-1cm,font=\ttfamily\footnotesize]"]
    y = 0.0
    if sheet.title:
        lines.append(rf"\node[anchor=west] at (0,{y:.2f}) {{\bfseries {_text(sheet.title)}}};")
        y += _CELL_HEIGHT
    for row in sheet.grids:
        x = 0.0
        bottom = y
        for grid in row:
            width, height = _grid(lines, grid, x, y)
            x += width + _GAP
            bottom = max(bottom, y + height)
        y = bottom + _GAP
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}"]) + "\n"


def _name(fill: str) -> str:
    return f"fill{fill[1:].upper()}"


def _text(text: str) -> str:
    return text.translate(_ESCAPES)


def _grid(lines: list[str], grid: Grid, x: float, y: float) -> tuple[float, float]:
    """Appends one grid with its upper left corner at (x, y); its width and height."""
    longest = max((len(line) for row in grid.cells for cell in row for line in cell.lines), default=1)
    rows_of_text = max((len(cell.lines) for row in grid.cells for cell in row), default=1)
    width = max(longest * _CHARACTER + 0.2, _CELL_HEIGHT)
    height = _CELL_HEIGHT * max(rows_of_text, 1)
    left = x + max((len(label) for label in grid.row_labels), default=0) * _CHARACTER + 0.2
    top = y + _CELL_HEIGHT * (bool(grid.caption) + bool(grid.column_labels))
    if grid.caption:
        lines.append(rf"\node[anchor=west] at ({x:.2f},{y + 0.2:.2f}) {{{_text(grid.caption)}}};")
    for column, label in enumerate(grid.column_labels):
        lines.append(rf"\node at ({left + (column + 0.5) * width:.2f},{top - 0.25:.2f}) {{{_text(label)}}};")
    for row, label in enumerate(grid.row_labels):
        lines.append(rf"\node[anchor=east] at ({left:.2f},{top + (row + 0.5) * height:.2f}) {{{_text(label)}}};")
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            place = f"({left + column * width:.2f},{top + row * height:.2f}) rectangle +({width:.2f},{height:.2f})"
            content = r"\\".join(_text(line) for line in cell.lines)
            node = rf" node[midway,align=center] {{{content}}}" if content else ""
            lines.append(rf"\filldraw[fill={_name(cell.fill)}] {place}{node};")
    _rulers(lines, grid, (left, top), (width, height))
    bottom = top + grid.rows * height
    if grid.note:
        bottom += _CELL_HEIGHT
        lines.append(rf"\node[anchor=west] at ({x:.2f},{bottom:.2f}) {{{_text(grid.note)}}};")
    return left - x + grid.columns * width, bottom - y


def _rulers(lines: list[str], grid: Grid, corner: tuple[float, float], cell: tuple[float, float]) -> None:
    """Thick lines between groups of rows and of columns."""
    (left, top), (width, height) = corner, cell
    right, bottom = left + grid.columns * width, top + grid.rows * height
    for column in range(grid.column_step, grid.columns, grid.column_step) if grid.column_step else ():
        x = left + column * width
        lines.append(rf"\draw[very thick] ({x:.2f},{top:.2f}) -- ({x:.2f},{bottom:.2f});")
    for row in range(grid.row_step, grid.rows, grid.row_step) if grid.row_step else ():
        y = top + row * height
        lines.append(rf"\draw[very thick] ({left:.2f},{y:.2f}) -- ({right:.2f},{y:.2f});")
