"""Tensors over a mesh in one process: a NumPy array for each device.

The steps of a redistribution run here as they are derived, box by box, so that programs and derivations can be tried
without a cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from helve.dist.distribution import Distribution
from helve.dist.distribution import distribution as make_distribution
from helve.dist.redistribution import Redistribution, Step, redistribution
from helve.errors import error

REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _identity(op: str, dtype: np.dtype) -> object:
    """Of a reduction: what changes no value."""
    if op in ("sum", "prod"):
        return int(op == "prod")
    lowest = op == "max"
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return not lowest
    return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max


class DistTensor:
    """A tensor of which each device of a mesh holds a part.

    Attributes:
        distribution: where the elements are.
        shards: {coordinate of a device: its array}; a device that holds nothing because the data is on another
            coordinate has none.
    """

    def __init__(self, shards: Mapping[tuple[int, ...], np.ndarray], distribution: Distribution):
        self.shards = dict(shards)
        self.distribution = distribution

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the whole tensor."""
        return self.distribution.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return next(iter(self.shards.values())).dtype

    @staticmethod
    def from_global(array: np.ndarray, distribution: Distribution) -> DistTensor:
        """The parts of an array, as copies. Over an axis of terms, coordinate 0 holds the values.

        Raises:
            helve.LayoutError: an array of another shape, or none (HV0507).
        """
        if not isinstance(array, np.ndarray) or array.shape != distribution.shape:
            raise error("LayoutArgument", value=f"an array of shape {getattr(array, 'shape', None)}",
                        expected=f"array of shape {distribution.shape}", remedy="give the whole tensor")
        shards = {}
        for device in itertools.product(*map(range, distribution.mesh.shape)):
            box = _box(distribution, device)
            if box is None:
                continue
            shards[device] = array[box].copy()
            for axis, op in _terms(distribution):
                if device[axis] != 0:
                    shards[device][...] = _identity(op, array.dtype)
        return DistTensor(shards, distribution)

    @staticmethod
    def from_local(shards: Mapping[tuple[int, ...], np.ndarray], distribution: Distribution) -> DistTensor:
        """A tensor of these parts, which are not copied.

        Args:
            shards: an array for each device that holds a part, of its `local_shape`, all of one dtype.
            distribution: where the parts belong.

        Raises:
            helve.LayoutError: a part that is missing, too many, or of another shape or dtype (HV0507).
        """
        dtypes = set()
        for device in itertools.product(*map(range, distribution.mesh.shape)):
            wanted = distribution.local_shape(device)
            given = shards.get(device)
            if (given is None) != (wanted is None) or (wanted is not None and given.shape != wanted):
                value = "nothing" if given is None else f"an array of shape {given.shape}"
                expected = "part of a tensor" if wanted is None else f"part of shape {wanted}"
                raise error("LayoutArgument", value=f"{value} on device {device}", expected=expected,
                            remedy="give each device what Distribution.local_shape says")
            if given is not None:
                dtypes.add(given.dtype)
        if len(dtypes) > 1 or len(shards) > int(np.prod(distribution.mesh.shape)):
            raise error("LayoutArgument", value="parts of " + ", ".join(sorted(map(str, dtypes))),
                        expected="tensor of one dtype over the mesh", remedy="convert the parts to one dtype")
        return DistTensor(shards, distribution)

    def gather(self) -> np.ndarray:
        """The whole tensor, terms reduced."""
        whole = self.redistribute(_everywhere(self.distribution))
        return whole.shards[(0,) * len(self.distribution.mesh.shape)]

    def plan(self, destination: Distribution, **network: float) -> Redistribution:
        """The steps of `redistribute`. Arguments and errors as for `helve.dist.redistribution`."""
        return redistribution(self.distribution, destination, self.dtype.itemsize, **network)

    def redistribute(self, destination: Distribution, **network: float) -> DistTensor:
        """The tensor, distributed otherwise. Terms are reduced in the order of the devices that hold them.

        Args:
            destination: a distribution of the tensor over its mesh.
            network: latency and bandwidth, by which steps are chosen; see `helve.dist.redistribution`.

        Raises:
            helve.Error: as `helve.dist.redistribution`.
        """
        shards = self.shards
        for step in self.plan(destination, **network).steps:
            shards = _run(step, shards, self.dtype)
        return DistTensor(shards, destination)


def _terms(distribution: Distribution) -> list[tuple[int, str]]:
    return [(distribution.mesh.names.index(axis.name), op) for axis, op in distribution.partial.items()]


def _box(distribution: Distribution, device: tuple[int, ...]) -> tuple[slice, ...] | None:
    begin, extents = distribution.local_begin(device), distribution.local_shape(device)
    if begin is None or extents is None:
        return None
    return tuple(slice(b, b + e) for b, e in zip(begin, extents, strict=True))


def _everywhere(distribution: Distribution) -> Distribution:
    names = [f"d{k}" for k in range(len(distribution.shape))] if len(distribution.shape) > 1 else ["i"]
    left = " ".join(names[: len(distribution.shape)])
    return make_distribution(f"{left} -> " + " ".join("*" for _ in distribution.mesh.shape), distribution.shape,
                             distribution.mesh)


def _run(step: Step, shards: Mapping[tuple[int, ...], np.ndarray],
         dtype: np.dtype) -> dict[tuple[int, ...], np.ndarray]:
    """What the devices hold after a step."""
    out = {}
    kept = step.source.partial
    begun = [(axis, op) for axis, op in _terms(step.destination)
             if kept.get(next(a for a in step.destination.partial if a.name == step.source.mesh.names[axis])) != op]
    for device in itertools.product(*map(range, step.source.mesh.shape)):
        begin, extents = step.destination.local_begin(device), step.destination.local_shape(device)
        if begin is None or extents is None:
            continue
        mine = np.empty(extents, dtype)
        for axis, op in begun:
            if device[axis] != 0:
                mine[...] = _identity(op, dtype)
        filled = set()
        for sender, first, size in step.received(device):
            theirs = step.source.local_begin(sender) or ()
            source = shards[sender][tuple(slice(f - t, f - t + n) for f, t, n in zip(first, theirs, size, strict=True))]
            target = tuple(slice(f - b, f - b + n) for f, b, n in zip(first, begin, size, strict=True))
            if first in filled and step.op is not None:
                REDUCTIONS[step.op](mine[target], source, out=mine[target])
            else:
                mine[target] = source
                filled.add(first)
        out[device] = mine
    return out
