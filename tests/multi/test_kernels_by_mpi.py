"""Kernels of a mesh whose cores are processes, against the same in one process: equal bit for bit."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from on_ranks import on_ranks

import helve
from helve import T
from helve.dist import DistTensor, distribution

ROOT = Path(__file__).parents[2]


def rms_norm(m, n, blk_m, blk_k, mesh):
    spec = importlib.util.spec_from_file_location("tutorial_rms_norm", ROOT / "tutorials" / "01_rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.rms_norm_splitk(m, n, blk_m, blk_k, mesh)


def sums(m, n, blk_m, blk_k, mesh):
    """Sums over all cores, of which each adds its own number of iterations, and the greatest of a row of cores."""
    nrows, ncols = mesh.shape

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), S: T.Tensor((nrows * blk_m, ncols), "float32"), k: T.int32):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [blk_m, blk_k]},
                                S: {"sharding": {"x": 0, "y": 1}, "tiling": [blk_m, 1]}}, nrows=nrows, ncols=ncols)
        rows, columns = T.get_sharded_shape(A)
        with T.Kernel(nrows, ncols) as (r, c):
            tile = T.alloc_shared((blk_m, blk_k), "float32")
            part = T.alloc_shared((blk_m,), "float32")
            total = T.alloc_shared((blk_m,), "float32")
            whole = T.alloc_shared((blk_m,), "float32")
            out = T.alloc_shared((blk_m, 1), "float32")
            T.fill(total, 0.0)
            for i in T.serial(T.ceildiv(rows, blk_m)):
                for j in T.serial(T.ceildiv(columns, blk_k)):
                    T.mesh_tensor_copy(A, tile, coord=[i, j], pad=1.0)
                    T.reduce_sum(tile, part, dim=1)
                    for e in T.Parallel(blk_m):
                        total[e] = total[e] + part[e] * T.cast(k + r, "float32")
            T.comm.all_reduce(total, whole, op="sum", axis="all")
            if r == 0:
                T.comm.all_reduce(total, total, op="max", axis="y")
            for e in T.Parallel(blk_m):
                out[e, 0] = whole[e] + total[e]
            T.mesh_tensor_copy(out, S, coord=[0, 0])

    return main


def cases(mesh):
    rng = np.random.default_rng(1)
    for m, n in ((64, 96), (100, 77), (3, 200), (1, 1)):
        a = rng.standard_normal((m, n)).astype("float32")
        yield rms_norm(m, n, 16, 32, mesh), [a, np.zeros_like(a)], []
        yield sums(m, n, 16, 32, mesh), [a, np.zeros((mesh.shape[0] * 16, mesh.shape[1]), "float32")], [3]


def differences(shape):
    """The kernels whose results on this process are others than in one process."""
    here, there = helve.Mesh(tuple(shape)), helve.Mesh(tuple(shape), device="mpi")
    device = tuple(int(c) for c in np.unravel_index(helve.dist.rank(), shape))
    found = []
    for number, (function, tensors, scalars) in enumerate(cases(here)):
        wanted = [each.copy() for each in tensors]
        helve.compile(function, mesh=here)(*wanted, *scalars)
        on = [distribution("i j -> i j", each.shape, there) for each in tensors]
        own = [DistTensor.from_global(each, to) for each, to in zip(tensors, on, strict=True)]
        kernel = helve.compile(function, mesh=there)
        kernel(*own, *scalars)
        kernel(*own, *scalars)
        for value, whole, to in zip(own, wanted, on, strict=True):
            begin = to.local_begin(device)
            part = value.shards[device]
            box = tuple(slice(b, b + e) for b, e in zip(begin, part.shape, strict=True))
            if part.tobytes() != whole[box].tobytes():
                found.append(f"case {number} on {device}")
    return found


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 3), (4, 1)], ids=str)
def test_results_are_those_of_one_process(shape):
    assert on_ranks(int(np.prod(shape)), __name__, "differences", shape) == [[]] * int(np.prod(shape))


def refusals():
    """The errors of calls and compiles that do not fit."""
    mesh = helve.Mesh((2, 1), device="mpi")
    function = rms_norm(8, 8, 4, 4, mesh)
    kernel, out = helve.compile(function, mesh=mesh), []

    def told(call):
        try:
            call()
        except helve.Error as fault:
            out.append(f"error[{fault.code}]: {fault.message}; {fault.help}")

    a = np.zeros((8, 8), "float32")
    rows, columns = (DistTensor.from_global(a, distribution(to, a.shape, mesh)) for to in ("i j -> i j", "i j -> j i"))
    told(lambda: kernel(a, rows))
    told(lambda: kernel(rows, columns))
    told(lambda: kernel(rows))

    @T.prim_func
    def scaled(A: T.Tensor((8, 8), "float32"), W: T.Tensor((4, 8), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [4, 8]}}, nrows=2, ncols=1)
        with T.Kernel(2, 1) as (r, c):
            tile = T.alloc_shared((4, 8), "float32")
            T.mesh_tensor_copy(A, tile, coord=[0, 0])
            for i, j in T.Parallel(4, 8):
                tile[i, j] = tile[i, j] * W[i, j]
            T.mesh_tensor_copy(tile, A, coord=[0, 0])

    cut = distribution("i j -> i *", (8, 8), mesh)
    told(lambda: helve.compile(scaled, mesh=mesh)(DistTensor.from_global(a, cut), DistTensor.from_global(a, cut)))
    told(lambda: helve.compile(function, mesh=mesh, target="interp"))
    told(lambda: helve.compile(function, mesh=mesh, out="B"))

    @T.prim_func
    def direct(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [4, 8]}}, nrows=2, ncols=1)
        with T.Kernel(2, 1) as (r, c):
            for j in T.Parallel(8):
                B[r, j] = A[r, j]

    told(lambda: helve.compile(direct, mesh=mesh))
    return out


def test_what_does_not_fit_is_refused():
    zero, one = on_ranks(2, __name__, "refusals")
    over = "over Mesh(shape=(2, 1), names=('x', 'y'), device='mpi')"
    assert zero == one == [
        f"error[HV0425]: argument 'A' is a ndarray of shape (8, 8), "
        f"'main' has it as 'i j -> i j' of (8, 8) {over}; "
        "make it by DistTensor.from_local(part, distribution), with "
        "helve.dist.distribution('i j -> i j', (8, 8), mesh)",
        f"error[HV0425]: argument 'B' is 'i j -> j i' of (8, 8) {over}, "
        f"'main' has it as 'i j -> i j' of (8, 8) {over}; "
        "pass tensor.redistribute(helve.dist.distribution('i j -> i j', (8, 8), mesh))",
        "error[HV0630]: 'main' takes 2 arguments, not 1; give 'B' as well; its parameters are: A, B",
        f"error[HV0425]: argument 'W' is 'i j -> i *' of (8, 8) {over}, "
        f"'scaled' has it as 'i j -> * *' of (8, 8) {over}; "
        "pass tensor.redistribute(helve.dist.distribution('i j -> * *', (8, 8), mesh))",
        "error[HV0803]: this build of helve does not compile for target 'interp' on a mesh of device 'mpi'; "
        'compile for target="llvm", or for a mesh of device="host"',
        "error[HV0108]: 'helve.compile' cannot take 'B' for 'out': calls on a mesh of processes allocate no tensors; "
        "declare no outputs, and pass tensors of helve.dist for all parameters",
        "error[HV0424]: on a mesh of processes each has its own part of 'B': it is written, and no annotation says "
        "which part is whose; add it to T.annotate_mesh_tensor",
    ]
