"""The speed of a product of matrices after each line of its schedule, for docs/tutorials/gemm_by_loops.md.

Run it: ``python benchmarks/gemm_by_loops.py [--size 1024] [--threads 1]``. The last line of the schedule is measured
against NumPy's OpenBLAS too, by turns in one process; results are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--size", type=int, nargs="+", default=[1024], help="of square matrices, or M N K")
parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
parser.add_argument("--rounds", type=int, default=9, help="turns of each candidate; the median counts")
parser.add_argument("--last", action="store_true", help="only the whole schedule")
THREADS = parser.parse_args().threads if __name__ == "__main__" else 1
os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)  # read once, when NumPy is imported

import numpy as np  # noqa: E402
from schedules_of.helve_gemm import columns_of, product, schedule  # noqa: E402

import helve  # noqa: E402

# Steps of the whole schedule after which the program is measured.
STAGES = {"the plain loops": 0, "reorder": 6, "cache_read of B": 7, "set_layout": 8, "cache_read of A": 9,
          "cache_write of C": 10, "vectorize": 20, "unroll": 21, "bind": 22}


def seconds_of(call, rounds: int) -> float:
    """The median of turns, of the processor's time where one thread works."""
    clock = time.process_time if THREADS == 1 else time.perf_counter
    times = []
    for _ in range(rounds):
        time.sleep(0.2 if THREADS > 1 else 0)  # idle threads of a library wait busily at first
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times)


def measure(m: int, n: int, k: int, rounds: int, last: bool) -> None:
    """Prints a row a stage: GFLOPS, times the plain loops, and ratio to NumPy."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype="float32"), rng.standard_normal((k, n), dtype="float32")
    c = np.empty((m, n), "float32")
    exact = a.astype("float64") @ b
    start = time.perf_counter()
    whole = schedule(product(m, n, k), columns_of(n, THREADS), k)
    print(f"{m} x {n} x {k}, {THREADS} thread(s), {len(whole)} steps in {(time.perf_counter() - start) * 1e3:.0f} ms")
    print("| after | GFLOPS | to the plain loops | to NumPy |\n| --- | --- | --- | --- |")
    plain = None
    for name, steps in {"bind": len(whole)}.items() if last else STAGES.items():
        kernel = helve.compile(whole.version(steps), fast_math=True)
        kernel(a, b, c)
        assert np.abs(c - exact).max() < 1e-2
        own, other = [], []
        for _ in range(rounds if steps >= 20 else 1):
            own.append(seconds_of(lambda kernel=kernel: kernel(a, b, c), 1))
            np.matmul(a, b, out=c)
            other.append(seconds_of(lambda: np.matmul(a, b, out=c), 1))
            kernel(a, b, c)
        mine, numpy = statistics.median(own), statistics.median(other)
        plain = plain or mine
        print(f"| {name} | {2 * m * n * k / mine / 1e9:.1f} | {plain / mine:.1f} | {numpy / mine:.2f} |", flush=True)


if __name__ == "__main__":
    options = parser.parse_args()
    helve.set_num_threads(THREADS)
    sizes = options.size if len(options.size) == 3 else options.size * 3
    measure(*sizes, options.rounds, options.last)
