"""Tensors over meshes whose parts are PyTorch's, and the conversion from and to DTensor, without copies."""

import itertools
import os
import subprocess
import sys

import helve
import ml_dtypes
import numpy as np
import pytest
from helve.dist import DistTensor, distribution
from helve.dist.dtensor import cuts_agree, torch_parts

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch has no torch.distributed", allow_module_level=True)

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard  # noqa: E402
from torch.distributed.tensor.placement_types import _StridedShard  # noqa: E402

MESH = helve.Mesh((2, 2))
TEXTS = ["i j -> i j", "i j -> j *", "i j -> + i", "i j -> 1 j", "i j -> * *"]
DTYPES = ["float32", "float64", "bfloat16", "float16", "int8", "int64", "uint8", "bool"]


def code_of(call, *args, **kwargs):
    with pytest.raises(helve.Error) as caught:
        call(*args, **kwargs)
    return caught.value.code


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_parts_stay_torch(dtype):
    whole = torch.randint(0, 2, (7, 6)).to(getattr(torch, dtype))
    for source, destination in itertools.product(TEXTS, TEXTS):
        tensor = DistTensor.from_global(whole, distribution(source, (7, 6), MESH))
        moved = tensor.redistribute(distribution(destination, (7, 6), MESH))
        assert moved.dtype == whole.dtype
        assert all(isinstance(part, torch.Tensor) and part.dtype == whole.dtype for part in moved.shards.values())
        gathered = moved.gather()
        assert isinstance(gathered, torch.Tensor) and torch.equal(gathered, whole), (source, destination)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_numpy_parts_of_small_floats(name):
    whole = np.arange(12).reshape(4, 3).astype(getattr(ml_dtypes, name))
    for text in ("i j -> i j", "i j -> max j", "i j -> min *", "i j -> * +"):
        tensor = DistTensor.from_global(whole, distribution(text, (4, 3), MESH))
        gathered = tensor.gather()
        assert gathered.dtype == whole.dtype
        np.testing.assert_array_equal(gathered.astype(np.float32), whole.astype(np.float32))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool, torch.bfloat16])
def test_terms_are_reduced_and_begun(op, dtype):
    mesh = helve.Mesh((3,), ("x",))
    parts = {(k,): torch.randint(0, 3, (5,), generator=torch.Generator().manual_seed(k)).to(dtype) for k in range(3)}
    tensor = DistTensor.from_local(parts, distribution(f"i -> {op}", (5,), mesh))
    combine = {"sum": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum}[op]
    whole = combine(combine(parts[0,], parts[1,]), parts[2,])
    assert torch.equal(tensor.gather(), whole)
    again = tensor.redistribute(distribution("i -> i", (5,), mesh)).redistribute(tensor.distribution)
    assert torch.equal(again.gather(), whole)


def test_parts_on_other_devices_are_moved_by_pytorch(monkeypatch):
    """The path of tensors that are not in memory of the CPU, taken by some that are; and by those of no device."""
    monkeypatch.setattr("helve.dist.shards.is_in_memory", lambda array: False)
    whole = torch.randint(-3, 4, (7, 6)).to(torch.bfloat16)
    for source, destination in itertools.product([*TEXTS, "i j -> max j"], [*TEXTS, "i j -> i min"]):
        tensor = DistTensor.from_global(whole, distribution(source, (7, 6), MESH))
        assert torch.equal(tensor.redistribute(distribution(destination, (7, 6), MESH)).gather(), whole)
    monkeypatch.undo()
    meta = DistTensor.from_global(torch.empty(7, 6, device="meta"), distribution("i j -> + i", (7, 6), MESH))
    assert meta.redistribute(distribution("i j -> i j", (7, 6), MESH)).shards[1, 1].is_meta


def test_writes_are_counted_and_tensors_with_gradients_refused():
    cut, copies = (distribution(text, (4,), helve.Mesh((2,))) for text in ("i -> i", "i -> *"))
    tensor = DistTensor.from_global(torch.arange(4.0), cut)
    out = {(k,): torch.zeros(4) for k in range(2)}
    before = [part._version for part in out.values()]
    tensor.prepare(tensor.plan(copies), out=DistTensor.from_local(out, copies))()
    assert all(part._version > version for part, version in zip(out.values(), before))
    leaf = {(k,): torch.zeros(4, requires_grad=True) for k in range(2)}
    assert code_of(tensor.prepare, tensor.plan(copies), out=DistTensor.from_local(leaf, copies)) == "HV0643"
    with torch.no_grad():
        tensor.prepare(tensor.plan(copies), out=DistTensor.from_local(leaf, copies))()
    assert leaf[1,].tolist() == [0, 1, 2, 3]


def test_small_floats_are_rounded_once():
    """1 + 2**-8 rounds to 1 in bfloat16, so that sums rounded one by one would stay at 1."""
    mesh = helve.Mesh((3,), ("x",))
    values = [1.0, 2.0**-8, 2.0**-8]
    for parts in ({(k,): torch.tensor([v], dtype=torch.bfloat16) for k, v in enumerate(values)},
                  {(k,): np.array([v], ml_dtypes.bfloat16) for k, v in enumerate(values)}):
        assert float(DistTensor.from_local(parts, distribution("i -> +", (1,), mesh)).gather()[0]) == 1 + 2.0**-7


def test_parts_need_not_be_contiguous_and_are_shared():
    whole = torch.arange(48).reshape(6, 8)
    parts = {(r, c): whole[3 * r : 3 * r + 3, 4 * c : 4 * c + 4].t().contiguous().t()
             for r in range(2) for c in range(2)}
    tensor = DistTensor.from_local(parts, distribution("i j -> i j", (6, 8), MESH))
    assert tensor.shards[1, 0] is parts[1, 0]
    assert torch.equal(tensor.gather(), whole)
    assert torch.equal(tensor.redistribute(distribution("i j -> j i", (6, 8), MESH)).gather(), whole)


def test_gradients_end_at_a_redistribution():
    whole = torch.ones(4, 4, requires_grad=True)
    moved = DistTensor.from_global(whole, distribution("i j -> i j", (4, 4), MESH)).gather()
    assert not moved.requires_grad and torch.equal(moved, whole)


def test_what_is_no_part_is_refused():
    both = distribution("i -> *", (2,), helve.Mesh((2,)))
    good = torch.zeros(2)
    for bad in ([0.0, 0.0], torch.zeros(2).to_sparse(), np.array([None, 1]), np.ma.zeros(2), torch.zeros(2).double(),
                np.zeros(2, "float32"), torch._neg_view(torch.zeros(2))):
        assert code_of(DistTensor.from_local, {(0,): good, (1,): bad}, both) == "HV0507"
    assert code_of(DistTensor.from_global, [1.0, 2.0], both) == "HV0507"


def test_cuts_agree_where_the_parts_do():
    for counts in [(2,), (3,), (2, 2), (2, 3), (3, 2), (4, 2), (1, 2), (2, 1, 2), (2, 2, 2), (3, 2, 2)]:
        devices = int(np.prod(counts))
        for extent in range(60):
            block = -(-extent // devices)
            ours = [max(0, min(block, extent - k * block)) for k in range(devices)]
            assert cuts_agree(extent, counts) == (list(torch_parts(extent, counts)) == ours), (extent, counts)


def every_placement(rank):
    return [Replicate(), Partial(), Partial("max"), *(Shard(d) for d in range(rank))]


def placements_over(mesh, rank=2):
    """All placements over a mesh, and those of PyTorch that cut a dimension by a later axis first."""
    plain = list(itertools.product(every_placement(rank), repeat=len(mesh)))
    if len(mesh) == 2:
        plain.append((_StridedShard(0, split_factor=mesh[1]), Shard(0)))
    return [each for each in plain if len({p.reduce_op for p in each if p.is_partial()}) < 2]


def local_of(extents, mesh, coordinate, placements):
    """What PyTorch gives a device: shape and first element."""
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset as compute

    return compute(extents, mesh, list(coordinate), placements)


@pytest.fixture(scope="module")
def fake_group():
    """A process group in which this process stands for each of many; no message is sent."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=24)
    yield
    torch.distributed.destroy_process_group()


def differs(shape, extents, placements, parts):
    """Does a device hold something else than its block of ceil(extent / devices), or is the order another one?"""
    if any(isinstance(each, _StridedShard) for each in placements):
        return True
    for d, extent in enumerate(shape):
        axes = [a for a, each in enumerate(placements) if isinstance(each, Shard) and each.dim == d]
        block = -(-extent // int(np.prod([extents[a] for a in axes])))
        for device, (size, first) in parts.items():
            number = 0
            for a in axes:
                number = number * extents[a] + device[a]
            length = max(0, min(block, extent - number * block))
            if size[d] != length or (length and first[d] != number * block):
                return True
    return False


@pytest.mark.parametrize("extents", [(2,), (4,), (2, 2), (2, 3), (2, 2, 2)])
def test_every_placement_is_as_pytorch_cuts_or_refused(fake_group, extents):
    """On every device, against PyTorch's own answer. The fake group is rank 0; others are asked as if they were."""
    names = ("x", "y", "z")[: len(extents)]
    device_mesh = torch.distributed.DeviceMesh("cpu", torch.arange(int(np.prod(extents))).reshape(extents),
                                               mesh_dim_names=names)
    cuts = refusals = 0
    for shape in [(10, 4), (7, 3), (8, 12), (0, 5), (1, 2)]:
        for placements in placements_over(extents):
            first = (0,) * len(extents)
            local = torch.zeros(local_of(shape, extents, first, placements)[0])
            dtensor = DTensor.from_local(local, device_mesh, placements, run_check=False, shape=shape,
                                         stride=(max(1, shape[1]), 1))
            devices = list(itertools.product(*map(range, extents)))
            expected = [local_of(shape, extents, device, placements) for device in devices]
            try:
                tensor = DistTensor.from_dtensor(dtensor)
            except helve.Error as error:
                assert error.code in ("HV0414", "HV0415")
                refusals += 1
                assert differs(shape, extents, placements, dict(zip(devices, expected, strict=True)))
                continue
            cuts += 1
            for device, (size, at) in zip(devices, expected, strict=True):
                assert tensor.distribution.local_shape(device) == size, (shape, placements, device)
                if 0 not in size:
                    assert tensor.distribution.local_begin(device) == at
            assert tensor.shards[first].data_ptr() == local.data_ptr()
            back = tensor.to_dtensor(device_mesh)
            assert back.placements == dtensor.placements and back.shape == dtensor.shape
            assert back.to_local().data_ptr() == local.data_ptr()
    assert cuts > 10 and (refusals > 2 or len(extents) == 1)


def test_terms_and_names_come_across(fake_group):
    device_mesh = torch.distributed.DeviceMesh("cpu", torch.arange(4).reshape(2, 2))
    for op, ours in [("sum", "sum"), ("product", "prod"), ("max", "max"), ("min", "min")]:
        dtensor = DTensor.from_local(torch.ones(3, 2), device_mesh, [Partial(op), Shard(-1)])
        tensor = DistTensor.from_dtensor(dtensor)
        assert {axis.name: each for axis, each in tensor.distribution.partial.items()} == {"x": ours}
        assert tensor.to_dtensor(device_mesh).placements == dtensor.placements
        assert tensor.distribution.mesh == helve.Mesh((2, 2), ("x", "y"))
    named = torch.distributed.DeviceMesh("cpu", torch.arange(2), mesh_dim_names=("tp",))
    one = DistTensor.from_dtensor(DTensor.from_local(torch.ones(2), named, [Shard(0)]))
    assert one.distribution.mesh.names == ("tp",)


def test_strides_of_the_whole_are_those_of_the_part(fake_group):
    device_mesh = torch.distributed.DeviceMesh("cpu", torch.arange(2))
    local = torch.zeros(4, 3).t()
    dtensor = DTensor.from_local(local, device_mesh, [Shard(1)])
    back = DistTensor.from_dtensor(dtensor).to_dtensor(device_mesh)
    assert back.stride() == dtensor.stride() and back.to_local().stride() == local.stride()


def test_an_order_of_axes_that_pytorch_keeps_beside_the_placements(fake_group):
    """A cut by the later axis first, written with plain Shard placements and an order in the specification."""
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta

    device_mesh = torch.distributed.DeviceMesh("cpu", torch.arange(6).reshape(2, 3))
    meta = TensorMeta(torch.Size((12,)), (1,), torch.float32)
    order = (ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0)),)
    spec = DTensorSpec(device_mesh, (Shard(0), Shard(0)), meta, shard_order=order,
                       use_strided_shard_as_shard_order=False)
    tensor = DistTensor.from_dtensor(DTensor(torch.zeros(2), spec, requires_grad=False))
    assert [tensor.distribution.local_begin((1, c)) for c in range(3)] == [(2,), (6,), (10,)]


def test_what_cannot_be_converted_is_refused(fake_group):
    device_mesh = torch.distributed.DeviceMesh("cpu", torch.arange(4).reshape(2, 2))
    replicated = DTensor.from_local(torch.zeros(4), device_mesh, [Replicate(), Replicate()])
    whole = DistTensor.from_dtensor(replicated)
    assert code_of(DistTensor.from_dtensor, torch.zeros(4)) == "HV0415"
    assert code_of(DistTensor.from_dtensor, np.zeros(4)) == "HV0415"
    mean = DTensor.from_local(torch.zeros(4), device_mesh, [Partial("avg")] * 2)
    assert code_of(DistTensor.from_dtensor, mean) == "HV0415"
    one = distribution("i -> i", (4,), helve.Mesh((1,)))
    assert code_of(DistTensor.from_local, {(0,): replicated}, one) == "HV0507"
    assert code_of(whole.to_dtensor, "mesh") == "HV0415"
    assert code_of(whole.to_dtensor, torch.distributed.DeviceMesh("cpu", torch.arange(4))) == "HV0415"
    assert code_of(whole.gather) == "HV0416"
    mesh = helve.Mesh((2, 2))
    for text in ("i -> 0 i", "i -> + max"):
        every = DistTensor.from_global(torch.zeros(4), distribution(text, (4,), mesh))
        assert code_of(every.to_dtensor, device_mesh) == "HV0415"
    uneven = DistTensor.from_global(torch.zeros(10), distribution(["i -> x:i", "i -> y:i"], (10,), mesh))
    assert code_of(uneven.to_dtensor, device_mesh) == "HV0414"
    swapped = DistTensor.from_global(torch.zeros(10), distribution(["i -> y:i", "i -> x:i"], (10,), mesh))
    assert code_of(swapped.to_dtensor, device_mesh) == "HV0415"
    arrays = DistTensor.from_global(np.zeros(4), distribution("i -> i *", (4,), mesh))
    assert code_of(arrays.to_dtensor, device_mesh) == "HV0415"
    dashed = torch.distributed.DeviceMesh("cpu", torch.arange(2), mesh_dim_names=("data-parallel",))
    assert code_of(DistTensor.from_dtensor, DTensor.from_local(torch.zeros(2), dashed, [Shard(0)])) == "HV0415"


PROGRAM = """
import sys
import torch
import torch.distributed
import helve
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from helve.dist import DistTensor, distribution

rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("x", "y"))
whole = torch.arange(8 * 6, dtype=torch.bfloat16).reshape(8, 6)
for placements in ([Shard(0), Shard(1)], [Shard(1), Replicate()], [Replicate(), Shard(0)], [Shard(0), Shard(0)]):
    dtensor = distribute_tensor(whole, mesh, placements)
    tensor = DistTensor.from_dtensor(dtensor)
    (device,) = tensor.shards
    assert device == tuple(mesh.get_coordinate())
    shape, first = compute_local_shape_and_global_offset(whole.shape, mesh, placements)
    assert (tensor.distribution.local_shape(device), tensor.distribution.local_begin(device)) == (shape, first)
    box = tuple(slice(f, f + n) for f, n in zip(first, shape))
    assert torch.equal(tensor.shards[device], whole[box])
    back = tensor.to_dtensor(mesh)
    assert back.to_local().data_ptr() == dtensor.to_local().data_ptr()
    assert torch.equal(back.full_tensor(), whole)  # by messages
# Made by helve, gathered by PyTorch.
for text in ("i j -> i j", "i j -> j *", "i j -> + i"):
    every = DistTensor.from_global(whole, distribution(text, (8, 6), helve.Mesh((2, world // 2))))
    here = tuple(mesh.get_coordinate())
    one = DistTensor({here: every.shards[here]}, every.distribution)
    assert torch.equal(one.to_dtensor(mesh).full_tensor(), whole), text
torch.distributed.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("world", [4])
def test_processes_share_their_parts(tmp_path, world):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([sys.executable, program, str(rank), str(world), tmp_path / "store"], env=quiet,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(world)]
    ended = [process.communicate(timeout=120) for process in running]
    assert [(process.returncode, out) for process, (out, _) in zip(running, ended)] == [(0, "done\n")] * world, ended


def test_one_process(tmp_path):
    """A mesh of one device: all parts are here, so that its redistributions run."""
    program = """
import sys, torch, helve
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from helve.dist import DistTensor, distribution
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
tensor = DistTensor.from_dtensor(distribute_tensor(torch.arange(5), mesh, [Shard(0)]))
assert torch.equal(tensor.redistribute(distribution("i -> *", (5,), helve.Mesh((1,)))).gather(), torch.arange(5))
torch.distributed.destroy_process_group()
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    ended = subprocess.run([sys.executable, path, tmp_path / "store"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
