"""Schedules: what each primitive makes of a program, how statements are found, versions, traces.

Results are those of the interpreter; that accepted steps keep them on random programs is in test_schedule_accepted.py.
"""

import copy
import inspect
import re

import helve
import helve.testing
import numpy as np
import pytest
import schedule_nests
from helve import T, _core
from helve.schedule import members

SIGNATURE = "A: T.Tensor((10, 7), 'int32'), B: T.Tensor((10, 7), 'int32')"


def parsed(body, signature=SIGNATURE, before=""):
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return helve.parse(f"{before}@T.prim_func\ndef f({signature}):\n    with T.Kernel(1) as b:\n{lines}")


def schedule(body, signature=SIGNATURE, check=True, before=""):
    return helve.Schedule(parsed(body, signature, before), check=check)


def body_of(s):
    """The lines below the kernel, less its indentation and the marks of loops (test_scheduled_loops.py)."""
    lines = s.script().replace(", scheduled=True", "").splitlines()
    start = next(i for i, line in enumerate(lines) if "T.Kernel" in line)
    return "\n".join(line[8:] for line in lines[start + 1:])


def refused(code, step):
    with pytest.raises(helve.Error) as caught:
        step()
    assert caught.value.code == code, str(caught.value)
    return caught.value


ROW = "for i in T.serial(10):\n    A[i, 0] = B[i, 0] + i"
NEST = "for i in T.serial(10):\n    for j in T.serial(7):\n        A[i, j] = B[i, j]"


def test_split_guards_the_last_block():
    s = schedule(ROW)
    outer, inner = s.split("i", 4)
    assert body_of(s) == """\
for io in T.serial(3):
    for ii in T.serial(4):
        if io * 4 + ii < 10:
            A[io * 4 + ii, 0] = B[io * 4 + ii, 0] + T.cast(io * 4 + ii, "int32")"""
    assert outer == s.loop("io") and inner == s.loop("ii")


def test_split_cuts_the_last_block_off():
    s = schedule(ROW)
    *_, rest = s.split("i", 4, tail="cut")
    assert body_of(s) == """\
for io in T.serial(2):
    for ii in T.serial(4):
        A[io * 4 + ii, 0] = B[io * 4 + ii, 0] + T.cast(io * 4 + ii, "int32")
for i in T.serial(8, 10):
    A[i, 0] = B[i, 0] + T.cast(i, "int32")"""
    assert rest == s.loop("i")


@pytest.mark.parametrize("tail", ["guard", "cut", "exact"])
def test_split_of_whole_blocks_has_no_tail(tail):
    s = schedule(ROW)
    assert len(s.split("i", 5, tail=tail)) == 2
    assert body_of(s).splitlines()[:2] == ["for io in T.serial(2):", "    for ii in T.serial(5):"]
    assert "if" not in body_of(s)


@pytest.mark.parametrize("tail", ["guard", "cut"])
@pytest.mark.parametrize("extent", ["0", "1", "7", "n"])
@pytest.mark.parametrize("factor", [1, 2, 3, 16])
def test_split_of_any_extent(tail, extent, factor):
    signature = "A: T.Tensor((n,), 'int32')" if extent == "n" else "A: T.Tensor((8,), 'int32')"
    before = "n = T.dyn('n')\n" if extent == "n" else ""
    s = schedule(f"for i in T.serial({extent}):\n    A[i] = A[i] + i", signature, before=before)
    s.split("i", factor, tail=tail)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_exact_split_is_refused_where_a_block_is_partial():
    error = refused("HV1007", lambda: schedule(ROW).split("i", 4, tail="exact"))
    assert "would not run" in error.message


@pytest.mark.parametrize("extent", [0, 1, 4, 7, 8])
@pytest.mark.parametrize("parts", [1, 3, 4, 9])
@pytest.mark.parametrize("tail", ["guard", "cut", "exact"])
def test_divide_of_any_extent(extent, parts, tail):
    s = schedule(f"for i in T.serial({extent}):\n    A[i] = A[i] + i", "A: T.Tensor((8,), 'int32')")
    if tail == "exact" and extent % parts:
        refused("HV1007", lambda: s.divide("i", parts, tail))
        return
    found = s.divide("i", parts, tail)
    assert len(found) == (3 if tail == "cut" and extent % parts else 2)
    assert f"for io in T.serial({parts})" in body_of(s)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_rotate_is_for_reductions():
    body = "for i in T.serial(7):\n    for k in T.serial(1, 7):\n        "
    s = schedule(body + "T.update(A[i, 0], B[i, k], 'add')")
    s.rotate("k", "i")
    assert body_of(s).splitlines()[2].strip() == "T.update(A[i, 0], B[i, (i + k + 5) % 6 + 1], \"add\")"
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))
    s = schedule(body + "A[i, k] = B[i, k]")  # independent iterations
    s.rotate("k", "i")
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))
    s = schedule(body + "A[i, k] = A[i, k - 1]")
    refused("HV1007", lambda: s.rotate("k", "i"))
    refused("HV1006", lambda: s.rotate("i", "k"))
    refused("HV1006", lambda: s.rotate("k", "k"))


def test_rotate_by_several_loops():
    s = schedule("for i in T.serial(4):\n    for j in T.serial(3):\n        for k in T.serial(5):\n"
                 "            T.update(A[i, j], B[k, i], 'max')")
    s.rotate("k", "i", "j")
    assert "B[(i + j + k) % 5, i]" in body_of(s)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_pipeline():
    s = schedule(NEST)
    s.pipeline("i", 3)
    assert body_of(s).splitlines()[0] == "for i in T.Pipelined(10, num_stages=3):"
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))
    s.serial("i")
    assert body_of(s) == NEST
    refused("HV1006", lambda: s.pipeline("i", 65))
    refused("HV1005", lambda: s.pipeline("i", 0))


def test_reorder_moves_branches_inwards():
    s = schedule(NEST)
    outer, inner = s.split("i", 4)
    s.reorder(outer, "j", inner)
    assert body_of(s) == """\
for io in T.serial(3):
    for j in T.serial(7):
        for ii in T.serial(4):
            if io * 4 + ii < 10:
                A[io * 4 + ii, j] = B[io * 4 + ii, j]"""


def test_reorder_is_refused_where_it_turns_a_dependence():
    s = schedule("for i in T.serial(1, 10):\n    for j in T.serial(6):\n        A[i, j] = A[i - 1, j + 1]")
    error = refused("HV1007", lambda: s.reorder("j", "i"))
    assert "would run before" in error.message and len(error.notes) >= 2
    s.skew("i", "j", 1)
    refused("HV1006", lambda: s.reorder("j", "i"))  # the bounds of j are those of a parallelogram


def test_fuse():
    s = schedule(NEST)
    s.fuse("i", "j")
    assert body_of(s) == "for ij in T.serial(70):\n    A[ij // 7, ij % 7] = B[ij // 7, ij % 7]"


def test_separate():
    s = schedule("for i, j in T.Parallel(10, 7):\n    A[i, j] = B[i, j]")
    refused("HV1006", lambda: s.split("i", 2))
    i, j = s.separate("j")
    assert body_of(s) == "for i in T.Parallel(10):\n    for j in T.Parallel(7):\n        A[i, j] = B[i, j]"
    assert s.loop("j", within=i) == j


def test_join_and_fission_are_inverse():
    body = "for i in T.serial(10):\n    A[i, 0] = 1\nfor j in T.serial(10):\n    B[j, 0] = A[j, 0]"
    s = schedule(body)
    store = s.store("B")
    s.join("i", "j")
    assert body_of(s) == "for i in T.serial(10):\n    A[i, 0] = 1\n    B[i, 0] = A[i, 0]"
    assert s.now(store) == s.store("B")
    s.fission(store)
    assert body_of(s) == body.replace("j", "i_1")


def test_fission_divides_a_launch():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = 1\nfor j in T.serial(10):\n    B[j, 0] = A[j, 0]")
    first, second = s.fission(s.loop("j"))
    assert s.script().replace(", scheduled=True", "").splitlines()[2:] == [
        "    with T.Kernel(1) as b:",
        "        for i in T.serial(10):",
        "            A[i, 0] = 1",
        "    with T.Kernel(1) as b_1:",
        "        for j in T.serial(10):",
        "            B[j, 0] = A[j, 0]",
    ]
    assert s.now(first).path == s.path("body[0]").path and s.now(second) == s.loop("b_1")
    s.bind("i")
    s.bind("j")


def test_fission_of_a_launch_is_refused_where_blocks_pass_values_on():
    s = schedule("X = T.alloc_shared((7,), 'int32')\nX[0] = 1\nA[b, 0] = X[0]")
    refused("HV1006", lambda: s.fission(s.store("A")))


def test_fission_takes_no_definition_from_its_uses():
    s = schedule("for i in T.serial(7):\n    X = T.alloc_local((1,), 'int32')\n    X[0] = i\n    A[i, 0] = X[0]")
    refused("HV1006", lambda: s.fission(s.store("A")))
    s = schedule("for i in T.serial(7):\n    k = 6 - i\n    A[k, 0] = 1\n    B[k, 0] = 1")
    refused("HV1006", lambda: s.fission(s.store("B")))


def test_join_is_refused_where_a_value_is_not_there_yet():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = 1\nfor j in T.serial(10):\n    B[j, 0] = A[9 - j, 0]")
    refused("HV1007", lambda: s.join("i", "j"))
    refused("HV1006", lambda: s.join("j", "i"))


def test_joined_loops_have_as_many_iterations():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = 1\nfor j in T.serial(9):\n    B[j, 0] = 1")
    assert "would run" in refused("HV1007", lambda: s.join("i", "j")).message


def test_cut_and_unroll():
    s = schedule(ROW)
    first, rest = s.cut("i", 2)
    s.unroll(first)
    assert body_of(s) == """\
A[0, 0] = B[0, 0] + 0
A[1, 0] = B[1, 0] + 1
for i_1 in T.serial(2, 10):
    A[i_1, 0] = B[i_1, 0] + T.cast(i_1, "int32")"""
    refused("HV1004", lambda: s.now(first))
    assert s.now(rest) == s.loop("i_1")


def test_names_that_a_schedule_does_not_have():
    s = schedule(ROW)
    assert "s.unroll'?" in refused("HV1001", lambda: s.unrol("i")).help
    assert not hasattr(s, "__len") and not hasattr(s, "quux") and getattr(s, "tile", 3) == 3
    with pytest.raises(AttributeError, match="'Schedule' object has no attribute '_private'"):
        s._private  # noqa: B018
    assert copy.copy(s).script() == s.script()
    for name, text in members._HABITS.items():
        assert not hasattr(helve.Schedule, name)
        for method, arguments in re.findall(r"s\.(\w+)(?:\(([^)]*)\))?", text):
            names = [each for each in arguments.split(", ") if each and each != "..." and each.isidentifier()]
            assert set(names) <= set(inspect.signature(getattr(helve.Schedule, method)).parameters), text


def test_a_cursor_to_a_loop_means_that_loop_or_is_gone():
    s = schedule(NEST)
    i, j, store, grid = s.loop("i"), s.loop("j"), s.store("A"), s.loop("b")
    s.reorder(j, i)
    s.parallel(s.now(j))
    assert s.now(i) == s.loop("i") and s.now(j) == s.loop("j")
    first, _ = s.cut(i, 3)
    assert s.now(i) == first == s.loop("i")
    outer, inner = s.split(i, 2, tail="guard")
    gone = refused("HV1004", lambda: s.vectorize(i))
    assert gone.notes[1:] == ["in its place is 'for io in T.serial(2, scheduled=True)'"]
    fused = s.fuse(outer, inner)
    for cursor in (i, outer, inner):
        assert "replaced it" in refused("HV1004", lambda cursor=cursor: s.now(cursor)).message
    assert s.now(fused) == s.loop("ioii") and s.now(store) == s.store("A", 0) and s.now(grid) == s.loop("b")


def test_a_cursor_to_a_loop_over_several_variables_is_gone_with_them():
    s = schedule("for i, j in T.Parallel(10, 7):\n    A[i, j] = B[i, j]")
    both = s.loop("i")
    s.vectorize(s.separate(both)[1])
    gone = refused("HV1004", lambda: s.now(both))
    assert gone.notes[1] == "in its place is 'for i in T.Parallel(10, scheduled=True)'"


@pytest.mark.parametrize("at", [-3, 0, 5, 10, 99])
def test_cut_anywhere(at):
    s = schedule(ROW)
    s.cut("i", at)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_unroll_renews_what_the_body_defines():
    s = schedule("for i in T.serial(2):\n    for j in T.serial(3):\n        A[i, j] = 1")
    s.unroll("i")
    assert body_of(s) == "for j in T.serial(3):\n    A[0, j] = 1\nfor j_1 in T.serial(3):\n    A[1, j_1] = 1"
    refused("HV1002", lambda: s.loop("j"))
    assert len({s.loop("j", 0), s.loop("j", 1)}) == 2


def test_unswitch():
    s = schedule("for i in T.serial(10):\n    if b < 1:\n        A[i, 0] = 1\n    else:\n        A[i, 0] = 2")
    s.unswitch("i")
    assert body_of(s) == """\
if b < 1:
    for i in T.serial(10):
        A[i, 0] = 1
else:
    for i_1 in T.serial(10):
        A[i_1, 0] = 2"""


def test_unswitch_is_refused_where_the_condition_changes():
    s = schedule("for i in T.serial(10):\n    if A[5, 0] < 1:\n        A[i, 0] = 1")
    assert "'A[5, 0] < 1' would be decided at another time" in refused("HV1008", lambda: s.unswitch("i")).message


def test_shift_and_skew():
    s = schedule("for i in T.serial(1, 10):\n    for j in T.serial(6):\n        A[i, j] = A[i - 1, j + 1]")
    s.shift("j", 2)
    s.skew("i", "j", 3)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


@pytest.mark.parametrize("order", ["ij", "ji"])
def test_one_loop_of_a_nest_is_vectorized(order):
    s = schedule(NEST)
    s.vectorize(order[0])
    assert "another loop" in refused("HV1006", lambda: s.vectorize(order[1])).message
    s.serial(order[0])
    s.vectorize(order[1])
    helve.compile(s)
    one = schedule("for i in T.serial(1):\n    for j in T.serial(7):\n        A[i, j] = B[i, j]")
    one.vectorize("i")
    one.vectorize("j")
    helve.compile(one)  # one lane is no vector
    beside = schedule("for i in T.serial(8):\n    A[i, 0] = 1\nfor j in T.serial(7):\n    B[0, j] = 2")
    beside.vectorize("i")
    beside.vectorize("j")
    helve.compile(beside)


def test_parallel_vectorize_bind():
    s = schedule("for i in T.serial(10):\n    for j in T.serial(7):\n        A[i, j] = B[i, j] * 2")
    s.vectorize("j")
    s.bind("i")
    assert "with T.Kernel(10) as i:" in s.script()
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_parallel_is_refused_where_iterations_depend_on_each_other():
    s = schedule("for i in T.serial(9):\n    A[i + 1, 0] = A[i, 0]")
    for step in (s.parallel, s.vectorize, s.bind):
        refused("HV1007", lambda: step("i"))
    assert len(s) == 0 and body_of(s).startswith("for i in T.serial(9)")


def test_what_is_not_known_needs_a_reason():
    s = schedule("for i in T.serial(10):\n    A[T.index(B[i, 0]), 0] = 1", check=False)
    refused("HV1008", lambda: s.parallel("i"))
    refused("HV1005", lambda: s.parallel("i", unsafe=" "))
    s.parallel("i", unsafe="rows are a permutation")
    assert [(each.effect, each.unsafe) for each in s.proofs()] == [("unproved", "rows are a permutation")]
    assert 'unsafe="rows are a permutation"' in str(s.trace())


def test_a_promise_does_not_outweigh_a_counterexample():
    s = schedule("for i in T.serial(9):\n    A[i + 1, 0] = A[i, 0]")
    refused("HV1007", lambda: s.parallel("i", unsafe="surely"))


def test_check_finds_a_wrong_promise():
    s = schedule("for i in T.serial(10):\n    A[T.index(T.min(T.max(B[i, 0], 0), 9)), 0] = i\n"
                 "for j in T.serial(10):\n    B[j, 0] = A[9 - j, 0]", check=True)
    refused("HV1010", lambda: s.join("i", "j", unsafe="no reason"))
    assert len(s) == 0


def test_comparisons_leave_out_extents_below_zero():
    """The sizes that comparisons try are too small for some programs: no call has them."""
    n = T.dyn("N")

    @T.prim_func
    def shorter(A: T.Tensor((n,), "float32"), B: T.Tensor((n - 5,), "float32")):
        with T.Kernel(1):
            for i in T.serial(n - 5):
                B[i] = A[i + 5]

    s = helve.Schedule(shorter, check=True)
    s.split("i", 4)
    with pytest.raises(helve.testing.NegativeExtent, match="'B' would have -4 elements along axis 0"):
        helve.testing.make_arguments(shorter, helve.testing.Recipe((1,)))


@pytest.mark.parametrize("factor", [0, -1, 2**31 + 1, 2**70, 1.5, "4", True, None])
def test_factors_are_whole_numbers_from_1(factor):
    refused("HV1005", lambda: schedule(ROW).split("i", factor))


def test_a_factor_is_no_expression():
    s = schedule(ROW)
    refused("HV1005", lambda: s.split("i", s.function.function.body.extents[0]))


def test_tails_are_words():
    refused("HV1005", lambda: schedule(ROW).split("i", 4, tail="none"))
    refused("HV1005", lambda: schedule(ROW).split("i", 4, tail=3))


def test_statements_are_found_by_name_text_and_line():
    s = schedule(NEST)
    assert s.store("A") == s.text("A[i, j] = *") == s.line(6)
    assert s.loop("j").parent() == s.loop("i") == s.text("for i in *")
    assert s.loop("b").path == s.path("body[0]").path
    assert s.loop("j", within="i") == s.loop("j")
    assert s.loop("i").lineno == 4
    for step in (lambda: s.loop("x"), lambda: s.store("B"), lambda: s.line(99), lambda: s.text("B[*"),
                 lambda: s.loop("i", within="j"), lambda: s.loop("i", 1), lambda: s.path("body[7]"),
                 lambda: s.loop(None)):
        refused("HV1001", step)
    refused("HV1005", lambda: s.loop("i", "first"))


def test_ambiguous_names_list_their_statements():
    s = schedule("for i in T.serial(2):\n    A[i, 0] = 1\nfor i in T.serial(3):\n    A[i, 1] = 1")
    error = refused("HV1002", lambda: s.loop("i"))
    assert error.notes == ["number 0: for i in T.serial(2)", "number 1: for i in T.serial(3)"]
    assert s.loop("i", 1) != s.loop("i", 0)
    s.split(s.loop("i", 1), 2)
    assert body_of(s).splitlines()[2] == "for io in T.serial(2):"


def test_cursors_follow_their_statements():
    s = schedule(NEST)
    store, outer, inner = s.store("A"), s.loop("i"), s.loop("j")
    block, _ = s.split(outer, 4)
    s.reorder("j", block)
    assert s.now(store) == s.store("A")
    assert s.now(inner) == s.loop("j") and s.now(block) == s.loop("io")
    refused("HV1003", lambda: schedule(NEST).now(store))


def test_cursors_of_versions_that_were_undone_are_refused():
    s = schedule(NEST)
    outer, _ = s.split("i", 4)
    s.undo()
    refused("HV1003", lambda: s.now(outer))
    refused("HV1005", s.undo)


def test_old_versions_stay_usable():
    s = schedule(NEST)
    text = s.script()
    s.split("i", 4)
    other = s.copy()
    other.unroll("ii")
    assert s.version(0).script() == text and len(s) == 1 and len(other) == 2
    for steps in (-1, 2, True, "1"):
        refused("HV1005", lambda: s.version(steps))


def test_traces_print_as_programs():
    s = schedule(NEST)
    s.split("i", 4, tail="cut")
    s.reorder("ii", s.loop("j", 0))
    s.unroll(s.loop("j", 1))
    again = schedule(NEST)
    exec(str(s.trace()), {"s": again})
    assert again.script() == s.script()
    assert str(again.trace()) == str(s.trace())


def test_traces_go_through_json_and_to_other_sizes():
    s = schedule(NEST)
    s.split("i", 4)
    s.split("j", 7, tail="exact")
    trace = helve.Trace.from_json(s.trace().json())
    assert trace == s.trace()
    other = schedule(NEST.replace("10", "3"))
    other.replay(trace)
    assert [each.effect for each in other.report()] == ["equal", "equal"]
    third = schedule(NEST.replace("7", "5"))
    error = refused("HV1007", lambda: third.replay(trace))
    assert error.notes[-1] == 'step 2 of the trace: s.split(s.loop("j"), 7, tail="exact")'
    assert len(third) == 0
    fourth = schedule(ROW)
    assert "step 2" in refused("HV1001", lambda: fourth.replay(trace)).notes[-1]


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"format": "helve.schedule/1", "steps": 3}', '{"format": "helve.schedule/1", "steps": [3]}',
    '{"format": "helve.schedule/1", "steps": [{"primitive": "x", "arguments": [], "unsafe": null}]}',
    '{"format": "helve.schedule/1", "steps": [{"primitive": "unroll", "arguments": [], "unsafe": null}]}',
    '{"format": "helve.schedule/1", "steps": [{"primitive": "unroll", "arguments": [3], "unsafe": null}]}',
    '{"format": "helve.schedule/1", "steps": [{"primitive": "unroll", "arguments": [3], "unsafe": 3}]}',
    None,
])
def test_what_is_no_trace_is_refused(text):
    refused("HV1009", lambda: helve.Trace.from_json(text))
    refused("HV1009", lambda: schedule(ROW).replay(text))


def test_a_schedule_is_of_a_kernel_function():
    refused("HV0806", lambda: helve.Schedule(3))


def test_forms_that_a_primitive_does_not_take():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = 1\n    for j in T.serial(7):\n        B[i, j] = 1\n"
                 "X = T.alloc_local((1,), 'int32')\nX[0] = 0\nwhile X[0] < 3:\n    X[0] = X[0] + 1")
    for step in (lambda: s.split(s.store("A"), 2), lambda: s.split("b", 2), lambda: s.reorder("j", "i"),
                 lambda: s.reorder(), lambda: s.reorder("i", "i"), lambda: s.fuse("i", "j"), lambda: s.join("i", "j"),
                 lambda: s.separate("i"), lambda: s.fission(s.store("A")), lambda: s.fission(s.loop("b")),
                 lambda: s.unswitch("i"), lambda: s.skew("j", "i", 1), lambda: s.bind("i"),
                 lambda: s.unroll(s.text("while *")), lambda: s.fission(s.text("X[0] = 0"))):
        refused("HV1006", step)
    assert len(s) == 0


def test_loops_inside_of_a_while_are_copied_with_it():
    s = schedule("for i in T.serial(2):\n    X = T.alloc_local((1,), 'int32')\n    X[0] = 0\n    while X[0] < 3:\n"
                 "        for j in T.serial(4):\n            A[i, j] = A[i, j] * 2 + i\n        X[0] = X[0] + 1")
    s.unroll("i")
    assert s.script().count("while") == 2


def test_a_scheduled_product_on_both_targets():
    n, m, k = (T.dyn(name) for name in "nmk")

    @T.prim_func
    def product(A: T.Tensor((n, k), "int32"), B: T.Tensor((k, m), "int32"), C: T.Tensor((n, m), "int32")):
        with T.Kernel(1):
            for i in T.serial(n):
                for j in T.serial(m):
                    C[i, j] = 0
                    for p in T.serial(k):
                        C[i, j] = C[i, j] + A[i, p] * B[p, j]

    s = helve.Schedule(product)
    s.fission(s.loop("p"))
    first, second = s.fission(s.loop("j_1"))
    io, ii = s.split(second, 2)
    jo, ji = s.split("j_1", 4)
    s.reorder(io, jo, "p", ii, ji)
    assert {each.effect for each in s.report()} == {"equal"}
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))
    a, b = np.arange(35, dtype="int32").reshape(5, 7), np.arange(42, dtype="int32").reshape(7, 6)
    c = np.zeros((5, 6), "int32")
    helve.compile(s)(a, b, c)
    assert (c == a @ b).all()


@pytest.mark.parametrize("dtype, effect", [("float32", "reassociated"), ("int32", "equal")])
def test_sums_of_atomic_updates_are_reported_as_such(dtype, effect):
    s = schedule("for i in T.serial(10):\n    for j in T.serial(7):\n        T.atomic_add(A[0], B[i, j])",
                 f"A: T.Tensor((1,), '{dtype}'), B: T.Tensor((10, 7), '{dtype}')")
    s.reorder("j", "i")
    s.parallel("j")
    assert [each.effect for each in s.report()] == [effect, effect]


def test_random_programs_take_every_primitive():
    """tests/python/schedule_nests.py has each row of the table among its steps."""
    steps = inspect.getsource(schedule_nests)
    assert [name for name, _ in _core.primitive_rows() if f"s.{name}(" not in steps] == []
