"""Axe layouts: where every element is stored, on the axes of devices, threads and memory at once.

Written as they are printed, `S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid`; the
values and the algebra are the C++ core's, here are the names. `docs/layouts.md` is the guide.
"""

from __future__ import annotations

from collections.abc import Sequence

from helve import _core
from helve._core import Axis, BankPhase, BankReport, Displacement, Layout, Replicas, SwizzleChoice, axis, bank_conflicts
from helve._core import CuteSwizzle as Swizzle
from helve._core import choose_swizzle, direct_sum, inner_of, left_of, outer_of, right_of, tile
from helve.errors import UnsupportedError, error
from helve.viz import Picture, draw_layout

__all__ = [
    "Axis", "BankPhase", "BankReport", "Displacement", "Layout", "R", "Replicas", "S", "Swizzle", "SwizzleChoice",
    "axis", "bank_conflicts", "choose_swizzle", "direct_sum", "inner_of", "left_of", "outer_of", "right_of", "tile",
    "Bank", "F", "P", "TCol", "TLane", "cta", "cta_in_cluster", "gpuid", "laneid", "m", "reg", "tid_in_wg", "tx",
    "warpid", "wgid", "wid_in_wg", "x", "y",
]  # fmt: skip

_AXES = {each.name: each for each in _core.builtin_axes()}
gpuid, x, y = _AXES["gpuid"], _AXES["x"], _AXES["y"]
cta, cta_in_cluster, wgid, warpid = _AXES["cta"], _AXES["cta_in_cluster"], _AXES["wgid"], _AXES["warpid"]
wid_in_wg, tid_in_wg, laneid, tx = _AXES["wid_in_wg"], _AXES["tid_in_wg"], _AXES["laneid"], _AXES["tx"]
m, reg, F, P, Bank = _AXES["m"], _AXES["reg"], _AXES["F"], _AXES["P"], _AXES["Bank"]
TLane, TCol = _AXES["TLane"], _AXES["TCol"]


def _subscript(item: object) -> str:
    """What stood in the brackets."""
    if not isinstance(item, slice):
        return f"{item}"
    parts = [item.start, item.stop] if item.step is None else [item.start, item.stop, item.step]
    return " : ".join("" if part is None else str(part) for part in parts)


class _Literal:
    """What precedes the brackets of `S[extents : strides]` and `R[extents : strides]`."""

    def __init__(self, name: str, make):
        self._name = name
        self._make = make

    def __repr__(self) -> str:
        return self._name

    def __getitem__(self, item: slice):
        if not isinstance(item, slice) or item.start is None or item.stop is None or item.step is not None:
            raise error("LayoutArgument", value=f"{self._name}[{_subscript(item)}]", expected="layout",
                        remedy=f"write {self._name}[extents : strides], as {self._name}[(8, 4) : (4@laneid, 1)]")
        extents, strides = (part if isinstance(part, tuple) else (part,) for part in (item.start, item.stop))
        if len(extents) != len(strides):
            operands = {"left": f"extents {extents}", "right": f"strides {strides}"}
            raise error("ShapeRank", operation=f"{self._name}[...]", **operands)
        return self._make(list(zip(extents, strides, strict=True)))


S = _Literal("S", Layout)
"""`S[extents : strides]` is a Layout: its shard iters, slowest first. A stride is `4@laneid`, or an integer on `m`.

Raises:
    helve.LayoutError: anything but two integers or tuples with a colon between them.
    helve.ShapeError: as many strides as extents are needed; an extent below 1.
"""

R = _Literal("R", Replicas)
"""`R[extents : strides]`, added to a layout, are its replica iters. Raises as `S` does."""


def _show(self: Layout, shape: Sequence[int] | None = None) -> Picture:
    """The layout as a picture: notebooks display it, `.save(path)` writes SVG, `.text()` is for terminals.

    Args:
        shape: extents of the grid, see `helve.viz.draw_layout`.

    Raises:
        helve.ShapeError: the shape has another number of elements.
        helve.UnsupportedError: too many replicas to draw.
    """
    return draw_layout(self, shape)


def _repr_html(self: Layout) -> str | None:
    """The picture for notebooks; None, so that they show the text, for a layout that is too large to draw."""
    try:
        return draw_layout(self).svg()
    except UnsupportedError:
        return None


# A picture is made of Python objects, so the C++ class gets it here.
Layout.show = _show
Layout._repr_html_ = _repr_html
