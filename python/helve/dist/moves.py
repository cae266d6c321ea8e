"""The moves of a transfer between parts that are all in this process.

The core lists them, and runs them where the parts are in memory of the CPU; what is on other devices its library moves.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from helve import _core
from helve.dist import shards as arrays
from helve.dist.distribution import Distribution, dimension_names, of_axes


class Moves:
    """From parts of one distribution to parts of another, listed once.

    Args:
        source, destination: distributions of one tensor over one mesh.
        op: the operator that terms are reduced by.

    Raises:
        helve.Error: HV0413 as `helve.dist.redistribution`.
    """

    def __init__(self, source: Distribution, destination: Distribution, op: str | None):
        self._exchange = _core.LocalExchange(source._core, destination._core)
        self._op = op
        self._begun = begun(source, destination)

    def prepare(self, sources: list[Any], targets: list[Any], in_memory: bool) -> list[Callable[[], None]]:
        """Functions that write the targets, called one after the other, as often as wanted.

        Args:
            sources, targets: arrays by device, row-major in the mesh; None for a device without a part.
            in_memory: are all of them in memory of the CPU?

        Raises:
            helve.Error: HV0624 for a dtype that the core does not reduce; a target that is read-only (HV0610), or a
                tensor that requires grad outside of torch.no_grad() (HV0643). So do the functions.
        """
        if in_memory:
            out = [self._exchange.prepare(sources, targets)]
        else:
            out = [functools.partial(self._run_by_library, sources, targets)]
        return [*out, functools.partial(self._begin_terms, targets)] if self._begun else out

    def _run_by_library(self, sources: list[Any], targets: list[Any]) -> None:
        for extents, senders, receivers in self._exchange.moves:
            parts = [sources[device][_box(begin, extents)] for device, begin in senders]
            with arrays.without_gradients(parts[0]):
                whole = parts[0] if len(parts) == 1 else arrays.reduced(self._op, parts)
                for device, begin in receivers:
                    targets[device][_box(begin, extents)] = whole

    def _begin_terms(self, targets: list[Any]) -> None:
        for device, op in self._begun:
            with arrays.without_gradients(targets[device]):
                targets[device][...] = arrays.identity(op, targets[device].dtype)


def overlapping(sources: list[Any], targets: list[Any]) -> int | None:
    """The number of a target that shares memory with a source, another target or itself; all in memory of the CPU."""
    return _core.LocalExchange.overlap(sources, targets)


def on_first_device(distribution: Distribution) -> Distribution:
    """The same tensor, whole on the first device of the mesh."""
    return of_axes(["0"] * len(distribution.mesh.shape), [[] for _ in distribution.shape], distribution.shape,
                   distribution.mesh)


def everywhere(distribution: Distribution) -> Distribution:
    """The same tensor, whole on all devices of the mesh."""
    return of_axes(["*"] * len(distribution.mesh.shape), [[] for _ in distribution.shape], distribution.shape,
                   distribution.mesh)


def without_terms(distribution: Distribution) -> Distribution:
    """The same with data on coordinate 0 of the axes of terms alone."""
    mesh, names = distribution.mesh, dimension_names(len(distribution.shape))
    entries = ["*"] * len(mesh.shape)
    for axis, number in distribution.layout.offset.items():
        entries[mesh.names.index(axis.name)] = str(number)
    for axis in distribution.partial:
        entries[mesh.names.index(axis.name)] = "0"
    orders = [[mesh.names.index(axis.name) for axis in axes] for axes in distribution._core.cut]
    for name, order in zip(names, orders, strict=True):
        for a in order:
            entries[a] = name
    return of_axes(entries, orders, distribution.shape, mesh)


# Of terms of several operators, the identity that leaves the others' as they are: 0 in a sum and in a product.
_RANKS = ("max", "min", "prod", "sum")


def identities(distribution: Distribution, axes: Sequence[str]) -> list[tuple[int, str]]:
    """The devices, row-major in the mesh, that hold no value but the identity of an operator, where terms begin.

    Args:
        distribution: with terms over these axes.
        axes: over which coordinate 0 has the value.
    """
    mesh = distribution.mesh
    ops = {mesh.names.index(axis.name): op for axis, op in distribution.partial.items() if axis.name in axes}
    fixed = {mesh.names.index(axis.name): number for axis, number in distribution.layout.offset.items()}
    out = []
    for rank, device in enumerate(itertools.product(*map(range, mesh.shape)) if ops else ()):
        begun = [op for a, op in ops.items() if device[a] != 0]
        if begun and all(device[a] == number for a, number in fixed.items()):
            out.append((rank, max(begun, key=_RANKS.index)))
    return out


def begun(source: Distribution, destination: Distribution) -> list[tuple[int, str]]:
    """The devices, row-major in the mesh, that are to hold the identity of an operator where terms begin."""
    kept = {axis.name: op for axis, op in source.partial.items()}
    return identities(destination, [axis.name for axis, op in destination.partial.items() if kept.get(axis.name) != op])


def _box(begin: Sequence[int], extents: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(b, b + e) for b, e in zip(begin, extents, strict=True))
