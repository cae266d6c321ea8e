"""The grid of cores (or devices) that a program runs on.

A plain value: what a kernel is written for, what it is compiled for and where it runs name the same mesh.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

_DEVICES = ("host", "mpi", "cuda")


@dataclass(frozen=True)
class Mesh:
    """A grid of cores. Ranks are row-major; axis 0 runs over rows.

    Args:
        shape: extents, each 1 or more.
        names: one axis name a dimension; ("x", "y") cut to the number of dimensions by default.
        device: "host" (this process), "mpi" or "cuda".

    Raises:
        ValueError: an extent below 1, 2**31 cores or more, names that do not match the shape, or an unknown device.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...] = ("x", "y")
    device: str = "host"

    def __post_init__(self):
        try:
            shape = tuple(operator.index(extent) for extent in self.shape)
        except TypeError:
            reason = f"the shape of a mesh is a tuple of whole numbers, as in (2, 4); given {self.shape!r}"
            raise ValueError(reason) from None
        if not isinstance(self.names, (tuple, list)):
            raise ValueError(f"axis names are a tuple, as in (\"x\", \"y\"); given {self.names!r}")
        names = tuple(self.names)
        if names == ("x", "y") and len(shape) == 1:
            names = ("x",)
        if not shape or any(extent < 1 for extent in shape) or math.prod(shape) >= 2**31:
            raise ValueError(f"a mesh has one extent or more, each at least 1, and below 2**31 cores; given {shape}")
        if len(names) != len(shape) or len(set(names)) != len(names):
            raise ValueError(f"mesh {shape} needs {len(shape)} different axis names; given {names}")
        if not all(isinstance(name, str) and name.isidentifier() and name != "all" for name in names):
            raise ValueError(f"axis names are identifiers other than 'all'; given {names}")
        if self.device not in _DEVICES:
            raise ValueError(f"device is one of {', '.join(_DEVICES)}; given {self.device!r}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "names", names)

    @property
    def size(self) -> int:
        """The number of cores."""
        return math.prod(self.shape)
