"""Norms by plain loops, and the schedules that make the kernels of helve.kernels of them.

The tutorial docs/tutorials/norms.md explains each line; benchmarks/gpu/norms_by_schedule.py measures them.
"""

from __future__ import annotations

from math import gcd

import helve
from helve import T
from helve.kernels.ring import plan_ring
from helve.kernels.rows import DTYPES, plan_rows


def rms_norm(N: int, dtype: str, eps: float = 1e-6):
    """Rows over their root mean square, as the formula has it."""
    M = T.dyn("M")

    @T.prim_func
    def rms_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1):
            for i in T.serial(M):
                total = T.alloc_local((1,), "float32")
                total[0] = 0.0
                for j in T.serial(N):
                    T.update(total[0], T.cast(X[i, j], "float32") * T.cast(X[i, j], "float32"), "add")
                total[0] = T.rsqrt(total[0] * (1.0 / N) + eps)
                for k in T.serial(N):
                    Y[i, k] = X[i, k] * total[0] * W[k]

    return rms_norm


def layer_norm(N: int, dtype: str, eps: float = 1e-5):
    """Rows less their mean over their standard deviation, as the formula has it."""
    M = T.dyn("M")

    @T.prim_func
    def layer_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
                   Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1):
            for i in T.serial(M):
                mean = T.alloc_local((1,), "float32")
                scale = T.alloc_local((1,), "float32")
                mean[0] = 0.0
                for j in T.serial(N):
                    T.update(mean[0], T.cast(X[i, j], "float32"), "add")
                mean[0] = mean[0] * (1.0 / N)
                scale[0] = 0.0
                for h in T.serial(N):
                    T.update(scale[0], (X[i, h] - mean[0]) * (X[i, h] - mean[0]), "add")
                scale[0] = T.rsqrt(scale[0] * (1.0 / N) + eps)
                for k in T.serial(N):
                    Y[i, k] = (X[i, k] - mean[0]) * scale[0] * W[k] + B[k]

    return layer_norm


def whole_rows(program, threads: int, early: str = "XW", sums: str = "j", check: bool = False) -> helve.Schedule:
    """A block has a row, which stays in registers from the load to the store, as do all tensors that are loaded early.
    The row is reduced by the loops `sums`.
    """
    s = helve.Schedule(program, check=check)
    s.split("i", 1)
    copies = [s.cache_read("ii", name, "fragment")[0] for name in early]
    s.unroll("ii")
    s.threads(s.bind("io"), threads)
    for loop in sums:
        terms, merge = s.rfactor(loop, scope="fragment")
        s.tensorize(merge, "reduce_sum")
        s.parallel(terms)
    for copy in copies:
        s.tensorize(copy, "copy")
    s.parallel("k")
    return s


def chunked_rows(program, threads: int, turns: int, run: int, chunks: int, kept: int,
                 check: bool = False) -> helve.Schedule:
    """A row passes in chunks of `turns` vectors of `run` elements a thread; `kept` chunks wait in shared memory for
    their scale, and the others are read again, the last one first.
    """
    s = helve.Schedule(program, check=check)
    chunk = threads * turns * run

    def lanes(loop):
        turn, rest = s.split(loop, threads * run)
        return turn, *s.split(rest, run)

    # Each thread sums what it has of all chunks; in a chunk the vectors of a turn at first, then the turns.
    c, j = s.split("j", chunk)
    turn, thread, vector = lanes(j)
    clear, _, merge = s.rfactor(thread, c, "fragment")
    x, _ = s.cache_read(turn, "X", "fragment")
    clear_turns, _, merge_turns = s.rfactor(turn, turn, "fragment")
    *unfilled, _, merge_vectors = s.rfactor(vector, turn, "fragment")  # a last chunk that is smaller updates some only
    back, k = s.split("k", chunk)
    s.reverse(back)
    again, _ = s.cache_read(k, "X", "fragment")

    # Where a chunk is kept, its copy to registers goes on to shared memory, from which it comes back.
    s.split("i", 1)
    first, last, copies, whole = x, again, [], [again]
    if 0 < kept < chunks:
        first, x = s.specialize(x, c, kept)
        whole = s.specialize(again, back, chunks - kept)
        last = whole[1]
    if kept < chunks:
        copies.append(x)
    if kept:
        fill, _ = s.cache_read("ii", "X", "shared", within=[first, last])
        one, first = s.split(first, chunk)
        s.skew(c, s.compute_at(fill, one), -chunk)
        _, keep = s.cache_write(one, "X_shared", "fragment")
        s.unroll(one)
        copies += [s.store("X_shared_fragment").parent(), s.store("X_fragment", 0).parent(), keep]

    # A thread's elements are those of its iterations: registers get the dimensions of the loops.
    for loop in copies:
        for each in lanes(loop):
            s.parallel(each)
    for buffer in ["X_fragment"] + ["X_shared_fragment"] * bool(kept):
        s.split_dimension(buffer, 1, run)
        s.split_dimension(buffer, 1, threads)
    for loop in (turn, thread, vector, k):
        s.parallel(loop)
    for loop in (merge_vectors, merge_turns, merge):
        s.tensorize(loop, "reduce_sum")
    for loop in (clear, clear_turns, *unfilled):
        s.tensorize(loop, "fill")
    for loop in whole:
        s.tensorize(loop, "copy")
    s.unroll("ii")
    s.threads(s.bind("io"), threads)
    return s


def rows_in_turn(program, threads: int, blocks: int, stages: int, check: bool = False) -> helve.Schedule:
    """Blocks process rows in turn; while they process one, copies to a ring of `stages` rows load the next ones."""
    s = helve.Schedule(program, check=check)
    s.split("i", blocks)
    s.reorder("ii", "io")
    s.trim("io")
    row, one = s.split("io", 1)
    ring, _ = s.cache_read(one, "X", "shared")
    x, _ = s.cache_read(one, "X_shared", "fragment")
    w, _ = s.cache_read(row, "W", "fragment")
    s.unroll(one)
    s.lift("X_shared", row)
    s.threads(s.bind("ii"), threads)
    _, merge = s.rfactor("j", scope="fragment")
    s.pipeline(row, stages)
    s.tensorize(merge, "reduce_sum")
    for copy in (ring, x, w):
        s.tensorize(copy, "copy")
    s.parallel("j")
    s.parallel("k")
    return s


def shared_rows(program, columns: int, threads: int, clusters: int, cores: int, stages: int, held: str = "W",
                sums: str = "j", check: bool = False) -> helve.Schedule:
    """The blocks of a cluster share each of its rows, a slice of the `columns` each, and exchange their sums, of the
    loops `sums`; clusters process rows in turn, whose next ones copies to a ring of `stages` slices load. Slices of the
    tensors `held` stay on the chip.
    """
    s = helve.Schedule(program, check=check)
    s.split("i", clusters)
    s.reorder("ii", "io")
    s.trim("io")
    row, one = s.split("io", 1)
    slices = [s.split(loop, -(-columns // cores))[0] for loop in sums + "k"]
    slices += [s.rfactor(each, scope="shared")[0] for each in slices[:-1]]
    s.threads(s.bind("ii"), threads)
    s.bind(slices[0], to="core", also=slices[1:])
    copies = [s.cache_read(one, "X", "shared")[0], s.cache_read(one, "X_shared", "fragment")[0]]
    copies += [s.cache_read(row, name, "fragment")[0] for name in held]
    s.unroll(one)
    s.lift("X_shared", row)
    s.pipeline(row, stages)
    for loop in sums:
        *unfilled, _, merge = s.rfactor(f"{loop}i", scope="fragment")  # a smaller last slice updates some only
        s.tensorize(merge, "reduce_sum")
        for fill in unfilled:
            s.tensorize(fill, "fill")
    for copy in copies:
        s.tensorize(copy, "copy")
    for loop in sums + "k":
        s.parallel(f"{loop}i")
    return s


def whole_layer_norm(N: int, dtype: str, eps: float = 1e-5) -> helve.Schedule:
    """The schedule of the form that `helve.kernels.layer_norm` has for rows of up to 4096 elements."""
    return whole_rows(layer_norm(N, dtype, eps), plan_rows(N, dtype, words=4).threads, "XWB", "jh")


def shared(N: int, dtype: str, norm: str = "rms_norm", **tuning) -> helve.Schedule:
    """The schedule of the form that `helve.kernels` has for rows that a cluster shares, with its tuning."""
    program, sums, weights = {"rms_norm": (rms_norm, "j", "W"), "layer_norm": (layer_norm, "jh", "WB")}[norm]
    plan = plan_ring(N, dtype, 1, **tuning)
    return shared_rows(program(N, dtype), N, plan.threads, plan.clusters, plan.cluster, plan.stages,
                       weights[:plan.held], sums)


def schedule(N: int, dtype: str, eps: float = 1e-6) -> helve.Schedule:
    """The schedule of the form that `helve.kernels.rms_norm` has for such rows.

    Raises:
        ValueError: chunks of the plan do not divide rows, and some are kept.
    """
    program = rms_norm(N, dtype, eps)
    plan = plan_rows(N, dtype, words=3)
    if plan.chunks == 1:
        return whole_rows(program, plan.threads)
    plan = plan_rows(N, dtype, words=2, whole=False)
    if plan.chunks == 1 and plan.chunk == N:
        return whole_rows(program, plan.threads, early="X")
    if N % plan.chunk and plan.kept:
        raise ValueError(f"rows of {N} are no whole number of chunks of {plan.chunk}")
    run = gcd(16 // DTYPES[dtype], plan.chunk // plan.threads, N)
    return chunked_rows(program, plan.threads, plan.chunk // plan.threads // run, run, plan.chunks, plan.kept)
