"""Twenty steps of schedules that would change results, as data: the program in NumPy, its arguments, the step in words.

A module of a system says how it expresses the program and the step; what the program computes is written here once, so
that a result of any system is judged by one reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

N = 64  # of programs whose order alone decides
LONG = 1 << 16  # of loops whose iterations must meet at run time
WIDE = 1 << 22  # of those that must run longer than a thread takes to start


@dataclass(frozen=True)
class Case:
    """`inputs` makes fresh arguments; `run` computes in place what the program computes."""

    name: str
    step: str
    inputs: Callable[[], list[np.ndarray]]
    run: Callable[..., None]


CASES: list[Case] = []


def case(step: str, inputs: Callable[[], list[np.ndarray]]):
    """Adds the decorated function, the program, as a case of its name."""

    def add(run: Callable[..., None]) -> Callable[..., None]:
        CASES.append(Case(run.__name__, step, inputs, run))
        return run

    return add


def ramp(*shape: int) -> np.ndarray:
    """Small whole numbers, all sums of which float32 holds exactly."""
    return (np.arange(np.prod(shape)) % 7 + 1).astype("float32").reshape(shape)


def empty(*shape: int) -> np.ndarray:
    """Minus one, which no program computes."""
    return np.full(shape, -1, "float32")


@case("exchange loops that carry a value along a diagonal", lambda: [ramp(N, N)])
def carried_reorder(A):
    for i in range(1, N):
        for j in range(N - 1):
            A[i, j] = A[i - 1, j + 1] + 1


@case("vectorize a recurrence", lambda: [ramp(N)])
def vectorized_recurrence(A):
    for i in range(1, N):
        A[i] = A[i - 1] + 1


@case("parallelize a sum", lambda: [ramp(LONG), np.zeros(1, "float32")])
def parallel_sum(A, S):
    S[0] += A.sum()


@case("parallelize a loop whose iterations share a temporary", lambda: [ramp(LONG), empty(LONG)])
def shared_temporary(A, B):
    B[:] = A * 2


@case("parallelize a recurrence", lambda: [np.ones(LONG, "float32")])
def parallel_recurrence(A):
    A[1:] = A[0] + np.arange(1, len(A))


def meeting() -> np.ndarray:
    """Subscripts, each once but for 0: that is the last of the first half, and the first of the second."""
    out = np.arange(1, WIDE + 1, dtype="int32")
    out[WIDE // 2 - 1 : WIDE // 2 + 1] = 0
    return out


@case("parallelize stores through an index array", lambda: [ramp(WIDE), meeting(), empty(WIDE + 1)])
def scattered_stores(A, I, B):  # noqa: E741
    B[I] = A
    B[0] = A[WIDE // 2]


@case("join a loop with one that reads its last results first", lambda: [ramp(N), empty(N), empty(N)])
def join_past_dependence(A, T, B):
    T[:] = A + 1
    B[:] = T[::-1]


@case("divide a loop between statements that feed each other", lambda: [ramp(N), ramp(N)])
def fission_past_dependence(A, B):
    for i in range(1, N):
        A[i] = B[i - 1] + 1
        B[i] = A[i] * 2


@case("inline a value whose source was overwritten", lambda: [ramp(N), empty(N)])
def stale_inline(A, B):
    B[:] = A * 2
    A[:] = 0


@case("read a copy that the loop has outdated", lambda: [ramp(N)])
def stale_copy(A):
    for i in range(1, N):
        A[i] = A[i - 1] + 1


@case("take a condition out of the loop that changes it", lambda: [np.ones(1, "float32"), empty(N)])
def changing_condition(F, A):
    for i in range(N):
        if F[0] > 0:
            A[i] = 1
            F[0] = 0


@case("divide 10 iterations exactly by 4", lambda: [ramp(10), empty(10)])
def inexact_split(A, B):
    B[:] = A * 2


@case("exchange the loops of a triangle", lambda: [ramp(N, N), empty(N, N)])
def triangular_reorder(A, B):
    for i in range(N):
        B[i, :i] = A[i, :i] * 2


@case("exchange the loops of a plain float sum", lambda: [
    np.random.default_rng(0).standard_normal((N, N), dtype="float32"), np.zeros(1, "float32")])
def float_sum_reorder(A, S):
    for value in A.ravel():
        S[0] += value


@case("join the stages of a stencil without a shift", lambda: [ramp(N), empty(N + 1), empty(N)])
def unshifted_join(A, T, B):
    T[:N] = A + 1
    B[:] = T[:N] + T[1:]


@case("tile a relaxation over time without skewing it", lambda: [ramp(N)])
def unskewed_tiles(A):
    for _ in range(8):
        for i in range(1, N - 1):
            A[i] = A[i - 1] + A[i + 1]


@case("compute a consumer in parts of 32 of a dynamic extent", lambda: [ramp(1000), ramp(1000), empty(1000)])
def dynamic_consumer(A, B, E):
    E[:] = 2 * (A + B) + A


@case("compute a producer inside a vector", lambda: [ramp(1000), ramp(1000), empty(1000)])
def producer_in_vector(A, B, E):
    E[:] = 2 * (A + B) + A


@case("parallelize the sum of a product", lambda: [ramp(2, LONG), ramp(LONG, 2), np.zeros((2, 2), "float32")])
def parallel_product(A, B, C):
    C += A @ B


@case("compute a producer after its source was overwritten", lambda: [ramp(N), empty(N)])
def late_producer(A, B):
    B[:] = A + 1
    A[:] = 0
