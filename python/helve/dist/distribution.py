"""Distributions, written as in DISTAL: `distribution("xy -> x y *", shape, mesh)`.

The reading and the arithmetic are the core's; here is the value that users hold: mesh, shape and layout together.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

from helve import _core, viz
from helve.errors import error
from helve.layout import Axis, Layout
from helve.mesh import Mesh


@dataclass(frozen=True)
class Distribution:
    """Where the elements of a tensor are stored on a mesh.

    Attributes:
        mesh: the mesh.
        shape: the tensor's extents, in elements.
        layout: a layout over `domain`: the device axes of the mesh (named as its axes), then the address in the
            device's own block, row-major, in elements, on `m`.
        domain: extents, a whole number of blocks in each dimension; what lies outside `shape` is padding.
        block: the extents of every device's block, ceil(shape / devices) in each dimension.
        partial: {axis: operator} for the axes over which the tensor is yet to be reduced: it is the "sum", "prod",
            "max" or "min" of what the devices hold.
    """

    mesh: Mesh
    shape: tuple[int, ...]
    layout: Layout
    domain: tuple[int, ...]
    block: tuple[int, ...]
    partial: dict[Axis, str] = field(hash=False)
    _core: _core.Distribution = field(repr=False, compare=False, hash=False)
    _levels: tuple[str, ...] = field(repr=False, compare=False, hash=False)

    def __reduce__(self):
        return distribution, (list(self._levels), self.shape, self.mesh)

    def __str__(self) -> str:
        """Its notation, which `distribution` reads; levels are separated by semicolons."""
        return "; ".join(self._core.notation)

    def local_begin(self, device: Sequence[int]) -> tuple[int, ...] | None:
        """The first element of a device's block; None for a device that holds nothing.

        Args:
            device: its coordinate in the mesh.

        Raises:
            helve.ShapeError, helve.BoundsError: no device of the mesh.
        """
        part = self._core.part(device)
        return None if part is None else tuple(part[0])

    def local_shape(self, device: Sequence[int]) -> tuple[int, ...] | None:
        """The extents of what a device holds: short or 0 at the end of a dimension; None where it holds nothing.

        Raises as `local_begin`.
        """
        part = self._core.part(device)
        return None if part is None else tuple(part[1])

    def show(self) -> viz.Picture:
        """The picture of `helve.viz.draw_mesh`: notebooks show it, `text()` is for terminals. Raises as that does."""
        return viz.draw_mesh(self)

    def owners(self, index: Sequence[int]) -> list[tuple[int, ...]]:
        """The devices that hold an element (or a term of it), by coordinates, sorted.

        Args:
            index: the element, in `shape`.

        Raises:
            helve.ShapeError, helve.BoundsError: no element of the tensor.
        """
        _core.flatten_index(index, self.shape)
        names = [_core.axis(name, "device") for name in self.mesh.names]
        found = set()
        for point in self.layout.apply(index, self.domain):
            ranges = [
                range(extent) if axis in self.partial else (point.get(axis, 0),)
                for axis, extent in zip(names, self.mesh.shape, strict=True)
            ]
            found.update(itertools.product(*ranges))
        return sorted(found)


def distribution(notation: str | Sequence[str], shape: Sequence[int], mesh: Mesh) -> Distribution:
    """The distribution that `notation` describes (DISTAL, arXiv 2203.08069, tensor distribution notation).

    On the left of "->" are the tensor's dimensions, on the right is one entry for each axis of the mesh: a dimension
    that is sharded over it, `*` for replication, a number for the one coordinate that holds the data, `+` (or `sum`)
    for the terms of a sum, `prod`, `max` and `min` for those of other reductions. Names are characters ("xy -> xy*"),
    or words if there are spaces ("row col -> row max"). A dimension that is not named on the right is not sharded.

    Args:
        notation: the text; for two levels and more a list of texts, outer level first, which share out the axes of the
            mesh in order: ["xy -> x y", "xy -> y *"]. A dimension cut at several levels has blocks of ceil(extent /
            devices), devices counted over all levels.
        shape: the tensor's extents, in elements; they need not divide.
        mesh: the mesh; its axis names become device axes.

    Raises:
        helve.LayoutError: a text that is no distribution of this tensor over this mesh (HV0506), an argument that is no
            text, shape or mesh (HV0507).
        helve.ShapeError: a negative extent.
    """
    if not isinstance(mesh, Mesh):
        raise error("LayoutArgument", value=repr(mesh), expected="mesh",
                    remedy="pass a helve.Mesh, as helve.Mesh((2, 4))")
    levels = [notation] if isinstance(notation, str) else notation
    if not isinstance(levels, Sequence) or not all(isinstance(level, str) for level in levels):
        raise error("LayoutArgument", value=repr(notation), expected="notation of a distribution",
                    remedy='write a text as "x y -> x y", or a list of texts, one for each level')
    made = _core.Distribution(levels, shape, mesh.names, mesh.shape)
    sizes = tuple(operator.index(extent) for extent in shape), made.layout, tuple(made.domain), tuple(made.block)
    return Distribution(mesh, *sizes, made.partial, made, tuple(levels))


def distribution_of(layout: Layout, shape: Sequence[int], mesh: Mesh) -> Distribution:
    """The distribution whose layout is this one.

    Args:
        layout: a layout over whole blocks: device axes of the mesh, and the address in the device's block on `m`.
        shape: the tensor's extents, in elements.
        mesh: the mesh; axes of extent 1 need not be named.

    Raises:
        helve.LayoutError: a layout that does not deal blocks of ceil(extent / devices) in order (HV0506); an argument
            that is no layout, shape or mesh (HV0507).
    """
    if not isinstance(mesh, Mesh) or not isinstance(layout, Layout):
        value, expected = (mesh, "mesh") if not isinstance(mesh, Mesh) else (layout, "layout")
        raise error("LayoutArgument", value=repr(value), expected=expected, remedy="give a layout, a shape and a mesh")
    made = _core.Distribution.of_layout(layout, shape, mesh.names, mesh.shape)
    if made is None:
        raise error("DistributionForm", text=str(layout),
                    reason=f"it deals no ceil-sized blocks of {tuple(shape)} to the mesh in order")
    return _of(made, tuple(operator.index(extent) for extent in shape), mesh)


def dimension_names(rank: int) -> Sequence[str]:
    """How dimensions are called in a notation that is made for a tensor of so many."""
    letters = "ijklmnabcdefghopqrstuvwxyz"
    return letters[:rank] if rank <= len(letters) else [f"d{k}" for k in range(rank)]


def of_axes(entries: Sequence[str], orders: Sequence[Sequence[int]], shape: Sequence[int], mesh: Mesh) -> Distribution:
    """The distribution by what every axis of the mesh does.

    Args:
        entries: by axis, as on the right of a notation; of `dimension_names`.
        orders: by dimension, the axes that cut it, outer first, by place in the mesh.
        shape: the tensor's extents.
        mesh: the mesh.
    """
    left = " ".join(dimension_names(len(shape)))
    levels: list[list[str]] = [[] for _ in range(max([1, *map(len, orders)]))]
    for a, entry in enumerate(entries):  # a level for each time that a dimension is cut, the rest in the first
        level = next((order.index(a) for order in orders if a in order), 0)
        levels[level].append(f"{mesh.names[a]}:{entry}")
    return distribution([f"{left} -> {' '.join(level)}" for level in levels], shape, mesh)


def of_core(made: _core.Distribution, like: Distribution) -> Distribution:
    """A distribution of the core, of the tensor and over the mesh of another."""
    return _of(made, like.shape, like.mesh)


def _of(made: _core.Distribution, shape: tuple[int, ...], mesh: Mesh) -> Distribution:
    return Distribution(mesh, shape, made.layout, tuple(made.domain), tuple(made.block), made.partial, made,
                        tuple(made.notation))
