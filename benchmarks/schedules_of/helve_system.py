"""helve: the product, the blur and the illegal steps."""

from __future__ import annotations

import time

from schedules_of.helve_gemm import columns_of, product
from schedules_of.helve_gemm import schedule as gemm_schedule
from schedules_of.cases import LONG, WIDE, N

import helve
from helve import T

NAME = "helve"
REFUSALS = (helve.Error,)


def gemm(n: int):
    """The call, and the seconds that the schedule and the compiler took."""
    program = product(n, n, n)
    start = time.perf_counter()
    s = gemm_schedule(program, columns_of(n, 1), n)
    scheduled = time.perf_counter()
    kernel = helve.compile(s, fast_math=True)
    compiled = time.perf_counter()
    return kernel, scheduled - start, compiled - scheduled


def blur_program(rows: int, columns: int):
    """Means of three columns, then of three rows."""

    @T.prim_func
    def blur(I: T.Tensor((rows + 2, columns + 2), "float32"), O: T.Tensor((rows, columns), "float32")):  # noqa: E741
        X = T.alloc_global((rows + 2, columns), "float32")
        with T.Kernel(1) as b:
            for y in T.serial(rows + 2):
                for x in T.serial(columns):
                    X[y, x] = (I[y, x] + I[y, x + 1] + I[y, x + 2]) * (1.0 / 3.0)
            for v in T.serial(rows):
                for u in T.serial(columns):
                    O[v, u] = (X[v, u] + X[v + 1, u] + X[v + 2, u]) * (1.0 / 3.0)

    return blur


def blur(rows: int, columns: int):
    """Rows of the first stage are used while they are in the cache."""
    program = blur_program(rows, columns)
    start = time.perf_counter()
    # lines of the schedule: begin
    s = helve.Schedule(program)
    s.vectorize("x")
    s.vectorize("u")
    _, rest = s.cut("y", 2)
    s.shift("v", 2)
    s.join(rest, "v")
    # lines of the schedule: end
    scheduled = time.perf_counter()
    kernel = helve.compile(s, fast_math=True)
    compiled = time.perf_counter()
    return kernel, scheduled - start, compiled - scheduled


def _schedule(parameters: str, body: str) -> helve.Schedule:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    names = ", ".join(f"{name}: T.Tensor({shape}, '{dtype}')" for name, shape, dtype in
                      (each.split("|") for each in parameters.split(" ")))
    return helve.Schedule(helve.parse(f"@T.prim_func\ndef f({names}):\n    with T.Kernel(1) as b:\n{lines}"))


def _run(s: helve.Schedule, arguments) -> None:
    helve.compile(s)(*arguments)


def _vector(name: str, extent: int = N, dtype: str = "float32") -> str:
    return f"{name}|({extent},)|{dtype}"


def carried_reorder(A):
    s = _schedule(f"A|({N},{N})|float32",
                  f"for i in T.serial(1, {N}):\n    for j in T.serial({N - 1}):\n"
                  "        A[i, j] = A[i - 1, j + 1] + 1.0")
    s.reorder("j", "i")
    _run(s, [A])


def vectorized_recurrence(A):
    s = _schedule(_vector("A"), f"for i in T.serial(1, {N}):\n    A[i] = A[i - 1] + 1.0")
    s.vectorize("i")
    _run(s, [A])


def parallel_sum(A, S):
    s = _schedule(_vector("A", LONG) + " " + _vector("S", 1), f"for i in T.serial({LONG}):\n    S[0] = S[0] + A[i]")
    s.parallel("i")
    _run(s, [A, S])


def shared_temporary(A, B):
    s = _schedule(_vector("A", LONG) + " " + _vector("B", LONG),
                  f"t = T.alloc_shared((1,), 'float32')\nfor i in T.serial({LONG}):\n    t[0] = A[i]\n"
                  "    B[i] = t[0] * 2.0")
    s.parallel("i")
    _run(s, [A, B])


def parallel_recurrence(A):
    s = _schedule(_vector("A", LONG), f"for i in T.serial(1, {LONG}):\n    A[i] = A[i - 1] + 1.0")
    s.bind("i")
    _run(s, [A])


def scattered_stores(A, I, B):  # noqa: E741
    s = _schedule(f"{_vector('A', WIDE)} {_vector('I', WIDE, 'int32')} {_vector('B', WIDE + 1)}",
                  f"for i in T.serial({WIDE}):\n    B[T.index(I[i])] = A[i]")
    s.parallel("i")
    _run(s, [A, I, B])


def join_past_dependence(A, X, B):
    s = _schedule(f"{_vector('A')} {_vector('X')} {_vector('B')}",
                  f"for i in T.serial({N}):\n    X[i] = A[i] + 1.0\nfor j in T.serial({N}):\n    B[j] = X[{N - 1} - j]")
    s.join("i", "j")
    _run(s, [A, X, B])


def fission_past_dependence(A, B):
    s = _schedule(f"{_vector('A')} {_vector('B')}",
                  f"for i in T.serial(1, {N}):\n    A[i] = B[i - 1] + 1.0\n    B[i] = A[i] * 2.0")
    s.fission(s.store("B"))
    _run(s, [A, B])


def _staged(s_first: str, s_second: str) -> helve.Schedule:
    return _schedule(f"{_vector('A')} {_vector('B')}", f"X = T.alloc_shared(({N},), 'float32')\n{s_first}\n{s_second}")


def stale_inline(A, B):
    s = _staged(f"for i in T.serial({N}):\n    X[i] = A[i] * 2.0",
                f"for j in T.serial({N}):\n    A[j] = 0.0\nfor k in T.serial({N}):\n    B[k] = X[k]")
    s.inline(s.store("X"))
    _run(s, [A, B])


def stale_copy(A):
    s = _schedule(_vector("A"), f"for i in T.serial(1, {N}):\n    A[i] = A[i - 1] + 1.0")
    s.cache_read("i", "A")
    _run(s, [A])


def changing_condition(F, A):
    s = _schedule(f"{_vector('F', 1)} {_vector('A')}",
                  f"for i in T.serial({N}):\n    if F[0] > 0.0:\n        A[i] = 1.0\n        F[0] = 0.0")
    s.unswitch("i")
    _run(s, [F, A])


def inexact_split(A, B):
    s = _schedule(f"{_vector('A', 10)} {_vector('B', 10)}", "for i in T.serial(10):\n    B[i] = A[i] * 2.0")
    s.split("i", 4, tail="exact")
    _run(s, [A, B])


def triangular_reorder(A, B):
    s = _schedule(f"A|({N},{N})|float32 B|({N},{N})|float32",
                  f"for i in T.serial({N}):\n    for j in T.serial(i):\n        B[i, j] = A[i, j] * 2.0")
    s.reorder("j", "i")
    _run(s, [A, B])


def float_sum_reorder(A, S):
    s = _schedule(f"A|({N},{N})|float32 {_vector('S', 1)}",
                  f"for i in T.serial({N}):\n    for j in T.serial({N}):\n        S[0] = S[0] + A[i, j]")
    s.reorder("j", "i")
    _run(s, [A, S])


def unshifted_join(A, X, B):
    s = _schedule(f"{_vector('A')} {_vector('X', N + 1)} {_vector('B')}",
                  f"for i in T.serial({N}):\n    X[i] = A[i] + 1.0\n"
                  f"for j in T.serial({N}):\n    B[j] = X[j] + X[j + 1]")
    s.join("i", "j")
    _run(s, [A, X, B])


def unskewed_tiles(A):
    s = _schedule(_vector("A"), f"for t in T.serial(8):\n    for i in T.serial(1, {N - 1}):\n"
                                "        A[i] = A[i - 1] + A[i + 1]")
    outer, inner = s.split("i", 8)
    s.reorder(outer, "t", inner)
    _run(s, [A])


def _stages() -> helve.Schedule:
    return helve.Schedule(helve.parse(
        "n = T.dyn('n')\n@T.prim_func\ndef f(A: T.Tensor((n,), 'float32'), B: T.Tensor((n,), 'float32'), "
        "E: T.Tensor((n,), 'float32')):\n    D = T.alloc_global((n,), 'float32')\n    with T.Kernel(1) as b:\n"
        "        for i in T.serial(n):\n            D[i] = (A[i] + B[i]) * 2.0\n"
        "        for j in T.serial(n):\n            E[j] = D[j] + A[j]\n"))


def dynamic_consumer(A, B, E):
    s = _stages()
    outer, _ = s.split("i", 32)
    s.reverse_compute_at(s.loop("j"), outer)
    _run(s, [A, B, E])


def producer_in_vector(A, B, E):
    s = _stages()
    _, inner = s.split("j", 8)
    s.compute_at(s.store("D"), s.vectorize(inner))
    _run(s, [A, B, E])


def parallel_product(A, B, C):
    s = _schedule(f"A|(2,{LONG})|float32 B|({LONG},2)|float32 C|(2,2)|float32",
                  f"for i in T.serial(2):\n    for j in T.serial(2):\n        for k in T.serial({LONG}):\n"
                  "            C[i, j] = C[i, j] + A[i, k] * B[k, j]")
    s.parallel("k")
    _run(s, [A, B, C])


def late_producer(A, B):
    s = _staged(f"for i in T.serial({N}):\n    X[i] = A[i] + 1.0",
                f"for j in T.serial({N}):\n    A[{N - 1} - j] = 0.0\n    B[j] = X[j]")
    s.compute_at(s.store("X"), s.loop("j"))
    _run(s, [A, B])


# Where the lines of the schedule are counted.
blur_schedule = blur
