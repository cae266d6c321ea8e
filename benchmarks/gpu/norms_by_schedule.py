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
from helve.kernels.ring import plan_ring  # noqa: E402
from helve.kernels.rows import DTYPES, plan_rows  # noqa: E402

# Row lengths of each form: that of rms_norm for rows of a length, rings of a block alone, rings of clusters, and those
# of layer_norm.
COLUMNS = {"rows": (1024, 4096, 7168, 8192, 16384, 32768, 131072), "rings": (4096, 8192, 16384),
           "clusters": (65536, 131072, 262144), "layer_norm": (1024, 4096), "layer_norm clusters": (65536, 131072)}
# Bytes of a row that clusters share -> tuning, of docs/kernels.md.
TUNING = {1 << 17: {"cluster": 2, "clusters": 66, "threads": 1024, "stages": 3},
          1 << 18: {"cluster": 8, "clusters": 15, "threads": 512, "stages": 4, "held": 1},
          1 << 19: {"cluster": 16, "clusters": 7, "threads": 512, "stages": 4, "held": 1},
          1 << 20: {"cluster": 16, "clusters": 7, "threads": 1024, "stages": 3}}
LAYER_NORM = {1 << 17: {"cluster": 4, "clusters": 30, "threads": 512, "stages": 4, "elements": 16, "held": 2},
              1 << 18: {"cluster": 8, "clusters": 15, "threads": 512, "stages": 4, "elements": 16, "held": 2},
              1 << 19: {"cluster": 16, "clusters": 7, "threads": 512, "stages": 4, "elements": 16, "held": 2}}
# (norm, row length, dtype) -> tuning of the schedule, where another one than that by hand is faster for it.
SCHEDULED = {("rms_norm", 65536, "bfloat16"): {"cluster": 8, "clusters": 30, "threads": 256, "stages": 4, "held": 1},
             ("rms_norm", 65536, "float32"): {"cluster": 8, "clusters": 15, "threads": 512, "stages": 3, "held": 1},
             ("rms_norm", 262144, "float32"): {"cluster": 16, "clusters": 7, "threads": 256, "stages": 2, "held": 1},
             ("layer_norm", 65536, "bfloat16"): {"cluster": 4, "clusters": 30, "threads": 256, "stages": 4, "held": 2},
             ("layer_norm", 131072, "bfloat16"): {"cluster": 4, "clusters": 30, "threads": 512, "stages": 2, "held": 1},
             ("layer_norm", 131072, "float32"): {"cluster": 16, "clusters": 7, "threads": 256, "stages": 4, "held": 2}}
BYTES = 256 << 20  # of the rows that a call reads


def programs(N: int, dtype: str, form: str):
    """(name -> program): by schedule and by hand."""
    if form == "layer_norm":
        return {"schedule": helve_norms.whole_layer_norm(N, dtype), "hand": kernels.layer_norm(N, dtype)}
    if form == "rows":
        return {"schedule": helve_norms.schedule(N, dtype), "hand": kernels.rms_norm(N, dtype)}
    if form.endswith("clusters"):
        norm = "rms_norm" if form == "clusters" else "layer_norm"
        tuning = (TUNING if norm == "rms_norm" else LAYER_NORM)[N * DTYPES[dtype]]
        return {"schedule": helve_norms.shared(N, dtype, norm, **SCHEDULED.get((norm, N, dtype), tuning)),
                "hand": getattr(kernels, norm)(N, dtype, **tuning)}
    plan = plan_ring(N, dtype, 1, 1, None)
    ring = helve_norms.rows_in_turn(helve_norms.rms_norm(N, dtype), plan_rows(N, dtype).threads, plan.clusters, 3)
    return {"schedule": ring, "hand": kernels.rms_norm(N, dtype, clusters=plan.clusters)}


def both(N: int, dtype: str, form: str, **options):
    """(name -> kernel), with the same options."""
    return {name: helve.compile(program, target="cuda", fast_math=True, **options)
            for name, program in programs(N, dtype, form).items()}


def dry_run(N: int, dtype: str, form: str) -> None:
    built = both(N, dtype, form, arch="sm_90a")
    lines = {name: len(kernel.source("cuda").splitlines()) for name, kernel in built.items()}
    print(f"| {form} | {N} | {dtype} | {lines['schedule']} lines | {lines['hand']} lines |", flush=True)


def compare(N: int, dtype: str, form: str, rounds: int) -> bool:
    """Prints a row of the table. Returns whether both results are right."""
    kind = getattr(torch, dtype)
    M = max(1, BYTES // (N * kind.itemsize))
    x, w = measure.random(M, N, dtype=kind), measure.random(N, dtype=kind)
    bias = [measure.random(N, dtype=kind)] if form.startswith("layer_norm") else []
    wanted = (functional.layer_norm(x.float(), (N,), w.float(), bias[0].float(), 1e-5) if bias else
              functional.rms_norm(x.float(), (N,), w.float(), 1e-6))
    calls, right = {}, True
    for name, kernel in both(N, dtype, form).items():
        y = torch.full_like(x, float("nan"))
        calls[name] = lambda kernel=kernel, y=y: kernel(x, w, *bias, y)
        calls[name]()
        worst = measure.worst_error([y], [wanted])
        if worst > 1:
            right = False
            print(f"{form} by {name}, {N} columns of {dtype}: wrong by {worst:.1f} tolerances")
    del wanted
    seconds = measure.compare(calls, rounds)
    rate = 2 * x.numel() * kind.itemsize / seconds["schedule"] / 1e9
    print(f"| {form} | {N} | {dtype} | {M} | {seconds['schedule'] * 1e6:.1f} | {seconds['hand'] * 1e6:.1f} | "
          f"{seconds['schedule'] / seconds['hand']:.3f} | {rate:.0f} |", flush=True)
    measure.release()
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forms", default=",".join(COLUMNS), help="which, with commas between; all by default")
    parser.add_argument("--columns", help="row lengths in place of the usual ones, with commas between")
    parser.add_argument("--dtypes", default="bfloat16,float32", help="element types, with commas between")
    parser.add_argument("--rounds", type=int, default=50, help="turns of each; the median counts")
    parser.add_argument("--dry-run", action="store_true", help="compile both, without a GPU")
    chosen = parser.parse_args()
    cases = [(int(N), dtype, form) for form in chosen.forms.split(",")
             for N in (chosen.columns.split(",") if chosen.columns else COLUMNS[form])
             for dtype in chosen.dtypes.split(",")]
    if chosen.dry_run:
        for case in cases:
            dry_run(*case)
        return
    print(measure.require_device())
    measure.warm_up(2.0)
    print("| form | columns | dtype | rows | schedule, us | by hand, us | ratio | GB/s |\n" + "| --- " * 8 + "|")
    right = [compare(*case, chosen.rounds) for case in cases]
    if not all(right):
        raise SystemExit("results are wrong")


if __name__ == "__main__":
    main()
