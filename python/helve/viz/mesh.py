"""Sharding over a mesh as a picture: one grid a device, in the shape of the mesh.

The other reading of a layout with device axes: not who holds an element, but what a device holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from helve._core import Layout
from helve.errors import LayoutError
from helve.viz.elements import admitted_extents, check_points, refusal
from helve.viz.picture import WHITE, Cell, Grid, Picture, color

_MAX_DEVICES = 64
_MAX_ELEMENTS = 4096
_FEWER = "slice the layout first; it admits every shape with as many elements"
_NAME_AXES = "give the extent of every device axis of the layout"


def draw_mesh(layout: Layout, shape: Sequence[int], mesh: Mapping[str, int]) -> Picture:
    """Which elements each device of a mesh holds.

    Args:
        layout: a layout with device axes of the mesh.
        shape: the tensor's shape, one or two dimensions, at most 4096 elements.
        mesh: extents by axis name, slowest first, at most 64 devices. The last axis runs to the right.

    Returns:
        One grid a device; what the device holds is filled and shows the address there, the rest is empty. Elements with
        the same fill on several devices are replicas.

    Raises:
        UnsupportedError: too many devices, elements or replicas, a shape of more than two dimensions, a mesh that lacks
            an axis of the layout or a device that holds something.
        ShapeError: the layout has another number of elements.
    """
    if not isinstance(layout, Layout) or not isinstance(mesh, Mapping):
        raise TypeError(f"draw_mesh draws a helve.Layout on {{axis name: extent}}; given {layout!r} on {mesh!r}")
    if hasattr(shape, "__len__") and len(shape) not in (1, 2):
        raise _refusal(layout, f"a picture shows one or two dimensions, not {len(shape)}")
    names = list(mesh)
    if not names or min(mesh.values()) < 1:
        raise _refusal(layout, f"mesh {dict(mesh)} has no device", _NAME_AXES)
    for axis in layout.axes:
        if axis.kind == "device" and axis.name not in mesh:
            raise _refusal(layout, f"mesh {dict(mesh)} has no axis {axis.name}", _NAME_AXES)
    if math.prod(mesh.values()) > _MAX_DEVICES or layout.size() > _MAX_ELEMENTS:
        raise _refusal(layout, f"a picture shows at most {_MAX_DEVICES} devices and {_MAX_ELEMENTS} elements")
    extents = admitted_extents(layout, shape)
    check_points("draw_mesh", layout, layout.size())
    held = _held(layout, extents, names)
    outside = [place for place in held if not all(0 <= p < mesh[name] for p, name in zip(place, names))]
    if outside:
        where = ", ".join(f"{name}={value}" for name, value in zip(names, min(outside)))
        raise _refusal(layout, f"the device at {where} is outside mesh {dict(mesh)}", _NAME_AXES)
    grids = []
    for outer in itertools.product(*(range(mesh[name]) for name in names[:-1])):
        row = []
        for last in range(mesh[names[-1]]):
            place = (*outer, last)
            caption = " ".join(f"{name}={value}" for name, value in zip(names, place))
            row.append(_device_grid(held.get(place, {}), extents, caption))
        grids.append(tuple(row))
    return Picture(f"{layout}  on {' x '.join(f'{name}={extent}' for name, extent in mesh.items())}", tuple(grids))


def _refusal(layout: Layout, reason: str, remedy: str = _FEWER) -> LayoutError:
    return refusal("draw_mesh", layout, reason, remedy)


def _held(layout: Layout, extents: list[int], names: list[str]) -> dict[tuple[int, ...], dict[tuple[int, ...], str]]:
    """By device, the elements that it holds with their places on the other axes."""
    held: dict[tuple[int, ...], dict[tuple[int, ...], str]] = {}
    for element in itertools.product(*(range(extent) for extent in extents)):
        for point in layout.apply(list(element), extents):
            by_name = {axis.name: value for axis, value in point.items()}
            device = tuple(by_name.get(name, 0) for name in names)
            rest = [(name, value) for name, value in by_name.items() if name not in names]
            text = " ".join(str(value) if name == "m" else f"{name}{value}" for name, value in rest)
            held.setdefault(device, {})[element] = text
    return held


def _device_grid(mine: dict[tuple[int, ...], str], extents: list[int], caption: str) -> Grid:
    fill = color(min(mine)[0] * 5 + min(mine)[-1]) if mine else WHITE
    rows, columns = (1, extents[0]) if len(extents) == 1 else extents
    cells = []
    for row in range(rows):
        line = []
        for column in range(columns):
            element = (column,) if len(extents) == 1 else (row, column)
            if element in mine:
                line.append(Cell((mine[element],), fill, f"element {element}"))
            else:
                line.append(Cell((), WHITE, f"element {element}"))
        cells.append(tuple(line))
    return Grid(tuple(cells), caption=caption)
