"""Products of a tensor of order three, by short schedules: with a vector, with a matrix, with two of them (MTTKRP).

Run it: ``python benchmarks/tensor_products.py [--threads N]``. The first is compared with reading the tensor once, the
others with ``np.einsum(..., optimize=True)``; candidates alternate in one process, and results are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
parser.add_argument("--rounds", type=int, default=9, help="turns of each candidate; the median counts")
THREADS = parser.parse_args().threads if __name__ == "__main__" else 1
os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)  # read once, when NumPy is imported

import numpy as np  # noqa: E402
from schedules_of.helve_gemm import product, schedule  # noqa: E402

import helve  # noqa: E402
from helve import T, _core  # noqa: E402

N, RANK, LANES = 256, 64, 32
ROWS = 4 if _core.host_machine().vector_bytes >= 64 else 1  # of rank sums that registers hold


@T.prim_func
def times_vector(X: T.Tensor((N, N, N), "float32"), v: T.Tensor((N,), "float32"), Y: T.Tensor((N, N), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial(N):
            for j in T.serial(N):
                part = T.alloc_local((LANES,), "float32")
                for z in T.serial(LANES):
                    part[z] = 0.0
                for k in T.serial(N // LANES):
                    for l in T.serial(LANES):  # noqa: E741
                        part[l] = part[l] + X[i, j, k * LANES + l] * v[k * LANES + l]
                T.reduce_sum(part, Y[i, j : j + 1], dim=0)


@T.prim_func
def read_rows(X: T.Tensor((N * N, N), "float32"), Y: T.Tensor((N * N,), "float32")):
    with T.Kernel(N * N) as b:
        T.reduce_sum(X[b, :], Y[b : b + 1], dim=0)


@T.prim_func
def mttkrp(X: T.Tensor((N, N, N), "float32"), B: T.Tensor((N, RANK), "float32"), C: T.Tensor((N, RANK), "float32"),
           A: T.Tensor((N, RANK), "float32")):
    with T.Kernel(N) as x:
        for y in T.Parallel(RANK):
            A[x, y] = 0.0
    with T.Kernel(1) as b:
        for i in T.serial(N):
            for k in T.serial(N // ROWS):
                row = T.alloc_local((ROWS, RANK), "float32")
                for t in T.serial(ROWS):
                    for z in T.serial(RANK):
                        row[t, z] = 0.0
                for l in T.serial(N):  # noqa: E741
                    for u in T.serial(ROWS):
                        for r in T.serial(RANK):
                            row[u, r] = row[u, r] + X[i, k * ROWS + u, l] * C[l, r]
                for w in T.serial(ROWS):
                    for q in T.serial(RANK):
                        A[i, q] = A[i, q] + row[w, q] * B[k * ROWS + w, q]


def in_lanes(program, *loops: str, rows: tuple[str, ...] = ()):
    """These loops as vectors, rows written out, and a block for each i."""
    s = helve.Schedule(program)
    for loop in loops:
        s.vectorize(loop)
    for loop in rows:
        s.unroll(loop)
    s.bind("i")
    return helve.compile(s, fast_math=True)


def compare(title: str, calls: dict, rounds: int) -> None:
    """Prints milliseconds, and the ratio to the last candidate."""
    clock = time.process_time if THREADS == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(0.2 if THREADS > 1 else 0)  # idle threads of a library wait busily at first
            call()
            start = clock()
            call()
            seconds[name].append(clock() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    base = medians[list(calls)[-1]]
    print(title, ", ".join(f"{name} {value * 1e3:.2f} ms ({base / value:.2f})" for name, value in medians.items()))


if __name__ == "__main__":
    options = parser.parse_args()
    helve.set_num_threads(THREADS)
    rng = np.random.default_rng(0)
    tensor, v = rng.standard_normal((N, N, N), dtype="float32"), rng.standard_normal(N, dtype="float32")
    b, c = (rng.standard_normal((N, RANK), dtype="float32") for _ in range(2))
    rows, sums, y = tensor.reshape(N * N, N), np.empty(N * N, "float32"), np.empty((N, N), "float32")
    kernel, reader = in_lanes(times_vector, "z", "l"), helve.compile(read_rows, fast_math=True)
    kernel(tensor, v, y)
    assert np.allclose(y, tensor @ v, atol=1e-3)
    compare("TTV", {"helve": lambda: kernel(tensor, v, y), "read": lambda: reader(rows, sums)}, options.rounds)
    wide = np.empty((N * N, RANK), "float32")
    columns = RANK // THREADS
    by_matrix = helve.compile(schedule(product(N * N, RANK, N), columns, N), fast_math=True)
    by_matrix(rows, c, wide)
    assert np.allclose(wide, rows @ c, atol=1e-3)
    compare("TTM", {"helve": lambda: by_matrix(rows, c, wide),
                    "einsum": lambda: np.einsum("ijk,kr->ijr", tensor, c, optimize=True)}, options.rounds)
    a = np.empty((N, RANK), "float32")
    by_two = in_lanes(mttkrp, "z", "r", "q", rows=("t", "u", "w"))
    by_two(tensor, b, c, a)
    assert np.allclose(a, np.einsum("ikl,kr,lr->ir", tensor, b, c, optimize=True), rtol=1e-3, atol=1e-2)
    compare("MTTKRP", {"helve": lambda: by_two(tensor, b, c, a),
                       "einsum": lambda: np.einsum("ikl,kr,lr->ir", tensor, b, c, optimize=True)}, options.rounds)
