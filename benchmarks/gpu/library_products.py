"""kernels.gemm as a user calls it, without tuning, against torch.mm, on shapes of models and on ragged ones.

`python benchmarks/gpu/library_products.py` prints for each shape the rates of four kernels and of torch.mm, which take
turns in one process: one compiled for the shape's numbers; the same without pairs of blocks; one whose N and K are
known and whose M comes at the call, as a linear layer has them; and one for any extents. A is (M, K), B is (N, K),
bfloat16, sums in float32. A product that reads more than it computes, as one of few rows does, has its rate in GB/s
too. `--few` takes few rows and many terms, and prints the ratios of kernels that know the numbers: as planned, and with
K in 1 to 16 parts; with `--cold`, which is as layers of a model meet their weights, caches hold nothing before a call.
`--large` takes cubes, and 8192 rows by the weights of models from 8 to 405 billion parameters, and prints the
geometric mean of the ratios. `--check` compares results first.
"""

from __future__ import annotations

import argparse
import math

import measure
import torch
from gemm_tensor_cores import compare

import helve
from helve import kernels
from helve.kernels.gemm_plan import plan_gemm

# M, N, K: projections of a model of 8 and one of 70 billion parameters, a vocabulary, extents of no one's choice
SHAPES = [
    (4096, 4096, 4096), (8192, 8192, 8192), (8192, 5120, 5120), (4098, 4104, 1032),
    (4096, 6144, 4096), (4096, 28672, 4096), (4096, 4096, 14336), (2048, 128256, 4096), (8191, 8192, 8192),
    (1000, 4096, 4096), (333, 14336, 4096), (64, 4096, 4096), (16, 28672, 4096), (1, 4096, 4096),
]  # fmt: skip

# N, K: the first and the second projection of the feed-forward layer of eight models
WEIGHTS = [
    (24576, 4096), (28672, 4096), (28672, 3584), (73728, 4608), (51200, 5120), (57344, 8192), (98304, 12288),
    (106496, 16384), (4096, 12288), (4096, 14336), (3584, 14336), (4608, 36864), (5120, 25600), (8192, 28672),
    (12288, 49152), (16384, 53248),
]  # fmt: skip
LARGE = [*((n, n, n) for n in (4096, 8192, 16384)), *((8192, n, k) for n, k in WEIGHTS)]


FEW_ROWS = (1, 16, 64, 128, 333, 512)
FEW_OF = [(4096, 4096), (4096, 14336), (28672, 8192), (8192, 28672)]  # N, K
PARTS = (1, 2, 3, 4, 6, 8, 12, 16)


def candidates(m: int, n: int, k: int) -> dict:
    """The four kernels."""
    return {
        "numbers": kernels.gemm(M=m, N=n, K=k, transpose_B=True),
        "no pairs": kernels.gemm(M=m, N=n, K=k, transpose_B=True, cluster=1),
        "any M": kernels.gemm(N=n, K=k, transpose_B=True),
        "any": kernels.gemm(transpose_B=True),
    }


def factors(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A, B and room for C."""
    a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
    return a, b, torch.empty((m, n), device="cuda", dtype=torch.bfloat16)


def check(built: dict, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Compares the results with products in float32."""
    wanted = a[:256].float() @ b.float().T
    scale = a[:256].float().abs() @ b.float().abs().T + 1
    for name, kernel in built.items():
        c.fill_(float("nan"))
        kernel(a, b, c)
        assert ((c[:256].float() - wanted).abs() / scale).max() < 1e-2, (name, *a.shape, len(b))


def few_rows(is_checked: bool, is_cold: bool) -> None:
    """Ratios to torch.mm as planned, and by the parts of K; the tiles are those of the plan for so many parts."""
    names = ["as planned", *(f"split {parts}" for parts in PARTS)]
    print(f"{'M x N x K':>18} {'torch.mm':>8} {'plan':>14} " + " ".join(f"{each:>10}" for each in names)
          + "   microseconds; ratios")
    for n, k in FEW_OF:
        for m in FEW_ROWS:
            a, b, c = factors(m, n, k)
            options = [{}, *({"split": parts} for parts in PARTS)]
            built = {name: helve.compile(kernels.gemm(M=m, N=n, K=k, transpose_B=True, **each), target="cuda")
                     for name, each in zip(names, options, strict=True)}
            if is_checked:
                check(built, a, b, c)
            runs = {name: (lambda kernel=kernel, a=a, b=b, c=c: kernel(a, b, c)) for name, kernel in built.items()}
            runs["torch.mm"] = lambda a=a, b=b, c=c: torch.mm(a, b.T, out=c)
            times = measure.compare(runs, 15) if is_cold else compare(runs, burst=0.02)
            plan = plan_gemm(m, n, "bfloat16", K=k)
            ratios = " ".join(f"{times['torch.mm'] / times[name]:10.3f}" for name in names)
            print(f"{f'{m} x {n} x {k}':>18} {1e6 * times['torch.mm']:8.1f} "
                  f"{f'{plan.rows}x{plan.columns} in {plan.split}':>14} {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    parser.add_argument("--large", action="store_true", help="cubes and the weights of models")
    parser.add_argument("--few", action="store_true", help="few rows, by the parts of K")
    parser.add_argument("--cold", action="store_true", help="with --few: caches hold nothing before a call")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    if options.few:
        return few_rows(options.check, options.cold)
    heads = " ".join(f"{each:>9}" for each in ["torch.mm", *candidates(128, 128, 128)])
    print(f"{'M x N x K':>22} {heads}   TFLOP/s; ratios; GB/s")
    all_ratios: dict[str, list[float]] = {}
    for m, n, k in LARGE if options.large else SHAPES:
        a, b, c = factors(m, n, k)
        built = {name: helve.compile(each, target="cuda") for name, each in candidates(m, n, k).items()}
        if options.check:
            check(built, a, b, c)
        runs = {name: (lambda kernel=kernel: kernel(a, b, c)) for name, kernel in built.items()}
        times = compare({"torch.mm": lambda: torch.mm(a, b.T, out=c), **runs}, burst=0.03)
        rates = {name: 2 * m * n * k / t / 1e12 for name, t in times.items()}
        ratios = " ".join(f"{times['torch.mm'] / times[name]:.3f}" for name in built)
        for name in built:
            all_ratios.setdefault(name, []).append(times["torch.mm"] / times[name])
        moved = 2 * (m * k + n * k + m * n) / 1e9
        few = f"   {moved / times['torch.mm']:.0f} {moved / times['numbers']:.0f}" if m < 128 else ""
        print(f"{f'{m} x {n} x {k}':>22} " + " ".join(f"{each:9.1f}" for each in rates.values()) + f"   {ratios}{few}",
              flush=True)
    for name, each in all_ratios.items():
        mean = math.exp(sum(map(math.log, each)) / len(each))
        print(f"{name}: geometric mean of the ratios {mean:.3f}, least {min(each):.3f}")
    return None


if __name__ == "__main__":
    main()
