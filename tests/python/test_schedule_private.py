"""Steps on loops whose iterations have memory for themselves, and on what is evaluated where a loop may be empty."""

import helve
import numpy as np
import pytest

PRIVATE = """@T.prim_func
def main(A: T.Tensor((7,), "int32"), B: T.Tensor((7,), "int32")):
    with T.Kernel(1) as b:
        L = T.alloc_local((8,), "int32")
        for q in T.serial(8):
            L[q] = q
        for j in T.{kind}(7):
            {statements}
"""
TO_ONE_MEMORY = {
    "serial": lambda s: s.serial("j"),
    "unroll": lambda s: s.unroll("j"),
    "pipeline": lambda s: s.pipeline("j", 2),
    "fission": lambda s: s.fission(s.store("A")),
}


def private(*statements, kind="Parallel"):
    return helve.parse(PRIVATE.format(kind=kind, statements="\n            ".join(statements)))


def result(function, b):
    a = np.zeros(7, "int32")
    helve.compile(function, target="interp")(a, b)
    return a


@pytest.mark.parametrize("kind", ["Parallel", "vectorized"])
@pytest.mark.parametrize("step", TO_ONE_MEMORY)
def test_an_iteration_sees_no_write_of_another(step, kind):
    s = helve.Schedule(private("L[j + 1] = 77", "A[j] = L[j]", kind=kind))
    with pytest.raises(helve.Error) as refused:
        TO_ONE_MEMORY[step](s)
    assert refused.value.code in ("HV1007", "HV1008")


@pytest.mark.parametrize("statements", [
    ("A[j] = L[B[j]]", "L[1] = 77"),
    ("if B[j] > 3:", "    A[j] = L[0]", "else:", "    L[0] = 5"),
    ("L[0] = L[0] + j", "A[j] = L[0]"),
])
@pytest.mark.parametrize("step", ["serial", "unroll"])
def test_whatever_decides_about_the_element(step, statements):
    function = private(*statements)
    b = np.array([1, 4, 1, 0, 7, 2, 5], "int32")
    s = helve.Schedule(function)
    with pytest.raises(helve.Error, match="iterations over 'j' have 'L' for themselves, and one reads what it has not "
                                          "written"):
        TO_ONE_MEMORY[step](s)
    s.serial("j", unsafe="to see the difference")
    assert not np.array_equal(result(function, b), result(s.function, b))


@pytest.mark.parametrize("step", ["serial", "unroll"])
def test_scratch_that_each_iteration_writes_first_may_be_one(step):
    function = private("L[0] = B[j] * 2", "A[j] = L[0] + 1")
    b = np.arange(7, dtype="int32")
    s = helve.Schedule(function)
    TO_ONE_MEMORY[step](s)
    np.testing.assert_array_equal(result(s.function, b), b * 2 + 1)


HEAD = """@T.prim_func
def main(A: T.Tensor((10, 7), "int32"), D: T.Tensor((10,), "int32"), I: T.Tensor((10,), "int32"), n: T.index):
    with T.Kernel(1) as b:
        {body}
"""


def program(*lines):
    return helve.parse(HEAD.format(body="\n        ".join(lines)))


@pytest.mark.parametrize(("lines", "reason"), [
    (("for i in T.serial(10):", "    for j in T.serial(n):", "        if D[I[i]] > 0:", "            A[i, j] = 1"),
     "the condition reads memory, and the loop may run no iteration"),
    (("for j in T.serial(n):", "    if 10 // n > 2:", "        A[0, j] = 1"),
     "the condition divides by what may be 0, and the loop may run no iteration"),
])
def test_a_condition_of_no_iteration_is_not_asked(lines, reason):
    with pytest.raises(helve.Error, match=reason):
        helve.Schedule(program(*lines)).unswitch("j")


@pytest.mark.parametrize("lines", [
    ("for i in T.serial(10):", "    for j in T.serial(7):", "        if D[I[i] % 10] > 0:", "            A[i, j] = 1"),
    ("for i in T.serial(10):", "    for j in T.serial(n):", "        if D[i] > 0:", "            A[i, j] = 1"),
])
def test_one_that_cannot_fail_or_is_asked_anyway_is(lines):
    s = helve.Schedule(program(*lines))
    s.unswitch("j")
    assert "if D[" in s.script().partition("for j")[0]


@pytest.mark.parametrize(("lines", "reason"), [
    (("for q in T.serial(10):", "    for i in T.serial(n):", "        for j in T.serial(D[I[q]]):",
      "            A[i, j] = A[i, j] + 1"), "a bound or condition inside reads memory"),
    (("for i in T.serial(n):", "    for j in T.serial(7 // n):", "        A[i, j] = 1"),
     "a bound or condition inside divides by what may be 0"),
])
def test_a_bound_of_no_iteration_is_not_asked(lines, reason):
    with pytest.raises(helve.Error, match=reason):
        helve.Schedule(program(*lines)).reorder("j", "i")
