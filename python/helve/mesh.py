"""The grid of cores (or devices) that a program runs on.

A plain value: what a kernel is written for, what it is compiled for and where it runs name the same mesh.
"""

from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass

from helve import source
from helve.errors import error

_DEVICES = ("host", "mpi", "cuda")
_CORES_LIMIT = 2**31


@dataclass(frozen=True)
class Mesh:
    """A grid of cores. Ranks are row-major; axis 0 runs over rows.

    Args:
        shape: extents, each 1 or more.
        names: one axis name a dimension; ("x", "y") cut to the number of dimensions by default.
        device: "host" (this process), "mpi" (a process for each core, on CPUs) or "cuda" (a process with a GPU for each
            device).

    Raises:
        helve.Error: HV0412 for an extent below 1, 2**31 cores or more, names that do not match the shape, or an unknown
            device.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...] = ("x", "y")
    device: str = "host"

    def __post_init__(self):
        fault = _fault(self)
        if fault is not None:
            part, reason = fault
            place = source.span_of_call(sys._getframe(2))  # above the dataclass's own __init__
            raise error("MeshForm", place, part=part, value=repr(getattr(self, part)), reason=reason)
        object.__setattr__(self, "shape", tuple(operator.index(extent) for extent in self.shape))
        object.__setattr__(self, "names", _names(self.names, len(self.shape)))

    @property
    def size(self) -> int:
        """The number of cores."""
        return math.prod(self.shape)


def _names(names: tuple | list, rank: int) -> tuple:
    """The names as given; the default is cut for a mesh of one dimension."""
    return ("x",) if tuple(names) == ("x", "y") and rank == 1 else tuple(names)


def _fault(mesh: Mesh) -> tuple[str, str] | None:
    """The part of a mesh that cannot be, and why."""
    try:
        shape = tuple(operator.index(extent) for extent in mesh.shape)
    except TypeError:
        return "shape", "it is no tuple of whole numbers"
    if not shape:
        return "shape", "it has no extent"
    if any(extent < 1 for extent in shape):
        return "shape", "an extent is below 1"
    if math.prod(shape) >= _CORES_LIMIT:
        return "shape", "that is 2**31 cores or more"
    if not isinstance(mesh.names, (tuple, list)):
        return "names", "it is no tuple of names"
    names = _names(mesh.names, len(shape))
    if len(names) != len(shape):
        return "names", f"shape {shape} needs {len(shape)}"
    if not all(isinstance(name, str) and name.isidentifier() and name != "all" for name in names):
        return "names", "axis names are identifiers other than 'all'"
    if len(set(names)) != len(names):
        return "names", "two are equal"
    if mesh.device not in _DEVICES:
        return "device", f"devices are {', '.join(_DEVICES)}"
    return None
