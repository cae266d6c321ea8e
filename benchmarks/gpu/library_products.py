"""kernels.gemm as a user calls it, without tuning, against torch.mm, on shapes of models and on ragged ones.

`python benchmarks/gpu/library_products.py` prints for each shape the rates of four kernels and of torch.mm, which take
turns in one process: one compiled for the shape's numbers; the same without pairs of blocks; one whose N and K are
known and whose M comes at the call, as a linear layer has them; and one for any extents. A is (M, K), B is (N, K),
bfloat16, sums in float32. A product that reads more than it computes, as one of few rows does, has its rate in GB/s
too. `--check` compares results first.
"""

from __future__ import annotations

import argparse

import torch
from gemm_tensor_cores import compare

import helve
from helve import kernels

# M, N, K: projections of a model of 8 and one of 70 billion parameters, a vocabulary, extents of no one's choice
SHAPES = [
    (4096, 4096, 4096), (8192, 8192, 8192), (8192, 5120, 5120), (4098, 4104, 1032),
    (4096, 6144, 4096), (4096, 28672, 4096), (4096, 4096, 14336), (2048, 128256, 4096), (8191, 8192, 8192),
    (1000, 4096, 4096), (333, 14336, 4096), (64, 4096, 4096), (16, 28672, 4096), (1, 4096, 4096),
]  # fmt: skip


def candidates(m: int, n: int, k: int) -> dict:
    """The four kernels."""
    return {
        "numbers": kernels.gemm(M=m, N=n, K=k, transpose_B=True),
        "no pairs": kernels.gemm(M=m, N=n, K=k, transpose_B=True, cluster=1),
        "any M": kernels.gemm(N=n, K=k, transpose_B=True),
        "any": kernels.gemm(transpose_B=True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the results with float32 first")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    heads = " ".join(f"{each:>9}" for each in ["torch.mm", *candidates(128, 128, 128)])
    print(f"{'M x N x K':>22} {heads}   TFLOP/s; ratios; GB/s")
    for m, n, k in SHAPES:
        a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
        c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
        built = {name: helve.compile(each, target="cuda") for name, each in candidates(m, n, k).items()}
        if options.check:
            wanted = a[:256].float() @ b.float().T
            scale = a[:256].float().abs() @ b.float().abs().T + 1
            for name, kernel in built.items():
                kernel(a, b, c)
                assert ((c[:256].float() - wanted).abs() / scale).max() < 1e-2, (name, m, n, k)
        runs = {name: (lambda kernel=kernel: kernel(a, b, c)) for name, kernel in built.items()}
        times = compare({"torch.mm": lambda: torch.mm(a, b.T, out=c), **runs}, burst=0.03)
        rates = {name: 2 * m * n * k / t / 1e12 for name, t in times.items()}
        ratios = " ".join(f"{times['torch.mm'] / times[name]:.3f}" for name in built)
        moved = 2 * (m * k + n * k + m * n) / 1e9
        few = f"   {moved / times['torch.mm']:.0f} {moved / times['numbers']:.0f}" if m < 128 else ""
        print(f"{f'{m} x {n} x {k}':>22} " + " ".join(f"{each:9.1f}" for each in rates.values()) + f"   {ratios}{few}",
              flush=True)


if __name__ == "__main__":
    main()
