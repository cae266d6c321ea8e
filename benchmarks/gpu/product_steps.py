"""A product of matrices in bfloat16 from a textbook's loops to helve.kernels.gemm, a step at a time, on a GPU.

Run it: ``python benchmarks/gpu/product_steps.py [--sizes 4096,8192] [--rounds 20]``. docs/tutorials/gpu_product.md
explains the steps. Results are checked against torch.mm, whose rate is the last row; ``--dry-run`` needs no GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import measure  # noqa: E402
import torch  # noqa: E402

import helve  # noqa: E402
from helve import T, kernels  # noqa: E402

DTYPE = "bfloat16"


def loops(M: int, N: int, K: int):
    """A thread has an element of C, and reads all that it needs from global memory."""

    @T.prim_func
    def main(A: T.Tensor((M, K), DTYPE), B: T.Tensor((K, N), DTYPE), C: T.Tensor((M, N), DTYPE)):
        with T.Kernel(M // 8, N // 16, threads=128) as (i, j):
            c = T.alloc_fragment((8, 16), "float32")
            T.clear(c)
            for k in T.serial(K):
                for m, n in T.Parallel(8, 16):
                    c[m, n] += T.cast(A[i * 8 + m, k], "float32") * T.cast(B[k, j * 16 + n], "float32")
            T.copy(c, C[i * 8 : (i + 1) * 8, j * 16 : (j + 1) * 16])

    return main


def tiles(M: int, N: int, K: int, bm: int, bn: int, bk: int, threads: int, stages: int, dispatch: str):
    """A block has a tile of C, whose factors pass through shared memory."""

    @T.prim_func
    def main(A: T.Tensor((M, K), DTYPE), B: T.Tensor((K, N), DTYPE), C: T.Tensor((M, N), DTYPE)):
        with T.Kernel(T.ceildiv(M, bm), T.ceildiv(N, bn), threads=threads) as (i, j):
            a = T.alloc_shared((bm, bk), DTYPE)
            b = T.alloc_shared((bk, bn), DTYPE)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[i * bm : (i + 1) * bm, k * bk : (k + 1) * bk], a)
                T.copy(B[k * bk : (k + 1) * bk, j * bn : (j + 1) * bn], b)
                T.gemm(a, b, c, dispatch=dispatch)
            T.copy(c, C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn])

    return main


def resident(M: int, N: int, K: int, bm: int, bn: int, bk: int, threads: int, stages: int):
    """As many blocks as run side by side take tiles in turn, so that the copies of the next one begin early."""

    @T.prim_func
    def main(A: T.Tensor((M, K), DTYPE), B: T.Tensor((K, N), DTYPE), C: T.Tensor((M, N), DTYPE)):
        with T.Kernel(T.multiprocessors(), threads=threads):
            a = T.alloc_shared((bm, bk), DTYPE)
            b = T.alloc_shared((bk, bn), DTYPE)
            c = T.alloc_fragment((bm, bn), "float32")
            for j, i in T.Persistent([T.ceildiv(N, bn), T.ceildiv(M, bm)]):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                    T.copy(A[i * bm : (i + 1) * bm, k * bk : (k + 1) * bk], a)
                    T.copy(B[k * bk : (k + 1) * bk, j * bn : (j + 1) * bn], b)
                    T.gemm(a, b, c, dispatch="tensor_cores")
                T.copy(c, C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn])

    return main


def by_hand(M: int, N: int, K: int, bm: int, bn: int, bk: int, slots: int):
    """The same with the roles written out."""

    @T.prim_func
    def main(A: T.Tensor((M, K), DTYPE), B: T.Tensor((K, N), DTYPE), C: T.Tensor((M, N), DTYPE)):
        with T.Kernel(T.multiprocessors(), threads=256):
            a = T.alloc_shared((bm, bk), DTYPE, slots=slots)
            b = T.alloc_shared((bk, bn), DTYPE, slots=slots)
            ring = T.alloc_barrier(slots)
            with T.warpgroup(0, 2, registers=224):
                c = T.alloc_fragment((bm, bn), "float32")
                for j, i in T.Persistent([T.ceildiv(N, bn), T.ceildiv(M, bm)]):
                    T.clear(c)
                    for k in T.serial(T.ceildiv(K, bk)):
                        T.ring_wait(ring)
                        T.gemm(a, b, c, dispatch="tensor_cores")
                        T.ring_release(ring, pending=1)
                    T.ring_release(ring)
                    T.copy(c, C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn])
            with T.warpgroup(2, registers=56, elect=True):
                for j, i in T.Persistent([T.ceildiv(N, bn), T.ceildiv(M, bm)]):
                    for k in T.serial(T.ceildiv(K, bk)):
                        T.ring_acquire(ring)
                        T.tma_load(A[i * bm : (i + 1) * bm, k * bk : (k + 1) * bk], a, ring)
                        T.tma_load(B[k * bk : (k + 1) * bk, j * bn : (j + 1) * bn], b, ring)
                        T.ring_commit(ring)

    return main


STEPS = {
    "a thread an element": loops,
    "tiles in shared memory": lambda *size: tiles(*size, 128, 128, 32, 256, 1, "products and sums of single elements"),
    "tensor cores": lambda *size: tiles(*size, 128, 128, 64, 128, 1, "tensor_cores"),
    "four stages": lambda *size: tiles(*size, 128, 128, 64, 128, 4, "tensor_cores"),
    "tiles of 128 x 256, two warpgroups": lambda *size: tiles(*size, 128, 256, 64, 256, 4, "tensor_cores"),
    "resident blocks": lambda *size: resident(*size, 128, 256, 64, 256, 4),
    "roles by hand": lambda *size: by_hand(*size, 128, 256, 64, 4),
    "helve.kernels.gemm": lambda M, N, K: kernels.gemm(DTYPE, M=M, N=N, K=K),
}


def compare(size: int, rounds: int) -> bool:
    """Prints a row for each step. Returns whether all results are right."""
    a, b = (measure.random(size, size, dtype=torch.bfloat16) for _ in range(2))
    wanted = a.float() @ b.float()
    calls, right = {}, True
    for name, step in STEPS.items():
        kernel, c = helve.compile(step(size, size, size), target="cuda"), torch.empty_like(a)
        kernel(a, b, c)
        if float((c.float() - wanted).abs().max() / wanted.abs().max()) > 2**-7:
            print(f"{name} of {size}: wrong")
            right = False
        calls[name] = lambda kernel=kernel, c=c: kernel(a, b, c)
    out = torch.empty_like(a)
    calls["torch.mm"] = lambda: torch.mm(a, b, out=out)
    seconds = measure.compare(calls, rounds)
    for name, taken in seconds.items():
        print(f"| {size} | {name} | {taken * 1e6:.0f} | {2 * size**3 / taken / 1e12:.1f} | "
              f"{seconds['torch.mm'] / taken:.3f} |", flush=True)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="4096,8192", help="rows, columns and terms, with commas between")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each; the median counts")
    parser.add_argument("--dry-run", action="store_true", help="compile, without a GPU")
    chosen = parser.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    if chosen.dry_run:
        for name, step in STEPS.items():
            kernel = helve.compile(step(*[sizes[0]] * 3), target="cuda", arch="sm_90a")
            print(f"{name}: {sorted({each.schedule for each in kernel.schedules()})}", flush=True)
        return
    print(measure.require_device())
    measure.warm_up(2.0)
    print("| size | step | us | TFLOP/s | of torch.mm |\n" + "| --- " * 5 + "|")
    right = [compare(size, chosen.rounds) for size in sizes]
    if not all(right):
        raise SystemExit("results are wrong")


if __name__ == "__main__":
    main()
