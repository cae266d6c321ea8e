"""substitute: a function, or a schedule of one, in the place of statements of which it is a call."""

import json

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_schedule import body_of, refused, schedule

M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")


@T.prim_func
def tile(X: T.Tensor((M, K), "int32"), Y: T.Tensor((K, N), "int32"), Z: T.Tensor((M, N), "int32")):
    with T.Kernel(1) as b:
        for m in T.serial(M):
            for n in T.serial(N):
                for k in T.serial(K):
                    T.update(Z[m, n], X[m, k] * Y[k, n], "add")


@T.prim_func
def scaled(X: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "int32"), factor: T.int32):
    with T.Kernel(1) as b:
        for m in T.serial(M):
            Y[m] = X[m] * factor


@T.prim_func
def copied(X: T.Tensor((6, 4), "int32"), Y: T.Tensor((6, 4), "int32")):
    with T.Kernel(1) as b:
        for m in T.serial(6):
            for n in T.serial(4):
                Y[m, n] = X[m, n]


PRODUCT = """for io in T.serial(2):
    for i in T.serial(5):
        for j in T.serial(3):
            for k in T.serial(3):
                T.update(A[io * 5 + i, j + 4], B[io * 5 + i, k] * B[k, j + 1], "add")"""


def results(s):
    args = helve.testing.make_arguments(s.function)
    helve.testing.interpret(s.function, *args, check="all")
    return args


def same_results(s):
    """Steps were checked one by one (check=True); this compares the program with the one before all steps."""
    for a, b in zip(results(s), results(s.version(0))):
        np.testing.assert_array_equal(a, b)
    args, wanted = helve.testing.make_arguments(s.function), results(s)
    helve.compile(s)(*args)
    for a, b in zip(args, wanted):
        np.testing.assert_array_equal(a, b)


def test_a_function_for_a_slice_of_tensors():
    s = schedule(PRODUCT)
    (loop,) = s.substitute("i", tile)
    assert body_of(s) == """\
for io in T.serial(2):
    for m in T.serial(5):
        for n in T.serial(3):
            for k in T.serial(3):
                T.update(A[io * 5 + m, n + 4], B[io * 5 + m, k] * B[k, n + 1], "add")"""
    assert loop == s.loop("m") and s.report()[0].effect == "equal"
    same_results(s)


def test_a_schedule_brings_its_steps():
    leaf = helve.Schedule(tile)
    leaf.split("k", 2)
    leaf.reorder("ko", "m", "n", "ki")
    leaf.reverse("ki")
    s = schedule(PRODUCT)
    s.substitute("i", leaf)
    assert "for ko in T.serial(2):" in body_of(s) and "B[io * 5 + m, ko * 2 - ki + 1]" in body_of(s)
    assert s.report()[0].effect == "reassociated"
    same_results(s)


def test_names_of_the_program_stay_apart():
    s = schedule("for m in T.serial(2):\n    for i in T.serial(5):\n        A[i, m] = B[i, m] * 7")
    s.substitute("i", scaled)
    assert body_of(s) == "for m in T.serial(2):\n    for m_1 in T.serial(5):\n        A[m_1, m] = B[m_1, m] * 7"
    same_results(s)


@pytest.mark.parametrize("element", ["A[2 * i + 1, 3]", "A[9 - i, 3]", "A[i + 3, i0]"])
def test_elements_with_steps_between_them(element):
    leaf = helve.Schedule(scaled)
    leaf.split("m", 4)
    s = schedule(f"for i0 in T.serial(3):\n    for i in T.serial(5):\n        {element} = B[i, i0 + 1] * (3 + 4)")
    s.substitute("i", leaf)
    same_results(s)


def test_rows_for_columns():
    leaf = helve.Schedule(copied)
    leaf.reorder("n", "m")
    s = schedule("for i in T.serial(6):\n    for j in T.serial(4):\n        A[j + 1, i] = B[i + 2, j]")
    s.substitute("i", leaf)
    assert body_of(s) == "for n in T.serial(4):\n    for m in T.serial(6):\n        A[n + 1, m] = B[m + 2, n]"
    same_results(s)


def test_loops_that_begin_elsewhere():
    leaf = helve.Schedule(copied)
    leaf.split("m", 4, tail="cut")
    s = schedule("for i in T.serial(2, 8):\n    for j in T.serial(1, 5):\n        A[i, j] = B[i - 2, j + 2]")
    s.substitute("i", leaf)
    same_results(s)


def test_operations_keep_regions_that_are_boxes():
    leaf = helve.Schedule(copied)
    leaf.tensorize("m", "copy")
    s = schedule("for i in T.serial(6):\n    for j in T.serial(4):\n        A[i + 1, j] = B[i + 2, j + 3]")
    s.substitute("i", leaf)
    assert body_of(s) == "T.copy(B[2:8, 3:7], A[1:7, 0:4])"
    same_results(s)
    turned = schedule("for i in T.serial(6):\n    for j in T.serial(4):\n        A[j, i] = B[i + 2, j + 3]")
    assert "no box of 'A'" in refused("HV1006", lambda: turned.substitute("i", leaf)).message


def test_a_region_is_unified_with_a_region():
    leaf = helve.parse("@T.prim_func\ndef g(X: T.Tensor((4, 4), 'int32'), Y: T.Tensor((4,), 'int32')):\n"
                       "    with T.Kernel(1) as b:\n        T.reduce_sum(X, Y, dim=1)\n")
    s = schedule("for i in T.serial(2):\n    T.reduce_sum(B[i * 4:i * 4 + 4, 1:5], A[0:4, i], dim=1)")
    s.substitute(s.text("T.reduce_sum*"), leaf)
    assert "T.reduce_sum(B[i * 4:i * 4 + 4, 1:5], A[0:4, i]" in body_of(s)
    same_results(s)
    other = schedule("for i in T.serial(2):\n    T.reduce_sum(B[i * 4:i * 4 + 4, 1:5], A[0:4, i], dim=0)")
    refused("HV1006", lambda: other.substitute(other.text("T.reduce_sum*"), leaf))


def test_a_function_of_several_statements():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((5,), 'int32'), Y: T.Tensor((5,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        W = T.alloc_local((5,), 'int32')\n        for m in T.serial(5):\n            W[m] = X[m] * 3\n"
        "        for n in T.serial(5):\n            Y[n] = W[n] + W[0]\n"))
    leaf.vectorize("m")
    s = schedule("for o in T.serial(7):\n    V = T.alloc_local((5,), 'int32')\n    for i in T.serial(5):\n"
                 "        V[i] = B[i + 5, o] * 3\n    for j in T.serial(5):\n        A[j, o] = V[j] + V[0]")
    found = s.substitute(s.text("V = *"), leaf)
    assert len(found) == 3 and "for m in T.vectorized(5):" in body_of(s)
    same_results(s)


def test_extents_that_only_a_call_knows():
    leaf = helve.Schedule(tile)
    leaf.reorder("k", "m", "n")
    text = ("M = T.dyn('M')\nP = T.dyn('P')\n@T.prim_func\ndef f(A: T.Tensor((M, P), 'int32'), "
            "B: T.Tensor((P, 9), 'int32'), C: T.Tensor((M, 9), 'int32')):\n    with T.Kernel(1) as b:\n"
            "        for i in T.serial(M):\n            for j in T.serial(9):\n                for l in T.serial(P):\n"
            "                    T.update(C[i, j], A[i, l] * B[l, j], 'add')\n")
    s = helve.Schedule(helve.parse(text))
    s.substitute("i", leaf)
    assert "for k in T.serial(P, scheduled=True):" in s.script()
    args = [np.arange(6, dtype="int32").reshape(2, 3), np.arange(27, dtype="int32").reshape(3, 9),
            np.zeros((2, 9), "int32")]
    helve.compile(s)(*args)
    np.testing.assert_array_equal(args[2], args[0] @ args[1])


def test_launches_for_launches():
    leaf = helve.Schedule(copied)
    leaf.bind("m")
    s = schedule("for i in T.serial(6):\n    for j in T.serial(4):\n        A[i, j] = B[i, j]")
    s.substitute(s.path("body[0]"), leaf)
    assert "with T.Kernel(6) as m:" in s.script()
    same_results(s)
    inside = schedule("for i in T.serial(6):\n    for j in T.serial(4):\n        A[i, j] = B[i, j]")
    assert "several blocks" in refused("HV1006", lambda: inside.substitute("i", leaf)).message


def test_a_trace_holds_the_function_and_its_steps():
    leaf = helve.Schedule(tile)
    leaf.reorder("k", "m", "n")
    leaf.reverse("k")
    s = schedule(PRODUCT)
    s.substitute("i", leaf)
    assert str(s.trace()) == 's.substitute(s.loop("i"), tile)\n'
    text = s.trace().json()
    again = s.version(0)
    again.replay(helve.Trace.from_json(text))
    assert again.script() == s.script() and again.report()[0].effect == "reassociated"
    assert again.trace() == s.trace()
    other = schedule("for io in T.serial(2):\n    for i in T.serial(2):\n        for j in T.serial(4):\n"
                     "            for k in T.serial(7):\n"
                     "                T.update(A[io + i, j], B[i, k] * B[k + io, j], \"add\")")
    other.replay(helve.Trace.from_json(text))  # of other sizes
    same_results(other)


@pytest.mark.parametrize("change", [
    lambda function: function.update(steps=[{"primitive": "split", "arguments": [1, 2, "guard"], "unsafe": None}]),
    lambda function: function.update(function="print()"),
    lambda function: function.update(function=3),
    lambda function: function.update(function=function["function"].replace("X[m, k]", "Z[m, k]"),
                                     steps=[{"primitive": "parallel", "unsafe": None,
                                             "arguments": [{"by": "loop", "name": "k", "index": None}]}]),
    lambda function: function.pop("steps"),
])
def test_a_trace_with_another_function_is_refused(change):
    s = schedule(PRODUCT)
    s.substitute("i", tile)
    data = json.loads(s.trace().json())
    change(data["steps"][0]["arguments"][1])
    refused("HV1009", lambda: helve.Trace.from_json(json.dumps(data)))


def test_what_a_schedule_did_not_prove_is_not_proved():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((5,), 'int32'), Y: T.Tensor((5,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for m in T.serial(5):\n            Y[T.index(X[m])] = X[m]\n"))
    leaf.parallel("m", unsafe="X is a permutation")
    s = helve.Schedule(helve.parse(
        "@T.prim_func\ndef f(A: T.Tensor((5,), 'int32'), B: T.Tensor((5,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for i in T.serial(5):\n            A[T.index(B[i])] = B[i]\n"))
    # Subscripts that read memory tell nothing of what a tensor stands for.
    assert "reads memory" in refused("HV1006", lambda: s.substitute("i", leaf)).message
    scaled_leaf = helve.Schedule(scaled)
    scaled_leaf.parallel("m")
    assert not scaled_leaf.proofs()


def test_tensors_that_overlap_are_refused():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((6,), 'int32'), Y: T.Tensor((6,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for m in T.serial(6):\n            Y[m] = X[m]\n"))
    leaf.parallel("m")
    s = schedule("for i in T.serial(6):\n    A[i + 1, 0] = A[i, 0]")
    assert "may be the same elements of 'A'" in refused("HV1006", lambda: s.substitute("i", leaf)).message
    apart = schedule("for i in T.serial(6):\n    A[i + 1, 0] = A[i, 1]")
    apart.substitute("i", leaf)
    same_results(apart)
    plain = schedule("for i in T.serial(6):\n    A[i + 1, 0] = A[i, 0]")
    plain.substitute("i", leaf.version(0))  # without steps there is nothing that could depend on it
    same_results(plain)


def test_elements_that_are_not_there_are_refused():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((12,), 'int32'), Y: T.Tensor((10,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for m in T.serial(10):\n            Y[m] = X[m + 2]\n"))
    leaf.reverse("m")
    s = schedule("for i in T.serial(10):\n    A[i, 0] = B[i, 0]")
    assert "'X' of 'g' would reach past the end of 'B'" in refused("HV1006", lambda: s.substitute("i", leaf)).message
    s.substitute("i", leaf.version(0))  # what a schedule relies on is of no meaning without steps
    same_results(s)


def test_a_condition_of_calls_must_hold():
    leaf = helve.Schedule(scaled)
    leaf.split("m", 4, tail="exact")
    s = schedule("for i in T.serial(10):\n    A[i, 0] = B[i, 0] * 2")
    assert "need not hold here" in refused("HV1006", lambda: s.substitute("i", leaf)).message
    s = schedule("for i in T.serial(8):\n    A[i, 0] = B[i, 0] * 2")
    s.substitute("i", leaf)
    same_results(s)


def test_a_copy_past_the_end_needs_that_end():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((6,), 'int32'), Y: T.Tensor((6,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for m in T.serial(2):\n            T.copy(X[m * 4:m * 4 + 4], Y[m * 4:m * 4 + 4])\n"))
    leaf.unroll("m")
    inside = schedule("for i in T.serial(2):\n    T.copy(B[i * 4:i * 4 + 4, 0], A[i * 4:i * 4 + 4, 0])")
    assert "past the end" in refused("HV1006", lambda: inside.substitute("i", leaf)).message
    last = schedule("for i in T.serial(2):\n    T.copy(B[i * 4 + 4:i * 4 + 8, 0], A[i * 4 + 4:i * 4 + 8, 0])")
    last.substitute("i", leaf)
    same_results(last)


def test_iterations_without_order_leave_no_room_for_copies_of_more():
    leaf = helve.Schedule(helve.parse(
        "@T.prim_func\ndef g(X: T.Tensor((7,), 'int32'), Y: T.Tensor((7,), 'int32')):\n    with T.Kernel(1) as b:\n"
        "        for m in T.serial(4):\n            Y[2 * m] = X[m]\n"))
    leaf.cache_write("m", "Y")
    around = "for o in T.{}(2):\n    for i in T.serial(4):\n        A[2 * i + o, 0] = B[i, 0]"
    s = schedule(around.format("serial"))
    s.substitute("i", leaf)
    same_results(s)
    s = schedule(around.format("Parallel"))
    assert "may touch more of 'Y'" in refused("HV1006", lambda: s.substitute("i", leaf)).message
    whole = helve.Schedule(scaled)
    whole.split("m", 2)
    s = schedule("for o in T.Parallel(7):\n    for i in T.serial(10):\n        A[i, o] = B[i, o] * 3")
    s.substitute("i", whole)
    same_results(s)


@pytest.mark.parametrize("body,reason", [
    ("for i in T.serial(10):\n    A[i, 0] = B[i, 0] + 2", "there is"),
    ("for i in T.serial(10):\n    A[i, 0] = B[i, 0] * T.cast(i, 'int32')", "which is not one value"),
    ("for i in T.serial(10):\n    A[i, 0] = B[i, 0] * B[0, 0]", "which is not one value"),
    ("for i in T.Parallel(10):\n    A[i, 0] = B[i, 0] * 2", "there stands"),
    ("for i in T.serial(10):\n    A[i, 0] = B[i, 0] * 2\n    A[i, 1] = 1", "it holds 2 statements"),
    ("for i in T.serial(7):\n    A[i // 2, 0] = B[i, 0] * 2", "no part of 'A'"),
    ("for i in T.serial(10):\n    T.update(A[i, 0], B[i, 0] * 2, 'add')", "there stands"),
    ("for i in T.serial(7):\n    A[i, i] = B[i, 0] * 2", "no part of 'A'"),
])
def test_other_statements_are_refused(body, reason):
    s = schedule(body)
    error = refused("HV1006", lambda: s.substitute("i", scaled))
    assert reason in error.message
    assert len(s) == 0
