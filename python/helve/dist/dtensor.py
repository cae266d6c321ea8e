"""PyTorch's distributed tensors as distributions, and back.

A placement of DTensor is what one axis of a mesh does, so that the two forms differ in one thing: PyTorch cuts a
dimension again at each axis, helve once over all of them. Where that gives other parts, the conversion is refused.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from helve import source
from helve.dist.distribution import Distribution, dimension_names, of_axes
from helve.errors import Error, error
from helve.mesh import Mesh

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Placement

_OPERATORS = {"sum": "sum", "product": "prod", "max": "max", "min": "min"}  # PyTorch's, and those of helve
_SHOWN = 16  # parts of a dimension that a refusal lists


def distribution_of_dtensor(dtensor: DTensor) -> tuple[Distribution, tuple[int, ...]]:
    """Where the elements of a DTensor are, and the coordinate of this process in its mesh.

    Raises:
        helve.Error: HV0414 for a dimension that helve would cut otherwise, HV0415 for what has no counterpart.
    """
    if not _is_dtensor(dtensor):
        raise _refusal("the argument", f"it is a {type(dtensor).__name__}",
                       "pass a torch.distributed.tensor.DTensor; DistTensor.from_local takes other tensors")
    device_mesh = dtensor.device_mesh
    mesh = _mesh_of(device_mesh)
    coordinate = device_mesh.get_coordinate()
    if coordinate is None:
        raise _refusal("a DTensor", "this process is not in its mesh", "call it on the processes of the mesh")
    shape = tuple(dtensor.shape)
    entries = []
    for placement in dtensor.placements:
        if placement.is_replicate():
            entries.append("*")
        elif placement.is_partial():
            entries.append(_operator(placement))
        else:
            entries.append(_dimension(placement, shape))
    orders = _orders(dtensor, shape)
    for dim, order in enumerate(orders):
        _check_cut(dim, shape[dim], [mesh.names[a] for a in order], [mesh.shape[a] for a in order],
                   in_order=order == sorted(order))
    return of_axes(entries, orders, shape, mesh), tuple(coordinate)


def placements_of(distribution: Distribution, device_mesh: DeviceMesh) -> tuple[Placement, ...]:
    """The placements of a DTensor that is distributed so.

    Raises:
        helve.Error: HV0414 for a dimension that PyTorch would cut otherwise, HV0415 for what has no counterpart.
    """
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Partial, Replicate, Shard

    mesh = distribution.mesh
    if not isinstance(device_mesh, DeviceMesh):
        raise _refusal("the mesh", f"it is a {type(device_mesh).__name__}",
                       "pass a torch.distributed.device_mesh.DeviceMesh")
    if tuple(device_mesh.shape) != mesh.shape:
        raise _refusal("the mesh", f"it is {tuple(device_mesh.shape)}, that of the tensor {mesh.shape}",
                       "pass a mesh of the tensor's extents")
    out: list[Placement] = [Replicate() for _ in mesh.shape]
    operators = {ours: theirs for theirs, ours in _OPERATORS.items()}
    for axis, op in distribution.partial.items():
        out[mesh.names.index(axis.name)] = Partial(operators[op])
    if len(set(distribution.partial.values())) > 1:
        raise _refusal(f"'{distribution}'", "DTensor takes terms of one operator",
                       "redistribute one axis of terms first")
    for axis, number in distribution.layout.offset.items():
        raise _refusal(f"'{distribution}'", f"only coordinate {number} of axis '{axis.name}' holds data, and a DTensor "
                       "has data everywhere", "redistribute it to copies, or to parts, over that axis")
    for dim, axes in enumerate(distribution._core.cut):
        order = [mesh.names.index(axis.name) for axis in axes]
        _check_cut(dim, distribution.shape[dim], [axis.name for axis in axes], [mesh.shape[a] for a in order],
                   in_order=order == sorted(order))
        for place, a in enumerate(order):
            factor = math.prod(mesh.shape[b] for b in order[:place] if b > a)
            out[a] = Shard(dim) if factor == 1 else _strided(dim, factor)
    return tuple(out)


def make_dtensor(local: Any, distribution: Distribution, device_mesh: DeviceMesh) -> DTensor:
    """A DTensor that shares the part of this process.

    Raises:
        helve.Error: HV0414, HV0415 as `placements_of`; HV0415 for a part on another kind of device than the mesh.
    """
    from torch.distributed.tensor import DTensor

    placements = placements_of(distribution, device_mesh)
    if local.device.type != device_mesh.device_type:
        raise _refusal("the mesh",
                       f"its devices are of type '{device_mesh.device_type}', the part is on '{local.device}'",
                       "make the DeviceMesh for the device of the parts")
    return DTensor.from_local(local, device_mesh, placements, run_check=False, shape=distribution.shape,
                              stride=_strides(local.stride(), distribution.shape))


def _is_dtensor(value: object) -> bool:
    """Is it one? Nobody has one who has not imported its module."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def _place() -> Any:
    return source.span_of_call(source.outside(sys._getframe(1))[0])


def _refusal(what: str, reason: str, remedy: str) -> Error:
    return error("DTensorForm", _place(), what=what, reason=reason, remedy=remedy)


def _mesh_of(device_mesh: DeviceMesh) -> Mesh:
    names = device_mesh.mesh_dim_names
    shape = tuple(device_mesh.shape)
    if names is None:
        names = ("x", "y")[: len(shape)] if len(shape) <= 2 else tuple(f"x{k}" for k in range(len(shape)))
    for name in names:
        if not name.isidentifier() or name == "all":
            raise _refusal("a DTensor", f"its mesh has a dimension '{name}', which names no axis",
                           "give the DeviceMesh mesh_dim_names that are identifiers other than 'all'")
    return Mesh(shape, tuple(names))


def _operator(placement: Placement) -> str:
    op = str(getattr(placement, "reduce_op", placement))
    if op not in _OPERATORS or type(placement).__name__ != "Partial":
        raise _refusal(f"a DTensor with {placement!r}", "terms are of a sum, a product, a maximum or a minimum",
                       "redistribute it to Replicate() or Shard(dim) first")
    return _OPERATORS[op]


def _dimension(placement: Placement, shape: tuple[int, ...]) -> str:
    if type(placement).__name__ not in ("Shard", "_StridedShard"):
        raise _refusal(f"a DTensor with {placement!r}", "it has no counterpart in helve",
                       "redistribute it to Replicate() or Shard(dim) first")
    return dimension_names(len(shape))[placement.dim % len(shape)]


def _orders(dtensor: DTensor, shape: tuple[int, ...]) -> list[list[int]]:
    """For each dimension the axes that cut it, outer first, by place in the mesh."""
    out: list[list[int]] = [[] for _ in shape]
    extents = tuple(dtensor.device_mesh.shape)
    said = {entry.tensor_dim: list(entry.mesh_dims) for entry in getattr(dtensor._spec, "shard_order", None) or ()}
    for a in reversed(range(len(extents))):
        placement = dtensor.placements[a]
        if placement.is_replicate() or placement.is_partial():
            continue
        order = out[placement.dim % len(shape)]
        factor, place = getattr(placement, "split_factor", 1), 0
        while factor > math.prod(extents[b] for b in order[:place]) and place < len(order):
            place += 1
        if factor != math.prod(extents[b] for b in order[:place]):
            raise _refusal(f"a DTensor with {placement!r}",
                           f"no axes of the mesh {extents} cut {factor} parts before it",
                           "redistribute it to Shard(dim) first")
        order.insert(place, a)
    for dim, order in said.items():
        out[dim] = order
    return out


def _strided(dim: int, factor: int) -> Placement:
    """The placement of an axis that cuts after `factor` parts of later axes."""
    from torch.distributed.tensor.placement_types import _StridedShard

    return _StridedShard(dim, split_factor=factor)


def _check_cut(dim: int, extent: int, names: Sequence[str], counts: Sequence[int], *, in_order: bool) -> None:
    """Raises HV0414 unless both cut the dimension into the same parts over axes of these extents, outer first."""
    devices = math.prod(counts)
    if extent % devices == 0 or (in_order and cuts_agree(extent, counts)):
        return
    text = ", ".join(f"{name}={count}" for name, count in zip(names, counts, strict=True))
    whole = -(-extent // devices) * devices
    if not in_order:
        raise _refusal(f"dimension {dim} of extent {extent}, cut over ({text}),",
                       f"an axis of the mesh cuts it after a later one, and {devices} devices do not divide it",
                       f"pad the dimension to {whole}, or cut it in the order of the mesh")
    raise error("TorchCut", _place(), dim=dim, extent=extent, axes=f"({text})", multiple=whole,
                theirs=_listed(torch_parts(extent, counts)), ours=_listed(_parts(extent, devices)))


def _parts(extent: int, count: int) -> Iterator[int]:
    """Parts of ceil(extent / count) elements, the last ones short or empty."""
    block = -(-extent // count)
    return (max(0, min(block, extent - k * block)) for k in range(count))


def torch_parts(extent: int, counts: Sequence[int]) -> Iterator[int]:
    """The parts of a dimension that PyTorch cuts at one axis after the other, outer first."""
    if not counts:
        yield extent
        return
    for part in _parts(extent, counts[0]):
        yield from torch_parts(part, counts[1:])


def cuts_agree(extent: int, counts: Sequence[int]) -> bool:
    """Does PyTorch cut as helve does, into blocks of ceil(extent / devices)? Without a list over devices."""
    return _agree(extent, counts, -(-extent // math.prod(counts)))


def _agree(extent: int, counts: Sequence[int], block: int) -> bool:
    """The same of a part that helve deals in blocks of `block`."""
    if extent == 0 or not counts:
        return extent <= block
    theirs, ours = -(-extent // counts[0]), block * math.prod(counts[1:])
    if theirs != ours and not (extent <= theirs and extent <= ours):
        return False
    lengths = {min(theirs, extent), extent % theirs}
    return all(_agree(length, counts[1:], block) for length in lengths)


def _listed(parts: Iterator[int]) -> str:
    shown = [str(part) for _, part in zip(range(_SHOWN + 1), parts, strict=False)]
    return ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")


def _strides(local: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of the whole tensor, dense, its dimensions in the order in which those of the part are stored."""
    order = sorted(range(len(shape)), key=lambda d: (-local[d], d))
    out, step = [0] * len(shape), 1
    for d in reversed(order):
        out[d] = step
        step *= max(1, shape[d])
    return tuple(out)
