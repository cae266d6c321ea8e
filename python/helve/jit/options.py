"""What the kernels of one `helve.jit` are compiled with.

The options are checked where they are written, before there is a function to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helve.mesh import Mesh
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, check_options, check_target, compile, mesh_shape  # noqa: A004 - helve's


@dataclass(frozen=True)
class JitOptions:
    """The arguments of `helve.compile`, beside the function.

    Raises:
        helve.Error: one that `helve.compile` would refuse for any function.
    """

    target: str | None
    mesh: Mesh | None
    out: str | int | Sequence[str | int] | None
    others: dict[str, Any]

    def __post_init__(self) -> None:
        check_options(self.others)
        if self.target is not None:
            check_target(self.target)
        mesh_shape(self.mesh)

    def compile(self, func: PrimFunc, target: str) -> Kernel:
        """The function compiled for the target."""
        return compile(func, target, self.mesh, out=self.out, **self.others)
