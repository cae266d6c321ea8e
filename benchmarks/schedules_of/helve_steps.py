"""Steps on products, timed one by one: what a schedule costs before anything is compiled."""

from __future__ import annotations

import time

import helve
from helve import T

M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")
SIZE = 1024  # of the matrices that auto orders


@T.prim_func
def dynamic(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
    with T.Kernel(M) as x:
        for y in T.Parallel(N):
            C[x, y] = 0.0
    with T.Kernel(1) as b:
        for i in T.serial(M):
            for j in T.serial(N):
                for k in T.serial(K):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]


@T.prim_func
def updated(A: T.Tensor((SIZE, SIZE), "float32"), B: T.Tensor((SIZE, SIZE), "float32"),
            C: T.Tensor((SIZE, SIZE), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial(SIZE):
            for j in T.serial(SIZE):
                C[i, j] = 0.0
    with T.Kernel(1) as b:
        for i in T.serial(SIZE):
            for j in T.serial(SIZE):
                for k in T.serial(SIZE):
                    T.update(C[i, j], A[i, k] * B[k, j], "add")


class _Timed:
    """A schedule whose steps leave their names and seconds."""

    def __init__(self, program):
        self.s = helve.Schedule(program)
        self.taken: list[tuple[str, float]] = []

    def __getattr__(self, name: str):
        def step(*arguments):
            start = time.process_time()
            out = getattr(self.s, name)(*arguments)
            self.taken.append((name, time.process_time() - start))
            return out

        return step


def _nest(s: _Timed):
    """Tiles of two levels: the loops jb, ko, ic, jo, io, ki, ii, ji."""
    jb, j = s.split("j", 64)
    jo, ji = s.split(j, 16)
    ic, i = s.split("i", 96)
    io, ii = s.split(i, 6)
    ko, ki = s.split("k", 512)
    s.reorder(jb, ko, ic, jo, io, ki, ii, ji)
    return jb, ko, ic, jo, io, ki, ii, ji


def with_loops() -> list[tuple[str, float]]:
    s = _Timed(dynamic)
    jb, _, _, _, io, ki, ii, ji = _nest(s)
    s.split(ki, 4)
    _, lanes = s.split(ji, 8)
    s.parallel(io)
    s.vectorize(lanes)
    s.unroll(ii)
    s.bind(jb)
    return s.taken


def with_copies() -> list[tuple[str, float]]:
    s = _Timed(dynamic)
    jb, _, ic, jo, _, ki, ii, ji = _nest(s)
    s.cache_read(ic, "B", "shared")
    s.cache_read(jo, "A", "shared")
    s.cache_write(ki, "C")
    s.vectorize(ji)
    s.unroll(ii)
    s.bind(jb)
    return s.taken


def automatic() -> list[tuple[str, float]]:
    s = _Timed(updated)
    s.auto()
    return s.taken
