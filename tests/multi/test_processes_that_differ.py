"""A process that does something else, nothing, or dies: every other one ends with an error that names it."""

import ctypes.util
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from on_ranks import on_ranks

import helve
from helve import T
from helve.cli import launch
from helve.dist import DistTensor, distribution

SHAPE = (8, 6)


def mesh_of(count):
    return helve.Mesh((count,), device="mpi")


def tensor_over(count, dtype="float32"):
    return DistTensor.from_global(np.zeros(SHAPE, dtype), distribution("i j -> i", SHAPE, mesh_of(count)))


def to(tensor, entry):
    return tensor.redistribute(distribution(f"i j -> {entry}", SHAPE, tensor.distribution.mesh))


def moves(count, odd, what):
    """Three redistributions; the process `odd` does something else at the second."""
    tensor, mine = tensor_over(count), helve.dist.rank() == odd
    to(tensor, "*")
    if mine and what == "dies":
        os._exit(3)
    if mine and what == "stops":
        time.sleep(6)
        return "late"
    if mine and what == "skips":
        return to(tensor, "1").shape
    if mine and what == "other dtype":
        tensor = tensor_over(count, "float16")
    to(tensor, "0" if mine and what == "other order" else "j")
    to(tensor, "1")
    return "done"


def texts(answers):
    return [answer["text"].splitlines()[0] if isinstance(answer, dict) else answer for answer in answers]


@pytest.mark.parametrize(("what", "odd"), [("other order", 2), ("skips", 1), ("other dtype", 0)])
def test_all_name_the_process_that_differs(what, odd):
    answers = on_ranks(3, __name__, "moves", 3, odd, what)
    named = 1 if odd == 0 else odd  # process 0 is what others are compared with
    for rank, text in enumerate(texts(answers)):
        assert text.startswith(f"error[HV0419]: process {named} differs from process 0 in step 3, which is "), text
        assert text.endswith(f" on this process, {rank}"), text


def test_a_late_process_is_named_at_the_deadline():
    answers = on_ranks(3, __name__, "moves", 3, 1, "stops", environment={"HELVE_COMM_TIMEOUT": "1"})
    assert answers[1] in ("late", None)  # mpirun may end it when the others have ended
    for rank in (0, 2):
        assert "process 1 did not reach step 3, the plan from " in texts(answers)[rank]
        assert answers[rank]["error"] == "HV0420"


def test_a_dead_process_is_named():
    """mpirun ends all processes at the death of one, unless it is asked to let them come to their own errors."""
    answers = on_ranks(4, __name__, "moves", 4, 3, "dies", options=["--with-ft", "ulfm"],
                       environment={"HELVE_COMM_TIMEOUT": "5"})
    assert answers[3] is None
    for rank in (0, 1, 2):
        assert answers[rank]["error"] in ("HV0421", "HV0420"), answers
        assert "process 3 " in texts(answers)[rank]


def twice(factor, checks):
    """A kernel of two sums over the cores, with an assertion between them that depends on an argument."""

    @T.prim_func
    def main(A: T.Tensor((2, 4), "float32"), B: T.Tensor((2, 4), "float32"), limit: T.int32):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [1, 4]},
                                B: {"sharding": {"x": 0}, "tiling": [1, 4]}}, nrows=2, ncols=1)
        with T.Kernel(2, 1) as (r, c):
            tile = T.alloc_shared((1, 4), "float32")
            total = T.alloc_shared((1, 4), "float32")
            T.mesh_tensor_copy(A, tile, coord=[0, 0])
            T.comm.all_reduce(tile, total, op="sum", axis="x")
            for j in T.Parallel(4):
                if checks:
                    T.assert_(total[0, j] < T.cast(limit, "float32"))
                tile[0, j] = total[0, j] * factor
            T.comm.all_reduce(tile, total, op="sum", axis="x")
            T.mesh_tensor_copy(total, B, coord=[0, 0])

    return main


def tensors():
    mesh = helve.Mesh((2, 1), device="mpi")
    rows = distribution("i j -> i *", (2, 4), mesh)
    return mesh, *(DistTensor.from_global(np.ones((2, 4), "float32"), rows) for _ in range(2))


def fails_between_collectives():
    mesh, a, b = tensors()
    kernel = helve.compile(twice(3.0, True), mesh=mesh)
    kernel(a, b, 100)
    first = b.shards[helve.dist.rank(), 0].tolist()
    try:
        kernel(a, b, 1 if helve.dist.rank() == 0 else 100)
    except helve.Error as fault:
        if fault.code != "HV0724":
            raise
    kernel(a, b, 100)
    return first


def test_an_error_between_collectives_is_seen_by_the_others():
    zero, one = on_ranks(2, __name__, "fails_between_collectives", environment={"HELVE_COMM_TIMEOUT": "1"})
    assert (zero["error"], one and one["error"]) in (("HV0422", "HV0420"), ("HV0422", None)), (zero, one)


def another_order():
    mesh, a, b = tensors()
    kernels = [helve.compile(twice(factor, False), mesh=mesh) for factor in (3.0, 5.0)]
    for kernel in kernels:
        kernel(a, b, 0)
    for kernel in kernels[:: 1 if helve.dist.rank() == 0 else -1]:
        kernel(a, b, 0)
    return "done"


def test_kernels_in_another_order():
    assert [each["error"] for each in on_ranks(2, __name__, "another_order")] == ["HV0419"] * 2


def argument_of_another_distribution():
    mesh, a, b = tensors()
    kernel = helve.compile(twice(3.0, False), mesh=mesh)
    other = DistTensor.from_global(np.ones((2, 4), "float32"), distribution("i j -> j *", (2, 4), mesh))
    try:
        kernel(other if helve.dist.rank() == 1 else a, b, 0)
    except helve.Error as fault:
        return fault.code


def test_an_argument_that_one_process_refuses():
    assert on_ranks(2, __name__, "argument_of_another_distribution") == ["HV0423", "HV0425"]


def measured():
    mesh, a, b = tensors()
    kernel = helve.compile(twice(3.0, False), mesh=mesh)
    try:
        helve.bench(kernel, a, b, 0)
    except helve.Error as fault:
        return fault.message


def test_times_are_no_reason_to_call_a_kernel_more_often():
    assert all(each.endswith("how often it is called must be the same on all processes")
               for each in on_ranks(2, __name__, "measured"))


def wrong_part(count):
    shape = (4, 7) if helve.dist.rank() == 1 else (4, 6)
    return DistTensor.from_local(np.zeros(shape), distribution("i j -> i", SHAPE, mesh_of(count))).shape


def test_a_part_of_another_shape_on_one_process():
    zero, one = on_ranks(2, __name__, "wrong_part", 2)
    assert zero["error"] == "HV0423" and "process 1 has an error of its own" in zero["text"]
    assert one["error"] == "HV0507" and "(4, 7)" in one["text"]


def small_mesh():
    return tensor_over(2).shape


def test_more_processes_than_devices():
    for answer in on_ranks(3, __name__, "small_mesh"):
        assert texts([answer])[0] == "error[HV0418]: a mesh of 2 devices cannot lie on 3 processes"
        assert "help: start one process for each device: helve launch -n 2 program.py" in answer["text"]


def alone(code, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stderr


@pytest.mark.skipif(launch.find_mpirun() is None, reason="no mpirun")
def test_a_launcher_of_another_mpi():
    fault = alone("import helve; helve.dist.init()", OMPI_COMM_WORLD_SIZE="4")
    assert "HV0417" in fault and "4 processes were started by a launcher of another MPI than" in fault


@pytest.mark.skipif(ctypes.util.find_library("mpi") is not None, reason="this machine has an MPI of its own")
def test_no_mpi():
    fault = alone("from helve import _core; _core.ProcessGroup.mpi(['/no/libmpi.so.40'], 60, True)")
    assert "there are no processes for a mesh of device \"mpi\": Open MPI cannot be loaded" in fault
    assert "help: pip install 'helve[mpi]', or install Open MPI 4.1 or later" in fault


@pytest.mark.skipif(ctypes.util.find_library("mpi") is not None, reason="this machine has an MPI of its own")
def test_mpich_is_named(tmp_path):
    """A library of its soname, which is all that is asked of it."""
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", str(tmp_path / "libmpi.so.12")], check=True)
    fault = alone("from helve import _core; _core.ProcessGroup.mpi(['/no/libmpi.so.40'], 60, True)",
                  LD_LIBRARY_PATH=str(tmp_path))
    assert "the MPI here is MPICH or one that is compatible with it (libmpi.so.12); helve calls Open MPI" in fault


def test_a_timeout_that_is_no_number():
    fault = alone("import helve; helve.dist.init()", HELVE_COMM_TIMEOUT="soon")
    assert "HV0417" in fault and "HELVE_COMM_TIMEOUT=soon is no number of seconds" in fault


@pytest.mark.skipif(launch.find_mpirun() is None, reason="no mpirun")
def test_the_command_starts_processes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, helve.dist as d\nprint(d.rank(), d.size(), sys.argv[1:])\n")
    start = [sys.executable, "-m", "helve", "launch", "-n"]
    done = subprocess.run([*start, "3", str(program), "--size", "4"], capture_output=True, text=True)
    assert sorted(done.stdout.splitlines()) == [f"{rank} 3 ['--size', '4']" for rank in range(3)], done.stderr
    none = subprocess.run([*start, "0", str(program)], capture_output=True, text=True)
    assert none.returncode == 2 and "is no whole number of 1 or more" in none.stderr


def test_declarations_are_those_of_open_mpi(tmp_path):
    """The table of functions by the prototypes of mpi.h."""
    header = Path(sys.prefix) / "include" / "mpi.h"
    if not header.exists():
        pytest.skip("no mpi.h")
    root = Path(__file__).parents[2]
    text = tmp_path / "declarations.cc"
    text.write_text('''#include <mpi.h>
#include <type_traits>
struct Ours {
  using MpiComm = MPI_Comm; using MpiErrhandler = MPI_Errhandler; using MpiDatatype = MPI_Datatype;
  using MpiRequest = MPI_Request; using MpiStatus = MPI_Status;
#define HELVE_MPI_FUNCTION(member, symbol, parameters) int (*member) parameters = ::symbol;
#include "helve/runtime/mpi/mpi_table.inc"
};
#include "helve/runtime/mpi/mpi_library.h"
namespace ours = helve::runtime::mpi;
static_assert(sizeof(ours::MpiStatus) == sizeof(MPI_Status) && alignof(ours::MpiStatus) == alignof(MPI_Status));
static_assert(ours::kMpiSuccess == MPI_SUCCESS && ours::kMpiThreadSerialized == MPI_THREAD_SERIALIZED &&
              ours::kMpiThreadMultiple == MPI_THREAD_MULTIPLE && ours::kMpiErrorText >= MPI_MAX_ERROR_STRING);
static_assert(std::is_pointer_v<MPI_Comm> && std::is_pointer_v<MPI_Request> && std::is_pointer_v<MPI_Datatype>);
''')
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{header.parent}", f"-I{root}/include", str(text)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
