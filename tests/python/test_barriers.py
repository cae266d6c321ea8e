"""Barriers of programs that are long, deep, or ask much: all needed ones, none in vain, in bounded work.

What differs is asked once; so the number of barriers, and that a compile ends at all, is what is tested, never a time.
"""

import numpy as np
import pytest

import helve
import helve.testing
from helve import _core

THREADS = 64


def kernel(body, params):
    """The function of a kernel with these lines."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return helve.parse(
        f"@T.prim_func\ndef main({params}):\n    with T.Kernel(1, threads={THREADS}) as b:\n{lines}")


def stages(function):
    return _core.lowering_stages(function.function, None, 1, "cuda")


def barriers(function):
    return _core.print(stages(function)[-1][1]).count("T.sync_threads()")


def check(function, arguments, expected):
    """The last argument of the interpreter, of every stage of both targets and of machine code is what NumPy says."""
    helve.testing.check_stages(function, arguments)
    for target in ("interp", "llvm"):
        given = arguments()
        helve.compile(function, target=target)(*given)
        np.testing.assert_allclose(given[-1], expected, rtol=1e-5)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, dtype="float32")


VECTORS = f'A: T.Tensor(({THREADS},), "float32"), B: T.Tensor(({THREADS},), "float32")'


@pytest.mark.parametrize("steps", [14, 100])
def test_a_newton_iteration_of_named_values(steps):
    chain = "".join(f"    x{k + 1} = x{k} * (2.0 - A[i] * x{k})\n" for k in range(steps))
    first, last = "    x0 = 1.0 - A[i] * 0.25\n", f"    B[i] = x{steps}"
    function = kernel(f"for i in T.Parallel({THREADS}):\n{first}{chain}{last}", VECTORS)
    values = 0.5 + numbers(THREADS)
    check(function, lambda: [values.copy(), np.zeros(THREADS, "float32")], 1.0 / values)
    assert barriers(function) == 0


def test_a_value_doubled_often():
    chain = "".join(f"    v{k + 1} = v{k} + v{k}\n" for k in range(60))
    function = kernel(f"for i in T.Parallel({THREADS}):\n    v0 = A[i]\n{chain}    B[i] = v60", VECTORS)
    values = numbers(THREADS)
    check(function, lambda: [values.copy(), np.zeros(THREADS, "float32")], values * 2.0**60)
    assert barriers(function) == 0


def test_a_body_deep_in_loops():
    heads = "".join(" " * d + f"for i{d} in T.serial({2 if d < 3 else 1 + (d == 20)}):\n" for d in range(22))
    function = kernel(f"{heads}{' ' * 22}B[i20] = B[i20] + A[i0]", VECTORS)
    values = numbers(THREADS)
    expected = np.zeros(THREADS, "float32")
    expected[:2] = 4 * (values[0] + values[1])
    check(function, lambda: [values.copy(), np.zeros(THREADS, "float32")], expected)


def test_a_body_deep_in_whiles():
    depth = 16
    params = f'A: T.Tensor((2,), "float32"), C: T.Tensor(({depth},), "int32"), B: T.Tensor((2,), "float32")'
    heads = "".join(" " * d + f"while C[{d}] > 0:\n" for d in range(depth))
    tails = "".join(" " * (d + 1) + f"C[{d}] = C[{d}] - 1\n" for d in reversed(range(depth)))
    function = kernel(f"{heads}{' ' * depth}B[0] = B[0] + A[0]\n{tails}", params)
    counts = [np.ones(depth, "int32")]
    check(function, lambda: [np.ones(2, "float32"), counts[0].copy(), np.zeros(2, "float32")], [1.0, 0.0])


@pytest.mark.parametrize("count", [40, 100, 400])
def test_independent_statements_need_no_barrier(count):
    """Each writes and reads a row of its own; before, checks past a number of questions counted as failed."""
    params = f'A: T.Tensor(({THREADS},), "float32"), B: T.Tensor(({count}, {THREADS}), "float32")'
    body = f'S = T.alloc_shared(({count}, {THREADS}), "float32")\n' + "".join(
        f"for i in T.Parallel({THREADS}):\n    B[{k}, {THREADS - 1} - i] = A[i] + {k}.0\n" for k in range(count))
    function = kernel(body, params)
    assert barriers(function) == 0
    values = numbers(THREADS)
    expected = values[::-1] + np.arange(count, dtype="float32")[:, None]
    helve.testing.check_stages(
        function, lambda: [values.copy(), np.zeros((count, THREADS), "float32")], target="cuda")
    given = [values.copy(), np.zeros((count, THREADS), "float32")]
    helve.compile(function, target="interp")(*given)
    np.testing.assert_allclose(given[-1], expected, rtol=1e-6)


def thread_form(text, params):
    """A function that is written for threads, with a shared buffer S of its own."""
    return kernel(f'S = T.alloc_shared(({THREADS},), "float32")\n{text}', params)


OWN = f"for tx in T.threads({THREADS}):\n    S[tx] = A[tx]\n"
OTHER = f"for tx in T.threads({THREADS}):\n    B[tx] = S[{THREADS - 1} - tx]\n"


@pytest.mark.parametrize("loop", ["for k in T.serial(n):", "while C[0] > 0:"])
def test_a_barrier_in_a_loop_that_may_not_run_orders_nothing_behind_it(loop):
    params = VECTORS + ', C: T.Tensor((1,), "int32"), n: T.index'
    function = thread_form(f"{OWN}{loop}\n    T.sync_threads()\n{OTHER}", params)
    assert _core.unordered_accesses(function.function) == [("S", True)]
    given = [numbers(THREADS), np.zeros(THREADS, "float32"), np.zeros(1, "int32"), 0]
    with pytest.raises(helve.Error) as race:
        helve.testing.interpret(function.function, *given, check="barriers")
    assert race.value.code == "HV0705"
    ordered = stages(function)[-1][1]
    assert _core.unordered_accesses(ordered) == []
    helve.testing.interpret(ordered, *given, check="barriers")
    np.testing.assert_array_equal(given[1], given[0][::-1])


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_that_may_not_run_orders_nothing_around_it(turns):
    """What stands before the loop is read after it; the barriers of its body are about another buffer."""
    params = ", ".join(f'{name}: T.Tensor(({THREADS},), "float32")' for name in "AWZB")
    body = (f"for i in T.Parallel({THREADS}):\n    W[i] = A[i] * 2.0\n"
            f"for k in T.serial(n):\n    for i in T.Parallel({THREADS}):\n        Z[i] = A[i] + k\n"
            f"    for i in T.Parallel({THREADS}):\n        B[i] = B[i] + Z[{THREADS - 1} - i]\n"
            f"for i in T.Parallel({THREADS}):\n    B[i] = B[i] + W[{THREADS - 1} - i]")
    function = kernel(body, params + ", n: T.index")
    values = numbers(THREADS)
    expected = values[::-1] * (2 + turns) + sum(range(turns))
    ordered = stages(function)[-1][1]
    given = [values, *(np.zeros(THREADS, "float32") for _ in range(3)), turns]
    helve.testing.interpret(ordered, *given, check="barriers")
    np.testing.assert_allclose(given[3], expected, rtol=1e-5)


def test_a_barrier_in_a_loop_that_runs_orders_what_is_behind_it():
    function = thread_form(f"{OWN}for k in T.serial(2):\n    T.sync_threads()\n{OTHER}", VECTORS)
    assert _core.unordered_accesses(function.function) == []


def test_tensors_that_share_memory_meet_where_they_do():
    """Thread i reads A[i], which is B[i + 1] of this call: the store of thread i + 1."""
    body = f"x = T.alloc_fragment(({THREADS},), 'float32')\nfor i in T.Parallel({THREADS}):\n    x[i] = A[i] * 2.0\n"
    body += f"for i in T.Parallel({THREADS}):\n    B[i] = x[i]"
    lines = "T.may_alias(A, B)\n"
    text = kernel(body, VECTORS)
    shared = helve.parse(_core.print(text.function).replace("    with T.Kernel", f"    {lines}    with T.Kernel", 1))
    assert barriers(text) == 0 and barriers(shared) == 1
    memory = numbers(THREADS + 1)
    expected = memory.copy()
    expected[:THREADS] = memory[1:] * 2.0
    helve.testing.interpret(stages(shared)[-1][1], memory[1:], memory[:THREADS], check="barriers")
    np.testing.assert_allclose(memory, expected)


def test_a_name_has_another_value_in_another_iteration():
    """The branches exclude each other for one value of v, not for those of two iterations."""
    text = (f"for k in T.serial(2):\n    for tx in T.threads({THREADS}):\n        v = A[tx] > T.cast(k, 'float32')\n"
            f"        if v:\n            S[0] = 1.0\n        else:\n            B[tx] = S[0]\n")
    function = thread_form(text, VECTORS)
    assert [name for name, _ in _core.unordered_accesses(function.function)][:1] == ["S"]
    assert _core.unordered_accesses(stages(function)[-1][1]) == []


def test_a_loop_whose_bound_its_body_writes_waits_inside():
    """In front of the loop a barrier stands in front of the read of the bound, too."""
    function = kernel("for v in T.serial(T.cast(C[0], 'index')):\n"
                      "    C[0] = 2\n"
                      "for j in T.serial(T.cast(C[0], 'index')):\n"
                      "    X[j] = 1", 'C: T.Tensor((1,), "int32"), X: T.Tensor((8,), "int32")')
    check(function, lambda: [np.full(1, 3, "int32"), np.zeros(8, "int32")], [1, 1, 0, 0, 0, 0, 0, 0])


PLACED = """
M = T.dyn("M")
B = T.dyn("B")

@T.prim_func
def main(O: T.Tensor((M, 64), "float32"), X: T.Tensor((B,), "float32"), P: T.Tensor((B,), "int32"), longest: T.int32):
    with T.Kernel(132, threads=256):
        o = T.alloc_fragment((128, 64), "float32")
        for t, z in T.Persistent([T.ceildiv(longest, 128), B - 1]):
            first = T.max({first}, 0)
            L = T.min(T.index(longest) + z * 3, M) - first
            i = (T.ceildiv(longest, 128) - 1 - t) * 128
            T.fill(o, X[z])
            for m, n in T.Parallel(128, 64):
                if i + m < L:
                    O[first + i + m, n] = o[m, n]
"""


@pytest.mark.parametrize(("first", "codes"), [("z * 100", ["HV0928"]), ("T.index(P[z])", [])])
def test_what_is_not_decided_is_told_apart_from_what_data_decide(first, codes):
    """Places that are counted may be apart, which the budget does not suffice to see; places in memory are anywhere."""
    function = helve.parse(PLACED.format(first=first))
    warnings = _core.lowering_warnings(function.function, target="cuda", arch="sm_90a")
    assert [each.code for each in warnings] == codes
    assert "T.sync_threads()" in _core.print(_core.lowering_stages(function.function, None, 1, "cuda", "sm_90a")[-1][1])
