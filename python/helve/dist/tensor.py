"""Tensors over a mesh of devices: an array of NumPy or PyTorch for the part of each device.

The steps of a redistribution run as they are derived: in this process for a mesh of device "host", so that programs can
be tried without a cluster, and between processes for one of device "mpi" or "cuda". The core moves the boxes.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from helve import _core, source
from helve.arrays import is_on_cuda
from helve.dist import own_part
from helve.dist import shards as arrays
from helve.dist.distribution import Distribution
from helve.dist.dtensor import distribution_of_dtensor, make_dtensor
from helve.dist.moves import Moves, everywhere, identities, on_first_device, overlapping, without_terms
from helve.dist.own_part import lies_on_gpus, lies_on_processes
from helve.dist.processes import device_of, world_of
from helve.dist.redistribution import Redistribution, redistribution
from helve.errors import Error, error

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


class DistTensor:
    """A tensor of which each device of a mesh holds a part.

    Attributes:
        distribution: where the elements are.
        shards: {coordinate of a device: its array}; a device that holds nothing because the data is on another
            coordinate has none, nor has a device of another process. Which arrays they are cannot be changed.
    """

    def __init__(self, shards: Mapping[tuple[int, ...], Any], distribution: Distribution, like: Any = None):
        self.shards: Mapping[tuple[int, ...], Any] = MappingProxyType(dict(shards))
        self.distribution = distribution
        # An array of the library and the dtype of all parts: a process may hold none of them.
        self._like = next(iter(self.shards.values()), like)

    def __reduce__(self):
        return DistTensor, (dict(self.shards), self.distribution, None if self.shards else self._like)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the whole tensor."""
        return self.distribution.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements, as the library of the parts has it."""
        return self._like.dtype

    @staticmethod
    def from_global(array: Any, distribution: Distribution) -> DistTensor:
        """The parts of an array of NumPy or a tensor of PyTorch, as copies on its device, of its library and dtype.

        Over an axis of terms, coordinate 0 holds the values. Where devices are processes, each gives the whole tensor
        and takes its own part; nothing is communicated.

        Raises:
            helve.LayoutError: an array of another shape, or none (HV0507).
        """
        _check_array(array, distribution)
        if tuple(array.shape) != distribution.shape:
            raise error("LayoutArgument", value=f"an array of shape {tuple(array.shape)}",
                        expected=f"array of shape {distribution.shape}", remedy="give the whole tensor")
        if lies_on_processes(distribution):
            _check_place(array, distribution)
            return _of_own(own_part.of_whole(array, distribution), distribution, arrays.make((0,), array))
        first, held = on_first_device(distribution), without_terms(distribution)
        parts = _new_parts(distribution, [array])
        taking = [None if held.local_shape(device) is None else part
                  for device, part in zip(_devices(distribution), parts, strict=True)]
        _call(Moves(first, held, None).prepare([array] + [None] * (len(parts) - 1), taking, arrays.is_in_memory(array)))
        for rank, op in identities(distribution, distribution.mesh.names):
            parts[rank][...] = arrays.identity(op, array.dtype)
        return _of_parts(parts, distribution)

    @staticmethod
    def from_local(shards: Mapping[tuple[int, ...], Any] | Any, distribution: Distribution) -> DistTensor:
        """A tensor of these parts, which are not copied.

        Args:
            shards: for each device that holds a part an array of NumPy, or a tensor of PyTorch on any device, of its
                `local_shape`; all of one library and dtype. Where devices are processes, the array of this one, or
                None where it holds nothing; all processes call this together. It is in memory of the CPU for a mesh of
                device "mpi", and on the GPU of the process for one of device "cuda": a tensor of PyTorch, or an array
                of another library that has DLPack, CuPy for example.
            distribution: where the parts belong.

        Raises:
            helve.LayoutError: a part that is missing, too many, or of another shape, library or dtype (HV0507).
            helve.Error: HV0418 to HV0423 where devices are processes.
        """
        if lies_on_processes(distribution):
            device, fault = device_of(distribution.mesh), None
            part = shards.get(device) if isinstance(shards, Mapping) else shards
            try:
                _check_part(part, device, distribution)
                if part is not None:
                    _check_place(part, distribution)
            except Error as found:
                fault = found
            return _of_own(part, distribution, own_part.agree_on_parts(part, distribution, fault))
        dtypes = set()
        for device in _devices(distribution):
            given = shards.get(device)
            _check_part(given, device, distribution)
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
                raise self._elsewhere(f"call it where the part of device {tuple(coordinate)} is")
        return make_dtensor(local, distribution, mesh)

    def gather(self) -> Any:
        """The whole tensor, terms reduced, on the device of the first part; on all processes if devices are processes.

        Raises:
            helve.Error: HV0416 where parts are in other processes, HV0413 for terms of two operators; HV0418 to HV0423
                where devices are processes.
        """
        self._check_present()
        if lies_on_processes(self.distribution):
            return next(iter(self.redistribute(everywhere(self.distribution)).shards.values()))
        whole = on_first_device(self.distribution)
        moves = Moves(self.distribution, whole, next(iter(self.distribution.partial.values()), None))
        parts = _new_parts(whole, self._parts)
        _call(moves.prepare(self._parts, parts, self._in_memory))
        return parts[0]

    def plan(self, destination: Distribution, **network: float) -> Redistribution:
        """The steps of `redistribute`. Arguments and errors as for `helve.dist.redistribution`."""
        return redistribution(self.distribution, destination, arrays.item_bytes(self._like), **network)

    def redistribute(self, destination: Distribution, **network: float) -> DistTensor:
        """The tensor, distributed otherwise. Terms are reduced in the order of the devices that hold them.

        Parts of floats of 16 bits and less are reduced in float32 and rounded once. New parts are on the device of the
        old part with the same coordinate, or of the first part; they have no gradients.

        Args:
            destination: a distribution of the tensor over its mesh.
            network: latency and bandwidth, by which steps are chosen; see `helve.dist.redistribution`.

        Raises:
            helve.Error: as `helve.dist.redistribution`; HV0416 where parts are in processes that are no devices of
                the mesh; HV0418 to HV0423 where they are.
        """
        return self.prepare(self.plan(destination, **network))()

    def prepare(self, plan: Redistribution, out: DistTensor | None = None) -> PreparedRun:
        """The steps of a plan as a function without arguments, which may be called often: on all processes, if devices
        are processes.

        Args:
            plan: from this tensor's distribution.
            out: whose parts are written instead of new ones; of the plan's destination, and of the library and dtype of
                this tensor.

        Raises:
            helve.LayoutError: a plan from another distribution, an `out` that does not fit, or whose parts share memory
                with those of this tensor or each other (HV0507).
            helve.Error: HV0416 where parts are in other processes; HV0624 for a dtype without that reduction; HV0610,
                HV0643 for parts of `out` that cannot be written.
        """
        self._check_present()
        if not isinstance(plan, Redistribution) or plan.source != self.distribution:
            raise error("LayoutArgument", _place(), value=_briefly(plan),
                        expected=f"redistribution from '{self.distribution}'",
                        remedy="make it by tensor.plan(destination)")
        if out is not None:
            self._check_out(plan, out)
        elif not plan.steps:
            return PreparedRun([], DistTensor(self.shards, plan.destination, self._like))
        if lies_on_processes(self.distribution):
            device = device_of(self.distribution.mesh)
            call, part = own_part.prepare(plan, self.shards.get(device), self._like,
                                          None if out is None else out.shards.get(device))
            return PreparedRun([call], _of_own(part, plan.destination, self._like) if out is None else out)
        steps = [(step.moves, step.destination) for step in plan.steps]
        steps = steps or [(Moves(plan.source, plan.destination, None), plan.destination)]
        parts, calls = self._parts, []
        for k, (moves, destination) in enumerate(steps):
            is_last = k + 1 == len(steps)
            target = out._parts if is_last and out is not None else _new_parts(destination, parts)
            calls += moves.prepare(parts, target, self._in_memory)
            parts = target
        return PreparedRun(calls, out if out is not None else _of_parts(parts, plan.destination))

    @cached_property
    def _parts(self) -> list[Any]:
        """By device, row-major in the mesh; None where there is none."""
        return [self.shards.get(device) for device in _devices(self.distribution)]

    @cached_property
    def _in_memory(self) -> bool:
        return not lies_on_gpus(self.distribution) and all(map(arrays.is_in_memory, self.shards.values()))

    def _check_out(self, plan: Redistribution, out: object) -> None:
        """Raises HV0507 unless the parts of `out` can hold the result."""
        if not isinstance(out, DistTensor) or (out.distribution is not plan.destination
                                               and out.distribution != plan.destination):
            raise error("LayoutArgument", _place(), value=_briefly(out),
                        expected=f"tensor distributed as '{plan.destination}'",
                        remedy="make it by DistTensor.from_local, or leave out= out")
        out._check_present()
        if out.dtype != self.dtype or out._in_memory != self._in_memory:
            raise error("LayoutArgument", _place(), value=f"an out of dtype {out.dtype}",
                        expected=f"place for parts of dtype {self.dtype}",
                        remedy="make it of the library, the dtype and the kind of device of the tensor")
        shared = overlapping(self._parts, out._parts) if self._in_memory else None
        if lies_on_gpus(self.distribution):
            rank = next((rank for rank, part in enumerate(out._parts) if part is not None), 0)
            mine = next(iter(self.shards.values()), None)
            shared = rank if _core.device_parts_overlap(mine, out._parts[rank]) else None
        if shared is not None:
            device = next(itertools.islice(_devices(self.distribution), shared, None))
            raise error("LayoutArgument", _place(),
                        value=f"memory that is shared by the part of {device} and another one",
                        expected="place for a result", remedy="allocate the parts of out anew")

    def _check_present(self) -> None:
        """Raises HV0416 unless all parts are in this process, or it is a device of the mesh and has its own."""
        if lies_on_processes(self.distribution):
            device = device_of(self.distribution.mesh)
            if (device in self.shards) != (self.distribution.local_shape(device) is not None):
                raise self._elsewhere("make the tensor anew on this process, by DistTensor.from_local")
        elif len(self.shards) != self._holders():
            raise self._elsewhere("redistribute in the process that holds all parts, or a DTensor by PyTorch: "
                                  "tensor.to_dtensor(mesh).redistribute(placements=...)")

    def _holders(self) -> int:
        """How many devices hold a part."""
        fixed = {axis.name for axis in self.distribution.layout.offset}
        mesh = self.distribution.mesh
        return math.prod(extent for extent, name in zip(mesh.shape, mesh.names, strict=True) if name not in fixed)

    def _elsewhere(self, remedy: str) -> Error:
        return error("ShardsElsewhere", _place(), missing=self._holders() - len(self.shards), parts=self._holders(),
                     remedy=remedy)


class PreparedRun:
    """The moves of a redistribution between parts that exist. A call runs them.

    Attributes:
        out: the tensor whose parts a call writes.
    """

    def __init__(self, calls: Sequence[Callable[[], None]], out: DistTensor):
        self._calls = tuple(calls)
        self.out = out

    def __call__(self) -> DistTensor:
        """Runs the moves on what the parts hold now.

        Returns:
            `out`.

        Raises:
            helve.LayoutError: an array has other memory or extents than when it was prepared (HV0507).
            helve.Error: HV0610, HV0643 for parts that cannot be written any more.
        """
        _call(self._calls)
        return self.out


def _call(functions: Iterable[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _place() -> Any:
    return source.span_of_call(source.outside(sys._getframe(1))[0])


def _check_array(value: object, distribution: Distribution | None = None) -> None:
    fault = arrays.fault_of(value, distribution is not None and lies_on_gpus(distribution))
    if fault is not None:
        raise _no_part(*fault)


def _check_part(part: Any, device: Sequence[int], distribution: Distribution) -> None:
    """Raises HV0507 unless the device is to hold such a part."""
    wanted = distribution.local_shape(device)
    if part is not None:
        _check_array(part, distribution)
    if (part is None) != (wanted is None) or (wanted is not None and tuple(part.shape) != wanted):
        value = "nothing" if part is None else f"an array of shape {tuple(part.shape)}"
        expected = "part of a tensor" if wanted is None else f"part of shape {wanted}"
        raise error("LayoutArgument", value=f"{value} on device {device}", expected=expected,
                    remedy="give each device what Distribution.local_shape says")


def _check_place(part: Any, distribution: Distribution) -> None:
    """Raises HV0507 for a part that is not where those of the mesh are, HV0429 for one on another GPU."""
    device = distribution.mesh.device
    if lies_on_gpus(distribution) and is_on_cuda(part):
        world_of(part)
    elif lies_on_gpus(distribution) or not arrays.is_in_memory(part):
        raise error("LayoutArgument", value=f"a tensor on {getattr(part, 'device', 'cpu')}",
                    expected=f'part of a tensor over processes of device "{device}"',
                    remedy="pass tensor.cuda()" if device == "cuda" else
                    'pass tensor.cpu(), or give the mesh device="cuda"')


def _of_own(part: Any, distribution: Distribution, like: Any) -> DistTensor:
    """The tensor of which this process holds the part."""
    return DistTensor({} if part is None else {device_of(distribution.mesh): part}, distribution, like)


def _no_part(given: str, remedy: str) -> Error:
    return error("LayoutArgument", value=given, expected="array of numbers in memory", remedy=remedy)


def _briefly(value: object) -> str:
    text = "one from '" + str(value.source) + "'" if isinstance(value, Redistribution) else f"a {type(value).__name__}"
    return f"one distributed as '{value.distribution}'" if isinstance(value, DistTensor) else text


def _devices(distribution: Distribution) -> itertools.product:
    return itertools.product(*map(range, distribution.mesh.shape))


def _new_parts(distribution: Distribution, like: Sequence[Any]) -> list[Any]:
    """New arrays by device, None where one holds nothing; each as the old one of the device, or as the first one."""
    first = next(part for part in like if part is not None)
    out = []
    for rank, device in enumerate(_devices(distribution)):
        extents = distribution.local_shape(device)
        old = like[rank] if rank < len(like) else None
        out.append(None if extents is None else arrays.make(extents, first if old is None else old))
    return out


def _of_parts(parts: Sequence[Any], distribution: Distribution) -> DistTensor:
    return DistTensor({device: part for device, part in zip(_devices(distribution), parts, strict=True)
                       if part is not None}, distribution)
