"""Products of matrices on tensor cores: a plain tile program against torch.mm, in one process.

`python benchmarks/gpu/gemm_tensor_cores.py` prints for each shape the TFLOP/s of both and their ratio, the best of
several configurations of tiles beside its name. A is (M, K), B is (N, K), bfloat16, sums in float32, results in
bfloat16. Times are medians of rounds in which the two take turns, so that clocks and temperature are the same; each
round is a burst of calls, between two events. `--check` compares the results with float32 first.
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
# the same, by resident blocks that take tiles in turn
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


def gemm(bm: int, bn: int, bk: int, threads: int, stages: int):
    """C = A @ B^T for any extents, a block for each tile."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (j, i):
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    kernels = {"x".join(map(str, tile)): helve.compile(gemm(*tile), target="cuda") for tile in TILES}
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
        runs = {name: (lambda kernel=kernel: kernel(a, b, c)) for name, kernel in kernels.items()}
        runs["torch.mm"] = lambda: torch.mm(a, b.T, out=c)
        times = compare(runs)
        rate = {name: 2 * m * n * k / t / 1e12 for name, t in times.items()}
        best = max(kernels, key=rate.get)
        print(f"{m} x {n} x {k}: helve {rate[best]:.0f} TFLOP/s ({best}), torch.mm {rate['torch.mm']:.0f}, "
              f"ratio {rate[best] / rate['torch.mm']:.3f}")
        print("    " + ", ".join(f"{name} {rate[name]:.0f}" for name in kernels))


if __name__ == "__main__":
    main()
