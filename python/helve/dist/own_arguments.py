"""Arguments of kernels on a mesh of processes: of a distributed tensor, the part of this process.

A tensor whose distribution is another one is refused, not redistributed: what that costs is the program's to decide.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from helve import _core
from helve.dist.distribution import Distribution, dimension_names, of_axes
from helve.dist.moves import everywhere
from helve.dist.processes import device_of, group_of
from helve.dist.tensor import DistTensor
from helve.errors import Error, error
from helve.mesh import Mesh


class OwnArguments:
    """What a call gives to the core that this process is.

    Args:
        function: a mesh function.
        mesh: of device "mpi" or "cuda", of the extents of the function's own.
        options: it was compiled with.
    """

    def __init__(self, function: _core.Function, mesh: Mesh, options: dict[str, Any]):
        self._name = function.name
        self._mesh = mesh
        placed = {each.buffer: each for each in function.mesh_tensors}
        self._wanted = [(param.name, _distribution(placed[param], function, mesh) if param in placed else None)
                        for param in function.params]
        self._text: str | None = f"{_core.print(function)}{sorted(options.items())}"

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of this process.

        Raises:
            helve.Error: HV0425 for a tensor of another distribution, or for none; at the first call HV0419 to HV0423
                where another process calls another function.
        """
        if self._text is None:
            return self._all(args)
        group, what = group_of(self._mesh), f"the kernel '{self._name}'"
        try:
            out = self._all(args)
        except Error:
            with contextlib.suppress(Error):
                group.begin(what, self._text, refuses=True)
            raise
        group.begin(what, self._text)
        self._text = None
        return out

    def _all(self, args: Sequence[Any]) -> list[Any]:
        out = [self._own(value, *wanted) for value, wanted in zip(args, self._wanted)]
        return [*out, *args[len(out):]]

    def _own(self, value: Any, name: str, of_shape: Callable[[tuple[int, ...]], Distribution] | None) -> Any:
        shape = tuple(getattr(value, "shape", ()))
        wanted = None if of_shape is None else of_shape(shape)
        if isinstance(value, DistTensor):
            wanted = wanted or everywhere(value.distribution)
            given = value.distribution
            if given != wanted or given.mesh != self._mesh:
                raise self._error(name, f"'{given}' of {given.shape} over {given.mesh}", wanted,
                                  "pass tensor.redistribute("
                                  f"helve.dist.distribution('{wanted}', {wanted.shape}, mesh))")
            return value.shards.get(device_of(self._mesh))
        if wanted is not None:
            raise self._error(name, f"a {type(value).__name__} of shape {shape}", wanted,
                              "make it by DistTensor.from_local(part, distribution), with helve.dist.distribution("
                              f"'{wanted}', {wanted.shape}, mesh)")
        return value

    def _error(self, name: str, given: str, wanted: Distribution, remedy: str) -> Error:
        return error("ArgumentDistribution", parameter=name, given=given, function=self._name,
                     expected=f"as '{wanted}' of {wanted.shape} over {self._mesh}", remedy=remedy)


def _distribution(placed: _core.MeshTensor, function: _core.Function,
                  mesh: Mesh) -> Callable[[tuple[int, ...]], Distribution]:
    """That of an annotated parameter, by the shape of an argument, which decides about dynamic extents."""
    extents = placed.buffer.shape
    axes, names = list(function.mesh.names), dimension_names(len(extents))
    entries, orders = ["*"] * len(axes), [[] for _ in extents]
    for axis, dim in placed.sharding:
        entries[axes.index(axis)] = names[dim]
        orders[dim].append(axes.index(axis))

    @functools.lru_cache(maxsize=64)
    def of_shape(given: tuple[int, ...]) -> Distribution:
        given = given if len(given) == len(extents) else (1,) * len(extents)
        shape = [e.value if isinstance(e, _core.IntImm) else g for e, g in zip(extents, given, strict=True)]
        return of_axes(entries, orders, tuple(shape), mesh)

    return of_shape
