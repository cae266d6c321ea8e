"""kernels.grouped_gemm against torch._grouped_mm, or a loop of torch.mm where PyTorch has none, in one process.

`python benchmarks/gpu/grouped_gemm.py` prints for the layers of mixtures of experts the time of torch, TFLOP/s of both,
GB/s of helve's, and the ratio, for rows that are divided evenly and as a router divides them (a skewed random
division); few rows are those of a step of decoding. bfloat16, weights are (groups, N, K), sums in float32. The two take
turns, with cold caches: layers of a model meet their weights so. Results are compared with float32 first. `--tiles`
adds kernels of given tiles.
"""

from __future__ import annotations

import argparse
import math

import measure
import numpy as np
import torch

import helve
from helve import kernels

# groups, N, K, and all rows: experts of Mixtral 8x7B, of a model of 128 small experts, of one of 64
LAYERS = [(8, 14336, 4096), (8, 4096, 14336), (128, 1536, 2048), (128, 2048, 768), (64, 2816, 2048), (64, 2048, 1408)]
ROWS = (64, 512, 4096, 16384, 65536)
TILES = [(64, 128), (64, 256), (128, 128), (128, 256)]


def lengths_of(rows: int, groups: int, skewed: bool) -> list[int]:
    """Rows of each group: equal ones, or as a softmax of normal numbers divides them."""
    if not skewed:
        return [rows // groups + (g < rows % groups) for g in range(groups)]
    rng = np.random.default_rng(rows + groups)
    weights = np.exp(rng.standard_normal(groups))
    return rng.multinomial(rows, weights / weights.sum()).tolist()


def torch_product(a: torch.Tensor, b: torch.Tensor, ends: list[int]):
    """A call of torch's for groups, and its name."""
    turned = b.transpose(1, 2)
    if hasattr(torch, "_grouped_mm"):
        offsets = torch.tensor(ends[1:], dtype=torch.int32, device="cuda")
        call = lambda: torch._grouped_mm(a, turned, offs=offsets)  # noqa: E731
        try:
            call()
            return call, "torch._grouped_mm"
        except RuntimeError as refused:
            print(f"torch._grouped_mm: {refused}")
    out = torch.empty(len(a), b.shape[1], device="cuda", dtype=a.dtype)

    def loop() -> torch.Tensor:
        for g, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
            if begin < end:
                torch.mm(a[begin:end], turned[g], out=out[begin:end])
        return out

    return loop, "torch.mm of each"


def check(name: str, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> None:
    for g, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        x, w = a[begin:end].float(), b[g].float()
        error = ((c[begin:end].float() - x @ w.T).abs() / (x.abs() @ w.abs().T + 1)).max() if begin < end else 0.0
        assert error < 1e-2, (name, g, begin, end, float(error))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", action="store_true", help="kernels of given tiles too")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(measure.require_device())
    print(f"{'groups x N x K':>18} {'rows':>6} {'':6} {'torch us':>9} {'TFLOP/s':>8} {'helve':>7} {'GB/s':>6}   ratios")
    torch.manual_seed(0)
    ratios = []
    for groups, n, k in LAYERS:
        shape = {"N": n, "K": k, "transpose_B": True}
        built = {"helve": helve.compile(kernels.grouped_gemm(groups, **shape), target="cuda")}
        if options.tiles:
            built |= {f"{high}x{wide}": helve.compile(kernels.grouped_gemm(groups, **shape, tile=(high, wide)),
                                                      target="cuda") for high, wide in TILES}
        b = measure.random(groups, n, k)
        for rows in ROWS:
            a = measure.random(rows, k)
            for skewed in (False, True):
                lengths = lengths_of(rows, groups, skewed)
                ends = [sum(lengths[:g]) for g in range(groups + 1)]
                places = torch.tensor(ends, dtype=torch.int32, device="cuda")
                c = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
                reference, name = torch_product(a, b, ends)
                check(name, reference(), a, b, ends)
                calls = {}
                for label, kernel in built.items():
                    c.fill_(float("nan"))
                    kernel(a, b, places, c)
                    check(label, c, a, b, ends)
                    calls[label] = lambda kernel=kernel, a=a, places=places, c=c: kernel(a, b, places, c)
                times = measure.compare({name: reference, **calls}, options.rounds)
                rate = {label: 2 * rows * n * k / seconds / 1e12 for label, seconds in times.items()}
                moved = 2 * (rows * (n + k) + sum(length > 0 for length in lengths) * n * k) / times["helve"] / 1e9
                each = ", ".join(f"{label} {times[name] / times[label]:.3f}" for label in built)
                ratios.append(times[name] / times["helve"])
                print(f"{f'{groups} x {n} x {k}':>18} {rows:6} {'skewed' if skewed else 'even':6} "
                      f"{1e6 * times[name]:9.1f} {rate[name]:8.1f} {rate['helve']:7.1f} {moved:6.0f}   {each}",
                      flush=True)
        del b
        measure.release()
    print(f"geometric mean of the ratios to {name} {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, "
          f"least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
