"""Kernels of a mesh whose cores are the GPUs of processes, against the same on a mesh in one process.

Integers, and floats whose sums are exact, are equal bit for bit. Without GPUs, NCCL and the driver are the fakes of the
C++ tests, and the driver runs the CUDA text of the kernels as g++ compiles it; with some, the same programs run on
them.
"""

import functools
import hashlib
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from on_ranks import on_ranks
from test_kernels_by_mpi import rms_norm, sums
from test_redistribution_by_mpi import LONG
from test_redistribution_by_nccl import on_gpu, on_host
from test_redistribution_by_nccl import on_fakes as fakes_of_redistribution
from test_redistribution_by_nccl import on_gpus as gpus_of_redistribution

import helve
from helve import T, _core
from helve.dist import DistTensor, distribution

COMPILE = 300  # seconds that a process waits for another one's g++


def on_fakes(count, function, *arguments, file=__name__, **options):
    return fakes_of_redistribution(count, function, *arguments, file=file, timeout=600, **options)


def on_gpus(count, function, *arguments, file=__name__, **options):
    return gpus_of_redistribution(count, function, *arguments, file=file, **options)


BOTH = pytest.mark.parametrize("where", [on_fakes, on_gpus], ids=["fakes", "gpus"])
MESHES = pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 2), (1, 4)], ids=str)


WRAPPER = """
template <class P> static long long slot_of(void* at) {
  return std::is_class_v<P> ? reinterpret_cast<long long>(at) : *static_cast<long long*>(at);
}
template <class... P, size_t... I>
static int run(void (*kernel)(P...), void** at, const unsigned* of, std::index_sequence<I...>) {
  const long long slots[] = {slot_of<P>(at[I])..., 0};
  return host::launch(kernel, slots, of[0], of[1], of[2], of[3]);
}
template <class... P> static int run(void (*kernel)(P...), void** at, const unsigned* of) {
  return run(kernel, at, of, std::index_sequence_for<P...>());
}
"""


def run_on_host(kernels, behind=""):
    """Lets the fake driver run the CUDA text of kernels on the CPU, and that of their unaligned variants: gives what to
    call before the first call of each. Process 0 compiles one library for all. `behind` is more text of kernels.
    """
    if not os.environ.get("HELVE_LIBCUDA"):
        return [lambda: None for _ in kernels]
    from cuda_on_host import HEADER, without_ptx

    source = [f'#include "{HEADER.name}"', WRAPPER]
    for number, kernel in enumerate(kernels):
        narrow = helve.parse(kernel.source("narrow_accesses")).function
        for variant, text in enumerate((kernel.source("cuda") + behind, _core.cuda_source(narrow, prelude=True)[0])):
            scope = f"{number}_{variant}"
            heads = re.findall(r"__global__ void __launch_bounds__\([^)]*\)\s*(?:#line.*\s*)*(\w+)\(", text)
            own = re.sub("extern __shared__ .*", "", without_ptx(text))  # which is the header's
            own = own.replace('extern "C" __global__', "static __global__")  # names of one program
            source += [f"namespace text_{scope} {{", own, "}"]
            source += [f'extern "C" int helve_fake_{scope}_{name}(void** at, const unsigned* of) '
                       f"{{ return run(text_{scope}::{name}, at, of); }}" for name in sorted(set(heads))]
    library = _compiled("\n".join(source))
    return [functools.partial(os.environ.__setitem__, "HELVE_FAKE_KERNELS", f"{library}:{number}")
            for number in range(len(kernels))]


def _compiled(source):
    from cuda_on_host import build_library

    stem = Path(os.environ["HELVE_FAKE_NCCL_FOLDER"], hashlib.sha256(source.encode()).hexdigest()[:16])
    library = stem.with_suffix(".so")
    if helve.dist.rank() == 0 and not library.exists():
        stem.with_suffix(".cc").write_text(source)
        unready = stem.with_suffix(".unready")
        build_library(stem.with_suffix(".cc"), unready, prelude=True)
        unready.rename(library)
    end = time.monotonic() + COMPILE
    while not library.exists():
        assert time.monotonic() < end, "process 0 compiles nothing"
        time.sleep(0.05)
    return library


def exchanges(mesh, pieces, domain):
    """Every collective, of integers, in the iterations of a Persistent loop over `domain`."""
    nrows, ncols = mesh.shape
    count = nrows * ncols
    m, n = domain

    @T.prim_func
    def main(A: T.Tensor((nrows * m * count, ncols * n * pieces), "int32"),
             B: T.Tensor((nrows * m * count, ncols * n * pieces), "int32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [count, pieces]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [count, pieces]}},
                               nrows=nrows, ncols=ncols)
        with T.Kernel(nrows, ncols) as (r, c):
            tile = T.alloc_shared((count, pieces), "int32")
            turned = T.alloc_shared((count, pieces), "int32")
            rows = T.alloc_shared((count, pieces, nrows), "int32")
            wide = T.alloc_shared((count, ncols * pieces), "int32")
            part = T.alloc_shared((pieces,), "int32")
            moved = T.alloc_shared((pieces,), "int32")
            total = T.alloc_shared((count, pieces), "int32")
            least = T.alloc_shared((count, pieces), "int16")
            small = T.alloc_shared((count, pieces), "int16")
            for i, j in T.Persistent([m, n]):
                T.mesh_tensor_copy(A, tile, coord=[i, j])
                T.comm.all_gather(tile, rows, axis="x")
                T.comm.all_gather(tile, wide, axis="y", dim=1)
                T.comm.all_to_all(tile, turned)
                T.comm.reduce_scatter(turned, part, dim=0)
                T.comm.permute(part, moved, shift=1)
                T.comm.barrier("y")
                T.comm.all_reduce(tile, total, op="max", axis="y")
                T.comm.broadcast(total, total, root=count - 1)
                for a, b in T.Parallel(count, pieces):
                    small[a, b] = T.cast(tile[a, b] * 7, "int16")
                T.comm.all_reduce(small, least, op="min", axis="x")
                for a, b in T.Parallel(count, pieces):
                    tile[a, b] = (tile[a, b] + 3 * turned[a, b] + 5 * moved[b] + 7 * total[a, b]
                                  + T.cast(least[a, b], "int32") + 11 * rows[a, b, nrows - 1 - r]
                                  + 13 * wide[a, b + (ncols - 1 - c) * pieces])
                T.mesh_tensor_copy(tile, B, coord=[i, j])

    return main


def rooted(mesh, pieces, n):
    """Collectives with roots that a parameter, a loop and a coordinate say, and permutations by maps."""
    nrows, ncols = mesh.shape
    count = nrows * ncols

    @T.prim_func
    def main(A: T.Tensor((nrows * n * count, ncols * pieces), "int32"),
             B: T.Tensor((nrows * n * count, ncols * pieces), "int32"), k: T.int32):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [count, pieces]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [count, pieces]}},
                               nrows=nrows, ncols=ncols)
        with T.Kernel(nrows, ncols) as (r, c):
            tile = T.alloc_shared((count, pieces), "int32")
            rows = T.alloc_shared((count, pieces, nrows), "int32")
            wide = T.alloc_shared((count, ncols * pieces), "int32")
            part = T.alloc_shared((pieces,), "int32")
            total = T.alloc_shared((count, pieces), "int32")
            moved = T.alloc_shared((count, pieces), "int32")
            turned = T.alloc_shared((count, pieces), "int32")
            least = T.alloc_shared((count, pieces), "int16")
            small = T.alloc_shared((count, pieces), "int16")
            for i in T.Persistent([n]):
                T.mesh_tensor_copy(A, tile, coord=[i, 0])
                T.fill(rows, 1)
                T.fill(wide, 2)
                T.fill(total, 3)
                T.fill(moved, 4)
                T.fill(least, 5)
                T.comm.gather(tile, rows, nrows - 1, axis="x")
                T.comm.gather(tile, wide, k % ncols, axis="y", dim=1)
                T.comm.scatter(tile, part, root=k % count, dim=0)
                T.comm.reduce(tile, total, root=k % nrows, axis="x")
                for a, b in T.Parallel(count, pieces):
                    small[a, b] = T.cast(tile[a, b] * 7, "int16")
                T.comm.reduce(small, least, op="max", axis="y")
                T.comm.reduce(tile[:, 0:1], tile[:, 0:1], op="max", root=ncols - 1, axis="y")
                T.comm.permute(tile, moved, source=lambda me: me - 1)
                T.comm.permute(moved, moved, source=lambda me: T.if_then_else(me % 2 == 0, (me + k) % count, -1))
                T.comm.permute(part, part, shift=k, axis="x")
                T.comm.put(total, total, src_core=[k % nrows, 0], dst_core=[0, ncols - 1])
                for s in T.serial(ncols):
                    T.comm.broadcast(moved, turned, root=s, axis="y")
                    for a, b in T.Parallel(count, pieces):
                        tile[a, b] = tile[a, b] * 3 + turned[a, b]
                T.comm.broadcast(total, turned, root=r % ncols, axis="y")
                for a, b in T.Parallel(count, pieces):
                    tile[a, b] = (tile[a, b] + 3 * part[b] + 5 * moved[a, b] + 7 * total[a, b] + 17 * turned[a, b]
                                  + T.cast(least[a, b], "int32") + 11 * rows[a, b, nrows - 1 - r]
                                  + 13 * wide[a, b + (ncols - 1 - c) * pieces])
                T.mesh_tensor_copy(tile, B, coord=[i, 0])

    return main


def steps(mesh, n):
    """Collectives in a loop of the host body inside of a Persistent loop, one of some cores alone before those of all,
    and a while loop that memory decides about.
    """
    nrows, ncols = mesh.shape

    @T.prim_func
    def main(A: T.Tensor((nrows * n * 8, ncols), "int64"), B: T.Tensor((nrows * n * 8, ncols), "int64")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [8, 1]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [8, 1]}}, nrows=nrows, ncols=ncols)
        with T.Kernel(nrows, ncols) as (r, c):
            tile = T.alloc_shared((8, 1), "int64")
            total = T.alloc_shared((8, 1), "int64")
            for i in T.Persistent([n]):
                T.mesh_tensor_copy(A, tile, coord=[i, 0])
                for k in T.serial(3):
                    for a in T.Parallel(8):
                        tile[a, 0] = tile[a, 0] * 3 + i + k + c
                    if c == 0:
                        T.comm.barrier("x")
                    T.comm.all_reduce(tile, total, op="sum", axis="all")
                    T.comm.permute(total, tile, shift=1, axis="y")
                T.mesh_tensor_copy(tile, B, coord=[i, 0])
            go = T.alloc_shared((1,), "int64")
            seen = T.alloc_shared((1,), "int64")
            T.fill(go, 0)
            T.fill(seen, 0)
            while seen[0] < 3 * nrows * ncols:
                go[0] = go[0] + 1
                T.comm.all_reduce(go, seen, op="sum", axis="all")
            T.mesh_tensor_copy(B, tile, coord=[0, 0])
            for a in T.Parallel(8):
                tile[a, 0] = tile[a, 0] + seen[0]
            T.mesh_tensor_copy(tile, B, coord=[0, 0])

    return main


def cases(mesh, chosen):
    """(function, tensors, scalars, tolerance)"""
    rng = np.random.default_rng(1)
    nrows, ncols = mesh.shape
    if chosen == "rms_norm":
        for m, n in ((64, 96), (100, 77), (1, 1)):
            a = rng.standard_normal((m, n)).astype("float32")
            yield rms_norm(m, n, 16, 32, mesh), [a, np.zeros_like(a)], [], 1e-5
    elif chosen == "sums":
        for m, n in ((64, 96), (100, 77), (3, 200)):
            a = rng.integers(-8, 8, (m, n)).astype("float32")
            yield sums(m, n, 16, 32, mesh), [a, np.zeros((nrows * 16, ncols), "float32")], [3], 0
    elif chosen == "exchanges":
        count = nrows * ncols
        for pieces, (m, n) in ((8, (3, 2)), (5, (1, 4))):
            a = rng.integers(-999, 999, (nrows * m * count, ncols * n * pieces)).astype("int32")
            yield exchanges(mesh, pieces, (m, n)), [a, np.zeros_like(a)], [], 0
    elif chosen == "rooted":
        count = nrows * ncols
        for pieces, n, k in ((8, 3, 0), (5, 1, 2)):
            a = rng.integers(-999, 999, (nrows * n * count, ncols * pieces)).astype("int32")
            yield rooted(mesh, pieces, n), [a, np.zeros_like(a)], [k], 0
    else:
        a = rng.integers(-99, 99, (nrows * 5 * 8, ncols)).astype("int64")
        yield steps(mesh, 5), [a, np.zeros_like(a)], [], 0


def differences(shape, chosen, chunk):
    """The kernels whose results on this process are others than in one process."""
    here, there = helve.Mesh(tuple(shape)), helve.Mesh(tuple(shape), device="cuda")
    device = tuple(int(c) for c in np.unravel_index(helve.dist.rank(), shape))
    found, all_cases = [], list(cases(here, chosen))
    kernels = [helve.compile(function, mesh=there, persistent_chunk=chunk) for function, *_ in all_cases]
    ready = run_on_host(kernels)
    for number, (function, tensors, scalars, tolerance) in enumerate(all_cases):
        wanted = [each.copy() for each in tensors]
        helve.compile(function, mesh=here)(*wanted, *scalars)
        if chosen == "rms_norm":
            exact = tensors[0].astype("float64")
            exact /= np.sqrt((exact * exact).mean(axis=1, keepdims=True) + 1e-6)
            assert np.allclose(wanted[1], exact, rtol=1e-5, atol=1e-6)
        kernel = kernels[number]
        ready[number]()
        on = [distribution("i j -> i j", each.shape, there) for each in tensors]
        own = [DistTensor.from_global(on_gpu(each), to) for each, to in zip(tensors, on, strict=True)]
        kernel(*own, *scalars)
        kernel(*own, *scalars)
        for value, whole, to in zip(own, wanted, on, strict=True):
            begin, part = to.local_begin(device), on_host(value.shards[device])
            box = tuple(slice(b, b + e) for b, e in zip(begin, part.shape, strict=True))
            if not np.allclose(part, whole[box], rtol=tolerance, atol=tolerance):
                found.append(f"case {number} on {device}")
    return found


@BOTH
@MESHES
@pytest.mark.parametrize("chosen", ["rms_norm", "sums", "exchanges", "rooted", "steps"])
def test_results_are_those_of_one_process(chosen, shape, where):
    if where is on_fakes and shape in ((2, 1), (1, 4)) and chosen != "rms_norm" and not LONG:
        pytest.skip("one of the long tests")
    count = int(np.prod(shape))
    assert where(count, "differences", shape, chosen, None) == [[]] * count


@BOTH
@pytest.mark.parametrize("chosen", ["rms_norm", "exchanges"])
@pytest.mark.parametrize("chunk", [1, 4])
def test_rounds_of_few_iterations(chosen, chunk, where):
    """A collective for each iteration, or for some: the last round has fewer."""
    assert where(2, "differences", (1, 2), chosen, chunk) == [[]] * 2


def refusals():
    """The errors of calls and compiles that do not fit."""
    mesh = helve.Mesh((2, 1), device="cuda")
    function, out = rms_norm(8, 8, 4, 4, mesh), []

    def told(call):
        try:
            call()
        except helve.Error as fault:
            out.append(f"error[{fault.code}]: {fault.message}; {fault.help}")

    kernel = helve.compile(function, mesh=mesh)
    assert kernel.target == "cuda"
    a = on_gpu(np.zeros((8, 8), "float32"))
    rows = DistTensor.from_global(a, distribution("i j -> i j", a.shape, mesh))
    told(lambda: kernel(a, rows))
    told(lambda: helve.compile(function, mesh=mesh, target="llvm"))
    told(lambda: helve.compile(function, mesh=mesh, out="B"))
    return out


def test_what_does_not_fit_is_refused():
    for answer in on_fakes(2, "refusals"):
        assert answer[0].startswith("error[HV0425]: argument 'A' is a Array of shape (8, 8), 'main' has it as 'i j -> "
                                    "i j' of (8, 8) over Mesh(shape=(2, 1), names=('x', 'y'), device='cuda'); make it")
        assert answer[1:] == [
            "error[HV0803]: this build of helve does not compile for target 'llvm' on a mesh of device 'cuda'; "
            'compile for target="cuda", or for a mesh of device="host"',
            "error[HV0108]: 'helve.compile' cannot take 'B' for 'out': calls on a mesh of processes allocate no "
            "tensors; declare no outputs, and pass tensors of helve.dist for all parameters",
        ]


def captured(shape):
    """A graph of calls, replayed; a first call cannot be recorded."""
    import torch

    mesh = helve.Mesh(tuple(shape), device="cuda")
    device = tuple(int(c) for c in np.unravel_index(helve.dist.rank(), shape))
    a = np.random.default_rng(2).standard_normal((256, 512)).astype("float32")
    kernel = helve.compile(rms_norm(*a.shape, 16, 32, mesh), mesh=mesh)
    on = distribution("i j -> i j", a.shape, mesh)
    given, out = (DistTensor.from_global(on_gpu(each), on) for each in (a, np.zeros_like(a)))
    refused = ""
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel(given, out)
    except helve.Error as fault:
        refused = fault.code
    kernel(given, out)
    torch.cuda.synchronize()
    first = out.shards[device].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(given, out)
        given.shards[device].mul_(1)
    out.shards[device].zero_()
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out.shards[device], first)
    return refused


@MESHES
def test_a_graph_of_calls(shape):
    count = int(np.prod(shape))
    assert on_gpus(count, "captured", shape) == ["HV0926"] * count
