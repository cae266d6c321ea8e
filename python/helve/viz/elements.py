"""What a picture of a layout is asked to show.

A picture is for the eye: beyond some size it is refused before it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from helve._core import Layout
from helve.errors import LayoutError, error

_MAX_POINTS = 1 << 18


def refusal(operation: str, layout: object, reason: str, remedy: str = "slice the layout first") -> LayoutError:
    """What to raise when `operation` cannot draw `layout`."""
    return error("CuteUnsupported", operation=operation, layout=str(layout), reason=reason, remedy=remedy)


def wrong_argument(value: object, expected: str, remedy: str) -> LayoutError:
    """What to raise where an argument of a picture is nothing of the `expected` kind."""
    return error("LayoutArgument", value=repr(value), expected=expected, remedy=remedy)


def admitted_extents(layout: Layout, shape: Sequence[int]) -> list[int]:
    """The extents of `shape`. Raises ShapeError unless the layout admits it, LayoutError for numbers that are none."""
    rank = len(shape) if hasattr(shape, "__len__") else 0
    try:
        layout.apply([0] * rank, shape)
    except TypeError:
        raise wrong_argument(shape, "shape", "give its extents, as (4, 8)") from None
    return list(shape)


def check_points(operation: str, layout: Layout, elements: int) -> None:
    """Raises UnsupportedError where as many elements with all their replicas are too many points."""
    points = elements * math.prod(extent for extent, stride, _ in layout.replica if stride != 0)
    if points > _MAX_POINTS:
        reason = f"a picture shows at most {_MAX_POINTS} points, {elements} elements have {points}"
        raise refusal(operation, layout, reason, "draw fewer elements, or project(axes) of the layout")
