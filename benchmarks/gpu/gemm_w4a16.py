"""Products with weights of four bits: helve.kernels.gemm_w4a16 against what PyTorch has, in one process.

Run it: ``python benchmarks/gpu/gemm_w4a16.py [--rows 1,16] [--sizes 4096x4096] [--sweep]``. A row has the times
of torch.mm with weights of bfloat16, which a user has otherwise, of helve, and of PyTorch's own kernel for weights of
four bits, torch.ops.aten._weight_int4pack_mm, where there is one; then how many times as fast as the two helve is, the
rate at which it reads its bytes (weights and scales, X, C) and its arithmetic. They take turns with cold caches.
Results are checked against products in float32 of the same weights. ``--sweep`` measures other tiles, parts of sums and
clusters; ``--dry-run`` compiles the kernels without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import measure  # noqa: E402
import torch  # noqa: E402

import helve  # noqa: E402
from helve import kernels  # noqa: E402
from helve.kernels.w4a16_plan import plan_w4a16  # noqa: E402

ROWS = (1, 16, 64, 256, 4096)
SIZES = ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 28672))  # N, K
GROUP = 128
INNER_TILES = 8  # of PyTorch's packed weights
# What a sweep tries beside the plan: rows of W and of X in a tile, and the rest of the tuning.
TILES = ((64, 8), (64, 16), (64, 32), (64, 64), (128, 16), (128, 32), (128, 64), (128, 128), (128, 256))


def sweep(M: int, N: int, K: int):
    """Tuning parameters, by a name, of which tiles have no more rows of X than are needed."""
    most = max(8, 1 << (M - 1).bit_length())
    for rows, columns in TILES:
        if columns > most or columns < min(most, 64):
            continue
        for split in (1, 2, 4, 8):
            for cluster in (1, 2):
                tiles = split * -(-N // rows) * -(-M // columns)
                if K // 256 % split or (split > 1 and tiles > 1100):
                    continue
                blocks = plan_w4a16(M, N, K, tile=(rows, columns), split=split).blocks // cluster * cluster
                for depth in (64, 128, 256):
                    if columns * depth < 1024 or columns * depth > 128 * 128:
                        continue  # boxes too small for a ring, or tiles of which two do not fit
                    name = f"{rows}x{columns}x{depth}, {split} parts, cluster {cluster}"
                    yield name, {"tile": (rows, columns), "split": split, "cluster": cluster, "blocks": blocks,
                                 "depth": depth}


class Layer:
    """Weights of four bits in the forms that the kernels take."""

    def __init__(self, N: int, K: int):
        codes = torch.randint(-8, 8, (N, K), device=measure.DEVICE, dtype=torch.int8)
        self.scales = (torch.rand(N, K // GROUP, device=measure.DEVICE) / 16).to(torch.bfloat16)
        low, high = codes[:, ::2] & 15, codes[:, 1::2] & 15
        self.packed = (low | high << 4).view(torch.uint8)
        scaled = codes.view(N, K // GROUP, GROUP) * self.scales[:, :, None]
        self.weights = scaled.to(torch.bfloat16).view(N, K)
        self.theirs = None
        try:
            pairs = ((codes[:, ::2] + 8) << 4 | (codes[:, 1::2] + 8)).view(torch.uint8)
            zeros = torch.zeros_like(self.scales)
            self.theirs = (torch.ops.aten._convert_weight_to_int4pack(pairs.contiguous(), INNER_TILES),
                           torch.stack([self.scales.T, zeros.T], dim=-1).contiguous())
        except (AttributeError, RuntimeError) as error:
            print(f"no _weight_int4pack_mm: {str(error).splitlines()[0]}")


def right(name: str, got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether the result is what it has to be; says so if it is not."""
    worst = measure.worst_error([got], [wanted])
    if worst > 1:
        print(f"{name}: wrong, {worst:.1f} times what is allowed")
    return worst <= 1


def compare(M: int, layer: Layer, N: int, K: int, kernel, options: argparse.Namespace) -> bool:
    """Prints a row, and one for each configuration of a sweep. Returns whether results are right."""
    x = measure.random(M, K)
    out, c = (torch.empty(M, N, dtype=torch.bfloat16, device=measure.DEVICE) for _ in range(2))
    wanted = x.float() @ layer.weights.float().T
    calls = {"mm": lambda: torch.mm(x, layer.weights.T, out=out),
             "helve": lambda: kernel(x, layer.packed, layer.scales, c)}
    kernel(x, layer.packed, layer.scales, c)
    good = right(f"helve, {M} x {N} x {K}", c, wanted)
    if layer.theirs is not None:
        calls["int4pack"] = lambda: torch.ops.aten._weight_int4pack_mm(x, layer.theirs[0], GROUP, layer.theirs[1])
        try:
            right(f"int4pack, {M} x {N} x {K}", calls["int4pack"](), wanted)
        except RuntimeError as error:
            print(f"_weight_int4pack_mm: {str(error).splitlines()[0]}")
            del calls["int4pack"]
    if options.sweep:
        for name, tuning in sweep(M, N, K):
            try:
                tuned = helve.compile(kernels.gemm_w4a16(N, K, M=M, **tuning), target="cuda")
                c.fill_(float("nan"))
                tuned(x, layer.packed, layer.scales, c)
            except helve.Error as error:
                print(f"    {name}: {error.message}")
                continue
            good &= right(name, c, wanted)
            calls[name] = lambda tuned=tuned: tuned(x, layer.packed, layer.scales, c)
    seconds = measure.compare(calls, options.rounds)
    ours, theirs = seconds["helve"], seconds.get("int4pack")
    moved = N * K // 2 + 2 * N * K // GROUP + 2 * M * (K + N)
    other = f"{theirs * 1e6:.1f} | {theirs / ours:.2f}" if theirs else "- | -"
    print(f"| {M} | {N} | {K} | {seconds['mm'] * 1e6:.1f} | {ours * 1e6:.1f} | {seconds['mm'] / ours:.2f} | {other} | "
          f"{moved / ours / 1e12:.2f} | {2 * M * N * K / ours / 1e12:.1f} |", flush=True)
    tried = sorted((each for each in seconds if each not in ("mm", "helve", "int4pack")), key=seconds.get)
    for name in tried[:6]:
        print(f"    {name}: {seconds[name] * 1e6:.1f} us, {ours / seconds[name]:.2f}", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="rows of X, with commas between")
    parser.add_argument("--sizes", default=",".join(f"{N}x{K}" for N, K in SIZES), help="N x K, with commas between")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each; the median counts")
    parser.add_argument("--sweep", action="store_true", help="other tiles, parts and clusters too")
    parser.add_argument("--dry-run", action="store_true", help="compile, without a GPU")
    options = parser.parse_args()
    rows = [int(each) for each in options.rows.split(",")]
    sizes = [tuple(map(int, each.split("x"))) for each in options.sizes.split(",")]
    if options.dry_run:
        for N, K in sizes:
            kernel = helve.compile(kernels.gemm_w4a16(N, K), target="cuda", arch="sm_90a")
            print(f"{N} x {K}", *kernel.resources(), sep="\n    ", flush=True)
        return
    print(measure.require_device())
    measure.warm_up(2.0)
    print("| M | N | K | torch.mm, us | helve, us | times | int4pack, us | times | TB/s | TFLOP/s |")
    print("| --- " * 10 + "|")
    good = True
    for N, K in sizes:
        layer = Layer(N, K)
        kernel = helve.compile(kernels.gemm_w4a16(N, K), target="cuda")
        for M in rows:
            good &= compare(M, layer, N, K, kernel, options)
        del layer
        measure.release()
    if not good:
        raise SystemExit("results are wrong")


if __name__ == "__main__":
    main()
