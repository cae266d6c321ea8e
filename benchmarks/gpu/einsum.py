"""Contractions by helve.einsum on a GPU against torch.einsum, in one process and by turns, with a cold cache.

Run it: ``python benchmarks/gpu/einsum.py [--rounds N] [--only TEXT] [--trace]``. Random data, float32 without TF32 on
both sides; every result is compared with one in float64 in the same run. Sizes are those that nobody chose for a tile,
and those of models' layers. Cases with "dynamic" are index notation of which only the call knows the extents. Numbers
are milliseconds, the ratio of torch's time to helve's, the launches of a call, and the part of the device's bandwidth
that the bytes of operands and result alone would take; ``--trace`` prints the schedule of each case. ``--dry-run``
needs no GPU: it compiles the kernels and says how many launches they are.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import measure  # noqa: E402
import torch  # noqa: E402

import helve  # noqa: E402
from helve import _core  # noqa: E402
from helve.notation import NotationFunction  # noqa: E402
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
    ("ij->j", (4096, 7168)),
    ("ij->", (4096, 7168)),
    ("i,i->", (10_000_001,), (10_000_001,)),
    ("ij->ji", (4096, 7168)),
    ("ijk->kji", (201, 301, 401)),
    ("i,j->ij", (5000,), (7000,)),
    # Layers of models: hidden sizes 768, 2048, 4096, 7168, their ends in rows of a batch that fit nothing.
    ("ij,kj->ik", (1, 4096), (11008, 4096)),
    ("ij,kj->ik", (16, 4096), (4096, 4096)),
    ("ij,jk->ik", (16, 4096), (4096, 11008)),
    ("ij,jk->ik", (77, 768), (768, 3072)),
    ("ij,kj->ik", (197, 768), (2304, 768)),
    ("ij,jk->ik", (333, 2048), (2048, 5632)),
    ("ij,jk->ik", (64, 64), (64, 50257)),
    ("bhid,bhjd->bhij", (4, 16, 197, 64), (4, 16, 197, 64)),
    ("bid,bjd->bij", (1, 1000, 128), (1, 1001, 128)),
    ("ij,ik->jk", (5000, 96), (5000, 100)),
    ("ij,j->i", (7, 100_003), (100_003,)),
    ("ijk->k", (129, 131, 768)),
    ("ijk->j", (64, 1000, 96)),
)

M, N, K = (helve.T.dyn(name) for name in "MNK")
# Statements of which a call alone knows the extents, with the same by torch and the shapes of a call.
DYNAMIC = (
    ("C[i, k] = A[i, j] * B[j, k]", "ij,jk->ik", ((M, K), (K, N), (M, N)), (1000, 1111), (1111, 500)),
    ("C[i, k] = A[i, j] * B[j, k]", "ij,jk->ik", ((M, 4096), (4096, 4096), (M, 4096)), (333, 4096), (4096, 4096)),
    ("C[i, k] = A[i, j] * B[k, j]", "ij,kj->ik", ((M, 768), (3072, 768), (M, 3072)), (1024, 768), (3072, 768)),
    ("C[i] = A[i, j] * B[j]", "ij,j->i", ((M, K), (K,), (M,)), (4096, 7168), (7168,)),
    ("C[j] = A[i] * B[i, j]", "i,ij->j", ((M,), (M, 7168), (7168,)), (4096,), (4096, 7168)),
    ("C[j, i] = A[i, j]", "ij->ji", ((M, N), (N, M)), (4096, 7168)),
)


def kernel_of(spec: str, shapes: tuple, arch: str | None = None) -> tuple[helve.Kernel, float, str]:
    """The kernel of a contraction of float32, as helve.einsum orders it, seconds of ordering and compiling it, and the
    steps that it took."""
    function, nest = (_core.einsum(spec, ["float32"] * len(shapes), list(shapes), [], _core.Span(), nest=nested)[0]
                      for nested in (False, True))
    start = time.perf_counter()
    ordered = default_order(nest, "cuda", arch)
    kernel = helve.compile(ordered or function, target="cuda", arch=arch)
    seconds = time.perf_counter() - start
    return kernel, seconds, trace_of(nest, arch)


def trace_of(nest: _core.Function, arch: str | None) -> str:
    s = helve.Schedule(nest)
    s.auto("cuda", arch)
    return str(s.trace())


def function_of(statement: str, shapes: tuple) -> NotationFunction:
    """The function of a statement in index notation; the result has the last shape."""
    indices = dict(zip("ijk", helve.indices("i j k"), strict=True))
    tensors = {name: helve.tensor(name, shape) for name, shape in zip("ABC" if len(shapes) == 3 else "AC", shapes)}
    exec(statement, {}, {**indices, **tensors})  # noqa: S102 - of the table above
    return helve.function(tensors["C"])


def dynamic_kernel(statement: str, shapes: tuple, arch: str | None = None) -> tuple[helve.Kernel, float, str]:
    """The kernel of a statement of which a call alone knows the extents, seconds of compiling it, and its steps."""
    function = function_of(statement, shapes)
    start = time.perf_counter()
    kernel = helve.compile(function, target="cuda", arch=arch)
    return kernel, time.perf_counter() - start, trace_of(function.nest, arch)


def launches(kernel: helve.Kernel) -> int:
    """The launches of a call, or of the longer branch of a choice by extents."""
    return sum(line.lstrip().startswith("launch ") for line in kernel.source("plan").splitlines())


def allowed(spec: str, operands: list) -> torch.Tensor:
    """How far each element may be from the exact one: roundings of float32 in sums of this many terms."""
    exact = torch.einsum(spec, *(each.double().abs() for each in operands))
    terms = math.prod(max(each.numel(), 1) for each in operands) ** 0.5
    return exact * 2.0**-22 * max(math.log2(max(terms, 2)), 1) + 1e-30


def right(spec: str, operands: list, got: torch.Tensor) -> bool:
    """Is the result what float64 gives, but for the roundings of float32?"""
    exact = torch.einsum(spec, *(each.double() for each in operands))
    return bool(((got.double() - exact).abs() <= allowed(spec, operands)).all())


def measured(spec: str, operands: list, run, out: torch.Tensor, rounds: int) -> str:
    """The times of a call of helve's, which writes `out`, and of torch's."""
    run()
    verdict = "right" if right(spec, operands, out) else "WRONG"
    # A transpose of torch is a view: both sides write their result.
    into = torch.empty_like(out)
    calls = {"helve": run,
             "torch": lambda: torch.einsum(spec, *operands).contiguous() if len(operands) > 1
             else into.copy_(torch.einsum(spec, *operands))}
    seconds = measure.compare(calls, rounds)
    bandwidth = _core.gpu_machine(_core.device_arch()).bandwidth
    moved = sum(each.nbytes for each in (*operands, out)) / seconds["helve"] / bandwidth
    return (f"{seconds['helve'] * 1e3:9.3f} {seconds['torch'] * 1e3:9.3f} {seconds['torch'] / seconds['helve']:7.2f} "
            f"{moved:6.0%}  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="turns of each candidate; the median counts")
    parser.add_argument("--only", default="", help="cases whose line holds this text")
    parser.add_argument("--trace", action="store_true", help="print the schedule of each case")
    parser.add_argument("--dry-run", action="store_true", help="compile the kernels, without a GPU")
    parser.add_argument("--arch", default="sm_90a", help="what --dry-run compiles for")
    chosen = parser.parse_args()
    if not chosen.dry_run:
        print(measure.require_device())
        torch.backends.cuda.matmul.allow_tf32 = False
        measure.warm_up(1.0)
        print(f"{'contraction':56}{'helve, ms':>10}{'torch, ms':>10}{'ratio':>8}{'bytes':>7}")
    arch = chosen.arch if chosen.dry_run else _core.device_arch()
    for case in (*CASES, *DYNAMIC):
        dynamic = case in DYNAMIC
        spec, shapes = (case[1], case[3:]) if dynamic else (case[0], case[1:])
        sizes = ", ".join("x".join(map(str, shape)) for shape in shapes)
        title = f"{spec} {sizes}{' dynamic' * dynamic}"
        if chosen.only not in title:
            continue
        kernel, seconds, trace = dynamic_kernel(case[0], case[2], arch) if dynamic else kernel_of(spec, shapes, arch)
        counted = f"{launches(kernel)} launches, {seconds * 1e3:.0f} ms to the kernel"
        if chosen.dry_run:
            print(f"{title:56}{counted}", flush=True)
        else:
            operands = [measure.random(*shape, dtype=torch.float32) for shape in shapes]
            out = torch.empty_like(torch.einsum(spec, *operands), memory_format=torch.contiguous_format)
            run = (lambda: kernel(*operands, out)) if dynamic else (lambda: helve.einsum(spec, *operands, out=out))
            print(f"{title:56}{measured(spec, operands, run, out, chosen.rounds)}, {counted}", flush=True)
        if chosen.trace:
            print("".join(f"    {line}\n" for line in trace.splitlines()), flush=True)


if __name__ == "__main__":
    main()
