"""Schedules: conditions of calls by exact tails, loops of dynamic extents fused and divided, loops bound to executors.

Accepted programs are judged by the interpreter, by machine code, and as text of CUDA in tests/python/stage_check.py.
"""

import random

import helve
import helve.testing
import numpy as np
import pytest
from helve import T

M, N = T.dyn("M"), T.dyn("N")


@T.prim_func
def rows(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int32")):
    with T.Kernel(1) as b:
        for i in T.serial(M):
            for j in T.serial(N):
                B[i, j] = A[i, j] * 3 + 1


@T.prim_func
def chain(A: T.Tensor((M,), "int32")):
    with T.Kernel(1) as b:
        for i in T.serial(1, M):
            A[i] = A[i - 1] * 3 + 1


def refused(code, step):
    with pytest.raises(helve.Error) as caught:
        step()
    assert caught.value.code == code, str(caught.value)
    return caught.value


def body(s):
    lines = s.script().replace(", scheduled=True", "").splitlines()
    start = next(n for n, line in enumerate(lines) if "T.Kernel" in line)
    return "\n".join(line[4:] for line in lines[start:])


def judge(s, *extents):
    """The schedule against its first version, by the interpreter and machine code."""
    for shape in extents:
        results = []
        for function in (s.version(0), s):
            for target in ("interp", "llvm"):
                a = np.arange(np.prod(shape), dtype="int32").reshape(shape)
                args = [a, *(np.zeros_like(a) for _ in s.function.function.params[1:])]
                helve.compile(function, target=target)(*args)
                results.append(args)
        for args in results[1:]:
            for x, y in zip(args, results[0]):
                np.testing.assert_array_equal(x, y, err_msg=s.script())


def test_an_exact_tail_is_a_condition_of_calls():
    s = helve.Schedule(rows, check=True)
    s.split("i", 64, tail="exact")
    assert "    T.assume(M % 64 == 0)\n" in s.script()
    assert body(s).splitlines()[1] == "    for io in T.serial(M // 64):" and "if" not in body(s)
    judge(s, (64, 5), (0, 3), (128, 1))
    kernel = helve.compile(s)
    for size in (1, 63, 65):
        error = refused("HV0616", lambda: kernel(np.zeros((size, 2), "int32"), np.zeros((size, 2), "int32")))
        assert error.message == f"'rows' needs M % 64 == 0, this call has M={size}"
    report, = s.report()
    assert report.needs == ("M % 64 == 0",) and report.effect == "equal"
    assert repr(report).endswith("; calls need M % 64 == 0>")


def test_later_steps_rely_on_it():
    s = helve.Schedule(rows)
    s.split("i", 64, tail="exact")
    s.split("j", 8, tail="exact")
    s.fuse("io", "ii")
    s.split("ioii", 32)  # no guard: 32 divides what 64 does
    assert "if" not in body(s)
    assert [each.needs for each in s.report()] == [("M % 64 == 0",), ("N % 8 == 0",), (), ()]
    s.split("jo", 1, tail="exact")
    assert s.report()[-1].needs == ()
    judge(s, (64, 8), (64, 0))


def test_an_exact_tail_replays_on_other_sizes():
    s = helve.Schedule(rows)
    s.split("i", 8, tail="exact")

    @T.prim_func
    def constant(A: T.Tensor((16, 3), "int32"), B: T.Tensor((16, 3), "int32")):
        with T.Kernel(1) as b:
            for i in T.serial(16):
                for j in T.serial(3):
                    B[i, j] = A[i, j]

    other = helve.Schedule(constant)
    other.replay(helve.Trace.from_json(s.trace().json()))
    assert "assume" not in other.script() and other.report()[0].needs == ()


def test_what_calls_cannot_check_is_no_condition():
    @T.prim_func
    def triangle(A: T.Tensor((M, M), "int32")):
        with T.Kernel(1) as b:
            for i in T.serial(M):
                for j in T.serial(i):
                    A[i, j] = 1

    s = helve.Schedule(triangle)
    assert "would not run" in refused("HV1007", lambda: s.split("j", 4, tail="exact")).message
    s.split("j", 4)


@pytest.mark.parametrize("tail", ["guard", "cut", "exact"])
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
def test_a_dynamic_extent_is_divided_into_parts(parts, tail):
    for function, loop in ((rows, "i"), (rows, "j"), (chain, "i")):
        s = helve.Schedule(function)
        s.divide(loop, parts, tail=tail)
        sizes = [0, 28, 56] if tail == "exact" else [0, 1, 2, 5, 8, 28, 29]
        if function is chain:
            judge(s, *[(n + 1,) for n in sizes])
        else:
            judge(s, *[(n, n) for n in sizes])


def test_parts_of_a_parallel_loop_go_to_cores():
    s = helve.Schedule(rows)
    s.parallel("i")
    s.divide("i", 4)
    s.serial("ii")
    s.bind("io")
    assert body(s).splitlines()[0] == "with T.Kernel(4) as io:"
    judge(s, (0, 3), (1, 1), (5, 2), (16, 2), (17, 3))


def test_loops_of_dynamic_extents_are_fused():
    s = helve.Schedule(rows)
    s.fuse("i", "j")
    assert body(s) == ("with T.Kernel(1) as b:\n    for ij in T.serial(M * N):\n"
                       "        B[ij // N, ij % N] = A[ij // N, ij % N] * 3 + 1")
    s.parallel("ij")
    s.serial("ij")
    s.bind("ij")
    judge(s, (0, 3), (3, 0), (1, 1), (5, 7), (8, 8))


def test_a_fused_loop_that_carries_a_dependence_is_not_parallel():
    @T.prim_func
    def down(A: T.Tensor((M, N), "int32")):
        with T.Kernel(1) as b:
            for i in T.serial(1, M):
                for j in T.serial(N):
                    A[i, j] = A[i - 1, j] + 1

    s = helve.Schedule(down)
    s.fuse("i", "j")
    error = refused("HV1007", lambda: s.parallel("ij"))
    assert "ij // N = 1, ij % N = 0" in error.message, error.message


def test_bound_loops_are_coordinates_of_the_grid():
    s = helve.Schedule(rows)
    s.bind("i")
    grid = s.bind("j")
    assert body(s) == "with T.Kernel(M, N) as (i, j):\n    B[i, j] = A[i, j] * 3 + 1" and grid == s.loop("i")
    judge(s, (0, 3), (1, 1), (5, 7))


def test_threads_of_a_block():
    s = helve.Schedule(rows)
    io, ii = s.split("i", 32)
    s.bind(io)
    s.reorder("j", ii)
    s.bind(ii, to="thread")
    assert body(s).splitlines()[:3] == ["with T.Kernel((M + 31) // 32, threads=32) as io:",
                                        "    for j in T.serial(N):", "        for ii in T.threads(32):"]
    judge(s, (0, 3), (1, 1), (33, 7), (64, 2))
    helve.testing.check_stages(s, lambda: [np.ones((40, 3), "int32"), np.zeros((40, 3), "int32")])


def test_loops_over_threads_are_loops_without_order():
    """What is in and around them goes on being scheduled."""
    @T.prim_func
    def staged(A: T.Tensor((64, 64), "int32"), B: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=64) as b:
            s = T.alloc_shared((64,), "int32")
            for i in T.serial(64):
                for t in T.threads(64):
                    s[t] = A[i, t]
                for t in T.threads(64):
                    for k in T.serial(4):
                        B[i, t] = B[i, t] + s[63 - t] * k

    s = helve.Schedule(staged)
    s.split("k", 2)
    s.unroll("ki")
    error = refused("HV1007", lambda: s.join(s.loop("t", 0), s.loop("t", 1)))
    assert "would run" in error.message or "depends" in error.message
    helve.testing.check_stages(s, lambda: [np.ones((64, 64), "int32"), np.zeros((64, 64), "int32")])


def test_threads_that_work_together_keep_their_steps():
    """What a thread reads of another one's registers is what that one has written before this statement."""
    @T.prim_func
    def shuffled(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32) as b:
            x = T.alloc_fragment((32, 2), "int32")
            T.clear(x)
            for t in T.threads(32):
                for k in T.serial(2):
                    x[t, k] = A[t] + k
                    B[t] = B[t] + x[t ^ 16, 1 - k]

    s = helve.Schedule(shuffled)
    refused("HV1007", lambda: s.fission(s.store("B")))
    s.unroll("k")
    assert s.report()[0].effect == "equal"


def test_cores_of_a_cluster():
    s = helve.Schedule(rows)
    s.split("j", 4)
    s.reorder("ji", "i", "jo")
    s.split("i", 2)
    s.reorder("ii", "ji", "io", "jo")
    s.bind("ii")
    s.bind("ji", to="core")
    assert "@T.prim_func(mesh=T.Mesh((2, 4)" in s.script()
    assert "with T.Kernel(2, 4) as (ii, ji):" in s.script()
    judge(s, (0, 3), (1, 1), (5, 7), (8, 8))


def test_a_single_cluster():
    s = helve.Schedule(rows)
    s.split("j", 4)
    s.reorder("ji", "i", "jo")
    s.bind("ji", to="core")
    assert "with T.Kernel(1, 4) as (c, ji):" in s.script()
    judge(s, (3, 3), (5, 7))


DEALT = """
@T.prim_func
def f(A: T.Tensor((4, 10), "int32")):
    with T.Kernel(1) as b:
        for i in T.serial(4):
            for x in T.Persistent([10]):
                A[i, x] = 1
"""


def test_iterations_that_a_grid_deals_keep_their_grid():
    s = helve.Schedule(helve.parse(DEALT))
    for to in ("block", "core"):
        assert "T.Persistent" in refused("HV1006", lambda: s.bind("i", to=to)).message


@pytest.mark.parametrize("extent", ["0", "1", "31", "33", "2048", "M"])
def test_a_block_has_so_many_threads(extent):
    s = helve.Schedule(helve.parse(
        f'M = T.dyn("M")\n@T.prim_func\ndef f(A: T.Tensor((M,), "int32"), B: T.Tensor((4096,), "int32")):\n'
        f"    with T.Kernel(1) as b:\n        for i in T.serial({extent}):\n            B[i % 4096] = 1\n"))
    assert "multiple of 32" in refused("HV1006", lambda: s.bind("i", to="thread")).message


def test_words_of_executors():
    s = helve.Schedule(rows)
    refused("HV1005", lambda: s.bind("i", to="warp"))
    assert str(helve.Schedule(rows).trace()) == ""
    s.bind("i")
    assert str(s.trace()) == 's.bind(s.loop("i"), to="block")\n'


DYNAMIC = """
M = T.dyn("M")
N = T.dyn("N")
@T.prim_func
def f(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int32")):
    with T.Kernel(1) as b:
        for i in T.serial({first}M):
            for j in T.serial(N):
                {left}[i, j] = A[i{before}, j] * 3 + B[i, j]
        for k in T.serial(M):
            for l in T.serial(N):
                B[k, l] = A[k, l] + {right}[k, l]
"""


@pytest.mark.parametrize("seed", range(24))
def test_random_steps_on_dynamic_extents(seed):
    rng = random.Random(seed)
    carried = rng.random() < 0.5
    s = helve.Schedule(helve.parse(DYNAMIC.format(
        first="1, " if carried else "", before=" - 1" if carried else "", left=rng.choice("AB"),
        right=rng.choice("AB"))))
    extents = [(64, 64), (0, 64), (64, 0)]

    def loop():
        names = {line.split()[1] for line in s.script().splitlines() if line.strip().startswith("for ")}
        found = []
        for name in sorted(names):
            try:
                found.append(s.loop(name, 0))
            except helve.Error:  # the text has another name where two are alike
                continue
        return rng.choice(found)

    def inner(cursor):
        try:
            return s.path(f"{cursor.path}.body[0]")
        except helve.Error:
            return cursor

    for _ in range(7):
        if "for " not in s.script():
            break
        one = loop()
        steps = len(s)
        try:
            rng.choice([
                lambda: s.split(one, rng.choice([2, 8, 32]), tail=rng.choice(["guard", "cut", "exact", "exact"])),
                lambda: s.divide(one, rng.choice([2, 4]), tail=rng.choice(["guard", "cut", "exact"])),
                lambda: s.fuse(one, inner(one)), lambda: s.fuse(one, inner(one)),
                lambda: s.reorder(inner(one), one), lambda: s.parallel(one), lambda: s.serial(one),
                lambda: s.bind(one, to=rng.choice(["block", "thread", "thread", "core"])),
            ])()
        except helve.Error as error:
            assert error.code in ("HV1006", "HV1007", "HV1008"), f"{error}\n{s.script()}"
            assert len(s) == steps
    for shape in extents:
        try:
            judge(s, shape)
        except helve.Error as error:
            assert error.code == "HV0616" and any(each.needs for each in s.report())


def test_parts_of_a_dynamic_extent_are_taken_apart():
    """By what equal numbers say of their digits, though isl has no products of two symbols."""
    s = helve.Schedule(rows)
    s.divide("i", 4)
    s.parallel("io")
    s.reorder("j", "ii")
    s.serial("io")
    s.bind("io")
    judge(s, (0, 3), (1, 1), (5, 2), (16, 2), (17, 3))
    s = helve.Schedule(chain)
    s.divide("i", 4)
    assert refused("HV1008", lambda: s.parallel("io"))


def test_a_fused_loop_is_divided_among_blocks_and_threads():
    s = helve.Schedule(rows)
    s.fuse("i", "j")
    s.split("ij", 64)
    s.bind("ijo")
    s.bind("iji", to="thread")
    judge(s, (0, 3), (3, 0), (1, 1), (5, 7), (16, 16))
    races = [p.verdict for p in helve.compile(s).proofs() if p.kind == "race"]
    assert races == ["proved", "proved"]
    helve.testing.check_stages(s, lambda: [np.ones((9, 11), "int32"), np.zeros((9, 11), "int32")])


def test_blocks_get_threads():
    @T.prim_func
    def plus_one(A: T.Tensor((10, 7), "int32"), B: T.Tensor((10, 7), "int32")):
        with T.Kernel(1):
            for i in T.serial(10):
                for k in T.serial(7):
                    A[i, k] = B[i, k] + 1

    s = helve.Schedule(plus_one, check=True)
    grid = s.threads(s.bind("i"), 96)
    s.parallel("k")
    assert s.now(grid) == s.loop("i") and s.script().count("with T.Kernel(10, threads=96) as i:") == 1
    assert s.version(2).trace().steps and 's.threads(s.loop("i"), 96)' in str(s.trace())
    assert [step.effect for step in s.report()] == ["equal"] * 3
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s), check="all")
    assert "__launch_bounds__(96)" in helve.compile(s, target="cuda", arch="sm_90a").source("cuda")
