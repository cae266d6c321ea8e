"""Axe layouts as pictures: who holds each element, and where.

The kinds of a layout's axes choose the view: device axes colour by device, else thread axes by thread, else the cell is
an address.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from helve._core import Axis, Layout
from helve.viz.elements import admitted_extents, check_points, wrong_argument
from helve.viz.grid import Cell, Grid, color
from helve.viz.picture import Picture

Point = dict[Axis, int]

# What the eye can take in. Larger layouts are cut, and the picture says so.
MAX_ROWS = 64
MAX_COLUMNS = 64
_MAX_REPLICAS = 2


def draw_layout(layout: Layout, shape: Sequence[int] | None = None) -> Picture:
    """The elements of `layout` on a grid of `shape`, each with its place on every axis.

    Args:
        layout: any Axe layout.
        shape: extents whose product is the layout's size. The last dimension runs along columns, all others along
            rows. By default one row a slowest shard iter.

    Returns:
        A picture coloured by device, else by thread, else by address. A cell lists its replicas; hovering tells all of
        them.

    Raises:
        ShapeError: the shape has another number of elements.
        UnsupportedError: the elements that are shown have too many replicas.
        LayoutError: it is no helve.Layout (HV0507).
    """
    if not isinstance(layout, Layout):
        raise wrong_argument(layout, "helve.Layout", "viz.draw_offsets draws a layout of helve.cute")
    extents = admitted_extents(layout, _default_shape(layout) if shape is None else shape)
    columns = extents[-1] if extents else 1
    rows = math.prod(extents[:-1])
    check_points("draw_layout", layout, min(rows, MAX_ROWS) * min(columns, MAX_COLUMNS))
    owners = _owner_axes(layout)
    cells = tuple(
        tuple(
            _cell(layout.apply(_coordinate(row, column, extents), extents), owners)
            for column in range(min(columns, MAX_COLUMNS))
        )
        for row in range(min(rows, MAX_ROWS))
    )
    grid = Grid(
        cells,
        caption=f"shape ({', '.join(str(extent) for extent in extents)})",
        row_labels=tuple(_row_label(row, extents) for row in range(len(cells))),
        column_labels=tuple(str(column) for column in range(min(columns, MAX_COLUMNS))),
        note=_note(rows, columns),
        row_step=extents[-2] if len(extents) > 2 else 0,
    )
    return Picture(str(layout), ((grid,),), _legend(owners))


def _default_shape(layout: Layout) -> list[int]:
    """Two dimensions: the slowest shard iter with an extent above 1, and all others."""
    size = layout.size()
    first = next((extent for extent, _, _ in layout.shard if extent > 1), 1)
    return [size] if first == size else [first, size // first]


def _owner_axes(layout: Layout) -> list[Axis]:
    """The axes that colour a cell: those of devices, else of threads, else of memory."""
    used = layout.axes
    for kind in ("device", "thread"):
        found = [axis for axis in used if axis.kind == kind]
        if found:
            return found
    return list(used)


def _coordinate(row: int, column: int, extents: list[int]) -> list[int]:
    coordinate = [column] if extents else []
    for extent in reversed(extents[:-1]):
        row, digit = divmod(row, extent)
        coordinate.insert(0, digit)
    return coordinate


def _row_label(row: int, extents: list[int]) -> str:
    digits = _coordinate(row, 0, extents)[:-1]
    return ",".join(str(digit) for digit in digits) if digits else "0"


def _note(rows: int, columns: int) -> str:
    shown = (min(rows, MAX_ROWS), min(columns, MAX_COLUMNS))
    if shown == (rows, columns):
        return ""
    return f"the first {shown[0]} of {rows} rows and {shown[1]} of {columns} columns"


def _cell(points: list[Point], owners: list[Axis]) -> Cell:
    """Owners in the first line, the rest of the place in the second."""
    others = [axis for axis in points[0] if axis not in owners]
    lines = [_places_text(points, axes) for axes in (owners, others) if axes]
    title = "; ".join(", ".join(f"{value}@{axis.name}" for axis, value in point.items()) for point in points)
    return Cell(tuple(lines), color(_fill_number([points[0][axis] for axis in owners])), title)


def _places_text(points: list[Point], axes: list[Axis]) -> str:
    """The coordinates on `axes` of all replicas: "T0 W5|9" where every value of one axis meets every value of the
    others.
    """
    places = list(dict.fromkeys(tuple(point[axis] for axis in axes) for point in points))
    values = [list(dict.fromkeys(place[d] for place in places)) for d in range(len(axes))]
    if math.prod(len(each) for each in values) == len(places):
        return " ".join(f"{_short(axis)}{_some([str(value) for value in each])}" for axis, each in zip(axes, values))
    return _some([" ".join(f"{_short(axis)}{value}" for axis, value in zip(axes, place)) for place in places])


def _some(texts: list[str]) -> str:
    """A few of the texts; how many more there are."""
    shown = "|".join(texts[:_MAX_REPLICAS])
    return shown if len(texts) <= _MAX_REPLICAS else f"{shown}|+{len(texts) - _MAX_REPLICAS}"


# Letters that cells write for axes; others are written out.
_SHORT = {
    "laneid": "T", "tx": "T", "tid_in_wg": "T", "warpid": "W", "wid_in_wg": "W", "wgid": "G", "cta": "B",
    "cta_in_cluster": "B", "gpuid": "D", "m": "", "reg": "R",
}  # fmt: skip


def _short(axis: Axis) -> str:
    name = axis.name
    return _SHORT.get(name, f"{name}=" if len(name) > 1 else name)


def _fill_number(place: list[int]) -> int:
    """Neighbours on each axis get different fills."""
    number = 0
    for value in place:
        number = number * 5 + value
    return number


def _legend(owners: list[Axis]) -> tuple[tuple[str, str], ...]:
    if not owners:
        return ()
    names = ", ".join(axis.name for axis in owners)
    what = {"device": "device", "thread": "thread", "memory": "address"}[owners[0].kind]
    return ((color(0), f"coloured by {what} ({names})"),)
