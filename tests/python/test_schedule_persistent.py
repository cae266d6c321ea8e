"""Steps on T.Persistent loops: each block of the grid runs its share of the work items, with memory of its own."""

import helve
import numpy as np
import pytest

HEAD = """@T.prim_func
def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
    with T.Kernel({blocks}) as b:
        {body}
"""
ADDED = ("for p in T.Persistent([8]):", "    T.atomic_add(A[0], B[p])")
BY_BLOCK = ("for p in T.Persistent([8]):", "    A[p] = B[p] + T.cast(b, 'int32')")
BY_TWO = ("for p, q in T.Persistent([4, 2]):", "    A[p * 2 + q] = B[p * 2 + q] + T.cast(b, 'int32')")
STEPS = {
    "serial": lambda s: s.serial("p"),
    "parallel": lambda s: s.parallel("p"),
    "vectorize": lambda s: s.vectorize("p"),
    "unroll": lambda s: s.unroll("p"),
    "split": lambda s: s.split("p", 2),
    "cut": lambda s: s.cut("p", 4),
    "reverse": lambda s: s.reverse("p"),
    "shift": lambda s: s.shift("p", 2),
    "separate": lambda s: s.separate("p"),
}


def program(*lines, blocks=3):
    return helve.parse(HEAD.format(body="\n        ".join(lines), blocks=blocks))


def result(function, target="interp"):
    a, b = np.zeros(8, "int32"), np.arange(1, 9, dtype="int32")
    helve.compile(function, target=target)(a, b)
    return a


def refused(step, function, reason):
    s = helve.Schedule(function)
    with pytest.raises(helve.Error, match=reason) as error:
        STEPS[step](s)
    assert error.value.code == "HV1008"
    return s


@pytest.mark.parametrize("step", ["serial", "parallel", "vectorize", "unroll"])
def test_items_of_one_block_are_not_run_by_all(step):
    s = refused(step, program(*ADDED), "the items of 'p' are dealt to blocks, and all would run them")
    s.serial("p", unsafe="to see the difference")
    assert result(program(*ADDED))[0] == 36 and result(s.function)[0] == 3 * 36


@pytest.mark.parametrize(("step", "lines"), [("split", BY_BLOCK), ("cut", BY_BLOCK), ("reverse", BY_BLOCK),
                                             ("separate", BY_TWO)])
def test_a_block_that_says_its_number_keeps_its_items(step, lines):
    refused(step, program(*lines), "other blocks would run the items of 'p'")


@pytest.mark.parametrize("lines", [
    ("if b == 0:", "    for p in T.Persistent([8]):", "        A[p] = B[p]"),
    ("A[b] = 7", "for p in T.Persistent([3]):", "    B[p] = A[p]"),
])
def test_wherever_it_says_it(lines):
    refused("reverse", program(*lines), "other blocks would run the items of 'p'")


@pytest.mark.parametrize("step", ["split", "cut", "reverse"])
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_any_block_may_run_an_item_of_others(step, target):
    function = program("for p in T.Persistent([8]):", "    A[p] = B[p] * 2")
    s = helve.Schedule(function)
    STEPS[step](s)
    np.testing.assert_array_equal(result(s.function, target), result(function))


def test_items_are_counted_from_anywhere():
    function = program(*BY_BLOCK)
    s = helve.Schedule(function)
    STEPS["shift"](s)
    assert "T.Persistent([(2, 10)]" in s.script()
    np.testing.assert_array_equal(result(s.function), result(function))


@pytest.mark.parametrize("step", ["serial", "split", "reverse", "unroll"])
def test_one_block_runs_all_anyway(step):
    function = program(*BY_BLOCK, blocks=1)
    s = helve.Schedule(function)
    STEPS[step](s)
    np.testing.assert_array_equal(result(s.function), result(function))


def test_launches_with_a_loop_of_each_deal_alike():
    function = program("for p in T.Persistent([8]):", "    A[p] = B[p]",
                       "for q in T.Persistent([8]):", "    B[q] = T.cast(b, 'int32')")
    s = helve.Schedule(function)
    s.fission(s.loop("q"))
    np.testing.assert_array_equal(result(s.function), result(function))


def test_of_a_function_with_one_block_the_steps_are_not_those_of_several():
    leaf = helve.Schedule(program("for p in T.Persistent([8]):", "    A[p] = B[p] * 2", blocks=1))
    s = helve.Schedule(program("for p in T.Persistent([8]):", "    A[p] = B[p] * 2"))
    s.copy().substitute("p", leaf)
    leaf.serial("p")
    with pytest.raises(helve.Error, match="'main' has one block for its T.Persistent loop, and here are several"):
        s.substitute("p", leaf)


@pytest.mark.parametrize("step", ["serial", "unroll"])
def test_an_item_sees_no_write_of_another(step):
    lines = "X = T.alloc_shared((8,), 'int32')", ADDED[0], "    A[p] = X[0]", "    X[0] = B[p]"
    with pytest.raises(helve.Error, match="iterations over 'p' have 'X' for themselves, and one reads what it has not "
                                          "written"):
        STEPS[step](helve.Schedule(program(*lines, blocks=1)))


def test_items_share_no_memory_in_a_parallel_loop():
    lines = "X = T.alloc_shared((8,), 'int32')", ADDED[0], "    X[0] = B[p]", "    A[p] = X[0]"
    with pytest.raises(helve.Error, match="both would run in different iterations of one parallel loop"):
        STEPS["parallel"](helve.Schedule(program(*lines, blocks=1)))


@pytest.mark.parametrize(("take", "lines"), [
    (lambda s: s.cache_read("p", "B", "shared"), ADDED),
    (lambda s: s.cache_read("p", "B", "local", within=[s.store("A")]), BY_TWO),
    (lambda s: s.precompute(s.store("A"), "B[p] * 2", "p"), (ADDED[0], "    A[p] = B[p] * 2")),
    (lambda s: s.rfactor("k", "p", "shared"),
     (ADDED[0], "    for k in T.serial(8):", "        T.update(A[p], B[k], 'add')")),
    (lambda s: s.cache_write("p", "A", "shared"), (ADDED[0], "    A[p] = B[p] * 2")),
])
@pytest.mark.parametrize("blocks", [1, 3])
def test_an_item_finds_nothing_in_memory_of_its_block(take, lines, blocks):
    with pytest.raises(helve.Error) as refused:
        take(helve.Schedule(program(*lines, blocks=blocks)))
    assert refused.value.code in ("HV1007", "HV1008"), refused.value


def test_what_an_item_writes_itself_it_finds():
    function = program("X = T.alloc_shared((8,), 'int32')", ADDED[0], "    for x in T.serial(8):",
                       "        X[x] = B[x] * 3", "    for q in T.serial(1):", "        A[p] = X[p]")
    for take in (lambda s: s.compute_at(s.store("X"), "q"), lambda s: s.cache_read("q", "X", "local")):
        s = helve.Schedule(function)
        take(s)
        np.testing.assert_array_equal(result(s.function), result(function))
