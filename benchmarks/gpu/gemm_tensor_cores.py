"""Products of matrices on tensor cores: a plain tile program against torch, in one process.

`python benchmarks/gpu/gemm_tensor_cores.py` prints for each shape the TFLOP/s of both and their ratio, the best of
several configurations of tiles beside its name; "tma" are those whose results leave through shared memory, by stmatrix
and TMA. A is (M, K), B is (N, K), bfloat16, sums in float32, results in bfloat16. `--types` does the same for float32
as TensorFloat-32, float8_e4m3 and int8 at one shape, with results of the sums' type, against torch.mm,
torch._scaled_mm (its own accumulation, without use_fast_accum) and torch._int_mm. Times are medians of rounds in which
the two take turns, so that clocks and temperature are the same; each round is a burst of calls, between two events.
`--check` compares the results with float32 first.
"""

from __future__ import annotations

import argparse
import statistics

import torch

import helve
from helve import T

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 5120, 5120), (4098, 4104, 1032)]
# rows and columns of a block's tile, its depth, threads, stages of the pipeline
TILES = [(128, 128, 64, 128, 4), (128, 256, 64, 256, 3), (128, 256, 64, 256, 4), (256, 128, 64, 256, 4),
         (128, 128, 64, 256, 4), (128, 128, 128, 128, 3)]
BY_TMA = [(128, 256, 64, 256, 3), (128, 128, 64, 256, 4), (256, 128, 64, 256, 3)]
OTHER_TYPES = {"float32": 32, "float8_e4m3": 128, "int8": 128}  # depths of a tile
# as TILES, by resident blocks that take tiles in turn
PERSISTENT = [(128, 256, 64, 256, 4), (256, 128, 64, 256, 4), (128, 128, 64, 256, 4)]


def persistent_gemm(bm: int, bn: int, bk: int, threads: int, stages: int, blocks: int):
    """C = A @ B^T for any extents, by `blocks` blocks: copies for a tile begin before the last one is stored."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(blocks, threads=threads) as block:
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            for j, i in T.Persistent([T.ceildiv(N, bn), T.ceildiv(M, bm)]):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                    T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                    T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                    T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
                T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def gemm(bm: int, bn: int, bk: int, threads: int, stages: int, dtype: str = "bfloat16", out: str = "bfloat16",
         by_tma: bool = False):
    """C = A @ B^T for any extents."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")
    sums = "int32" if dtype == "int8" else "float32"
    slabs = f"S[({bm}, {bn // 64}, 64) : (64, {bm * 64}, 1)] ^ Swizzle(3, 3, 3)"

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (j, i):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bn, bk), dtype)
            c = T.alloc_fragment((bm, bn), sums)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            if by_tma:
                rounded = T.alloc_fragment((bm, bn), out)
                staged = T.alloc_shared((bm, bn), out, layout=slabs)
                T.copy(c, rounded)
                T.copy(rounded, staged, dispatch="stmatrix")
                T.copy(staged, C[i * bm : i * bm + bm, j * bn : j * bn + bn], dispatch="tma_tensor")
            else:
                T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def seconds(run, calls: int) -> float:
    """Of one call, in a burst of them."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def compare(runs: dict, rounds: int = 7, burst: float = 0.05) -> dict[str, float]:
    """Median seconds of each, taken in turns."""
    for run in runs.values():
        run()
    torch.cuda.synchronize()
    calls = {name: max(1, int(burst / seconds(run, 3))) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run, calls[name]))
    return {name: statistics.median(each) for name, each in times.items()}


def report(m: int, n: int, k: int, kernels: dict, arguments: tuple, name: str, reference) -> None:
    """Prints the rates of the kernels and of the reference."""
    runs = {tile: (lambda kernel=kernel: kernel(*arguments)) for tile, kernel in kernels.items()}
    runs[name] = reference
    rate = {each: 2 * m * n * k / t / 1e12 for each, t in compare(runs).items()}
    best = max(kernels, key=rate.get)
    print(f"{m} x {n} x {k}: helve {rate[best]:.0f} TFLOP/s ({best}), {name} {rate[name]:.0f}, "
          f"ratio {rate[best] / rate[name]:.3f}")
    print("    " + ", ".join(f"{each} {rate[each]:.0f}" for each in kernels))


def other_types(check: bool) -> None:
    """One shape in each of the other types."""
    m = n = k = 8192
    torch.backends.cuda.matmul.allow_tf32 = True
    one = torch.ones((), device="cuda")
    for dtype, depth in OTHER_TYPES.items():
        kind = torch.float8_e4m3fn if dtype == "float8_e4m3" else getattr(torch, dtype)
        sums = "int32" if dtype == "int8" else "float32"
        kernels = {}
        for bm, bn, _, threads, stages in TILES[:3] + TILES[4:5]:
            tile = (bm, bn, depth, threads, stages)
            kernels["x".join(map(str, tile))] = helve.compile(gemm(*tile, dtype, sums), target="cuda")
        a, b = (torch.randint(-3, 4, shape, device="cuda").to(kind) for shape in [(m, k), (n, k)])
        c = torch.empty((m, n), device="cuda", dtype=getattr(torch, sums))
        name, reference = {
            "float32": ("torch.mm", lambda: torch.mm(a, b.T, out=c)),
            "float8_e4m3": ("torch._scaled_mm", lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16)),
            "int8": ("torch._int_mm", lambda: torch._int_mm(a, b.T, out=c)),
        }[dtype]
        if check:
            wanted = a[:256].double() @ b.double().T
            for tile, kernel in kernels.items():
                kernel(a, b, c)
                error = ((c[:256].double() - wanted).abs() / (a[:256].double().abs() @ b.double().abs().T + 1)).max()
                assert error < 1e-3, (tile, dtype, float(error))
        print(dtype)
        report(m, n, k, kernels, (a, b, c), name, reference)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    parser.add_argument("--types", action="store_true", help="measure other types")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    if options.types:
        return other_types(options.check)
    kernels = {"x".join(map(str, tile)): helve.compile(gemm(*tile), target="cuda") for tile in TILES}
    for tile in BY_TMA:
        kernels["x".join(map(str, tile)) + " tma"] = helve.compile(gemm(*tile, by_tma=True), target="cuda")
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    for tile in PERSISTENT:
        kernels["persistent " + "x".join(map(str, tile))] = helve.compile(persistent_gemm(*tile, blocks), target="cuda")
    for m, n, k in SHAPES:
        a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
        c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
        if options.check:
            wanted = a.float() @ b.float().T
            for name, kernel in kernels.items():
                kernel(a, b, c)
                error = ((c.float() - wanted).abs() / (a.float().abs() @ b.float().abs().T + 1)).max()
                assert error < 1e-2, (name, m, n, k, float(error))
        report(m, n, k, kernels, (a, b, c), "torch.mm", lambda: torch.mm(a, b.T, out=c))
    return None


if __name__ == "__main__":
    main()
