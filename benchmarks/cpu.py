"""The CPU target against NumPy: normalisations, softmax, elementwise chains, the cost of a call, compile and import.

Run it: ``python benchmarks/cpu.py``. Every ratio is against NumPy's plain expression in the same run; NumPy has one
core, the copy as many as helve. What the numbers mean: docs/performance.md.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

import helve
from helve import T

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tutorials"))
SHAPE = (4096, 8192)


def print_table(title: str, candidates: dict, moved: int) -> None:
    """Times by turns, without cold caches: the matrices are larger; ratios are to the first."""
    print(f"\n{title}\n{helve.bench(candidates, cache='warm', bytes=moved)}")


def per_call(call) -> float:
    """Median seconds of a call."""
    return helve.bench(call, cache="warm").timing().seconds


def rms_norm(n: int, rows: int = 1, dtype: str = "float32"):
    M = T.dyn("M")

    @T.prim_func
    def main(X: T.Tensor((M, n), dtype), Y: T.Tensor((M, n), dtype)):
        with T.Kernel(T.ceildiv(M, rows)) as b:
            x = T.alloc_shared((rows, n), dtype)
            square = T.alloc_shared((rows, n), dtype)
            total = T.alloc_shared((rows,), dtype)
            T.copy(X[b * rows : (b + 1) * rows, :], x)
            for i, j in T.Parallel(rows, n):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, total, dim=1)
            for i in T.Parallel(rows):
                total[i] = T.rsqrt(total[i] / n + 1e-6)
            for i, j in T.Parallel(rows, n):
                x[i, j] = x[i, j] * total[i]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return main


def layer_norm(n: int, rows: int = 1, dtype: str = "float32"):
    """Y = (X - mean) / sqrt(variance + 1e-5) * G + H for each row."""
    M = T.dyn("M")

    @T.prim_func
    def main(X: T.Tensor((M, n), dtype), G: T.Tensor((n,), dtype), H: T.Tensor((n,), dtype),
             Y: T.Tensor((M, n), dtype)):
        with T.Kernel(T.ceildiv(M, rows)) as b:
            x = T.alloc_shared((rows, n), dtype)
            square = T.alloc_shared((rows, n), dtype)
            mean = T.alloc_shared((rows,), dtype)
            scale = T.alloc_shared((rows,), dtype)
            T.copy(X[b * rows : (b + 1) * rows, :], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(rows):
                mean[i] = mean[i] / n
            for i, j in T.Parallel(rows, n):
                x[i, j] = x[i, j] - mean[i]
            for i, j in T.Parallel(rows, n):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(rows):
                scale[i] = T.rsqrt(scale[i] / n + 1e-5)
            for i, j in T.Parallel(rows, n):
                x[i, j] = x[i, j] * scale[i] * G[j] + H[j]
            T.copy(x, Y[b * rows : (b + 1) * rows, :])

    return main


def chain(m: int, n: int, rows: int, columns: int, dtype: str = "float32"):
    """B = (max(2 A + 1, 0) - A) (2 A + 1), a step at a time in tiles of (rows, columns)."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(m, rows), T.ceildiv(n, columns)) as (r, c):
            a = T.alloc_shared((rows, columns), dtype)
            t = T.alloc_shared((rows, columns), dtype)
            T.copy(A[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns], a)
            for i, j in T.Parallel(rows, columns):
                t[i, j] = a[i, j] * 2.0 + 1.0
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.max(t[i, j], 0.0) - a[i, j]
            for i, j in T.Parallel(rows, columns):
                t[i, j] = a[i, j] * t[i, j]
            T.copy(t, B[r * rows : (r + 1) * rows, c * columns : (c + 1) * columns])

    return main


def row_copy(m: int, n: int, dtype: str = "float32"):
    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(m) as r:
            a = T.alloc_shared((n,), dtype)
            T.copy(A[r, :], a)
            T.copy(a, B[r, :])

    return main


def row_sums(m: int, n: int, dtype: str = "float32"):
    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), S: T.Tensor((m,), dtype)):
        with T.Kernel(m) as r:
            T.reduce_sum(A[r, :], S[r : r + 1], dim=0)

    return main


def exponentials(turns: int, dtype: str = "float32"):
    """exp of 4096 elements in the first-level cache, `turns` times."""

    @T.prim_func
    def main(X: T.Tensor((4096,), dtype)):
        with T.Kernel(1) as _b:
            x = T.alloc_shared((4096,), dtype)
            T.copy(X, x)
            for _t in T.serial(turns):
                for i in T.Parallel(4096):
                    x[i] = T.exp(0.0 - x[i])
            T.copy(x, X)

    return main


def floors() -> None:
    """What memory and arithmetic allow: no kernel over a matrix takes less."""
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    y = np.zeros_like(x)
    sums = np.zeros(SHAPE[0], np.float32)
    copy, read = helve.compile(row_copy(*SHAPE)), helve.compile(row_sums(*SHAPE))
    for threads in (1, 2):
        helve.set_num_threads(threads)
        candidates = {
            "copy (np.copyto)": copier(x, y, threads),
            "copy around the caches (helve)": lambda: copy(x, y),
            "read only (helve, row sums)": lambda: read(x, sums),
        }
        print_table(f"floors, {SHAPE[0]} x {SHAPE[1]} float32 on {threads} core(s)", candidates, 2 * x.nbytes)
    helve.set_num_threads(None)
    turns = 1000
    exp = helve.compile(exponentials(turns))
    seconds = per_call(lambda: exp(np.zeros(4096, np.float32)))
    print(f"\nexp of float32 in the first-level cache: {seconds / turns / 4096 * 1e9:.3f} ns an element, "
          f"{seconds / turns / 4096 * SHAPE[0] * SHAPE[1] * 1e3:.2f} ms for {SHAPE[0]} x {SHAPE[1]}")  # fmt: skip


def copier(x: np.ndarray, y: np.ndarray, threads: int):
    """A call that copies x to y, a part a thread."""
    if threads == 1:
        return lambda: np.copyto(y, x)
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    parts = list(zip(np.array_split(x, threads), np.array_split(y, threads)))
    return lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))


def rows() -> None:
    """Kernels over rows of a matrix, on one core and on two."""
    module = __import__("00_first_kernel")
    mesh_module = __import__("01_rms_norm")
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SHAPE, dtype=np.float32)
    g, h = rng.standard_normal((2, SHAPE[1]), dtype=np.float32)
    y = np.zeros_like(x)  # written before it is timed: fresh pages would count as work
    moved = 2 * x.nbytes

    def numpy_rms():
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))

    def numpy_rms_einsum():
        scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1] + np.float32(1e-6))
        return np.multiply(x, scale[:, None], out=y)

    def numpy_softmax():
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def numpy_softmax_out():
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        return np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    def numpy_layer_norm():
        d = x - x.mean(axis=1, keepdims=True)
        return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + np.float32(1e-5)) * g + h

    def numpy_chain():
        t = x * np.float32(2) + np.float32(1)
        return (np.maximum(t, np.float32(0)) - x) * t

    mesh = helve.Mesh((2, 2))
    rms = helve.compile(rms_norm(SHAPE[1]))
    rms_mesh = helve.compile(mesh_module.rms_norm_splitk(*SHAPE, 32, 256, mesh), mesh=mesh)
    soft = helve.compile(module.softmax(SHAPE[1], rows=1))
    layer = helve.compile(layer_norm(SHAPE[1]))
    chains = {tile: helve.compile(chain(*SHAPE, *tile)) for tile in ((1, 8192), (4, 2048), (32, 256), (64, 64))}
    for threads in (1, 2):
        helve.set_num_threads(threads)
        copy = copier(x, y, threads)
        tables = {
            "RMSNorm": {
                "NumPy, plain": numpy_rms,
                "NumPy, einsum and out=": numpy_rms_einsum,
                "helve, row kernel": lambda: rms(x, y),
                "helve, mesh 2x2 kernel": lambda: rms_mesh(x, y),
            },
            "softmax": {"NumPy, plain": numpy_softmax, "NumPy, out=": numpy_softmax_out, "helve": lambda: soft(x, y)},
            "layer norm": {"NumPy, plain": numpy_layer_norm, "helve": lambda: layer(x, g, h, y)},
            "elementwise chain": {
                "NumPy, plain": numpy_chain,
                **{f"helve, tiles {a} x {b}": (lambda k=kernel: k(x, y)) for (a, b), kernel in chains.items()},
            },
        }
        for name, candidates in tables.items():
            print_table(
                f"{name} {SHAPE[0]} x {SHAPE[1]} float32; helve and the copy on {threads} core(s)",
                {**candidates, "copy (np.copyto)": copy},
                moved,
            )
    helve.set_num_threads(None)


def call_overhead() -> None:
    module = __import__("00_first_kernel")
    mesh_module = __import__("01_rms_norm")
    a, b = np.zeros((2, 16), np.float32)
    c = np.empty_like(a)
    add = helve.compile(module.vector_add(16, block=16))
    m, n = 4, 4
    print("\ncall of a small kernel")
    print(f"  {'3 arrays of 16 floats, 1 block':40}{per_call(lambda: add(a, b, c)) * 1e6:8.2f} us")
    print(f"  {'np.add of the same, for comparison':40}{per_call(lambda: np.add(a, b, out=c)) * 1e6:8.2f} us")
    x = np.zeros((m, n), np.float32)
    y = np.empty_like(x)
    for shape in ((1, 1), (2, 2)):
        mesh = helve.Mesh(shape)
        kernel = helve.compile(mesh_module.rms_norm_splitk(m, n, 32, 32, mesh), mesh=mesh)
        label = f"RMSNorm {m} x {n}, mesh {shape[0]}x{shape[1]}"
        print(f"  {label:40}{per_call(lambda: kernel(x, y)) * 1e6:8.2f} us")


def compile_time() -> None:
    mesh_module = __import__("01_rms_norm")
    mesh = helve.Mesh((2, 2))
    rows: dict[str, list[float]] = {}
    for _ in range(11):
        start = time.perf_counter()
        function = mesh_module.rms_norm_splitk(*SHAPE, 32, 256, mesh)
        parsed = time.perf_counter()
        kernel = helve.compile(function, mesh=mesh)
        done = time.perf_counter()
        rows.setdefault("Python to IR", []).append(parsed - start)
        stages: dict[str, float] = {}
        for stage, seconds in kernel.times():
            stages[stage] = stages.get(stage, 0.0) + seconds
        for stage, seconds in stages.items():
            rows.setdefault(stage, []).append(seconds)
        rows.setdefault("total", []).append(done - start)
    print("\ncompile of the RMSNorm mesh kernel (median)")
    for stage, times in rows.items():
        print(f"  {stage:32}{sorted(times)[len(times) // 2] * 1e3:10.3f} ms")


def import_time() -> None:
    code = "import time; s = time.perf_counter(); import helve; print(time.perf_counter() - s)"
    alone = "import time; s = time.perf_counter(); import numpy; print(time.perf_counter() - s)"
    print("\nimport (median of 9 processes)")
    for name, text in (("import numpy", alone), ("import helve", code)):
        times = sorted(float(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                                            check=True).stdout) for _ in range(9))
        print(f"  {name:32}{times[4] * 1e3:10.1f} ms")


if __name__ == "__main__":
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    floors()
    rows()
    call_overhead()
    compile_time()
    import_time()
