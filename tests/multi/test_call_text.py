"""The text of a call, `kernel.source("host")`, compiled by g++ and run, against NumPy and the interpreter.

Without GPUs, the driver and NCCL are the fakes of the C++ tests, which run the CUDA text of the kernels on the CPU;
with some, the same programs run on them.
"""

import ctypes
import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_kernels_by_nccl import COMPILE, cases, run_on_host
from test_kernels_by_nccl import on_fakes as fakes_of_kernels
from test_kernels_by_nccl import on_gpus as gpus_of_kernels
from test_redistribution_by_nccl import FAKES

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from nvrtc import compile_cubin, library  # noqa: E402
from ring_programs import persistent_gemm  # noqa: E402

import helve  # noqa: E402
from helve import T  # noqa: E402
from helve.dist import distribution  # noqa: E402

ARCH = "sm_90a"
OPTIONS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


def folder_of(header, *usual):
    """Where a header of NVIDIA is: in pip's wheels, or the system's."""
    found = [path.parent for folder in sys.path for path in Path(folder or ".").glob(f"nvidia/*/include/{header}")]
    return next((each for each in [*found, *map(Path, usual)] if (each / header).exists()), None)


CUDA = folder_of("cuda.h", "/usr/local/cuda/include", "/usr/include")
NCCL = folder_of("nccl.h", "/usr/include")


def on_fakes(count, function, *arguments):
    return fakes_of_kernels(count, function, *arguments, file=__name__)


def on_gpus(count, function, *arguments):
    return gpus_of_kernels(count, function, *arguments, file=__name__)


BOTH = pytest.mark.parametrize("where", [on_fakes, on_gpus], ids=["fakes", "gpus"])
needs_cuda_headers = pytest.mark.skipif(CUDA is None, reason="no cuda.h")
needs_nccl_headers = pytest.mark.skipif(CUDA is None or NCCL is None, reason="no cuda.h and nccl.h")


def is_fake():
    return bool(os.environ.get("HELVE_LIBCUDA"))


def compiled(text, folder):
    """The text as a library, whose driver and NCCL are what this process has loaded."""
    stem = Path(folder, hashlib.sha256(text.encode()).hexdigest()[:16])
    made = stem.with_suffix(".so")
    if helve.dist.rank() == 0 and not made.exists():
        stem.with_suffix(".cc").write_text(text)
        includes = [f"-I{each}" for each in (CUDA, NCCL) if each is not None]
        done = subprocess.run(["g++", *OPTIONS, *includes, "-o", stem.with_suffix(".new"), stem.with_suffix(".cc")],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + text
        stem.with_suffix(".new").rename(made)
    end = time.monotonic() + COMPILE
    while not made.exists():
        assert time.monotonic() < end, "process 0 compiles nothing"
        time.sleep(0.05)
    return ctypes.CDLL(str(made))


def needed_libraries(with_nccl):
    """The driver and NCCL, in the names of the process."""
    if is_fake():
        driver, nccl = (ctypes.CDLL(str(each), ctypes.RTLD_GLOBAL) for each in FAKES)
        driver.cuCtxPushCurrent_v2(ctypes.c_void_p(1))
        return driver, nccl
    import torch

    torch.cuda.set_device(helve.dist.rank())
    torch.zeros(1, device="cuda")  # makes the context current
    loaded = re.findall(r"/\S*libnccl\.so\S*", Path("/proc/self/maps").read_text())
    nccl = ctypes.CDLL((loaded or ["libnccl.so.2"])[0], ctypes.RTLD_GLOBAL) if with_nccl else None
    return ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL), nccl


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]  # noqa: RUF012


def communicator(nccl, mesh, axes, folder):
    """Of the processes that differ on the axes only."""
    own = np.unravel_index(helve.dist.rank(), mesh.shape)
    free = [name in axes for name in mesh.names]
    members = [core for core, place in enumerate(np.ndindex(*mesh.shape))
               if all(f or a == b for f, a, b in zip(free, place, own, strict=True))]
    rank, made = members.index(helve.dist.rank()), UniqueId()
    at = Path(folder, f"id-{'-'.join(axes)}-{members[0]}")
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(made)) == 0
        at.with_suffix(".new").write_bytes(bytes(made))
        at.with_suffix(".new").rename(at)
    end = time.monotonic() + COMPILE
    while not at.exists():
        assert time.monotonic() < end, "no process gives the name of its communicator"
        time.sleep(0.05)
    comm = ctypes.c_void_p()
    made = UniqueId.from_buffer_copy(at.read_bytes())
    assert nccl.ncclCommInitRank(ctypes.byref(comm), len(members), made, rank) == 0
    return comm


class Call:
    """The function of a text."""

    def __init__(self, kernel, folder, mesh=None):
        text = kernel.source("host")
        self.driver, nccl = needed_libraries("nccl.h" in text)
        self.library = compiled(text, folder)
        name, parameters = re.search(r'extern "C" int (\w+)\((.*?)\) \{', text, re.S).groups()
        self.call = getattr(self.library, name)
        self.parameters = [each.strip().rsplit(" ", 1) for each in parameters.split(",")]
        self.extents = {each: (tensor, int(dim)) for each, dim, tensor in
                        re.findall(r"^//   (\w+) +extent (\d+) of (\w+)$", text, re.M)}
        self.comms = {each: communicator(nccl, mesh, each.split("_")[1:], folder)
                      for type_, each in self.parameters if type_ == "ncclComm_t"}
        behind = ""
        if f"{name}_kernels" in text:
            behind = ctypes.c_char_p.from_buffer(
                ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, f"{name}_kernels")))).value.decode()
        self.kernels = ctypes.c_void_p()
        if is_fake():
            run_on_host([kernel], behind)[0]()
            self.image = ctypes.create_string_buffer(b"kernels of a text")
        else:
            import torch

            major, minor = torch.cuda.get_device_capability()
            arch = f"sm_{major}{minor}{'a' * (major == 9)}"
            self.image = ctypes.create_string_buffer(compile_cubin(kernel.source("cuda") + behind, arch)[0])
        assert self.driver.cuLibraryLoadData(ctypes.byref(self.kernels), self.image, None, None, 0, None, None, 0) == 0

    def __call__(self, tensors, **numbers):
        """The result, and the tensors after it. Tensors are arrays by name; numbers are scalars and `core`."""
        own = {name: on_device(array) for name, array in tensors.items()}
        types = {"float": ctypes.c_float, "double": ctypes.c_double, "int64_t": ctypes.c_int64, "bool": ctypes.c_bool,
                 "int32_t": ctypes.c_int32, "uint16_t": ctypes.c_uint16, "int64_t*": ctypes.c_void_p}
        arguments = []
        for type_, name in self.parameters:
            if name in self.comms:
                arguments.append(self.comms[name])
            elif type_ == "CUdeviceptr":
                arguments.append(ctypes.c_uint64(address(own[name])))
            elif name in ("kernels", "stream"):
                arguments.append(self.kernels if name == "kernels" else ctypes.c_void_p(0))
            elif name in self.extents:
                tensor, dim = self.extents[name]
                arguments.append(types[type_](tensors[tensor].shape[dim]))
            else:
                arguments.append(types[type_](numbers[name]))
        result = self.call(*arguments)
        return result, {name: on_host(each) for name, each in own.items()}


def on_device(array):
    """A copy at a multiple of 256 bytes."""
    if not is_fake():
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).cuda()
    block = np.empty(array.nbytes + 256, "uint8")
    begin = -block.ctypes.data % 256
    out = block[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def address(array):
    return array.ctypes.data if is_fake() else array.data_ptr()


def on_host(array):
    return array.copy() if is_fake() else array.cpu().numpy()


def differences(shape, chosen, chunk, folder):
    """The kernels whose results by their text are others on this process than in one process."""
    here, there = helve.Mesh(tuple(shape)), helve.Mesh(tuple(shape), device="cuda")
    core = helve.dist.rank()
    device = tuple(int(c) for c in np.unravel_index(core, shape))
    found = []
    for number, (function, tensors, scalars, tolerance) in enumerate(cases(here, chosen)):
        wanted = [each.copy() for each in tensors]
        helve.compile(function, mesh=here)(*wanted, *scalars)
        inside = Path(folder, f"case-{number}")
        inside.mkdir(exist_ok=True)
        call = Call(helve.compile(function, mesh=there, persistent_chunk=chunk), inside, there)
        names = [name for type_, name in call.parameters if type_ == "CUdeviceptr"]
        boxes = []
        for each in tensors:
            on = distribution("i j -> i j", each.shape, there)
            begin, part = on.local_begin(device), on.local_shape(device)
            boxes.append(tuple(slice(b, b + e) for b, e in zip(begin, part, strict=True)))
        own = {name: each[box] for name, each, box in zip(names, tensors, boxes, strict=True)}
        for _ in range(2):
            result, own = call(own, core=core, **dict(zip(("k",), scalars)))
            assert result == 0, result
        for name, whole, box in zip(names, wanted, boxes, strict=True):
            if not np.allclose(own[name], whole[box], rtol=tolerance, atol=tolerance):
                found.append(f"case {number} on {device}")
    return found


@BOTH
@needs_nccl_headers
@pytest.mark.parametrize(("chosen", "shape", "chunk"), [
    ("rms_norm", (2, 2), None), ("rms_norm", (1, 2), 1), ("sums", (2, 2), None), ("exchanges", (2, 2), None),
    ("exchanges", (1, 2), 4), ("rooted", (2, 2), None), ("rooted", (1, 2), 1), ("steps", (2, 2), None),
    ("steps", (2, 1), None)])
def test_a_mesh_of_processes(chosen, shape, chunk, where, tmp_path):
    count = int(np.prod(shape))
    assert where(count, "differences", shape, chosen, chunk, str(tmp_path)) == [[]] * count


def steps_of_the_host():
    """Loops, a branch, a decision by memory, a scalar of each kind, extents that only the call knows."""
    n, m = T.dyn("n"), T.dyn("m")

    @T.prim_func
    def main(A: T.Tensor((n, m), "float32"), B: T.Tensor((n, m), "float32"), factor: T.float32, times: T.int32,
             half: T.float16, linux: T.int64):
        left = T.alloc_global((n,), "int64")
        with T.Kernel(T.ceildiv(n, 4)) as b:
            for r in T.Parallel(4):
                if b * 4 + r < n:
                    left[b * 4 + r] = 3 + linux
        for k in T.serial(times):
            with T.Kernel(n) as b:
                for c in T.Parallel(m):
                    A[b, c] = A[b, c] * factor + T.cast(half, "float32") * T.cast(k, "float32")
        if m > 8:
            with T.Kernel(n) as b:
                for c in T.Parallel(m):
                    B[b, c] = A[b, c]
        else:
            with T.Kernel(n) as b:
                for c in T.Parallel(m):
                    B[b, c] = -A[b, c]
        while left[n - 1] > 0:
            with T.Kernel(n) as b:
                left[b] = left[b] - 1
                B[b, 0] = B[b, 0] + 1.0

    return main


def runs_steps(folder):
    call = Call(helve.compile(steps_of_the_host(), target="cuda", arch=None if not is_fake() else ARCH), folder)
    for n, m in ((5, 24), (4, 8), (1, 3)):
        a = np.arange(n * m, dtype="float32").reshape(n, m)
        result, after = call({"A": a, "B": np.zeros_like(a)}, factor=0.5, times=2,
                             half=int(np.float16(1.5).view("uint16")), linux_1=2)
        assert result == 0, result
        a = (a * 0.5) * 0.5 + 1.5
        wanted = a.copy() if m > 8 else -a
        wanted[:, 0] += 5
        assert np.array_equal(after["A"], a) and np.array_equal(after["B"], wanted), (n, m)
    return True


def runs_clusters(folder):
    """Tensor maps, a cluster, as many blocks as the program names."""
    kernel = helve.compile(persistent_gemm(64, 32, 32, 128, 3, 4, cluster=2), target="cuda", arch=ARCH)
    text = kernel.source("host")
    assert ".cluster = 2" in text and text.count("cuTensorMapEncodeTiled(") >= 2
    call, rng = Call(kernel, folder), np.random.default_rng(3)
    for m, n, k in ((128, 64, 64), (200, 72, 40)):
        a, b = (rng.integers(-4, 4, shape).astype("float32") for shape in ((m, k), (n, k)))
        bits = [(each.view("uint32") >> 16).astype("uint16") for each in (a, b)]  # exact in bfloat16
        result, after = call({"A": bits[0], "B": bits[1], "C": np.zeros((m, n), "float32")})
        assert result == 0, result
        assert np.array_equal(after["C"], a @ b.T), (m, n, k)
    return True


def asserts(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32")):
        with T.Kernel(1) as b:
            for i in T.serial(n):
                T.assert_(A[i] > 0, "a positive number")

    return main


def runs_asserts(folder):
    """What a kernel asserts is in the memory of reports; a tensor at an odd place is refused."""
    call = Call(helve.compile(asserts(4), target="cuda", arch=ARCH if is_fake() else None), folder)
    pages = ctypes.c_void_p()
    assert call.driver.cuMemHostAlloc(ctypes.byref(pages), 64 * 8, 3) == 0
    words = (ctypes.c_int64 * 64).from_address(pages.value)
    ctypes.memset(pages, 0, 64 * 8)
    for numbers, state in (([1, 2, 3, 4], 0), ([1, 2, -7, 4], 2)):
        result, _ = call({"A": np.array(numbers, "int32")}, reports=pages.value)
        assert result == 0
        assert call.driver.cuStreamSynchronize(None) == 0
        assert words[0] == state
    assert -7 in words[2:8]
    return True


@BOTH
@needs_cuda_headers
@pytest.mark.parametrize("program", [runs_steps, runs_clusters, runs_asserts])
def test_one_gpu(program, where, tmp_path):
    assert where(1, program.__name__, str(tmp_path)) == [True]


def parts(mesh, between):
    """Cores of one process, with memory of their own, and what they do between two launches."""
    rows, cols = mesh.shape

    @T.prim_func(mesh=mesh)
    def main(OUT: T.Tensor((rows, cols), "int64")):
        value = T.alloc_global((3,), "int64")
        with T.Kernel(rows, cols) as (r, c):
            value[0] = r * 10 + c
        if between == "exchange":
            T.comm.permute(value, value, axis="y")
        if between == "decision":
            if value[0] > 3:
                with T.Kernel(rows, cols) as (r, c):
                    value[0] = 0
        with T.Kernel(rows, cols) as (r, c):
            OUT[r, c] = value[0]

    return main


def runs_cores(folder):
    mesh = helve.Mesh((2, 3))
    arch = ARCH if is_fake() else None
    call = Call(helve.compile(parts(mesh, None), target="cuda", mesh=mesh, arch=arch), folder)
    result, after = call({"OUT": np.zeros((2, 3), "int64")})
    assert result == 0 and after["OUT"].tolist() == [[0, 1, 2], [10, 11, 12]]
    return True


@BOTH
@needs_cuda_headers
def test_the_cores_of_one_process(where, tmp_path):
    assert where(1, "runs_cores", str(tmp_path)) == [True]


@pytest.mark.skipif(library() is None, reason="no NVRTC")
@pytest.mark.parametrize(("between", "step", "reason"), [
    ("exchange", "permute", "cores of one process exchange values between its launches"),
    ("decision", "diverge", "each core of this process decides by its memory what comes next")])
def test_cores_of_one_process_that_differ_have_a_plan_only(between, step, reason):
    mesh = helve.Mesh((2, 3))
    kernel = helve.compile(parts(mesh, between), target="cuda", mesh=mesh, arch=ARCH)
    assert step in kernel.source("plan")
    with pytest.raises(helve.Error) as caught:
        kernel.source("host")
    first, *_, last = str(caught.value).splitlines()
    assert first == "error[HV0820]: " + f"the call of 'main' has no text: {reason}"
    assert last == ('help: show "plan", which has its steps, or compile it for a mesh of device="cuda", which has a '
                    "process for each core")
    assert Path(caught.value.filename) == Path(__file__)


def test_names_of_users_and_extents_of_packed_tensors():
    """A parameter with the name of a variable of the text gets a number; extents are those of the argument's bytes."""
    function = helve.parse("""
N = T.dyn("N")
K = T.dyn("K")

@T.prim_func
def main(value0: T.Tensor((N, K), "int4"), stays: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
        for i in T.Parallel(32):
            if b * 32 + i < N:
                stays[b * 32 + i] = T.cast(value0[b * 32 + i, K - 2], "float32")
""")
    text = helve.compile(function, target="cuda", arch=ARCH).source("host")
    signature, call = text[text.index('extern "C"'):].split("{", 1)
    assert "value0_1" in signature and "stays_1" in signature
    assert "2 times extent 1 of value0_1" in text and "[N, K / 2]" in text
    assert "&value0_1" in call
    arguments = next(line for line in call.splitlines() if "arguments[]" in line)
    assert len(set(arguments.split("{")[1].split(","))) == arguments.count("&")
