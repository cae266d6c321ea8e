"""helve's kernels (fast_math) on a GPU against eager PyTorch, torch.compile and Triton, in one process and by turns.

Run it: ``python benchmarks/gpu/run.py [--kernels rms_norm,softmax] [--quick]``. Random data, cold cache, medians; every
result is checked in the same run. ``--dry-run`` needs no GPU and compiles helve's kernels; ``--sweep`` times tuning
parameters of one kernel.
With fast_math multiplications and additions contract and exp2, rsqrt and divisions are approximate, as in the others.
Best is the fastest of the others. Copy is PyTorch's copy_ of as many bytes as the problem has to move.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("HELVE_CACHE_LIMIT", "0")  # every compile is a whole one

import measure  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._functorch.config  # noqa: E402
from measure import first_call, host_time, release, require_device, warm_up, worst_error  # noqa: E402
from problems import PROBLEMS, rows_of, together  # noqa: E402

import helve  # noqa: E402
from helve import T  # noqa: E402

TARGET = "cuda"
OPTIONS = {"fast_math": True}  # PyTorch's and Triton's kernels contract and approximate as well
FAULTS = (RuntimeError, ValueError, TypeError, ImportError, AssertionError, helve.Error, helve.InternalError)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default=",".join(PROBLEMS), help="which, with commas between; all by default")
    parser.add_argument("--columns", help="row lengths in place of the usual ones, with commas between")
    parser.add_argument("--quick", action="store_true", help="few row lengths, few rounds: about a minute")
    parser.add_argument("--rounds", type=int, help="turns of each candidate; the median counts (50, or 20 when quick)")
    parser.add_argument("--only-helve", action="store_true", help="leave the others out: no ratios, but fast")
    parser.add_argument("--sweep", action="store_true",
                        help="time tuning parameters of the kernels in place of comparing")
    parser.add_argument("--dry-run", action="store_true",
                        help="list the problems and compile helve's kernels, without a GPU")
    parser.add_argument("--arch", default="sm_90a", help="what --dry-run compiles for")
    chosen = parser.parse_args()
    chosen.kernels = chosen.kernels.split(",")
    for name in chosen.kernels:
        if name not in PROBLEMS:
            parser.error(f"no kernel {name!r}; there are {', '.join(PROBLEMS)}")
    chosen.rounds = chosen.rounds or (20 if chosen.quick else 50)
    return chosen


def sizes(chosen):
    """(name, problem, rows, columns) of everything that is to be measured."""
    for name in chosen.kernels:
        problem = PROBLEMS[name]
        columns = problem.quick if chosen.quick else problem.columns
        if chosen.columns:
            columns = [int(c) for c in chosen.columns.split(",")]
        for N in columns:
            yield name, problem, rows_of(N), N


def dry_run(chosen) -> None:
    for name, problem, M, N in sizes(chosen):
        start = time.perf_counter()
        kernel = helve.compile(problem.build(N), target="cuda", arch=chosen.arch, **OPTIONS)
        seconds = time.perf_counter() - start
        lines = len(kernel.source("cuda").splitlines())
        print(f"{name:20}{M:>8} x {N:<8}{lines:5} lines of CUDA C, {seconds * 1e3:7.1f} ms to the cubin")


def copy_call(moved: int):
    """Copies half of the bytes: half are read, half written."""
    source = torch.empty(max(16, moved // 2), dtype=torch.uint8, device=measure.DEVICE).random_()
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def candidates(problem, setup, N, only_helve):
    """(name -> call, helve's seconds of compiling, notes on those that failed)."""
    start = time.perf_counter()
    kernel = helve.compile(problem.build(N), target=TARGET, **OPTIONS)
    compiled = time.perf_counter() - start
    calls = {"helve": lambda: kernel(*setup.inputs, *setup.outputs), "copy": copy_call(setup.moved)}
    notes = []

    def add(name, make):
        try:
            call = make()
            seconds = first_call(call)
            calls[name] = call
            if name == "torch.compile":
                notes.append(f"torch.compile's first call {seconds:.1f} s")
        except FAULTS as fault:
            notes.append(f"{name}: {type(fault).__name__}: {str(fault).splitlines()[0][:100]}")

    if not only_helve:
        add("eager", lambda: setup.call_of(setup.expression))
        add("torch.compile", lambda: setup.call_of(torch.compile(setup.expression, dynamic=False)))
        if setup.triton:
            add("triton", setup.triton)
    return calls, compiled, notes


def verdict(setup, calls) -> str:
    """Compares helve's outputs with float32; begins with "right" where they are. The others' faults are remarks."""
    wanted = [t.detach() for t in setup.wanted()]
    for t in setup.outputs:
        t.fill_(float("nan"))
    calls["helve"]()
    worst = worst_error(setup.outputs, wanted)
    words = [f"right ({worst:.2f})" if worst <= 1 else f"WRONG by {worst:.1f} tolerances"]
    for name in ("eager", "torch.compile"):
        if name in calls:
            found = [t.detach() for t in together(calls[name]())]
            off = worst_error(found, wanted[: len(found)])
            if off > 4:  # what they round between their steps is theirs to choose
                words.append(f"{name} is off by {off:.1f}")
    return "; ".join(words)


def compare(chosen) -> bool:
    """Prints a line for each problem; False when a result of helve was wrong."""
    names = ("helve", "eager", "torch.compile", "triton", "copy")
    head = f"{'kernel':20}{'rows x columns':>18}" + "".join(f"{n:>15}" for n in names)
    print(head + f"{'of copy':>9}{'of best':>9}{'compile':>10}  check")
    print(f"{'':38}" + "us   GB/s".rjust(15) * len(names))
    right = True
    for name, problem, M, N in sizes(chosen):
        try:
            setup = problem.setup(M, N)
            calls, compiled, notes = candidates(problem, setup, N, chosen.only_helve)
            check = verdict(setup, calls)
            seconds = measure.compare(calls, chosen.rounds)
        except FAULTS as fault:
            print(f"{name:20}{M:>8} x {N:<7}  failed: {type(fault).__name__}: {str(fault).splitlines()[0][:160]}",
                  flush=True)
            right = False
            continue
        right &= check.startswith("right")
        cells = "".join(
            f"{seconds[n] * 1e6:8.1f}{setup.moved / seconds[n] / 1e9:7.0f}" if n in seconds else f"{'-':>15}"
            for n in names
        )
        others = [seconds[n] for n in ("eager", "torch.compile", "triton") if n in seconds]
        best = f"{min(others) / seconds['helve']:8.2f}x" if others else f"{'-':>9}"
        share = seconds["copy"] / seconds["helve"]
        print(f"{name:20}{M:>8} x {N:<7}{cells}{share:9.2f}{best}{compiled * 1e3:7.0f} ms  {check}", flush=True)
        for note in notes:
            print(f"{'':20}{note}", flush=True)
        del setup, calls
        torch._dynamo.reset()
        release()
    return right


def tunings(grids):
    """Every combination of the values of each grid."""
    for grid in grids:
        for values in itertools.product(*grid.values()):
            yield dict(zip(grid, values, strict=True))


def sweep(chosen) -> None:
    """Times every combination of a kernel's tuning parameters that gives a program of its own; the best of each size
    are printed.
    """
    for name, problem, M, N in sizes(chosen):
        setup = problem.setup(M, N)
        calls, seen = {"copy": copy_call(setup.moved)}, set()
        for tuning in [{}, *tunings(problem.grids)]:
            try:
                kernel = helve.compile(problem.build(N, **tuning), target=TARGET, **OPTIONS)
                text = kernel.source("lowered")
                if text in seen:
                    continue
                seen.add(text)
                kernel(*setup.inputs, *setup.outputs)
            except FAULTS as fault:
                print(f"  {tuning}: {str(fault).splitlines()[0][:120]}")
                continue
            calls[str(tuning or "default")] = lambda kernel=kernel: kernel(*setup.inputs, *setup.outputs)
        seconds = measure.compare(calls, max(7, chosen.rounds // 4))
        print(f"{name} {M} x {N}: share of the copy rate, {len(calls) - 1} programs")
        for plan in dict.fromkeys([*sorted(seconds, key=seconds.get)[:6], "default"]):
            print(f"  {seconds['copy'] / seconds[plan]:6.3f} {seconds[plan] * 1e6:8.1f} us  {plan}", flush=True)
        del setup, calls
        release()


def small_calls(only_helve: bool) -> None:
    """What the host pays for a call with four small tensors."""
    @T.prim_func
    def add(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32"),
            D: T.Tensor((1024,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(1024):
                D[i] = A[i] + B[i] + C[i]

    a, b, c, d = (torch.rand(1024, device=measure.DEVICE) for _ in range(4))
    kernel = helve.compile(add, target=TARGET)
    calls = {"helve": lambda: kernel(a, b, c, d), "torch.add, 3 tensors": lambda: torch.add(a, b, out=d)}
    if not only_helve:
        compiled = torch.compile(lambda a, b, c: a + b + c)
        calls["torch.compile, 3 tensors"] = lambda: compiled(a, b, c)
        try:
            import triton_kernels

            calls["triton"] = triton_kernels.sum_of_three(a, b, c, d)
        except ImportError:
            print("\nTriton is not installed")
    print("\na call with four small tensors, host time:")
    for name, call in calls.items():
        try:
            print(f"  {name:28}{host_time(call) * 1e6:8.2f} us")
        except FAULTS as fault:
            print(f"  {name:28}{str(fault).splitlines()[0][:100]}")
    kernel(a, b, c, d)
    torch.testing.assert_close(d, a + b + c)


def main() -> int:
    chosen = arguments()
    if chosen.dry_run:
        dry_run(chosen)
        return 0
    print(f"{require_device()}; helve with {', '.join(OPTIONS)}")
    torch._functorch.config.donated_buffer = False  # gradients are asked for more than once
    torch._dynamo.config.cache_size_limit = 64
    warm_up(0.5 if chosen.quick else 3.0)
    if chosen.sweep:
        sweep(chosen)
        return 0
    right = compare(chosen)
    small_calls(chosen.only_helve)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
