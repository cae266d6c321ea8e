"""Steps evaluate nothing that was not evaluated and may fail: a read outside of a tensor, a division by 0."""

import helve
import numpy as np
import pytest

HEAD = """@T.prim_func
def main(A: T.Tensor((10, 7), "int32"), D: T.Tensor((10,), "int32"), I: T.Tensor((10,), "int32"), n: T.index):
    with T.Kernel({blocks}) as b:
        {body}
"""
DIVIDES = "'{}' would be computed where it is not now, and may divide by 0"
READS = r"'D\[T.cast\(I\[q\], \"index\"\)\]' would be read where it is not now, and may be outside of 'D'"
BY_DIVISION = ("for i in T.serial(n):", "    for j in T.serial(7 // n):", "        A[i, j] = 1")
BY_READ = ("for q in T.serial(10):", "    for i in T.serial(n):", "        for j in T.serial(D[I[q]]):",
           "            A[i, j] = 1")
IF_DIVISION = ("for j in T.serial(n):", "    if 10 // n > 2:", "        A[0, j] = 1")
IF_READ = ("for q in T.serial(10):", "    for i in T.serial(n):", "        if D[I[q]] > 0:", "            A[i, 0] = 1")


def program(*lines, blocks="1"):
    return helve.parse(HEAD.format(body="\n        ".join(lines), blocks=blocks))


def result(function, n, at=0, target="interp"):
    a, d, i = np.zeros((10, 7), "int32"), np.full(10, 3, "int32"), np.full(10, at, "int32")
    helve.compile(function, target=target)(a, d, i, n)
    return a


@pytest.mark.parametrize(("step", "lines", "reason"), [
    (lambda s: s.unswitch("j"), IF_DIVISION, DIVIDES.format("10 // n")),
    (lambda s: s.unswitch("i"), IF_READ, READS),
    (lambda s: s.reorder("j", "i"), BY_DIVISION, DIVIDES.format("7 // n")),
    (lambda s: s.reorder("j", "i"), BY_READ, READS),
    (lambda s: s.trim("i"), ("for i in T.serial(n):", "    if i < 7 // n:", "        A[i, 0] = 1"),
     DIVIDES.format("7 // n")),
    (lambda s: s.tensorize("i", "fill"), BY_DIVISION, DIVIDES.format("7 // n")),
    (lambda s: s.tensorize("i", "fill"), BY_READ, READS),
])
def test_what_did_not_run_is_not_evaluated(step, lines, reason):
    function = program(*lines)
    assert not result(function, 0, at=1000).any()  # no iteration, and 1000 is outside of D
    with pytest.raises(helve.Error, match=reason) as refused:
        step(helve.Schedule(function))
    assert refused.value.code == "HV1008"


def test_an_extent_of_the_grid_is_evaluated_before_all_blocks():
    function = program("for j in T.serial(7 // n):", "    A[b, j] = 1", blocks="n")
    assert not result(function, 0).any()
    with pytest.raises(helve.Error, match=DIVIDES.format("7 // n")):
        helve.Schedule(function).bind("j")


@pytest.mark.parametrize(("step", "lines"), [
    (lambda s: s.unswitch("j"), ("for q in T.serial(10):", "    for j in T.serial(7):", "        if D[I[q] % 10] > 0:",
                                 "            A[q, j] = 1")),
    (lambda s: s.unswitch("j"), ("for q in T.serial(10):", "    for j in T.serial(n):", "        if D[q] > 0:",
                                 "            A[q, j] = 1")),
    (lambda s: s.unswitch("j"), ("for q in T.serial(10):", "    for j in T.serial(n):",
                                 "        if n > 0 and 7 // n > 2:", "            A[q, j] = 1")),
    (lambda s: s.reorder("j", "i"), ("for i in T.serial(7):", "    for j in T.serial(D[I[b]]):",
                                     "        A[i, j] = 1")),
    (lambda s: s.reorder("j", "i"), ("if n > 0:", *(f"    {line}" for line in BY_DIVISION))),
    (lambda s: s.trim("i"), ("for i in T.serial(7):", "    if i < 7 // n:", "        A[i, 0] = 1")),
    (lambda s: s.split("j", 2), BY_DIVISION),
    (lambda s: s.split("j", 2), BY_READ),
    (lambda s: s.cut("i", 2), BY_READ),
    (lambda s: s.shift("i", 2), BY_READ),
    (lambda s: s.skew("i", "j", 1), BY_DIVISION),
    (lambda s: s.fission(s.store("I")), (*BY_DIVISION, "        I[i] = 2")),
    (lambda s: s.unroll("i"), ("for i in T.serial(2):", "    if i < n:", "        for j in T.serial(7 // n):",
                               "            A[i, j] = 1")),
    (lambda s: s.specialize(s.loop("j"), "i", 2), BY_DIVISION),
])
def test_what_ran_or_cannot_fail_is(step, lines):
    function = program(*lines)
    s = helve.Schedule(function)
    step(s)
    for n in (3, 7):
        for target in ("interp", "llvm"):
            np.testing.assert_array_equal(result(s.function, n, target=target), result(function, n))


def test_memory_that_changes_is_read_again():
    """The bound around has read an element, but another one may be named by now."""
    lines = ("for q in T.serial(D[I[0]]):", "    for i in T.serial(n):", "        if D[I[0]] > 0:",
             "            A[i, 0] = 1", "    I[0] = 1000")
    with pytest.raises(helve.Error, match="would be read where it is not now"):
        helve.Schedule(program(*lines)).unswitch("i")
