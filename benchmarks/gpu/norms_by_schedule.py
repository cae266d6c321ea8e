"""Norms that schedules make of plain loops against those that are written by hand, on a GPU, by turns.

Run it: ``python benchmarks/gpu/norms_by_schedule.py [--columns 4096,8192] [--rounds 50]``. Results are checked against
PyTorch's; a ratio above 1 says that the schedule's kernel takes longer. ``--dry-run`` needs no GPU and compiles both.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import measure  # noqa: E402
import torch  # noqa: E402
from schedules_of import helve_norms  # noqa: E402
from torch.nn import functional  # noqa: E402

import helve  # noqa: E402
from helve import kernels  # noqa: E402

COLUMNS = (1024, 4096, 7168, 8192, 16384, 32768, 131072)
BYTES = 256 << 20  # of the rows that a call reads


def both(N: int, dtype: str, **options):
    """(name -> kernel): by schedule and by hand, with the same options."""
    return {name: helve.compile(program, target="cuda", fast_math=True, **options)
            for name, program in (("schedule", helve_norms.schedule(N, dtype)), ("hand", kernels.rms_norm(N, dtype)))}


def dry_run(N: int, dtype: str) -> None:
    lines = {name: len(kernel.source("cuda").splitlines()) for name, kernel in both(N, dtype, arch="sm_90a").items()}
    print(f"| {N} | {dtype} | {lines['schedule']} lines | {lines['hand']} lines |", flush=True)


def compare(N: int, dtype: str, clock: measure.Clock, rounds: int) -> bool:
    """Prints a row of the table. Returns whether both results are right."""
    kind = getattr(torch, dtype)
    M = max(1, BYTES // (N * kind.itemsize))
    x, w = measure.random(M, N, dtype=kind), measure.random(N, dtype=kind)
    wanted = functional.rms_norm(x.float(), (N,), w.float(), 1e-6)
    calls, right = {}, True
    for name, kernel in both(N, dtype).items():
        y = torch.full_like(x, float("nan"))
        calls[name] = lambda kernel=kernel, y=y: kernel(x, w, y)
        calls[name]()
        worst = measure.worst_error([y], [wanted])
        if worst > 1:
            right = False
            print(f"{name}, {N} columns of {dtype}: wrong by {worst:.1f} tolerances")
    del wanted
    seconds = clock.compare(calls, rounds)
    rate = 2 * x.numel() * kind.itemsize / seconds["schedule"] / 1e9
    print(f"| {N} | {dtype} | {M} | {seconds['schedule'] * 1e6:.1f} | {seconds['hand'] * 1e6:.1f} | "
          f"{seconds['schedule'] / seconds['hand']:.3f} | {rate:.0f} |", flush=True)
    measure.release()
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", default=",".join(map(str, COLUMNS)), help="row lengths, with commas between")
    parser.add_argument("--dtypes", default="bfloat16,float32", help="element types, with commas between")
    parser.add_argument("--rounds", type=int, default=50, help="turns of each; the median counts")
    parser.add_argument("--dry-run", action="store_true", help="compile both, without a GPU")
    chosen = parser.parse_args()
    cases = [(int(N), dtype) for N in chosen.columns.split(",") for dtype in chosen.dtypes.split(",")]
    if chosen.dry_run:
        for case in cases:
            dry_run(*case)
        return
    print(measure.require_device())
    measure.warm_up(2.0)
    clock = measure.Clock()
    print("| columns | dtype | rows | schedule, us | by hand, us | ratio | GB/s |\n" + "| --- " * 7 + "|")
    right = [compare(*case, clock, chosen.rounds) for case in cases]
    if not all(right):
        raise SystemExit("results are wrong")


if __name__ == "__main__":
    main()
