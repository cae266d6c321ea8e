"""Tensors over a mesh of devices: an array of NumPy or PyTorch for the part of each device.

The steps of a redistribution run here as they are derived, box by box, so that programs and derivations can be tried
without a cluster.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from helve import source
from helve.dist import shards as arrays
from helve.dist.distribution import Distribution
from helve.dist.distribution import distribution as make_distribution
from helve.dist.dtensor import distribution_of_dtensor, make_dtensor
from helve.dist.redistribution import Redistribution, Step, redistribution
from helve.errors import Error, error

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


# Of terms of several operators, the identity that leaves the others' as they are: 0 in a sum and in a product.
_RANKS = ("max", "min", "prod", "sum")


class DistTensor:
    """A tensor of which each device of a mesh holds a part.

    Attributes:
        distribution: where the elements are.
        shards: {coordinate of a device: its array}; a device that holds nothing because the data is on another
            coordinate has none, nor has a device of another process.
    """

    def __init__(self, shards: Mapping[tuple[int, ...], Any], distribution: Distribution):
        self.shards = dict(shards)
        self.distribution = distribution

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the whole tensor."""
        return self.distribution.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements, as the library of the parts has it."""
        return next(iter(self.shards.values())).dtype

    @staticmethod
    def from_global(array: Any, distribution: Distribution) -> DistTensor:
        """The parts of an array of NumPy or a tensor of PyTorch, as copies on its device, of its library and dtype.

        Over an axis of terms, coordinate 0 holds the values.

        Raises:
            helve.LayoutError: an array of another shape, or none (HV0507).
        """
        _check_array(array)
        if tuple(array.shape) != distribution.shape:
            raise error("LayoutArgument", value=f"an array of shape {tuple(array.shape)}",
                        expected=f"array of shape {distribution.shape}", remedy="give the whole tensor")
        shards = {}
        with arrays.without_gradients(array):
            for device in itertools.product(*map(range, distribution.mesh.shape)):
                box = _box(distribution, device)
                if box is None:
                    continue
                shards[device] = arrays.make([b.stop - b.start for b in box], array)
                shards[device][...] = array[box]
                if begun := [op for axis, op in _terms(distribution) if device[axis] != 0]:
                    shards[device][...] = arrays.identity(max(begun, key=_RANKS.index), array.dtype)
        return DistTensor(shards, distribution)

    @staticmethod
    def from_local(shards: Mapping[tuple[int, ...], Any], distribution: Distribution) -> DistTensor:
        """A tensor of these parts, which are not copied.

        Args:
            shards: for each device that holds a part an array of NumPy, or a tensor of PyTorch on any device, of its
                `local_shape`; all of one library and dtype.
            distribution: where the parts belong.

        Raises:
            helve.LayoutError: a part that is missing, too many, or of another shape, library or dtype (HV0507).
        """
        dtypes = set()
        for device in itertools.product(*map(range, distribution.mesh.shape)):
            wanted = distribution.local_shape(device)
            given = shards.get(device)
            if given is not None:
                _check_array(given)
            if (given is None) != (wanted is None) or (wanted is not None and tuple(given.shape) != wanted):
                value = "nothing" if given is None else f"an array of shape {tuple(given.shape)}"
                expected = "part of a tensor" if wanted is None else f"part of shape {wanted}"
                raise error("LayoutArgument", value=f"{value} on device {device}", expected=expected,
                            remedy="give each device what Distribution.local_shape says")
            if given is not None:
                dtypes.add(given.dtype)
        if len(dtypes) > 1 or len(shards) > math.prod(distribution.mesh.shape):
            raise error("LayoutArgument", value="parts of " + ", ".join(sorted(map(str, dtypes))),
                        expected="tensor of one dtype over the mesh",
                        remedy="convert the parts to one dtype of one library")
        return DistTensor(shards, distribution)

    @staticmethod
    def from_dtensor(dtensor: DTensor) -> DistTensor:
        """A tensor of PyTorch's that is distributed over processes. Its local tensor is shared, not copied.

        `shards` has the part of this process alone. The mesh has the names of the DeviceMesh; without names "x", "y",
        and for more than two dimensions "x0", "x1" and so on.

        Args:
            dtensor: a torch.distributed.tensor.DTensor with placements Replicate, Shard, _StridedShard, and Partial of
                a sum, product, maximum or minimum.

        Raises:
            helve.Error: HV0414 for a dimension that PyTorch cuts into other parts than helve: ceil(extent / devices)
                over all axes that cut it; HV0415 for what is no DTensor or has no counterpart.
            helve.LayoutError: a local tensor of another shape than its placements say (HV0507).
        """
        distribution, device = distribution_of_dtensor(dtensor)
        local = dtensor.to_local()
        if hasattr(local, "wait"):  # an AsyncCollectiveTensor
            local = local.wait()
        _check_array(local)
        if tuple(local.shape) != distribution.local_shape(device):
            raise error("LayoutArgument", value=f"a local tensor of shape {tuple(local.shape)} on device {device}",
                        expected=f"part of shape {distribution.local_shape(device)}",
                        remedy="give DTensor.from_local the shape and the placements of the whole tensor")
        return DistTensor({device: local}, distribution)

    def to_dtensor(self, mesh: DeviceMesh) -> DTensor:
        """This tensor as one of PyTorch's, which shares the part of this process.

        Args:
            mesh: a torch.distributed.device_mesh.DeviceMesh of the extents of the tensor's mesh.

        Raises:
            helve.Error: HV0414 for a dimension that PyTorch would cut into other parts; HV0415 for a distribution
                without placements, another mesh, or parts that are no tensors of PyTorch; HV0416 where the part of
                this process is not here.
        """
        distribution = self.distribution
        for part in itertools.islice(self.shards.values(), 1):
            if not arrays.is_torch(part):
                raise error("DTensorForm", _place(), what="a tensor of NumPy's arrays",
                            reason="DTensor has tensors of PyTorch", remedy="make the parts by torch.from_numpy")
        coordinate = getattr(mesh, "get_coordinate", lambda: None)()
        local = None if coordinate is None else self.shards.get(tuple(coordinate))
        if coordinate is not None and tuple(mesh.shape) == distribution.mesh.shape and local is None:
            if distribution.local_shape(coordinate) is not None:
                raise error("ShardsElsewhere", _place(), missing=1, parts=1,
                            remedy=f"call it where the part of device {tuple(coordinate)} is")
        return make_dtensor(local, distribution, mesh)

    def gather(self) -> Any:
        """The whole tensor, terms reduced, on the device of the first part.

        Raises:
            helve.Error: as `redistribute`.
        """
        whole = self.redistribute(_everywhere(self.distribution))
        return whole.shards[(0,) * len(self.distribution.mesh.shape)]

    def plan(self, destination: Distribution, **network: float) -> Redistribution:
        """The steps of `redistribute`. Arguments and errors as for `helve.dist.redistribution`."""
        return redistribution(self.distribution, destination, arrays.item_bytes(next(iter(self.shards.values()))),
                              **network)

    def redistribute(self, destination: Distribution, **network: float) -> DistTensor:
        """The tensor, distributed otherwise. Terms are reduced in the order of the devices that hold them.

        Parts of floats of 16 bits and less are reduced in float32 and rounded once. New parts are on the device of the
        old part with the same coordinate, or of the first part; they have no gradients.

        Args:
            destination: a distribution of the tensor over its mesh.
            network: latency and bandwidth, by which steps are chosen; see `helve.dist.redistribution`.

        Raises:
            helve.Error: as `helve.dist.redistribution`; HV0416 where parts are in other processes.
        """
        self._check_present()
        shards = self.shards
        for step in self.plan(destination, **network).steps:
            shards = _run(step, shards)
        return DistTensor(shards, destination)

    def _check_present(self) -> None:
        """Raises HV0416 unless all parts are in this process."""
        holders = math.prod(self.distribution.mesh.shape[a] for a, name in enumerate(self.distribution.mesh.names)
                            if all(axis.name != name for axis in self.distribution.layout.offset))
        if len(self.shards) != holders:
            raise error("ShardsElsewhere", _place(), missing=holders - len(self.shards), parts=holders,
                        remedy="redistribute in the process that holds all parts, or a DTensor by PyTorch: "
                        "tensor.to_dtensor(mesh).redistribute(placements=...)")


def _place() -> Any:
    return source.span_of_call(source.outside(sys._getframe(1))[0])


def _check_array(value: object) -> None:
    fault = arrays.fault_of(value)
    if fault is not None:
        raise _no_part(*fault)


def _no_part(given: str, remedy: str) -> Error:
    return error("LayoutArgument", value=given, expected="array of numbers in memory", remedy=remedy)


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


def _run(step: Step, shards: Mapping[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    """What the devices hold after a step."""
    out = {}
    first_shard = next(iter(shards.values()))
    kept = step.source.partial
    begun = [(axis, op) for axis, op in _terms(step.destination)
             if kept.get(next(a for a in step.destination.partial if a.name == step.source.mesh.names[axis])) != op]
    with arrays.without_gradients(first_shard):
        for device in itertools.product(*map(range, step.source.mesh.shape)):
            begin, extents = step.destination.local_begin(device), step.destination.local_shape(device)
            if begin is None or extents is None:
                continue
            mine = arrays.make(extents, shards.get(device, first_shard))
            for axis, op in begun:
                if device[axis] != 0:
                    mine[...] = arrays.identity(op, mine.dtype)
            for first, pieces in itertools.groupby(step.received(device), key=lambda piece: piece[1]):
                parts = []
                for sender, _, size in pieces:
                    theirs = step.source.local_begin(sender) or ()
                    parts.append(shards[sender][_slices(first, theirs, size)])
                target = mine[_slices(first, begin, size)]
                if len(parts) > 1:
                    arrays.reduce_into(target, step.op, parts)
                else:
                    target[...] = parts[0]
            out[device] = mine
    return out


def _slices(first: tuple[int, ...], begin: tuple[int, ...], extents: tuple[int, ...]) -> tuple[slice, ...]:
    """The box of a tensor in the part that begins there."""
    return tuple(slice(f - b, f - b + n) for f, b, n in zip(first, begin, extents, strict=True))
