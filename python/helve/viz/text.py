"""Pictures as text.

For terminals: the same cells in a frame, without the colours.
"""

from __future__ import annotations

from helve.viz.grid import Grid, Sheet


def render(sheet: Sheet) -> str:
    """The grids one below the other."""
    blocks = [sheet.title] if sheet.title else []
    blocks += [_grid(grid) for row in sheet.grids for grid in row]
    return "\n\n".join(blocks)


def _grid(grid: Grid) -> str:
    texts = [[" ".join(cell.lines) for cell in row] for row in grid.cells]
    width = max([len(text) for row in texts for text in row] + [len(label) for label in grid.column_labels] + [1])
    left = max((len(label) for label in grid.row_labels), default=0)
    rule = " " * left + " +" + "+".join("-" * (width + 2) for _ in range(grid.columns)) + "+"
    lines = [grid.caption] if grid.caption else []
    if grid.column_labels:
        lines.append((" " * left + "  " + " ".join(f"{label:^{width + 2}}" for label in grid.column_labels)).rstrip())
    lines.append(rule)
    for number, row in enumerate(texts):
        label = grid.row_labels[number] if grid.row_labels else ""
        lines.append(f"{label:>{left}} |" + "|".join(f" {text:>{width}} " for text in row) + "|")
        lines.append(rule)
    if grid.note:
        lines.append(grid.note)
    return "\n".join(lines)
