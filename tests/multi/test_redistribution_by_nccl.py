"""Redistributions between the GPUs of processes, against the same in one process.

Integers and what helve reduces itself are equal bit for bit; sums of NCCL are compared with numbers whose sums are
exact in any order. Without GPUs, NCCL and the driver are the fakes of the C++ tests; with some, the same programs run
on them.
"""

import functools
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from on_ranks import on_ranks
from test_redistribution_by_mpi import LONG, SHAPES, parts_of, placed, placements

import helve
from helve.dist import DistTensor, distribution

ROOT = Path(__file__).parents[2]
FAKES = [ROOT / "build" / "src" / f"lib{name}.so" for name in ("fake_libcuda", "fake_nccl")]
# The share of pairs that is tried of each mesh, of all in the long run.
SHARE = {(2,): 1, (4,): 2, (2, 2): 23}


@functools.cache
def gpus():
    """How many there are, by PyTorch, in a process of its own; ranks import this file and do not ask."""
    code = "import torch; print(torch.cuda.device_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return int(done.stdout or 0)


def on_fakes(count, function, *arguments, file=__name__, environment=None, **options):
    """The function of a test file in processes whose GPUs are fakes."""
    if not all(each.exists() for each in FAKES):
        pytest.skip("the fakes are not built")
    pytest.importorskip("nvidia.cu13", reason="no NVRTC")
    with tempfile.TemporaryDirectory() as folder:
        fakes = {"HELVE_LIBCUDA": str(FAKES[0]), "HELVE_NCCL": str(FAKES[1]), "HELVE_FAKE_NCCL_FOLDER": folder}
        return on_ranks(count, file, function, *arguments, by="tcp", environment={**fakes, **(environment or {})},
                        **options)


def require_gpus(count):
    if count > gpus():
        pytest.skip(f"fewer than {count} GPUs")


def on_gpus(count, function, *arguments, file=__name__, environment=None, **options):
    """The function of a test file in processes with a GPU each; without NVLink multicast, which these machines do not
    lend."""
    require_gpus(count)
    return on_ranks(count, file, function, *arguments, by="tcp", timeout=500,
                    environment={"NCCL_NVLS_ENABLE": "0", **(environment or {})}, **options)


BOTH = pytest.mark.parametrize("where", [on_fakes, on_gpus], ids=["fakes", "gpus"])


def on_gpu(array):
    """The array on the GPU of this process, or on the fake one."""
    if os.environ.get("HELVE_LIBCUDA"):
        import fake_gpu

        return fake_gpu.Array(np.array(array))
    import torch

    torch.cuda.set_device(helve.dist.rank())
    return torch.from_numpy(np.array(array)).cuda()


def on_host(part):
    return part.array if hasattr(part, "array") else part.cpu().numpy()


def differences(mesh_shape, share, shapes, dtypes):
    """The redistributions whose part on this process is another than in one process; and how many were tried."""
    names = ("x", "y", "z")[: len(mesh_shape)]
    here = helve.Mesh(tuple(mesh_shape), names)
    there = helve.Mesh(tuple(mesh_shape), names, device="cuda")
    device = tuple(int(c) for c in np.unravel_index(helve.dist.rank(), mesh_shape))
    found, tried = [], 0
    cases = itertools.product(shapes, itertools.product(placements(mesh_shape), repeat=2), dtypes)
    for number, (shape, (old, new), dtype) in enumerate(cases):
        if number % share:
            continue
        tried += 1
        shape = tuple(shape)
        source = parts_of(old, shape, here, dtype, number)
        if np.dtype(dtype).kind == "f":
            for part in source.shards.values():
                part[...] = np.round(part / 32)  # sums are exact, in any order
        wanted = source.redistribute(placed(new, shape, here)).shards.get(device)
        mine = source.shards.get(device)
        tensor = DistTensor.from_local(None if mine is None else on_gpu(mine), placed(old, shape, there))
        moved = tensor.redistribute(placed(new, shape, there))
        given = moved.shards.get(device)
        same = (given is None) == (wanted is None)
        if same and given is not None:
            same = on_host(given).dtype == wanted.dtype and on_host(given).tobytes() == wanted.tobytes()
        if not same:
            found.append(f"{shape} {dtype}: {old} to {new} on {device}")
    return {"found": found, "tried": tried}


@BOTH
@pytest.mark.parametrize("mesh", SHARE, ids=str)
def test_parts_are_those_of_one_process(mesh, where):
    count = int(np.prod(mesh))
    answers = where(count, "differences", mesh, 1 if LONG else SHARE[mesh], SHAPES, ["float32"])
    assert [each["found"] for each in answers] == [[]] * count
    assert all(each["tried"] > 20 for each in answers)


@BOTH
def test_large_parts_and_other_dtypes(where):
    """Parts that are cut, and dtypes that NCCL does not reduce as helve does."""
    answers = where(4, "differences", (4,), 5, [(300, 70), (70001, 1)], ["float32", "float16", "int16", "int64"])
    assert [each["found"] for each in answers] == [[]] * 4


def of_operators():
    """Reductions by every operator, of floats with NaN and of integers that wrap."""
    here, there = helve.Mesh((2,)), helve.Mesh((2,), device="cuda")
    found = []
    for op, dtype, to in itertools.product(("+", "prod", "max", "min"), ("float32", "float16", "int32", "uint8"),
                                           ("i", "*", "1")):
        rng = np.random.default_rng(5)
        terms = {(d,): rng.integers(0, 200, (6, 5)).astype(dtype) for d in range(2)}
        if dtype == "float32":
            terms[0,][2, 2] = np.nan
        source = DistTensor.from_local(terms, distribution(f"i j -> {op}", (6, 5), here))
        wanted = source.redistribute(distribution(f"i j -> {to}", (6, 5), here)).shards.get((helve.dist.rank(),))
        tensor = DistTensor.from_local(on_gpu(terms[helve.dist.rank(),]), distribution(f"i j -> {op}", (6, 5), there))
        given = tensor.redistribute(distribution(f"i j -> {to}", (6, 5), there)).shards.get((helve.dist.rank(),))
        if wanted is not None and not np.array_equal(on_host(given), wanted, equal_nan=dtype.startswith("float")):
            found.append(f"{op} {dtype} {to}")
    return found


@BOTH
def test_operators(where):
    assert where(2, "of_operators") == [[], []]


def ways_of_use():
    """The methods of a tensor over GPUs, each against NumPy."""
    mesh, rank = helve.Mesh((2,), device="cuda"), helve.dist.rank()
    a = np.arange(60.0, dtype="float32").reshape(12, 5)
    rows, columns = (distribution(f"i j -> {to}", a.shape, mesh) for to in "ij")
    tensor = DistTensor.from_global(on_gpu(a), rows)
    assert np.array_equal(on_host(tensor.shards[rank,]), a[6 * rank : 6 * rank + 6])
    assert np.array_equal(on_host(tensor.gather()), a)
    moved = tensor.redistribute(columns)
    run = tensor.prepare(tensor.plan(columns), out=moved)
    tensor.shards[rank,][...] = on_gpu(a[6 * rank : 6 * rank + 6] + 1000)
    for _ in range(3):
        assert run() is moved
    assert np.array_equal(on_host(moved.shards[rank,]), a[:, 3 * rank : 3 * rank + 3] + 1000)
    same = tensor.prepare(tensor.plan(rows), out=DistTensor.from_global(on_gpu(a), rows))()
    assert np.array_equal(on_host(same.shards[rank,]), on_host(tensor.shards[rank,]))
    face = tensor.redistribute(distribution("i j -> 1", a.shape, mesh))
    assert ((rank,) in face.shards) == (rank == 1) and str(face.dtype).endswith("float32")
    again = DistTensor.from_local(face.shards.get((rank,)), face.distribution)
    assert np.array_equal(on_host(again.gather()), a + 1000)
    begun = DistTensor.from_global(on_gpu(a), distribution("i j -> max", a.shape, mesh))
    assert np.array_equal(on_host(begun.shards[rank,]), a if rank == 0 else np.full_like(a, -np.inf))
    try:
        tensor.prepare(tensor.plan(rows), out=tensor)
    except helve.Error as fault:
        return fault.message
    return None


@BOTH
def test_every_method_of_a_tensor(where):
    answers = where(2, "ways_of_use")
    for rank, answer in enumerate(answers):
        text = f"memory that is shared by the part of ({rank},) and another one is no place for a result"
        assert answer == text, answers


def faults(odd, what):
    """A step before which one process differs."""
    mesh, rank = helve.Mesh((2,), device="cuda"), helve.dist.rank()
    rows, columns = (distribution(f"i j -> {to}", (6, 4), mesh) for to in "ij")
    part = on_gpu(np.ones((3, 4), "float32"))
    if what == "wrong GPU":
        DistTensor.from_local(part, rows)
        if rank == odd:
            part.number = 1
    if what == "on CPU" and rank == odd:
        part = np.ones((3, 4), "float32")
    tensor = DistTensor.from_local(part, rows)
    tensor.redistribute(columns)
    if what == "skips" and rank == odd:
        return "skipped"
    if what == "dies" and rank == odd:
        os._exit(3)
    tensor.redistribute(columns)
    return "done"


def said(answers):
    return [each if not isinstance(each, dict) else re.sub(r"\n(?! *help).*", "", each["text"]) for each in answers]


def test_a_part_on_the_cpu():
    zero, one = said(on_fakes(2, "faults", 1, "on CPU"))
    assert zero.startswith("error[HV0423]: process 1 has an error of its own before step 1, which is ")
    assert one == ('error[HV0507]: a tensor on cpu is no part of a tensor over processes of device "cuda"\n'
                   "help: pass tensor.cuda()")


def test_a_part_on_another_gpu():
    zero, one = said(on_fakes(2, "faults", 1, "wrong GPU"))
    assert zero.startswith("error[HV0423]: process 1 has an error of its own before step 4, which is "), zero
    assert one == ("error[HV0429]: a part of process 1 is on cuda:1, and its GPU is cuda:0, where its first one was\n"
                   "help: keep one GPU for a process, by torch.cuda.set_device(0) or CUDA_VISIBLE_DEVICES, or pass "
                   "tensor.to('cuda:0')"), one


def test_processes_with_one_gpu():
    for rank, text in enumerate(said(on_fakes(2, "faults", 0, "", environment={"HELVE_FAKE_GPU": "7"}))):
        assert text == (f"error[HV0430]: processes 0 and 1 have one GPU, cuda:0 (Fake GPU 0) of process {rank}\n"
                        "help: give each process a GPU of its own: "
                        "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])), or CUDA_VISIBLE_DEVICES")


def test_an_old_nccl_and_none():
    for answers, reason in (
            (on_fakes(2, "faults", 0, "", environment={"HELVE_FAKE_NCCL_VERSION": "21705"}),
             f"{FAKES[1]} is version 2.17.5, helve needs 2.18 or later"),
            (on_fakes(2, "faults", 0, "", environment={"HELVE_NCCL": "/no/libnccl.so"}),
             "/no/libnccl.so: cannot open shared object file: No such file or directory")):
        assert any(text == (f"error[HV0427]: NCCL, which moves tensors between GPUs, cannot be used: {reason}\n"
                            "help: pip install nvidia-nccl-cu13, or name the library by HELVE_NCCL")
                   for text in said(answers)), answers


@pytest.mark.parametrize("what", ["skips", "dies"])
def test_a_process_that_is_gone(what):
    """The plan is compared at its first run, so that the others learn it before they call NCCL."""
    answers = on_fakes(2, "faults", 1, what, environment={"HELVE_COMM_TIMEOUT": "1"})
    assert answers[1] == ("skipped" if what == "skips" else None)
    assert answers[0]["error"] in ("HV0420", "HV0421") and "process 1 " in answers[0]["text"]


def skips_a_run(compares):
    """Process 1 leaves out a run that was made before, so that no plan is compared."""
    mesh, rank = helve.Mesh((2,), device="cuda"), helve.dist.rank()
    rows, columns = (distribution(f"i j -> {to}", (6, 4), mesh) for to in "ij")
    tensor = DistTensor.from_local(on_gpu(np.ones((3, 4), "float32")), rows)
    run = tensor.prepare(tensor.plan(columns))
    run()
    if rank == 0:
        run()
    other = tensor.prepare(tensor.plan(distribution("i j -> *", (6, 4), mesh)))
    other()
    return "done"


def test_a_run_that_one_skips_where_steps_are_compared():
    answers = on_fakes(2, "skips_a_run", True, environment={"HELVE_COMM_CHECK": "1"})
    assert [each["error"] for each in answers] == ["HV0419"] * 2


def captured():
    """A graph of runs, replayed often; a first run cannot be recorded."""
    import torch

    mesh, rank = helve.Mesh((helve.dist.size(),), device="cuda"), helve.dist.rank()
    count = mesh.size
    rows, columns = (distribution(f"i j -> {to}", (8 * count, 8 * count), mesh) for to in "ij")
    tensor = DistTensor.from_local(on_gpu(np.zeros((8, 8 * count), "float32")), rows)
    run = tensor.prepare(tensor.plan(columns))
    refused = ""
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            run()
    except helve.Error as fault:
        refused = fault.code
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
        tensor.shards[rank,].add_(1)
    for _ in range(1000):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.all(run.out.shards[rank,] == 999), run.out.shards[rank,]
    return refused


@pytest.mark.parametrize("count", [2, 4])
def test_a_graph_of_runs(count):
    assert on_gpus(count, "captured") == ["HV0926"] * count


def test_declarations_are_those_of_nccl(tmp_path):
    """The table of functions and the structures by nccl.h of pip's wheel, where it is."""
    found = [path for folder in sys.path for path in Path(folder or ".").glob("nvidia/nccl/include/nccl.h")]
    header = next(iter(found), None) or next(filter(Path.exists, [Path("/usr/include/nccl.h")]), None)
    if header is None:
        pytest.skip("no nccl.h")
    (tmp_path / "cuda_runtime.h").write_text(
        "#include <stddef.h>\ntypedef struct S* cudaStream_t;\ntypedef struct E* cudaEvent_t;\n")
    for unused in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"):
        (tmp_path / unused).write_text("")
    text = tmp_path / "declarations.cc"
    text.write_text('''#include <nccl.h>
#include "helve/runtime/nccl/nccl_library.h"
namespace ours = helve::runtime::nccl;
#define HELVE_NCCL_FUNCTION(member, symbol, parameters) \\
  static_assert(sizeof(decltype(&::symbol)) == sizeof(void*)); \\
  struct Count_##member { using Ours = int (*) parameters; };
namespace helve::runtime::nccl {
#include "helve/runtime/nccl/nccl_table.inc"
}
template <class> struct Arity;
template <class R, class... A> struct Arity<R (*)(A...)> {
  static constexpr int count = sizeof...(A);
  static constexpr int bytes = (0 + ... + static_cast<int>(sizeof(A)));
};
#undef HELVE_NCCL_FUNCTION
#define HELVE_NCCL_FUNCTION(member, symbol, parameters) \\
  static_assert(Arity<ours::Count_##member::Ours>::count == Arity<decltype(&::symbol)>::count); \\
  static_assert(Arity<ours::Count_##member::Ours>::bytes == Arity<decltype(&::symbol)>::bytes);
#include "helve/runtime/nccl/nccl_table.inc"
static_assert(sizeof(ours::NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(ours::NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(ours::NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(ours::NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(sizeof(ours::NcclConfig) <= sizeof(ncclConfig_t) && ours::kNcclInProgress == ncclInProgress);
static_assert(ours::kNcclInt8 == ncclInt8 && ours::kNcclUint8 == ncclUint8 && ours::kNcclInt32 == ncclInt32 &&
              ours::kNcclUint32 == ncclUint32 && ours::kNcclInt64 == ncclInt64 && ours::kNcclUint64 == ncclUint64 &&
              ours::kNcclFloat32 == ncclFloat32 && ours::kNcclFloat64 == ncclFloat64);
static_assert(ours::kNcclSum == ncclSum && ours::kNcclProd == ncclProd && ours::kNcclMax == ncclMax &&
              ours::kNcclMin == ncclMin);
int main() {
  const ours::NcclConfig config;
  return config.magic == NCCL_API_MAGIC && config.undefined == NCCL_CONFIG_UNDEF_INT ? 0 : 1;
}
''')
    program = tmp_path / "declarations"
    command = ["g++", "-std=c++20", f"-I{tmp_path}", f"-I{header.parent}", f"-I{ROOT}/include", str(text), "-o",
               str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(program)]).returncode == 0
