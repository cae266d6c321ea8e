"""kernels.gemm as a user calls it, without tuning, against torch.mm, on shapes of models and on ragged ones.

`python benchmarks/gpu/library_products.py` prints for each shape the rates of four kernels and of torch.mm, which take
turns in one process: one compiled for the shape's numbers; the same without pairs of blocks; one whose N and K are
known and whose M comes at the call, as a linear layer has them; and one for any extents. A is (M, K), B is (N, K),
bfloat16, sums in float32. A product that reads more than it computes, as one of few rows does, has its rate in GB/s
too. `--few` takes few rows and many terms, and prints the ratios of kernels that know the numbers: as planned, and with
K in 1 to 16 parts; with `--cold`, which is as layers of a model meet their weights, caches hold nothing before a call.
`--large` takes cubes, and 8192 rows by the weights of models from 8 to 405 billion parameters, and prints the
geometric mean of the ratios; so does `--between`, of 192 to 6000 rows by weights of other layers. `--eight` takes the
shapes of `--large` with factors of float8_e4m3 and a scale, against torch._scaled_mm with the same accumulation.
`--check` compares results first.
"""

from __future__ import annotations

import argparse
import functools
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


BETWEEN = [(m, n, k) for n, k in [(4096, 4096), (5120, 5120), (6144, 4096), (14336, 4096), (4096, 14336)]
           for m in (192, 333, 700, 1100, 1536, 2048, 3000, 6000)]
FEW_ROWS = (1, 16, 64, 128, 333, 512)
FEW_OF = [(4096, 4096), (4096, 14336), (28672, 8192), (8192, 28672)]  # N, K
PARTS = (1, 2, 3, 4, 6, 8, 12, 16)


def candidates(m: int, n: int, k: int, dtype: str = "bfloat16") -> dict:
    """The four kernels."""
    product = functools.partial(kernels.gemm, dtype, transpose_B=True, scale=dtype != "bfloat16")
    return {"numbers": product(M=m, N=n, K=k), "no pairs": product(M=m, N=n, K=k, cluster=1),
            "any M": product(N=n, K=k), "any": product()}


def factors(m: int, n: int, k: int, dtype: torch.dtype = torch.bfloat16) -> tuple[torch.Tensor, ...]:
    """A, B, a scale of 8-bit factors, and room for C."""
    a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in [(m, k), (n, k)])
    scale = () if dtype == torch.bfloat16 else (torch.ones(1, device="cuda"),)
    return a, b, *scale, torch.empty((m, n), device="cuda", dtype=torch.bfloat16)


def check(built: dict, a: torch.Tensor, b: torch.Tensor, *rest: torch.Tensor) -> None:
    """Compares the results with products in float32."""
    c = rest[-1]
    wanted = a[:256].float() @ b.float().T
    scale = a[:256].float().abs() @ b.float().abs().T + 1
    for name, kernel in built.items():
        c.fill_(float("nan"))
        kernel(a, b, *rest)
        assert ((c[:256].float() - wanted).abs() / scale).max() < 1e-2, (name, *a.shape, len(b))


def by_library(a: torch.Tensor, b: torch.Tensor, *rest: torch.Tensor) -> None:
    """The product by cuBLAS; that of 8-bit factors adds up in the tensor cores' own sums, as helve's does."""
    if len(rest) == 1:
        torch.mm(a, b.T, out=rest[0])
    else:
        torch._scaled_mm(a, b.T, rest[0], rest[0], out_dtype=torch.bfloat16, use_fast_accum=True, out=rest[1])


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
    parser.add_argument("--between", action="store_true", help="192 to 6000 rows")
    parser.add_argument("--few", action="store_true", help="few rows, by the parts of K")
    parser.add_argument("--cold", action="store_true", help="with --few: caches hold nothing before a call")
    parser.add_argument("--eight", action="store_true", help="the shapes of --large, factors of float8_e4m3")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    if options.few:
        return few_rows(options.check, options.cold)
    dtype = "float8_e4m3" if options.eight else "bfloat16"
    library = "_scaled_mm" if options.eight else "torch.mm"
    heads = " ".join(f"{each:>10}" for each in [library, *candidates(128, 128, 128)])
    print(f"{'M x N x K':>22} {heads}   TFLOP/s; ratios; GB/s")
    all_ratios: dict[str, list[float]] = {}
    for m, n, k in BETWEEN if options.between else LARGE if options.large or options.eight else SHAPES:
        arguments = factors(m, n, k, torch.float8_e4m3fn if options.eight else torch.bfloat16)
        built = {name: helve.compile(each, target="cuda") for name, each in candidates(m, n, k, dtype).items()}
        if options.check:
            check(built, *arguments)
        runs = {name: (lambda kernel=kernel: kernel(*arguments)) for name, kernel in built.items()}
        times = compare({library: lambda: by_library(*arguments), **runs}, burst=0.03)
        rates = {name: 2 * m * n * k / t / 1e12 for name, t in times.items()}
        ratios = " ".join(f"{times[library] / times[name]:.3f}" for name in built)
        for name in built:
            all_ratios.setdefault(name, []).append(times[library] / times[name])
        moved = 2 * (m * k + n * k + m * n) / 1e9
        few = f"   {moved / times[library]:.0f} {moved / times['numbers']:.0f}" if m < 128 else ""
        print(f"{f'{m} x {n} x {k}':>22} " + " ".join(f"{each:10.1f}" for each in rates.values())
              + f"   {ratios}{few}", flush=True)
    for name, each in all_ratios.items():
        mean = math.exp(sum(map(math.log, each)) / len(each))
        print(f"{name}: geometric mean of the ratios {mean:.3f}, least {min(each):.3f}")
    return None


if __name__ == "__main__":
    main()
