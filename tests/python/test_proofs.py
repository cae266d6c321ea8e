"""What kernel.proofs() says, and that proofs never refuse what runs.

Verdicts of whole programs; the texts of refused ones stand in tests/errors/proofs.cases.
"""

import helve
import pytest
from helve import T


def proofs(function, kind, **options):
    kernel = helve.compile(function, target="interp", **options)
    return [(p.question, p.verdict, p.reason) for p in kernel.proofs() if p.kind == kind]


def test_a_guarded_loop_is_proved():
    @T.prim_func
    def main(A: T.Tensor((100,), "float32")):
        with T.Kernel(2) as b:
            for i in T.Parallel(64):
                if b * 64 + i < 100:
                    A[b * 64 + i] = 0.0

    assert proofs(main, "bounds") == [("A[b * 64 + i] is inside (100,)", "proved", "")]
    assert proofs(main, "race") == [
        ("blocks b are independent", "proved", ""),
        ("iterations i are independent", "proved", ""),
    ]


def test_an_unknown_answer_compiles_and_has_a_place():
    @T.prim_func
    def main(idx: T.Tensor((8,), "int32"), A: T.Tensor((8,), "float32")):
        with T.Kernel(1) as b:
            for i in T.Parallel(8):
                A[T.index(idx[i])] = 1.0

    unknown = [p for p in helve.compile(main, target="interp").proofs() if p.verdict == "unknown"]
    assert [p.kind for p in unknown] == ["bounds", "race"]
    line = test_an_unknown_answer_compiles_and_has_a_place.__code__.co_firstlineno
    assert [p.lineno - line for p in unknown] == [5, 4]
    assert unknown[0].filename == __file__
    assert "is not affine" in unknown[0].reason
    assert repr(unknown[0]).startswith("<unknown bounds: A[")
    assert f"({__file__}:{line + 5}:{unknown[0].column})" in repr(unknown[0])


def test_a_guard_on_constant_data_counts_and_on_changing_data_does_not():
    def program(changes):
        @T.prim_func
        def main(idx: T.Tensor((8,), "int32"), A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as b:
                for i in T.serial(8):
                    if T.index(idx[i]) >= 0 and T.index(idx[i]) < 8:
                        if changes:
                            idx[i] = idx[i] + 1
                        A[T.index(idx[i])] = 1.0

        return main

    assert {verdict for _, verdict, _ in proofs(program(False), "bounds")} == {"proved"}
    assert proofs(program(True), "bounds")[-1][1] == "unknown"


def test_times_name_the_stage():
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            A[b] = 0.0

    assert [stage for stage, _ in helve.compile(main, target="interp").times()][:2] == ["verify", "proofs"]


@pytest.mark.parametrize("extent", [0, 1])
def test_a_loop_without_two_iterations_has_no_race(extent):
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            for i in T.Parallel(extent):
                A[0] = 0.0

    assert proofs(main, "race")[-1][1] == "proved"


def test_the_reason_is_what_keeps_the_question_open():
    """A loaded value that decides nothing is no reason; the subscript that is not affine is."""
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1):
            s = T.alloc_shared((64,), "int32")
            T.copy(A, s)
            for i in T.Parallel(64):
                x = s[i]
                s[i ^ 4] = x
            T.copy(s, A)

    unknown = [p for p in helve.compile(main, target="interp").proofs() if p.verdict == "unknown"]
    assert [(p.kind, p.reason) for p in unknown] == [("race", "'i ^ 4' is not affine")]
