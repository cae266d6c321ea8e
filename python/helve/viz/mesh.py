"""Sharding over a mesh as a picture: one grid a device, in the shape of the mesh.

The other reading of a layout with device axes: not who holds an element, but what a device holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from helve._core import Layout
from helve.errors import LayoutError
from helve.mesh import Mesh
from helve.viz.elements import admitted_extents, check_points, refusal, wrong_argument
from helve.viz.grid import WHITE, Cell, Grid, color
from helve.viz.picture import Picture

_MAX_DEVICES = 64
_MAX_ELEMENTS = 4096
_FEWER = "slice the layout first; it admits every shape with as many elements"
_NAME_AXES = "give the extent of every device axis of the layout"


@runtime_checkable
class Distributed(Protocol):
    """What a `helve.dist.Distribution` knows: a tensor's shape, and a layout of its domain on a mesh."""

    mesh: Mesh
    shape: tuple[int, ...]
    layout: Layout
    domain: tuple[int, ...]


def draw_mesh(layout: Layout | Distributed, shape: Sequence[int] | None = None,
              mesh: Mesh | Mapping[str, int] | None = None) -> Picture:
    """Which elements each device of a mesh holds.

    Args:
        layout: a layout with device axes of the mesh; or a distribution, which knows its shape and mesh.
        shape: the tensor's shape, one or two dimensions, at most 4096 elements.
        mesh: a mesh of at most 64 devices, or its extents by axis name, slowest first. The last axis runs to the right.

    Returns:
        One grid a device; what the device holds is filled and shows the address there, the rest is empty. Elements with
        the same fill on several devices are replicas.

    Raises:
        UnsupportedError: too many devices, elements or replicas, a shape of more than two dimensions, a mesh that lacks
            an axis of the layout or a device that holds something.
        ShapeError: the layout has another number of elements.
        LayoutError: an argument is of none of these kinds (HV0507).
    """
    if isinstance(layout, Distributed) and shape is None and mesh is None:
        return _draw(layout.layout, layout.domain, _extents(layout.mesh), layout.shape)
    if not isinstance(layout, Layout):
        raise wrong_argument(layout, "helve.Layout", "write draw_mesh(layout, shape, mesh), or draw_mesh(distribution)")
    if shape is None:
        raise wrong_argument(shape, "shape", "give the tensor's extents, as (8, 12)")
    return _draw(layout, shape, _extents(mesh), shape)


def _extents(mesh: object) -> dict[str, int]:
    """The extents of a mesh by axis name."""
    if isinstance(mesh, Mesh):
        return dict(zip(mesh.names, mesh.shape, strict=True))
    if isinstance(mesh, Mapping) and all(isinstance(extent, int) for extent in mesh.values()):
        return dict(mesh)
    raise wrong_argument(mesh, "mesh", 'pass a helve.Mesh, or extents by axis name, as {"x": 2, "y": 3}')


def _draw(layout: Layout, shape: Sequence[int], mesh: dict[str, int], inside: Sequence[int]) -> Picture:
    """The picture; elements of `shape` outside of `inside` are padding, which no device holds."""
    if hasattr(shape, "__len__") and len(shape) not in (1, 2):
        raise _refusal(layout, f"a picture shows one or two dimensions, not {len(shape)}")
    names = list(mesh)
    if not names or min(mesh.values()) < 1:
        raise _refusal(layout, f"mesh {mesh} has no device", _NAME_AXES)
    for axis in layout.axes:
        if axis.kind == "device" and axis.name not in mesh:
            raise _refusal(layout, f"mesh {mesh} has no axis {axis.name}", _NAME_AXES)
    if math.prod(mesh.values()) > _MAX_DEVICES or layout.size() > _MAX_ELEMENTS:
        raise _refusal(layout, f"a picture shows at most {_MAX_DEVICES} devices and {_MAX_ELEMENTS} elements")
    extents = admitted_extents(layout, shape)
    check_points("draw_mesh", layout, layout.size())
    held = _held(layout, extents, names, inside)
    outside = [place for place in held if not all(0 <= p < mesh[name] for p, name in zip(place, names))]
    if outside:
        where = ", ".join(f"{name}={value}" for name, value in zip(names, min(outside)))
        raise _refusal(layout, f"the device at {where} is outside mesh {mesh}", _NAME_AXES)
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


def _held(layout: Layout, extents: list[int], names: list[str],
          inside: Sequence[int]) -> dict[tuple[int, ...], dict[tuple[int, ...], str]]:
    """By device, the elements of `inside` that it holds, with their places on the other axes."""
    held: dict[tuple[int, ...], dict[tuple[int, ...], str]] = {}
    for element in itertools.product(*(range(min(pair)) for pair in zip(extents, inside, strict=True))):
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
