"""CuTe layouts as pictures: offsets, threads and values, swizzles.

The views of CuTe's own print_latex and print_svg: a matrix of offsets coloured by offset, a tile coloured by thread.
"""

from __future__ import annotations

from collections.abc import Callable

from helve._core import CuteComposedLayout, CuteCoordinateLayout, CuteLayout, CuteSwizzle
from helve._core import cute as _algebra
from helve.errors import error
from helve.viz.elements import refusal, wrong_argument
from helve.viz.grid import ALARM, WHITE, Cell, Grid, color
from helve.viz.picture import Picture


_MAX_CELLS = 1 << 16


def _check_layout(operation: str, layout: object, kinds: tuple[type, ...]) -> None:
    """Raises LayoutError unless `layout` is of one of the kinds, UnsupportedError beyond the limit of cells."""
    if not isinstance(layout, kinds):
        remedy = f"{operation} draws one, as cute.Layout((8, 4), (4, 1)); layout.show() draws a helve.Layout"
        raise wrong_argument(layout, "layout of helve.cute", remedy)
    if _algebra.size(layout) > _MAX_CELLS:
        raise refusal(operation, layout, f"a picture has at most {_MAX_CELLS} cells")


def _matrix(layout: CuteLayout | CuteComposedLayout | CuteCoordinateLayout) -> tuple[int, int]:
    """Rows and columns: mode 0, and the product of all others."""
    rows = _algebra.size(layout[0]) if _algebra.rank(layout) > 1 else 1
    return rows, _algebra.size(layout) // rows


def _grid(rows: int, columns: int, cell: Callable[[int, int], Cell], caption: str) -> Grid:
    cells = tuple(tuple(cell(row, column) for column in range(columns)) for row in range(rows))
    labels = tuple(str(row) for row in range(rows)), tuple(str(column) for column in range(columns))
    return Grid(cells, caption=caption, row_labels=labels[0], column_labels=labels[1])


def draw_offsets(layout: CuteLayout | CuteComposedLayout | CuteCoordinateLayout) -> Picture:
    """The offset (or the coordinate) at each coordinate; mode 0 runs down, all others to the right.

    Raises:
        UnsupportedError: the layout has too many elements.
        LayoutError: it is no layout of helve.cute (HV0507).
    """
    _check_layout("draw_offsets", layout, (CuteLayout, CuteComposedLayout, CuteCoordinateLayout))
    rows, columns = _matrix(layout)

    def cell(row: int, column: int) -> Cell:
        offset = layout(row + rows * column)
        number = offset if isinstance(offset, int) else row + rows * column
        return Cell((str(offset),), color(number), f"({row},{column}) -> {offset}")

    return Picture(str(layout), ((_grid(rows, columns, cell, "offsets"),),))


def draw_tv(layout: CuteLayout, tile: tuple[int, int]) -> Picture:
    """Who owns each element of a tile.

    Args:
        layout: a thread-value layout, (threads, values) to the colexicographic index in the tile (make_tv_layout's
            first result).
        tile: rows and columns.

    Returns:
        The tile; each cell names its thread and value, coloured by thread. An element without an owner is white; one
        that several own lists them and is red.

    Raises:
        ShapeError: the layout is not of rank 2, or the tile not of two extents.
        UnsupportedError: it leaves the tile, or there are too many elements.
        LayoutError: an argument is of none of these kinds (HV0507).
    """
    _check_layout("draw_tv", layout, (CuteLayout, CuteComposedLayout))
    try:
        extents = _algebra.flatten(tile)
    except TypeError:
        raise wrong_argument(tile, "tile", "give rows and columns, as (8, 4)") from None
    if len(extents) != 2:
        raise error("CuteRank", operation="draw_tv", operand=f"tile {tile}", given=len(extents),
                    needed="a picture shows 2")
    rows, columns = extents
    if rows * columns > _MAX_CELLS:
        raise refusal("draw_tv", layout, f"a picture has at most {_MAX_CELLS} cells", "give a smaller tile")
    if _algebra.rank(layout) != 2:
        rank = _algebra.rank(layout)
        raise error("CuteRank", operation="draw_tv", operand=str(layout), given=rank, needed="a picture shows 2")
    threads = _algebra.size(layout[0])
    owners: dict[int, list[tuple[int, int]]] = {}
    for index in range(_algebra.size(layout)):
        place = layout(index)
        if not 0 <= place < rows * columns:
            thread, value = index % threads, index // threads
            reason = f"thread {thread}, value {value} is at {place}, outside {rows} x {columns}"
            remedy = "give the tile that the threads cover, make_tv_layout's first result"
            raise refusal("draw_tv", layout, reason, remedy)
        owners.setdefault(place, []).append((index % threads, index // threads))

    def cell(row: int, column: int) -> Cell:
        mine = owners.get(row + rows * column, [])
        if not mine:
            return Cell((), WHITE, f"({row},{column}) has no owner")
        story = f"({row},{column}): " + "; ".join(f"thread {thread}, value {value}" for thread, value in mine)
        thread, value = mine[0]
        if len(mine) > 1:
            return Cell((f"T{thread}", f"+{len(mine) - 1}"), ALARM, story)
        return Cell((f"T{thread}", f"V{value}"), color(thread), story)

    return Picture(str(layout), ((_grid(rows, columns, cell, f"tile {rows} x {columns}"),),))


def draw_swizzle(swizzle: CuteSwizzle, layout: CuteLayout | CuteComposedLayout) -> Picture:
    """The offsets of `layout` before and after `swizzle`, coloured by the offset modulo the row length.

    Raises:
        UnsupportedError: the layout has too many elements.
        LayoutError: an argument is of none of these kinds (HV0507).
    """
    if not isinstance(swizzle, CuteSwizzle):
        raise wrong_argument(swizzle, "helve.Swizzle", "write draw_swizzle(Swizzle(2, 0, 3), layout)")
    _check_layout("draw_swizzle", layout, (CuteLayout, CuteComposedLayout))
    rows, columns = _matrix(layout)
    before = {(row, column): layout(row + rows * column) for row in range(rows) for column in range(columns)}

    def plain(row: int, column: int) -> Cell:
        offset = before[row, column]
        return Cell((str(offset),), color(offset % columns), f"({row},{column}) -> {offset}")

    def swizzled(row: int, column: int) -> Cell:
        offset = before[row, column]
        return Cell((str(swizzle(offset)),), color(swizzle(offset) % columns),
                    f"({row},{column}): {offset} -> {swizzle(offset)}")

    grids = (_grid(rows, columns, plain, str(layout)), _grid(rows, columns, swizzled, f"{swizzle} o {layout}"))
    return Picture(str(swizzle), (grids,))
