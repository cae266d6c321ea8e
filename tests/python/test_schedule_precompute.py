"""`precompute`: a part of a value is stored before it is used. What is computed, and what is refused."""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_schedule import body_of, refused, schedule

SUM = "for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, 0] = A[i, 0] + B[i, k] * 2"


def check(s):
    assert {step.effect for step in s.report()} == {"equal"}
    helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s.function))
    helve.testing.assert_round_trip(s.function.function)
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    wanted, got = (helve.testing.make_arguments(s.function) for _ in range(2))
    helve.testing.interpret(s.version(0).function, *wanted)
    helve.compile(s)(*got)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_value_of_a_loop():
    s = schedule(SUM)
    nest, loop = s.precompute(s.store("A"), "B[i, k] * 2", "k")
    assert body_of(s) == """\
for i in T.serial(10):
    B_value = T.alloc_local((7,), "int32")
    for w0 in T.serial(7):
        B_value[w0] = B[i, w0] * 2
    for k in T.serial(7):
        A[i, 0] = A[i, 0] + B_value[k]"""
    assert nest == s.loop("w0") and loop == s.loop("k")
    check(s)


def test_a_value_of_a_nest_has_its_dimensions():
    s = schedule(SUM)
    s.precompute(s.store("A"), "B[i,k]*2", "i", "shared")
    assert body_of(s).splitlines()[:4] == [
        'B_value = T.alloc_shared((10, 7), "int32")', "for w1 in T.serial(10):", "    for w0 in T.serial(7):",
        "        B_value[w1, w0] = B[w1, w0] * 2"]
    check(s)


def test_a_value_that_no_loop_changes_is_one_element():
    s = schedule("for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, k] = B[i, 0] * 3 + k")
    s.precompute(s.store("A"), "B[i, 0] * 3", "k")
    assert body_of(s) == """\
for i in T.serial(10):
    B_value = T.alloc_local((1,), "int32")
    B_value[0] = B[i, 0] * 3
    for k in T.serial(7):
        A[i, k] = B_value[0] + T.cast(k, "int32")"""
    check(s)


def test_all_places_of_the_value_are_replaced():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = (B[i, 1] + 1) * (B[i, 1] + 1)")
    s.precompute(s.store("A"), "B[i, 1] + 1", s.store("A"))
    assert "A[i, 0] = B_value[0] * B_value[0]" in body_of(s)
    check(s)


def test_loops_begin_anywhere():
    s = schedule("for i in T.serial(2, 9):\n    for k in T.serial(i - 2, i + 1):\n"
                 "        A[i, 0] = A[i, 0] + T.max(B[k, 1], B[k, i - 2])")
    s.precompute(s.store("A"), "T.max(B[k, 1], B[k, i - 2])", "i")
    assert 'B_value = T.alloc_local((7, 3), "int32")' in body_of(s)
    assert "B_value[i - 2, k - i + 2]" in body_of(s)
    check(s)


def test_guards_and_branches_are_kept():
    s = schedule("for i in T.serial(10):\n    if i < 6:\n        A[i, 1] = 5\n    else:\n"
                 "        A[i, 0] = B[i - 6, 0] * 2")
    s.precompute(s.store("A", 1), "B[i - 6, 0] * 2", "i")
    assert "for w0 in T.serial(10):\n    if not w0 < 6:\n        B_value[w0] = B[w0 - 6, 0] * 2" in body_of(s)
    check(s)
    tail = schedule(SUM)
    tail.split("k", 4)
    store = tail.store("A")
    tail.precompute(store, "B[i, ko * 4 + ki] * 2", "ko")
    check(tail)


def test_a_lazy_value_is_computed_where_it_is_now():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = T.if_then_else(i > 0, B[i - 1, 0] * 2, 7)")
    s.precompute(s.store("A"), "B[i - 1, 0] * 2", "i")
    assert "if w0 > 0" in body_of(s) or "if 0 < w0" in body_of(s)
    check(s)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loops_that_may_not_run_compute_nothing(n):
    s = schedule("for i in T.serial(n):\n    A[i] = B[0] * 2 + i",
                 "A: T.Tensor((n,), 'int32'), B: T.Tensor((n,), 'int32')", before="n = T.dyn('n')\n")
    s.precompute(s.store("A"), "B[0] * 2", "i")
    assert "if 0 < n:" in body_of(s) or "if n > 0:" in body_of(s)
    a, b = np.zeros(n, "int32"), np.full(n, 3, "int32")
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a, 6 + np.arange(n))
    assert {step.effect for step in s.report()} == {"equal"}


def test_updates_and_threads():
    s = schedule("for i in T.serial(10):\n    for k in T.serial(7):\n"
                 "        T.update(A[i, 0], B[i, k] * B[i, 0], 'add')")
    s.precompute(s.text("T.update*"), "B[i, k] * B[i, 0]", "k")
    check(s)
    s.parallel("w0")
    s.parallel("i")
    check(s)


def test_inline_takes_it_back():
    s = schedule(SUM)
    s.precompute(s.store("A"), "B[i, k] * 2", "k")
    s.inline(s.store("B_value"))
    assert body_of(s) == body_of(schedule(SUM))


def test_an_operand_that_changes_before_it_is_read():
    s = schedule("for i in T.serial(1, 10):\n    A[i, 0] = A[i - 1, 0] * 2 + B[i, 0]")
    error = refused("HV1007", lambda: s.precompute(s.store("A"), "A[i - 1, 0] * 2", "i"))
    assert error is None or "would read" in error.message
    s.precompute(s.store("A"), "A[i - 1, 0] * 2", s.store("A"))  # in front of the statement it is the same
    check(s)


def test_an_operand_that_changes_elsewhere():
    s = schedule("for i in T.serial(1, 10):\n    A[i, 1] = A[i - 1, 0] * 2\n    A[i, 2] = 4")
    s.precompute(s.text("A[i, 1] = *"), "A[i - 1, 0] * 2", "i")
    check(s)


def test_a_guard_that_the_nest_changes():
    s = schedule("for i in T.serial(9):\n    if A[i, 0] > 0:\n        A[i + 1, 0] = B[i, 0] * 2", check=False)
    refused("HV1008", lambda: s.precompute(s.store("A"), "B[i, 0] * 2", "i"))


def test_what_it_does_not_apply_to():
    s = schedule("X = T.alloc_local((10, 7), 'float16')\nfor i in T.serial(10):\n    n = T.alloc_local((1,), 'int32')\n"
                 "    n[0] = 0\n    while n[0] < 3:\n        A[i, 1] = B[i, 0] * 5\n        n[0] = n[0] + 1\n"
                 "    for k in T.serial(i):\n        A[i, k % 7] = B[i, k % 7] * 2\n"
                 "    for j in T.serial(7):\n        m = B[i, j] + 1\n"
                 "        A[i, j] = m * 2 + T.cast(j * 3, 'int32')\n"
                 "        X[i, j] = X[i, j] * X[i, j] + X[i, j]", check=False)
    refused("HV1001", lambda: s.precompute(s.text("A[i, 1] = *"), "B[i, 1] * 5", "i"))
    refused("HV1006", lambda: s.precompute(s.text("A[i, 1] = *"), "B[i, 0] * 5", "i"))  # through a while
    refused("HV1006", lambda: s.precompute(s.text("A[i, k % 7] = *"), "B[i, k % 7] * 2", "k"))
    refused("HV1006", lambda: s.precompute(s.text("A[i, j] = *"), "j * 3", "j"))
    refused("HV1006", lambda: s.precompute(s.text("A[i, j] = *"), "m * 2", "j"))  # m is not defined there
    refused("HV1006", lambda: s.precompute(s.text("X[i, j] = *"), "X[i, j] * X[i, j]", "j"))  # would be rounded
    refused("HV1006", lambda: s.precompute(s.text("A[i, j] = *"), "m * 2", "k"))
    refused("HV1006", lambda: s.precompute(s.loop("j"), "m * 2", "j"))
    refused("HV1005", lambda: s.precompute(s.text("A[i, j] = *"), 3, "j"))
    assert len(s) == 0


NOT_YET = 'X = T.alloc_shared((10,), "int32")\nfor i in T.serial(10):\n    X[i] = B[i, 0]\n    A[i, 0] = X[i] * 2 + 1'


@pytest.mark.parametrize("value", ["X[i]", "X[i] * 2"])
def test_memory_that_is_written_later_is_not_read(value):
    """On the way back it holds nothing, which must not pass for what the program reads."""
    s = schedule(NOT_YET)
    assert refused("HV1007", lambda: s.precompute(s.store("A"), value, "i")).message == (
        "'precompute' would change results: 'X[w0]' at w0 = 0 reads what 'X[i]' at i = 0 writes, and would read "
        "nothing that was written")


def test_memory_that_is_written_before_is_read():
    s = schedule(NOT_YET)
    s.fission(s.store("A"))
    s.precompute(s.store("A"), "X[i_1] * 2", "i_1")
    check(s)
