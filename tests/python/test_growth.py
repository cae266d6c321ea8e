"""Programs that are long, deep or share what they name: they compile in time, or are refused with a code.

Nothing here is timed: what used to double its time with each step would not end, and what a compile asks is counted.
"""

import threading

import helve
import numpy as np
import pytest
from helve import _core
from helve.testing import check_stages, interpret


def lines(n, line):
    return [line(k) for k in range(n)]


def kernel(body, params, grid="1", head=""):
    inside = "\n".join("        " + line for line in body)
    return helve.parse(f"{head}@T.prim_func\ndef main({params}):\n    with T.Kernel({grid}) as b:\n{inside}\n")


def vector(name, extent, dtype="float32"):
    return f'{name}: T.Tensor(({extent},), "{dtype}")'


def assert_runs(function, arguments, expected):
    """Interprets and runs the function; the last argument is what it makes."""
    for run in (lambda *a: interpret(function.function, *a, check="all"), helve.compile(function)):
        given = [a.copy() for a in arguments]
        run(*given)
        np.testing.assert_array_equal(given[-1], expected)


# -- values named in terms of each other ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["v{0} + v{0}", "(v{0} * 3 + v{0} + 1) % 64", "T.min(v{0} * 2, 63 - v{0} // 2)",
                                  "v{0} * v{0} % 61", "(63 - v{0}) if v{0} > 9 else (v{0} + 7)"])
def test_chains_of_named_index_values(step):
    steps = 5 if step == "v{0} + v{0}" else 100
    body = ["v0 = b + 1"] + lines(steps, lambda k: f"v{k + 1} = " + step.format(k)) + [f"B[v{steps} % 64] = A[b]"]
    function = kernel(body, f"{vector('A', 4)}, {vector('B', 64)}", grid="4")
    rows = []
    for b in range(4):
        v = b + 1
        for _ in range(steps):
            v = eval(step.format("").replace("T.", ""), {"v": v, "min": min})
        rows.append(v % 64)
    a = np.arange(1, 5, dtype=np.float32)
    if len(set(rows)) < 4:  # blocks that meet in an element: which of them comes last is open
        with pytest.raises(helve.Error, match="HV0"):
            helve.compile(function)
            interpret(function.function, a, np.zeros(64, np.float32), check="races")
        return
    expected = np.zeros(64, np.float32)
    expected[rows] = a
    assert_runs(function, [a, np.zeros(64, np.float32)], expected)


def test_a_long_chain_of_doubled_values_is_proved():
    body = ["v0 = b"] + lines(60, lambda k: f"v{k + 1} = (v{k} + v{k}) % 8") + ["B[b, v60] = A[b, v59]"]
    function = kernel(body, 'A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")', grid="4")
    compiled = helve.compile(function)
    assert {proof.verdict for proof in compiled.proofs()} == {"proved"}
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.zeros((4, 8), np.float32)
    compiled(a, b)
    values = np.arange(4)
    for _ in range(59):
        values = 2 * values % 8
    expected = np.zeros((4, 8), np.float32)
    expected[np.arange(4), 2 * values % 8] = a[np.arange(4), values]
    np.testing.assert_array_equal(b, expected)


def test_a_chain_of_named_conditions():
    body = ["c0 = A[b] > 2"] + lines(40, lambda k: f"c{k + 1} = c{k} and (c{k} or A[b] == {k})")
    body += ["if c40:", "    B[b] = 1"]
    function = kernel(body, f"{vector('A', 8, 'int32')}, {vector('B', 8, 'int32')}", grid="8")
    a = np.arange(8, dtype=np.int32)
    assert_runs(function, [a, np.zeros(8, np.int32)], (a > 2).astype(np.int32))


def test_a_chain_of_named_values_in_vectors():
    body = ["for i in T.Parallel(64):", "    v0 = i * 2"]
    body += lines(40, lambda k: f"    v{k + 1} = (v{k} + v{k}) % 128")
    body += ["    B[i] = A[v40] + A[i]"]
    function = kernel(body, f"{vector('A', 128)}, {vector('B', 64)}")
    a = np.arange(128, dtype=np.float32)
    values = np.arange(64) * 2
    for _ in range(40):
        values = 2 * values % 128
    assert_runs(function, [a, np.zeros(64, np.float32)], a[values] + a[:64])
    check_stages(function, lambda: [a.copy(), np.zeros(64, np.float32)])


# -- nests and sequences ----------------------------------------------------------------------------------------------


def nested(heads, leaf, tails=()):
    out = ["    " * d + head for d, head in enumerate(heads)] + ["    " * len(heads) + leaf]
    return out + ["    " * (d + 1) + tails[d] for d in reversed(range(len(tails)))]


def test_a_deep_nest_of_loops():
    function = kernel(nested([f"for i{d} in T.serial(1):" for d in range(60)], "B[i59] = A[i0] + 1.0"),
                      f"{vector('A', 1)}, {vector('B', 1)}")
    assert_runs(function, [np.ones(1, np.float32), np.zeros(1, np.float32)], np.full(1, 2, np.float32))


def test_a_nest_of_loops_with_copies_and_reductions():
    heads = [f"for i{d} in T.serial(1):" for d in range(30)]
    body = ['x = T.alloc_shared((8,), "float32")', 'm = T.alloc_shared((1,), "float32")']
    body += nested(heads, "T.copy(A[i0 * 8 : i0 * 8 + 8], x)", [])
    body += ["    " * 30 + "T.reduce_max(x, m)", "B[0] = m[0]"]
    function = kernel(body, f"{vector('A', 6)}, {vector('B', 1)}")
    a = -np.arange(1, 7, dtype=np.float32)
    with pytest.warns(helve.Warning, match="pad"):
        helve.compile(function)(a, out := np.zeros(1, np.float32))
    assert out[0] == 0  # the pad


def test_a_nest_of_while_loops():
    n = 14
    heads, tails = [f"while C[{d}] > 0:" for d in range(n)], [f"C[{d}] = C[{d}] - 1" for d in range(n)]
    body = nested(heads, "B[0] = B[0] + A[0]", tails)
    function = kernel(body, f"{vector('A', 1)}, {vector('C', n, 'int32')}, {vector('B', 1)}")
    one = np.ones(1, np.float32)
    assert_runs(function, [one, np.ones(n, np.int32), np.zeros(1, np.float32)], one)


@pytest.mark.parametrize("loop", ["T.serial", "T.Parallel"])
def test_loops_in_sequence_become_several_functions(loop):
    n = 300
    body = [line for k in range(n)
            for line in (f"v{k} = A[b, {k % 16}] + {k}.0", f"for i{k} in {loop}(20):",
                         f"    B[b, {k}, i{k}] = A[b, i{k}] * v{k} + {k + 1}.0")]
    function = kernel(body, f'A: T.Tensor((3, 20), "float32"), B: T.Tensor((3, {n}, 20), "float32")', grid="3")
    a = np.random.default_rng(0).integers(-8, 9, (3, 20)).astype(np.float32)
    k = np.arange(n, dtype=np.float32)
    factors = a[:, np.arange(n) % 16] + k
    expected = a[:, None, :] * factors[:, :, None] + (k + 1)[None, :, None]
    compiled = helve.compile(function)
    b = np.zeros((3, n, 20), np.float32)
    compiled(a, b)
    np.testing.assert_array_equal(b, expected)
    assert compiled.source("llvm").count("define internal") > 2


def test_accesses_of_elements_of_their_own_are_never_compared():
    n = 300  # pairs of them are far more than the questions that may be asked
    body = ["for i in T.Parallel(4):"] + lines(n, lambda k: f"    B[i + {4 * k}] = A[i] + {k}.0")
    compiled = helve.compile(kernel(body, f"{vector('A', 4)}, {vector('B', 4 * n)}"))
    assert {proof.verdict for proof in compiled.proofs()} == {"proved"}


def test_statements_alike_are_asked_about_once():
    n = 300
    body = ["for i in T.Parallel(64):"] + lines(n, lambda k: f"    B[i * 2 + M - M] = B[i * 2] + {k}.0")
    function = kernel(body, f"{vector('A', 'M')}, {vector('B', 128)}", head='M = T.dyn("M")\n')
    assert {proof.verdict for proof in helve.compile(function).proofs()} == {"proved"}


@pytest.mark.parametrize("n", [3, 64, 150])
def test_a_guard_of_many_conditions(n):
    guard = " and ".join(f"i + {k} < M" for k in range(n))
    body = ["for i in T.serial(64):", f"    if {guard}:", "        B[i] = A[i] + 1.0"]
    body += ["    else:", "        C[i] = 1.0"]
    function = kernel(body, f"{vector('A', 'M')}, {vector('C', 64)}, {vector('B', 64)}", head='M = T.dyn("M")\n')
    a = np.arange(70, dtype=np.float32)
    expected = np.where(np.arange(64) + n - 1 < 70, a[:64] + 1, 0).astype(np.float32)
    assert_runs(function, [a, np.zeros(64, np.float32), np.zeros(64, np.float32)], expected)


# -- limits -----------------------------------------------------------------------------------------------------------


def test_operands_beyond_the_limit_are_refused():
    text = "min(" + ", ".join(f"n * {k}" for k in range(10_000)) + ") > 0"
    with pytest.raises(helve.Error) as caught:
        kernel([f"if {text}:", "    A[b] = 1.0"], f"{vector('A', 4)}, n: T.int32")
    assert (caught.value.code, caught.value.lineno) == ("HV0118", 4)


def deepest_condition(levels=46):
    """n > 699, in chains inside each other that are as deep as they are long; their other operands decide nothing."""
    text = "n > 699"
    for level in range(levels):
        op, sign = ("and", ">") if level % 2 else ("or", "<")
        text = f"({text}) {op} " + f" {op} ".join(f"n {sign} {-15 * level - k - 1}" for k in range(15))
    return text


def compile_deepest():
    function = kernel([f"if {deepest_condition()}:", "    A[b] = 1.0"], f"n: T.int32, {vector('A', 4)}", grid="4")
    compiled = helve.compile(function)
    for n, expected in ((699, 0.0), (700, 1.0)):
        a = np.zeros(4, np.float32)
        compiled(np.int32(n), a)
        np.testing.assert_array_equal(a, np.full(4, expected, np.float32))


def test_the_deepest_expressions_compile():
    compile_deepest()


def test_the_deepest_expressions_compile_on_a_thread_with_a_small_stack():
    failures = []

    def run():
        try:
            compile_deepest()
        except BaseException as problem:  # noqa: BLE001 - whatever it is, the test's thread raises it
            failures.append(problem)

    before = threading.stack_size(512 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert not failures


def test_expressions_made_by_hand_are_as_deep_as_others():
    value = _core.make_var("x", "index")
    with pytest.raises(helve.Error) as caught:
        for _ in range(100_000):
            value = _core.apply_operands("Abs", [value], _core.Span("a", 1, 1, 1, 1))
    assert caught.value.code == "HV0118"


def test_statements_made_by_hand_are_as_deep_as_others():
    span = _core.Span("a", 1, 1, 1, 1)
    body = _core.seq([], span)
    with pytest.raises(helve.Error) as caught:
        for _ in range(100_000):
            body = _core.while_loop(_core.apply_operands("Lt", [_core.make_var("x", "index"), 1], span), body, span)
    assert caught.value.code == "HV0118"


def test_the_text_of_what_shares_its_parts_is_bounded():
    value = _core.make_var("x", "index")
    for _ in range(60):
        value = _core.apply_operands("Add", [value, value], _core.Span("a", 1, 1, 1, 1))
    with pytest.raises(helve.Error) as caught:
        str(value)
    assert caught.value.code == "HV0113"
