"""Contractions by helve.einsum on the CPU against NumPy, in one process and by turns.

Run it: ``python benchmarks/einsum.py [--threads N]``. Random float32; every result is compared with one of float64 in
the same run. The first call orders and compiles the contraction: its time stands in the last column.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
parser.add_argument("--rounds", type=int, default=15, help="turns of each candidate; the median counts")
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["HELVE_NUM_THREADS"] = str(CHOSEN.threads)  # read at import

import numpy as np  # noqa: E402

import helve  # noqa: E402

CASES = (
    ("ij->i", (4096, 8192)),
    ("ij->i", (100_000, 133)),
    ("i,i->", (4_194_304,), (4_194_304,)),
    ("ij->", (4096, 4096)),
    ("ij,j->i", (4096, 4096), (4096,)),
    ("ijk,k->ij", (256, 256, 256), (256,)),
    ("ijk,j->ik", (256, 256, 256), (256,)),
    ("i,ij->j", (4096,), (4096, 4096)),
    ("i,ij->j", (200_000,), (200_000, 64)),
    ("ij->j", (4096, 4096)),
    ("ij->ji", (4096, 4096)),
    ("ij->ji", (3001, 2003)),
    ("ijk->kji", (256, 256, 256)),
    ("ij,jk->ik", (1024, 1024), (1024, 1024)),
    ("ij,jk->ik", (2048, 2048), (2048, 2048)),
    ("ij,jk->ik", (777, 1023), (1023, 515)),
    ("ijk,kl->ijl", (256, 256, 256), (256, 64)),
    ("bij,bjk->bik", (12, 128, 64), (12, 64, 128)),
    ("i,j->ij", (3000,), (4000,)),
)


def numpy_call(spec: str, operands: list):
    """What a user of NumPy writes for it, with a result of its own memory."""
    inputs, output = spec.split("->")
    if len(operands) > 1:
        return lambda: np.einsum(spec, *operands, optimize=True)
    if len(inputs) == len(output):
        axes = [inputs.index(axis) for axis in output]
        return lambda: np.ascontiguousarray(operands[0].transpose(axes))
    axes = tuple(at for at, axis in enumerate(inputs) if axis not in output)
    return lambda: operands[0].sum(axis=axes)


def right(spec: str, operands: list, got: np.ndarray) -> bool:
    """Is the result that of float64, but for roundings of float32?"""
    wide = [each.astype(np.float64) for each in operands]
    exact = np.einsum(spec, *wide, optimize=True)
    scale = np.einsum(spec, *(abs(each) for each in wide), optimize=True)
    return bool((abs(got - exact) <= scale * 2e-5 + 1e-30).all())


def measured(spec: str, shapes: tuple) -> str:
    random = np.random.default_rng(0)
    operands = [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    start = time.perf_counter()
    out = helve.einsum(spec, *operands)
    first = time.perf_counter() - start
    verdict = "right" if right(spec, operands, out) else "WRONG"
    calls = {"helve": lambda: helve.einsum(spec, *operands, out=out), "NumPy": numpy_call(spec, operands)}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(CHOSEN.rounds):
        for name, call in calls.items():
            time.sleep(0.05 if CHOSEN.threads > 1 else 0)  # idle threads of a library wait busily at first
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    ours, theirs = (statistics.median(values) * 1e3 for values in times.values())
    return f"{ours:9.3f} {theirs:9.3f} {theirs / ours:7.2f}   {verdict}, first call {first * 1e3:.0f} ms"


def main() -> None:
    print(f"{'contraction':50}{'helve, ms':>10}{'NumPy, ms':>10}{'ratio':>8}   {CHOSEN.threads} threads")
    for spec, *shapes in CASES:
        title = f"{spec} {', '.join('x'.join(map(str, shape)) for shape in shapes)}"
        print(f"{title:50}{measured(spec, tuple(shapes))}", flush=True)


if __name__ == "__main__":
    main()
