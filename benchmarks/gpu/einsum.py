"""Contractions by helve.einsum on a GPU against torch.einsum, in one process and by turns, with a cold cache.

Run it: ``python benchmarks/gpu/einsum.py [--rounds N]``. Random data, float32 without TF32 on both sides; every result
is compared with one in float64 in the same run. Sizes are those that nobody chose for a tile. Numbers are milliseconds
and the ratio of torch's time to helve's. ``--dry-run`` needs no GPU: it compiles the kernels and says how many launches
they are.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402

import helve  # noqa: E402
from helve import _core  # noqa: E402
from helve.schedule import default_order  # noqa: E402

CASES = (
    ("ij,jk->ik", (1024, 1024), (1024, 1024)),
    ("ij,jk->ik", (1000, 1111), (1111, 500)),
    ("ij,kj->ik", (4096, 1000), (777, 1000)),
    ("bij,bjk->bik", (12, 128, 64), (12, 64, 128)),
    ("bhid,bhjd->bhij", (2, 12, 500, 64), (2, 12, 500, 64)),
    ("bhij,bhjd->bhid", (2, 12, 500, 500), (2, 12, 500, 64)),
    ("ijk,k->ij", (256, 256, 256), (256,)),
    ("ijk,j->ik", (256, 256, 256), (256,)),
    ("ij,j->i", (4096, 7168), (7168,)),
    ("i,ij->j", (4096,), (4096, 7168)),
    ("ij,jk->ik", (1, 7168), (7168, 4096)),
    ("ij->i", (4096, 7168)),
    ("ij->i", (1, 10_000_001)),
    ("ij->j", (1000, 1111)),
    ("ij->", (4096, 7168)),
    ("i,i->", (10_000_001,), (10_000_001,)),
    ("ij->ji", (4096, 7168)),
    ("ijk->kji", (201, 301, 401)),
    ("i,j->ij", (5000,), (7000,)),
)


def kernel_of(spec: str, shapes: tuple, arch: str):
    """The kernel of a contraction of float32, as helve.einsum orders it, and seconds of ordering and compiling it."""
    function, nest = (_core.einsum(spec, ["float32"] * len(shapes), list(shapes), [], _core.Span(), nest=nested)[0]
                      for nested in (False, True))
    start = time.perf_counter()
    ordered = default_order(nest, "cuda", arch)
    kernel = helve.compile(ordered or function, target="cuda", arch=arch)
    return kernel, time.perf_counter() - start


def allowed(spec: str, operands: list) -> torch.Tensor:
    """How far each element may be from the exact one: roundings of float32 in sums of this many terms."""
    exact = torch.einsum(spec, *(each.double().abs() for each in operands))
    terms = math.prod(max(each.numel(), 1) for each in operands) ** 0.5
    return exact * 2.0**-22 * max(math.log2(max(terms, 2)), 1) + 1e-30


def right(spec: str, operands: list, got: torch.Tensor) -> bool:
    """Is the result what float64 gives, but for the roundings of float32?"""
    exact = torch.einsum(spec, *(each.double() for each in operands))
    return bool(((got.double() - exact).abs() <= allowed(spec, operands)).all())


def measured(clock, spec: str, shapes: tuple, rounds: int) -> str:
    import measure

    operands = [measure.random(*shape, dtype=torch.float32) for shape in shapes]
    start = time.perf_counter()
    out = helve.einsum(spec, *operands)
    first = time.perf_counter() - start
    verdict = "right" if right(spec, operands, out) else "WRONG"
    # A transpose of torch is a view: both sides write their result.
    into = torch.empty_like(out)
    calls = {"helve": lambda: helve.einsum(spec, *operands, out=out),
             "torch": lambda: torch.einsum(spec, *operands).contiguous() if len(operands) > 1
             else into.copy_(torch.einsum(spec, *operands))}
    seconds = clock.compare(calls, rounds)
    return (f"{seconds['helve'] * 1e3:9.3f} {seconds['torch'] * 1e3:9.3f} {seconds['torch'] / seconds['helve']:7.2f} "
            f"  {verdict}, first call {first * 1e3:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="turns of each candidate; the median counts")
    parser.add_argument("--dry-run", action="store_true", help="compile the kernels, without a GPU")
    parser.add_argument("--arch", default="sm_90a", help="what --dry-run compiles for")
    chosen = parser.parse_args()
    clock = None
    if not chosen.dry_run:
        import measure

        print(measure.require_device())
        torch.backends.cuda.matmul.allow_tf32 = False
        clock = measure.Clock()
        measure.warm_up(1.0)
        print(f"{'contraction':50}{'helve, ms':>10}{'torch, ms':>10}{'ratio':>8}")
    for spec, *shapes in CASES:
        title = f"{spec} {', '.join('x'.join(map(str, shape)) for shape in shapes)}"
        if chosen.dry_run:
            kernel, seconds = kernel_of(spec, tuple(shapes), chosen.arch)
            launches = sum(line.lstrip().startswith("launch ") for line in kernel.source("host").splitlines())
            print(f"{title:50}{launches:3} launches, {seconds * 1e3:7.1f} ms to the cubin", flush=True)
        else:
            print(f"{title:50}{measured(clock, spec, tuple(shapes), chosen.rounds)}", flush=True)


if __name__ == "__main__":
    main()
