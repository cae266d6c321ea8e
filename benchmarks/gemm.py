"""Matrix products on the CPU target against NumPy's (OpenBLAS), in one process and by turns.

Run it: ``python benchmarks/gemm.py [--threads N]``. Both sides get the same number of threads. OpenBLAS chooses its
kernels by the processor's model and takes older ones for a model that it does not know: ``OPENBLAS_CORETYPE=SKYLAKEX``
asks for those of AVX-512.
The share of peak is of a loop of independent multiply-adds, measured here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
parser.add_argument("--rounds", type=int, default=9, help="turns of each candidate; the median counts")
THREADS = parser.parse_args().threads if __name__ == "__main__" else 1
os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)  # read once, when NumPy is imported

import numpy as np  # noqa: E402

import helve  # noqa: E402
from helve import T  # noqa: E402

SIZES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (777, 515, 1023)]  # M, N, K


def tiles(m, n, k, bm, bn, bk):
    """Tiles of A and B are copied to shared memory; edges need no care, for what lies past them reads as zero."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float32"), B: T.Tensor((k, n), "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, bm), T.ceildiv(n, bn)) as (bx, by):
            a = T.alloc_shared((bm, bk), "float32")
            b = T.alloc_shared((bk, bn), "float32")
            c = T.alloc_shared((bm, bn), "float32")
            T.clear(c)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[bx * bm : (bx + 1) * bm, t * bk : (t + 1) * bk], a)
                T.copy(B[t * bk : (t + 1) * bk, by * bn : (by + 1) * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * bm : (bx + 1) * bm, by * bn : (by + 1) * bn])

    return main


def regions(m, n, k, bm, bn):
    """One product for each block of C, of boxes of the parameters where they lie: the compiler cuts the depth and
    packs.
    """

    @T.prim_func
    def main(A: T.Tensor((m, k), "float32"), B: T.Tensor((k, n), "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, bm), T.ceildiv(n, bn)) as (bx, by):
            rows = T.min(bm, m - bx * bm)
            columns = T.min(bn, n - by * bn)
            T.gemm(
                A[bx * bm : bx * bm + rows, :],
                B[:, by * bn : by * bn + columns],
                C[bx * bm : bx * bm + rows, by * bn : by * bn + columns],
                clear=True,
            )

    return main


def scheduled(m, n, k, bm, bn):
    """Loops over elements, which a schedule divides into the blocks of `regions`."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float32"), B: T.Tensor((k, n), "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1):
            for i in T.serial(m):
                for j in T.serial(n):
                    C[i, j] = 0.0
                    for p in T.serial(k):
                        T.update(C[i, j], A[i, p] * B[p, j], "add")

    s = helve.Schedule(main)
    io, ii = s.split("i", bm)
    jo, ji = s.split("j", bn)
    s.reorder(io, jo, ii, ji)
    s.tensorize(ii, "gemm")
    s.bind(io)
    s.bind(jo)
    return s


def even(extent: int, block: int) -> int:
    """The extent of equal parts of at most about `block`, in multiples of 16: a short last tile costs as much as a
    whole one.
    """
    parts = -(-extent // block)
    return -(-extent // (16 * parts)) * 16


def multiply_adds(rows, turns):
    """`rows` x 64 independent sums, each `turns` multiply-adds long: nothing but the arithmetic units is busy."""

    @T.prim_func
    def main(S: T.Tensor((THREADS, rows, 64), "float32"), x: T.float32):
        with T.Kernel(THREADS) as b:
            s = T.alloc_local((rows, 64), "float32")
            T.clear(s)
            for _t in T.serial(turns):
                for r in T.unroll(rows):
                    for v in T.unroll(4):
                        for l in T.vectorized(16):  # noqa: E741
                            s[r, v * 16 + l] = T.fma(s[r, v * 16 + l], x, x)
            T.copy(s, S[b, :, :])

    return main


def let_others_sleep() -> None:
    """Idle threads of a library wait busily at first, on the core that the other side's second thread needs."""
    if THREADS > 1:
        time.sleep(0.2)


def measured_peak() -> float:
    """GFLOPS of all threads on multiply-adds in registers."""
    rows, turns = 3, 400_000
    sums = np.empty((THREADS, rows, 64), np.float32)
    kernel = helve.compile(multiply_adds(rows, turns))
    seconds = []
    let_others_sleep()
    for _ in range(7):
        start = CLOCK()
        kernel(sums, 0.5)
        seconds.append(CLOCK() - start)
    return 2 * sums.size * turns / min(seconds) / 1e9


def measure(m, n, k, rounds):
    """Prints a line a candidate: GFLOPS, share of peak, ratio to NumPy, time of the compile and largest error."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.empty((m, n), np.float32)
    exact = a.astype(np.float64) @ b
    functions = {}
    for blocks in ((256, 256, 256), (256, 512, 256), (512, 512, 256)):
        bm, bn, bk = map(even, (m, n, k), blocks)
        functions[f"tiles {bm} x {bn} x {bk}"] = tiles(m, n, k, bm, bn, bk)
    for blocks in ((256, 512), (512, 512), (1024, 512)):
        bm, bn = map(even, (m, n), blocks)
        functions[f"regions {bm} x {bn}"] = regions(m, n, k, bm, bn)
        functions[f"scheduled {bm} x {bn}"] = scheduled(m, n, k, bm, bn)
    candidates = {"NumPy": lambda: np.matmul(a, b, out=c)}
    notes = {}
    for name, function in functions.items():
        start = time.process_time()
        kernel = helve.compile(function)
        compiled = time.process_time() - start
        kernel(a, b, c)
        notes[name] = f"compile {compiled * 1e3:4.0f} ms, largest error {np.abs(c - exact).max():.1e}"
        candidates[name] = lambda kernel=kernel: kernel(a, b, c)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            let_others_sleep()
            call()  # its own data in the caches, not the neighbour's
            start = CLOCK()
            call()
            seconds[name].append(CLOCK() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"\n{m} x {n} x {k} float32, {THREADS} thread(s)")
    for name, time_of in medians.items():
        rate = 2 * m * n * k / time_of / 1e9
        ratio = medians["NumPy"] / time_of
        print(f"  {name:24}{rate:8.1f} GFLOPS{rate / PEAK:6.0%} of peak{ratio:6.2f}x  {notes.get(name, '')}")


# On one thread the time of the processor is the time of the work, whatever else the machine does.
CLOCK = time.process_time if THREADS == 1 else time.perf_counter

if __name__ == "__main__":
    arguments = parser.parse_args()
    helve.set_num_threads(THREADS)
    PEAK = measured_peak()
    model = os.environ.get("OPENBLAS_CORETYPE", "by model")
    print(f"peak: {PEAK:.1f} GFLOPS ({sys.platform}, OPENBLAS_CORETYPE={model})")
    for size in SIZES:
        measure(*size, arguments.rounds)
