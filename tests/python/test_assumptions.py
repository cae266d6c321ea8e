"""T.assume: conditions of calls, stated by a function.

A call is refused on every target, before anything is written; proofs, passes and callers rely on the condition.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T, _core

M, N = T.dyn("M"), T.dyn("N")


@T.prim_func
def halves(A: T.Tensor((M,), "int32"), B: T.Tensor((N,), "int32"), k: T.int32):
    T.assume(M == N * 2)
    T.assume(T.index(k) >= 1 and T.index(k) <= 3)
    with T.Kernel(1) as b:
        for i in T.serial(N):
            B[i] = A[i * 2 + 1] + k


def call(kernel, m, n, k):
    """What B holds after the call."""
    out = np.full(n, -1, "int32")
    kernel(np.arange(m, dtype="int32"), out, k)
    return out.tolist()


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_calls_are_checked(target):
    kernel = helve.compile(halves, target=target)
    assert call(kernel, 6, 3, 2) == [3, 5, 7] and call(kernel, 0, 0, 1) == []
    for wrong, message in (((7, 3, 2), "'halves' needs M == N * 2, this call has M=7, N=3"),
                           ((6, 3, 4), "'halves' needs T.cast(k, \"index\") >= 1 and T.cast(k, \"index\") <= 3, "
                                       "this call has k=4")):
        out = np.full(wrong[1], -1, "int32")
        with pytest.raises(helve.Error) as caught:
            kernel(np.arange(wrong[0], dtype="int32"), out, wrong[2])
        assert (caught.value.code, caught.value.message) == ("HV0616", message)
        assert caught.value.lineno and (out == -1).all()


def test_every_target_has_the_checks_in_its_plan():
    for target in ({}, {"target": "cuda", "arch": "sm_80"}):
        plan = helve.compile(halves, **target).source("plan")
        checks = [line.strip() for line in plan.splitlines() if "HV0616" in line]
        assert checks == ["check M == (N * 2) else HV0616", "check (1 <= k) and (k <= 3) else HV0616"], plan


def test_the_interpreter_itself_refuses():
    args = [np.zeros(5, "int32"), np.zeros(2, "int32"), 1]
    with pytest.raises(helve.Error) as caught:
        helve.testing.interpret(halves, *args)
    assert caught.value.code == "HV0616" and caught.value.message.endswith("this call has M=5, N=2")


def test_proofs_use_them_and_list_them():
    found = [(p.kind, p.verdict, p.question, p.condition) for p in helve.compile(halves, target="interp").proofs()]
    assert found[0] == ("call", "checked", "M == N * 2 in every call", "M == N * 2")
    assert [p[1] for p in found if p[0] == "bounds"] == ["proved", "proved"]


def test_a_grid_that_is_rounded_down_is_proved_with_one():
    @T.prim_func
    def blocks(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        T.assume(M % 8 == 0)
        with T.Kernel(T.ceildiv(M, 8)) as b:
            for i in T.Parallel(8):
                B[b * 8 + i] = A[b * 8 + i] * 2.0

    proofs = helve.compile(blocks, target="interp").proofs()
    assert {p.verdict for p in proofs if p.kind != "call"} == {"proved"}
    helve.testing.check_stages(blocks, lambda: [np.ones(64, "float32"), np.zeros(64, "float32")])


def test_the_text_reads_back():
    text = halves.script()
    assert "    T.assume(M == N * 2)\n" in text
    again = helve.parse(text)
    assert _core.structural_equal(again.function, halves.function)[0]
    assert _core.structural_hash(again.function) == _core.structural_hash(halves.function)
    other = helve.parse(text.replace("N * 2", "N * 3"))
    assert _core.structural_equal(other.function, halves.function) == (False, "assumptions.args[1].args[1].value")
    fewer = helve.parse(text.replace("    T.assume(M == N * 2)\n", ""))
    assert _core.structural_equal(fewer.function, halves.function) == (False, "assumptions")


def test_constants_decide_when_the_function_is_made():
    size = 64

    @T.prim_func
    def main(A: T.Tensor((size,), "int32")):
        T.assume(size % 8 == 0)
        with T.Kernel(1) as b:
            A[0] = 1

    assert "assume" not in main.script()


def test_a_caller_assumes_what_its_callee_does():
    @T.prim_func
    def callee(A: T.Tensor((M,), "int32")):
        T.assume(M % 4 == 0)
        with T.Kernel(1) as b:
            for i in T.serial(M // 4):
                A[i * 4] = 7

    @T.prim_func
    def caller(A: T.Tensor((N,), "int32"), B: T.Tensor((12,), "int32")):
        T.assume(N % 8 == 0)
        callee(A)
        callee(B)

    a, b = np.zeros(16, "int32"), np.zeros(12, "int32")
    helve.compile(caller)(a, b)
    assert a[::4].tolist() == [7] * 4 and a.sum() == 28 and b.sum() == 21

    with pytest.raises(helve.Error) as caught:
        @T.prim_func
        def careless(A: T.Tensor((N,), "int32")):
            T.assume(N % 2 == 0)
            callee(A)

    assert caught.value.code == "HV0619"
    assert caught.value.message == "'callee' assumes N % 4 == 0, which does not follow from what its caller assumes"


def test_passes_keep_and_use_them():
    @T.prim_func
    def guarded(A: T.Tensor((M,), "int32")):
        T.assume(M % 4 == 0)
        with T.Kernel(1) as b:
            for i in T.serial(T.ceildiv(M, 4)):
                for j in T.serial(4):
                    if i * 4 + j < M:
                        A[i * 4 + j] = 1

    lowered = helve.compile(guarded).source("lowered")
    assert "T.assume(M % 4 == 0)" in lowered and "if " not in lowered
