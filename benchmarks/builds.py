"""Two builds of helve side by side: the same programs, by turns, and whether the results are the same bits.

Run it: ``python benchmarks/builds.py --old FOLDER --new FOLDER [--only gpu,cpu,compile] [--case TEXT]``; a folder holds
a package `helve` with its module. Each build lives in a process of its own, since a process can import only one; the
processes take turns on every case, so that other load on the machine and the temperature of a card affect both. A case
is measured by the worker alone while the other waits. Ratios are new to old: below 1 the new build is faster.

Two copies of one build differ by 10 % and more on a CPU from one pair of processes to another: where a process puts its
arrays is chance, and counts for a kernel that is bound by caches. So CPU cases are measured in several pairs of new
processes, and the ratio is the median of those of the pairs, printed with the lowest and the highest one. What a change
of the compiler must not cost is known this way before it lands.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = (1024, 4096, 7168, 16384, 65536, 131072)  # columns of the kernels over rows
SHORT = (4096, 65536)


# The worker: one build.


def digest(arrays) -> str:
    """Of the bytes of arrays in host memory."""
    h = hashlib.sha256()
    for array in arrays:
        h.update(array.tobytes())
    return h.hexdigest()[:16]


class GpuCase:
    """A kernel of the library, or a plain kernel, on the tensors of benchmarks/gpu/problems.py."""

    def __init__(self, function, tensors, outputs):
        import measure

        import helve

        self.outputs = outputs
        kernel = helve.compile(function, target="cuda", fast_math=True)
        self.call = lambda: kernel(*tensors)
        self.compare = measure.compare

    def sample(self) -> float:
        return self.compare({"": self.call}, 9)[""]

    def digest(self) -> str:
        import torch

        self.call()
        torch.cuda.synchronize()
        return digest([t.detach().contiguous().view(torch.uint8).cpu().numpy() for t in self.outputs])


class CpuCase:
    def __init__(self, kernel, arrays, outputs, threads):
        import helve

        self.call, self.outputs, self.threads = (lambda: kernel(*arrays)), outputs, threads
        self.set_threads = helve.set_num_threads
        self.sample()

    def sample(self) -> float:
        self.set_threads(self.threads)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            self.call()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def digest(self) -> str:
        self.call()
        return digest(self.outputs)


class CompileCase:
    """Seconds from the IR to the result of one stage; no cache."""

    def __init__(self, build, options):
        import helve

        self.compile = lambda: helve.compile(build(), **options)

    def sample(self) -> float:
        start = time.perf_counter()
        self.compile()
        return time.perf_counter() - start

    def digest(self) -> str:
        return ""


def gpu_case(name: str, columns: int):
    import measure
    import problems
    import torch

    torch.manual_seed(0)
    if name in PLAIN:
        return GpuCase(*PLAIN[name](measure, torch, columns))
    problem = problems.PROBLEMS[name]
    setup = problem.setup(problems.rows_of(columns), columns)
    return GpuCase(problem.build(columns), [*setup.inputs, *setup.outputs], setup.outputs)


def cpu_case(name: str, threads: int):
    import cpu
    import numpy as np

    import helve

    sys.path.insert(0, str(HERE.parent / "tutorials"))
    m, n = 4096, 8192
    x = np.random.default_rng(0).standard_normal((m, n), dtype=np.float32)
    y = np.zeros_like(x)
    if name == "gemm":
        import gemm

        size = 1024
        a, b = np.random.default_rng(1).standard_normal((2, size, size), dtype=np.float32)
        c = np.zeros_like(a)
        return CpuCase(helve.compile(gemm.tiles(size, size, size, 128, 128, 256)), [a, b, c], [c], threads)
    if name == "mesh rms_norm":
        mesh = helve.Mesh((2, 2))
        function = __import__("01_rms_norm").rms_norm_splitk(m, n, 32, 256, mesh)
        return CpuCase(helve.compile(function, mesh=mesh), [x, y], [y], threads)
    g, h = np.random.default_rng(2).standard_normal((2, n), dtype=np.float32)
    functions = {
        "rms_norm": lambda: (cpu.rms_norm(n), [x, y]),
        "softmax": lambda: (__import__("00_first_kernel").softmax(n, rows=1), [x, y]),
        "layer_norm": lambda: (cpu.layer_norm(n), [x, g, h, y]),
        "chain 1x8192": lambda: (cpu.chain(m, n, 1, 8192), [x, y]),
        "chain 64x64": lambda: (cpu.chain(m, n, 64, 64), [x, y]),
    }
    function, arrays = functions[name]()
    return CpuCase(helve.compile(function), arrays, [y], threads)


def compile_case(name: str, columns: int):
    if name == "gemm (CPU)":
        import gemm

        return CompileCase(lambda: gemm.tiles(columns, columns, columns, 128, 128, 256), {"target": "llvm"})
    if name == "rms_norm (CPU)":
        import cpu

        return CompileCase(lambda: cpu.rms_norm(columns), {"target": "llvm"})
    options = {"target": "cuda", "fast_math": True, "arch": "sm_90a"}
    if name == "fma_gemm":
        return CompileCase(lambda: fma_gemm(columns), options)
    import problems

    return CompileCase(lambda: problems.PROBLEMS[name].build(columns), options)


def fma_gemm(size: int):
    """Tiles of 128 x 128 x 32 by multiply-adds, float32."""
    from helve import T

    @T.prim_func
    def main(A: T.Tensor((size, size), "float32"), B: T.Tensor((size, size), "float32"),
             C: T.Tensor((size, size), "float32")):  # fmt: skip
        with T.Kernel(size // 128, size // 128, threads=256) as (bx, by):
            a = T.alloc_shared((128, 32), "float32")
            b = T.alloc_shared((32, 128), "float32")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for t in T.Pipelined(size // 32, num_stages=2):
                T.copy(A[bx * 128 : (bx + 1) * 128, t * 32 : (t + 1) * 32], a)
                T.copy(B[t * 32 : (t + 1) * 32, by * 128 : (by + 1) * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * 128 : (bx + 1) * 128, by * 128 : (by + 1) * 128])

    return main


def plain_product(measure, torch, size):
    a, b = (measure.random(size, size, dtype=torch.float32) for _ in range(2))
    c = torch.empty_like(a)
    return fma_gemm(size), [a, b, c], [c]


def plain_transpose(measure, torch, columns):
    """Both extents are known at the call only."""
    from helve import T

    M, N = T.dyn("M"), T.dyn("N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((N, M), "bfloat16")):
        with T.Kernel(T.ceildiv(M, 64), T.ceildiv(N, 64), threads=256) as (r, c):
            x = T.alloc_shared((64, 64), "bfloat16")
            y = T.alloc_shared((64, 64), "bfloat16")
            T.copy(X[r * 64 : (r + 1) * 64, c * 64 : (c + 1) * 64], x)
            for i, j in T.Parallel(64, 64):
                y[j, i] = x[i, j]
            T.copy(y, Y[c * 64 : (c + 1) * 64, r * 64 : (r + 1) * 64])

    x = measure.random(32768, columns)
    y = torch.empty(columns, 32768, dtype=x.dtype, device=x.device)
    return main, [x, y], [y]


PLAIN = {"plain fma_gemm": plain_product, "plain transpose": plain_transpose}
CASES = {"gpu": gpu_case, "cpu": cpu_case, "compile": compile_case}


def worker() -> None:
    """Answers one JSON line a request: `make` builds a case, `sample` times it, `digest` tells its bytes."""
    os.environ["HELVE_CACHE_LIMIT"] = "0"
    sys.path[:0] = [str(HERE), str(HERE / "gpu")]
    case = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "make":
                case = None
                case = CASES[request["kind"]](request["name"], request["size"])
                answer = {}
            elif request["do"] == "sample":
                answer = {"seconds": case.sample()}
            else:
                answer = {"digest": case.digest()}
        except Exception as fault:  # one case that a build cannot do must not end the others
            case = None
            answer = {"fault": f"{type(fault).__name__}: {str(fault).splitlines()[0][:90] if str(fault) else ''}"}
        print(json.dumps(answer), flush=True)


# The driver: both builds by turns.


class Build:
    def __init__(self, folder: str):
        self.folder = folder
        self.process = None

    def start(self) -> None:
        """A new process, in place of the old one."""
        self.stop()
        path = os.pathsep.join([self.folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, __file__, "--worker"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    def stop(self) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def ask(self, **request):
        if not self.process:
            self.start()
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"fault": "the process ended"}
        if "fault" in answer:
            raise Fault(answer["fault"])
        return answer


class Fault(Exception):
    """A build cannot do a case."""


def by_turns(builds: list[Build], kind: str, name: str, size: int, rounds: int) -> tuple[float, float, bool | None]:
    """Median seconds of both builds, and whether the results are the same bits (None: there are none)."""
    for build in builds:
        build.ask(do="make", kind=kind, name=name, size=size)
    samples: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            samples[which].append(builds[which].ask(do="sample")["seconds"])
    digests = [build.ask(do="digest")["digest"] for build in builds]
    return (
        statistics.median(samples[0]),
        statistics.median(samples[1]),
        digests[0] == digests[1] if digests[0] else None,
    )


def measured(builds: list[Build], kind: str, name: str, size: int, rounds: int, pairs: int) -> str:
    """A row of the table."""
    label = f"{kind:8}{name:22}{size:>8}"
    rows = []
    try:
        for pair in range(pairs if kind == "cpu" else 1):
            if kind == "cpu":
                for build in builds if pair % 2 == 0 else builds[::-1]:
                    build.start()
            rows.append(by_turns(builds, kind, name, size, rounds))
    except Fault as fault:
        for build in builds:
            build.stop()
        return f"{label}  {fault}"
    ratios = sorted(new / old for old, new, _ in rows)
    old, new = (statistics.median(row[i] for row in rows) for i in (0, 1))
    spread = f"  {ratios[0]:.3f} to {ratios[-1]:.3f}" if len(ratios) > 1 else ""
    same = "" if rows[0][2] is None else "same bits" if all(row[2] for row in rows) else "DIFFERENT BITS"
    return f"{label}{old * 1e3:12.4f}{new * 1e3:12.4f}{statistics.median(ratios):8.3f}{spread}  {same}"


def cases(kinds: list[str], quick: bool):
    columns = SHORT if quick else ROWS
    if "gpu" in kinds:
        sys.path[:0] = [str(HERE / "gpu")]
        for name in ("rms_norm", "softmax", "cross_entropy", "layer_norm", "rms_norm_backward", "layer_norm_backward"):
            for n in columns:
                if not (name.endswith("backward") and n > 65536):
                    yield "gpu", name, n
        for name, n in (
            ("softmax_backward", 4096),
            ("rope", 4096),
            ("swiglu", 11008),
            ("swiglu_backward", 11008),
            ("transpose", 4096),
            ("row_sums", 4096),
            ("column_sums", 4096),
            ("plain fma_gemm", 4096),
            ("plain transpose", 4096),
        ):
            yield "gpu", name, n
    if "cpu" in kinds:
        for threads in (1, 2):
            for name in ("rms_norm", "mesh rms_norm", "softmax", "layer_norm", "chain 1x8192", "chain 64x64", "gemm"):
                yield "cpu", name, threads
    if "compile" in kinds:
        for name in (
            "rms_norm",
            "softmax",
            "cross_entropy",
            "layer_norm",
            "rms_norm_backward",
            "layer_norm_backward",
            "softmax_backward",
            "rope",
            "swiglu",
            "swiglu_backward",
            "transpose",
            "row_sums",
            "column_sums",
        ):
            yield "compile", name, 4096
        for name in ("rms_norm", "layer_norm", "rms_norm_backward"):
            yield "compile", name, 65536
        yield "compile", "fma_gemm", 4096
        yield "compile", "rms_norm (CPU)", 8192
        yield "compile", "gemm (CPU)", 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", help="a folder with the package helve")
    parser.add_argument("--new", help="another one")
    parser.add_argument("--only", default="gpu,cpu,compile", help="kinds of cases, with commas between")
    parser.add_argument("--quick", action="store_true", help="few row lengths")
    parser.add_argument("--case", default="", help="only programs whose name holds this text")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each build; the median counts")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes of a CPU case; the median counts")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        return worker()
    if not chosen.old or not chosen.new:
        parser.error("--old and --new name the two builds")
    builds = [Build(chosen.old), Build(chosen.new)]
    print(f"{'kind':8}{'program':22}{'size':>8}{'old, ms':>12}{'new, ms':>12}{'ratio':>8}")
    for kind, name, size in cases(chosen.only.split(","), chosen.quick):
        if chosen.case in name:
            print(measured(builds, kind, name, size, chosen.rounds, chosen.pairs), flush=True)


if __name__ == "__main__":
    main()
