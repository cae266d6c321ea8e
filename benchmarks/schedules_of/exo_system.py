"""Exo: the product, the blur and the illegal steps.

Its C is compiled by gcc, with the flags that its C is meant for.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

from exo import proc
from exo.platforms.x86 import AVX2, DRAM, mm256_broadcast_ss, mm256_fmadd_ps, mm256_loadu_ps, mm256_storeu_ps
from exo.stdlib import scheduling as x

NAME = "Exo"
REFUSALS = (x.SchedulingError, x.InvalidCursorError, TypeError, ValueError)


def compiled(p):
    """The procedure as a function of NumPy arrays, by gcc."""
    folder = Path(tempfile.mkdtemp())
    (folder / "p.c").write_text(p.c_code_str())
    subprocess.run(["gcc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-w", "-shared", "-fPIC",
                    str(folder / "p.c"), "-o", str(folder / "p.so")], check=True)
    function = getattr(ctypes.CDLL(str(folder / "p.so")), p.name())
    return lambda *arrays: function(None, *(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))


@proc
def product(A: f32[1024, 1024] @ DRAM, B: f32[1024, 1024] @ DRAM, C: f32[1024, 1024] @ DRAM):  # noqa: F821
    for i in seq(0, 1024):  # noqa: F821
        for j in seq(0, 1024):  # noqa: F821
            C[i, j] = 0.0
            for k in seq(0, 1024):  # noqa: F821
                C[i, j] += A[i, k] * B[k, j]


def gemm(n: int):
    """Accumulators of 4 x 16 in registers, a packed panel of B; Exo names each instruction."""
    start = time.perf_counter()
    # lines of the schedule: begin
    p = x.fission(product, product.find("C[_] = _").after(), n_lifts=2)
    p = x.divide_loop(p, "i #1", 4, ["io", "ii"], perfect=True)
    p = x.divide_loop(p, "j #1", 16, ["jo", "ji"], perfect=True)
    p = x.divide_loop(p, "ji", 8, ["jv", "jl"], perfect=True)
    for pair in ("ii jo", "io jo", "jl k", "jv k", "ii k"):
        p = x.reorder_loops(p, pair)
    p = x.stage_mem(p, "for io in _:_", "B[0:1024, 16*jo:16*jo+16]", "Bp")
    p = x.simplify(x.stage_mem(p, "for k in _:_", "C[4*io:4*io+4, 16*jo:16*jo+16]", "Cr"))
    p = x.divide_dim(p, "Cr", 1, 8)
    p = x.repeat(x.divide_loop)(p, "for i1 in _: _", 8, ["i2", "i3"], perfect=True)
    p = x.set_memory(x.simplify(p), "Cr", AVX2)
    p = x.divide_dim(x.simplify(x.stage_mem(p, "for ii in _:_", "Bp[k, 0:16]", "Br")), "Br", 0, 8)
    p = x.divide_loop(p, p.find("Br[_] = _").parent(), 8, ["b2", "b3"], perfect=True)
    p = x.set_memory(x.simplify(p), "Br", AVX2)
    p = x.expand_dim(x.bind_expr(p, "A[_]", "Ar"), "Ar", 8, "jl")
    p = x.lift_alloc(p, "Ar", n_lifts=2)
    p = x.fission(p, p.find("Ar[_] = _").after(), n_lifts=2)
    p = x.remove_loop(p, p.find("Ar[_] = _").parent().parent())
    p = x.set_memory(p, "Ar", AVX2)
    for instruction in (mm256_loadu_ps, mm256_storeu_ps, mm256_broadcast_ss, mm256_fmadd_ps):
        p = x.replace_all(p, instruction)
    # lines of the schedule: end
    scheduled = time.perf_counter()
    call = compiled(p)
    return call, scheduled - start, time.perf_counter() - scheduled


@proc
def means(I: f32[2050, 2050] @ DRAM, O: f32[2048, 2048] @ DRAM):  # noqa: E741, F821
    X: f32[2050, 2048] @ DRAM  # noqa: F821
    for y in seq(0, 2050):  # noqa: F821
        for u in seq(0, 2048):  # noqa: F821
            X[y, u] = (I[y, u] + I[y, u + 1] + I[y, u + 2]) * 0.3333333333333333
    for v in seq(0, 2048):  # noqa: F821
        for w in seq(0, 2048):  # noqa: F821
            O[v, w] = (X[v, w] + X[v + 1, w] + X[v + 2, w]) * 0.3333333333333333


def blur(rows: int, columns: int):
    """Rows of the first stage are used while they are in the cache; gcc vectorizes."""
    start = time.perf_counter()
    # lines of the schedule: begin
    p = x.cut_loop(means, "y", 2)
    p = x.shift_loop(p, "y #1", 0)
    p = x.fuse(p, "y #1", "v")
    # lines of the schedule: end
    scheduled = time.perf_counter()
    call = compiled(p)
    return call, scheduled - start, time.perf_counter() - scheduled


@proc
def p_carried_reorder(A: f32[64, 64]):  # noqa: F821
    for i in seq(1, 64):  # noqa: F821
        for j in seq(0, 63):  # noqa: F821
            A[i, j] = A[i - 1, j + 1] + 1.0


def carried_reorder(A):
    compiled(x.reorder_loops(p_carried_reorder, "i j"))(A)


@proc
def p_sum(A: f32[65536], S: f32[1]):  # noqa: F821
    for i in seq(0, 65536):  # noqa: F821
        S[0] += A[i]


def parallel_sum(A, S):
    compiled(x.parallelize_loop(p_sum, "i"))(A, S)


@proc
def p_shared_temporary(A: f32[65536], B: f32[65536]):  # noqa: F821
    t: f32[1]  # noqa: F821
    for i in seq(0, 65536):  # noqa: F821
        t[0] = A[i]
        B[i] = t[0] * 2.0


def shared_temporary(A, B):
    compiled(x.parallelize_loop(p_shared_temporary, "i"))(A, B)


@proc
def p_recurrence(A: f32[65536]):  # noqa: F821
    for i in seq(1, 65536):  # noqa: F821
        A[i] = A[i - 1] + 1.0


def parallel_recurrence(A):
    compiled(x.parallelize_loop(p_recurrence, "i"))(A)


@proc
def p_short_recurrence(A: f32[64]):  # noqa: F821
    for i in seq(1, 64):  # noqa: F821
        A[i] = A[i - 1] + 1.0


def stale_copy(A):
    p = x.stage_mem(p_short_recurrence, "for i in _:_", "A[0:63]", "R")
    compiled(p)(A)


@proc
def p_join(A: f32[64], X: f32[64], B: f32[64]):  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        X[i] = A[i] + 1.0
    for j in seq(0, 64):  # noqa: F821
        B[j] = X[63 - j]


def join_past_dependence(A, X, B):
    compiled(x.fuse(p_join, "i", "j"))(A, X, B)


@proc
def p_fission(A: f32[64], B: f32[64]):  # noqa: F821
    for i in seq(1, 64):  # noqa: F821
        A[i] = B[i - 1] + 1.0
        B[i] = A[i] * 2.0


def fission_past_dependence(A, B):
    compiled(x.fission(p_fission, p_fission.find("A[_] = _").after()))(A, B)


@proc
def p_inline(A: f32[64], B: f32[64]):  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        t: f32  # noqa: F821
        t = A[i] * 2.0
        A[i] = 0.0
        B[i] = t


def stale_inline(A, B):
    compiled(x.inline_assign(p_inline, "t = _"))(A, B)


@proc
def p_split(A: f32[10], B: f32[10]):  # noqa: F821
    for i in seq(0, 10):  # noqa: F821
        B[i] = A[i] * 2.0


def inexact_split(A, B):
    compiled(x.divide_loop(p_split, "i", 4, ["io", "ii"], perfect=True))(A, B)


@proc
def p_triangle(A: f32[64, 64], B: f32[64, 64]):  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        for j in seq(0, i):  # noqa: F821
            B[i, j] = A[i, j] * 2.0


def triangular_reorder(A, B):
    compiled(x.reorder_loops(p_triangle, "i j"))(A, B)


@proc
def p_matrix_sum(A: f32[64, 64], S: f32[1]):  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        for j in seq(0, 64):  # noqa: F821
            S[0] += A[i, j]


def float_sum_reorder(A, S):
    compiled(x.reorder_loops(p_matrix_sum, "i j"))(A, S)


@proc
def p_stages(A: f32[64], X: f32[65], B: f32[64]):  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        X[i] = A[i] + 1.0
    for j in seq(0, 64):  # noqa: F821
        B[j] = X[j] + X[j + 1]


def unshifted_join(A, X, B):
    compiled(x.fuse(p_stages, "i", "j"))(A, X, B)


@proc
def p_relaxation(A: f32[64]):  # noqa: F821
    for t in seq(0, 8):  # noqa: F821
        for i in seq(1, 63):  # noqa: F821
            A[i] = A[i - 1] + A[i + 1]


def unskewed_tiles(A):
    p = x.divide_loop(x.shift_loop(p_relaxation, "i", 0), "i", 8, ["io", "ii"], tail="guard")
    compiled(x.reorder_loops(p, "t io"))(A)


@proc
def p_product(A: f32[2, 65536], B: f32[65536, 2], C: f32[2, 2]):  # noqa: F821
    for i in seq(0, 2):  # noqa: F821
        for j in seq(0, 2):  # noqa: F821
            for k in seq(0, 65536):  # noqa: F821
                C[i, j] += A[i, k] * B[k, j]


def parallel_product(A, B, C):
    compiled(x.parallelize_loop(p_product, "k"))(A, B, C)


@proc
def p_late(A: f32[64], B: f32[64]):  # noqa: F821
    X: f32[64]  # noqa: F821
    for i in seq(0, 64):  # noqa: F821
        X[i] = A[i] + 1.0
    for j in seq(0, 64):  # noqa: F821
        A[63 - j] = 0.0
        B[j] = X[j]


def late_producer(A, B):
    compiled(x.fuse(p_late, "i", "j"))(A, B)


# Vectors are instructions that replace loops of their form, and conditions and subscripts are no data.
vectorized_recurrence = scattered_stores = changing_condition = dynamic_consumer = producer_in_vector = None

# Where the lines of the schedules are counted.
gemm_schedule, blur_schedule = gemm, blur
