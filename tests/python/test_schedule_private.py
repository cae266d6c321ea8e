"""Steps on loops whose iterations have memory for themselves."""

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
