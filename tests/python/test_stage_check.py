"""The stage check sees what it is there for: each kind of fault is planted once, and has to be found and named."""

import os
from functools import partial

import helve
import helve.testing
import numpy as np
import pytest
import stage_check
from helve import T, _core
from helve.testing import Recipe, interpret, make_arguments
from stage_check import Program, check, check_all, chosen, run_on_host
from test_cuda_lowering import PROGRAMS, thread_form

TEXT = '''@T.prim_func
def main(A: T.Tensor((70,), "int32"), B: T.Tensor((70,), "int32")):
    with T.Kernel(2, threads=32) as b:
        x = T.alloc_shared((35,), "int32")
        T.copy(A[b * 35:b * 35 + 35], x)
        for i in T.Parallel(35):
            B[b * 35 + i] = x[34 - i] + 1
'''
PROGRAM = Program(TEXT, None, "a test")


def test_a_sound_program_passes(llvm, tmp_path):
    outcome = check(PROGRAM)
    assert (outcome.kind, outcome.detail) == ("passed", "") and outcome.kernels
    run_on_host([outcome], tmp_path)
    assert outcome.kind == "passed"


@pytest.mark.parametrize("body", [
    """    with T.Kernel(T.multiprocessors() * 2, threads=32) as b:
        for i in T.Parallel(35):
            if b < 2:
                B[b * 35 + i] = A[b * 35 + i]
""", """    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(35):
            B[b * 35 + i] = A[b * 35 + i] + T.cast(T.multiprocessors(), "int32")
"""], ids=["blocks", "value"])
def test_all_have_as_many_multiprocessors(llvm, tmp_path, body):
    """The interpreter, machine code and the text of CUDA."""
    outcome = check(Program(TEXT.partition("    with")[0] + body, None, "a test"))
    run_on_host([outcome], tmp_path)
    assert (outcome.kind, outcome.detail) == ("passed", "")


def planted(monkeypatch, target, old, new):
    """The last stage of a target has other text."""
    lower = helve.testing.lowering_stages

    def wrong(func, mesh, chunk, of, *others):
        stages = lower(func, mesh, chunk, of, *others)
        if of == target:
            name, stage = stages[-1]
            text = _core.print(stage)
            assert old in text
            stages[-1] = name, helve.parse(text.replace(old, new)).function
        return stages

    monkeypatch.setattr(helve.testing, "lowering_stages", wrong)


@pytest.mark.parametrize(("target", "old", "new", "found"), [
    ("llvm", "+ 1", "+ 2", "stage 'llvm: {last}'"),
    ("cuda", "+ 1", "+ 2", "stage 'cuda sm_80: {last}'"),
    ("cuda", "        T.sync_threads()\n", "", "there is no T.sync_threads between the two"),
    ("llvm", "34 - ", "35 - ", "HV0210"),
])  # fmt: skip
def test_a_wrong_stage_is_named(monkeypatch, target, old, new, found):
    last, _ = helve.testing.lowering_stages(helve.parse(TEXT), target=target)[-1]
    planted(monkeypatch, target, old, new)
    outcome = check(PROGRAM)
    assert outcome.kind == "failed" and found.format(last=last) in outcome.detail


def test_wrong_machine_code_is_found(monkeypatch):
    compile_function = helve.compile
    other = helve.parse(TEXT.replace("+ 1", "+ 2"))
    monkeypatch.setattr(helve, "compile", lambda function, *rest: compile_function(other, *rest))
    outcome = check(PROGRAM)
    assert outcome.kind == "failed" and "machine code" in outcome.detail


@pytest.mark.parametrize(("old", "new", "found"), [("+ 1", "+ 2", "CUDA C on the CPU"), ("int ", "none ", "g++")])
def test_wrong_text_is_found(llvm, monkeypatch, tmp_path, old, new, found):
    outcome = check(PROGRAM)
    source = _core.cuda_source

    def wrong(*args, **options):
        text, kernels = source(*args, **options)
        assert old in text
        return text.replace(old, new), kernels

    monkeypatch.setattr(_core, "cuda_source", wrong)
    run_on_host([outcome], tmp_path)
    assert outcome.kind == "failed" and found in outcome.detail


def die(programs):
    """As check_chunk, but for one program that ends its process."""
    if any(program.text == "die" for program in programs):
        os._exit(3)
    return [stage_check.Outcome(program, "passed") for program in programs]


def test_a_program_that_ends_its_process_is_a_failure():
    outcomes = check_all([Program("live"), Program("die"), Program("live too")], 1, 3, die)
    assert {outcome.program.text: outcome.kind for outcome in outcomes} == {
        "live": "passed", "die": "failed", "live too": "passed"}


@pytest.mark.parametrize(("change", "kind", "detail"), [
    (("T.Kernel(2, threads=32)", "T.Kernel(2000, threads=32)"), "refused", "HV0210"),
    (("for i in T.Parallel(35):", "for k, i in T.Parallel(2, 35):"), "refused", "HV0705"),
    (("for i in T.Parallel(35):", "for k in T.serial(30000):\n            i = k % 35"), "large", "steps"),
    (("T.copy(A[b * 35:b * 35 + 35], x)", "pass"), "refused", "HV0704"),
    (("T.copy(A[b * 35:b * 35 + 35], x)", "pass\n        y"), "refused", "HV0"),
])  # fmt: skip
def test_what_is_not_checked_has_its_reason(change, kind, detail):
    outcome = check(Program(TEXT.replace(*change)))
    assert outcome.kind == kind and detail in outcome.detail


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_barrier_is_met(name):
    """What the static check says of each barrier shows in a run."""
    function, arguments = PROGRAMS[name]
    form = thread_form(function)
    interpret(form, *arguments(), check="barriers")
    lines = _core.print(form).split("\n")
    places = [n for n, line in enumerate(lines) if line.strip() == "T.sync_threads()"]
    assert places
    for place in places:
        without = helve.parse("\n".join(lines[:place] + lines[place + 1:])).function
        interpret(without, *arguments(), check="all")
        with pytest.raises(helve.Error, match="HV0705"):
            interpret(without, *arguments(), check="barriers")


def test_a_register_that_its_thread_never_wrote_is_found():
    text = TEXT.replace("x = ", 'y = T.alloc_fragment((32, 1), "int32")\n        x = ').replace(
        "        for i in T.Parallel(35):",
        "        for tx in T.threads(32):\n            if tx == 3:\n                y[tx, 0] = 5\n"
        "        for i in T.Parallel(35):").replace("+ 1", "+ y[{}, 0]")
    arguments = make_arguments(helve.parse(TEXT).function)
    interpret(helve.parse(text.format(3)).function, *arguments, check="all")
    with pytest.raises(helve.Error, match="HV0704"):
        interpret(helve.parse(text.format("i % 32")).function, *arguments, check="all")


def test_a_run_ends_with_its_steps():
    function = helve.parse(TEXT).function
    arguments = make_arguments(function)
    interpret(function, *arguments, steps=75)
    with pytest.raises(_core.OutOfSteps):
        interpret(function, *arguments, steps=50)
    with pytest.raises(_core.OutOfSteps):  # accesses count where they are watched
        interpret(function, *arguments, steps=75, check="all")


def test_arguments_follow_the_signature():
    M = T.dyn("M")
    N = T.dyn("N")

    @T.prim_func
    def main(A: T.Tensor((M, N * 2), "bfloat16"), B: T.Tensor((4, N), "uint8", strides=(N + 3, 1)), n: T.index,
             C: T.Tensor((3,), "bool"), s: T.float32):
        with T.Kernel(1):
            pass

    make = partial(make_arguments, main.function)
    a, b, n, c, s = make(Recipe((5, 7)))
    assert a.shape == (5, 14) and a.dtype.name == "bfloat16"
    assert b.shape == (4, 7) and b.strides == (10, 1) and b.dtype == np.uint8 and b.max() < 9
    assert c.dtype == bool and n >= 0 and float(s) * 4 == int(s * 4)
    backwards = make_arguments(
        helve.parse(TEXT.replace('B: T.Tensor((70,), "int32")', 'B: T.Tensor((70, 2), "int32", strides=(2, -1))')
                    .replace("B[b * 35 + i]", "B[b * 35 + i, 0]")).function)[1]
    assert backwards.strides == (8, -4) and backwards.base.shape == (140,)
    again = make(Recipe((5, 7)))
    assert all(np.array_equal(x, y) for x, y in zip([a, b, n, c, s], again))
    assert make(Recipe((1,)))[0].shape == (1, 2)


def test_programs_that_differ_in_numbers_count_once():
    texts = [TEXT, TEXT.replace("34", "33"), TEXT.replace("int32", "int8"), TEXT.replace("b * ", "2 * ")]
    programs = [Program(text) for text in texts]
    assert len(chosen(programs, 1)) == 2 and len(chosen(programs, 2)) == 3 and len(chosen(programs, 0)) == 4
