"""inline: what takes the place of loads, when a store goes away, and what is refused.

Each step is compared with the program before it by the interpreter (`check=True`); random programs are in
test_schedule_accepted.py, mutants of the law in tests/cpp/schedule/inlined_test.cc.
"""

import helve
import helve.testing
import numpy as np
import pytest
from test_schedule import body_of, refused, schedule

PRODUCER = "X = T.alloc_shared((12,), 'int32')\nfor x in T.serial(12):\n    X[x] = B[x % 10, 0] * 2\n"
CONSUMER = "for i in T.serial(10):\n    A[i, 0] = X[i] + X[i + 2]"


def test_store_and_buffer_go_away():
    s = schedule(PRODUCER + CONSUMER)
    (consumer,) = s.inline(s.store("X"))
    assert body_of(s) == "for i in T.serial(10):\n    A[i, 0] = B[i, 0] * 2 + B[(i + 2) % 10, 0] * 2"
    assert consumer == s.store("A")
    assert [step.effect for step in s.report()] == ["equal"]


@pytest.mark.parametrize(
    "steps",
    [
        lambda s: s.split("x", 5),
        lambda s: s.split("x", 5, tail="cut"),
        lambda s: s.divide("x", 3),
        lambda s: s.shift("x", 2),
        lambda s: s.split("i", 4),
        lambda s: s.parallel("i"),
    ],
)
def test_stores_and_loads_in_other_loops(steps):
    s = schedule(PRODUCER + CONSUMER)
    steps(s)
    if "for x in T.serial(10, 12)" in body_of(s):  # two stores
        refused("HV1007", lambda: s.inline(s.store("X", 0)))
        return
    s.inline(s.store("X"))
    assert "X" not in body_of(s) and body_of(s).count("B[") == 2


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_dynamic_extents(n):
    s = schedule(
        "X = T.alloc_shared((64,), 'int32')\nfor x in T.serial(n + 2):\n    X[x] = B[x] * 2\n"
        "for i in T.serial(n):\n    A[i] = X[i] + X[i + 2]",
        "A: T.Tensor((n,), 'int32'), B: T.Tensor((n + 2,), 'int32')",
        before="n = T.dyn('n')\n",
    )
    s.split("i", 4)
    s.inline("x")
    a, b = np.zeros(n, "int32"), np.arange(n + 2, dtype="int32")
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a, 2 * b[:n] + 2 * b[2:])


def test_the_store_to_a_parameter_stays():
    s = schedule(
        "for x in T.serial(10):\n    B[x, 0] = A[x, 1] * 3\nfor i in T.serial(10):\n    A[i, 0] = B[i, 0] - B[9 - i, 0]"
    )
    s.inline(s.store("B"))
    assert (
        body_of(s)
        == """\
for x in T.serial(10):
    B[x, 0] = A[x, 1] * 3
for i in T.serial(10):
    A[i, 0] = A[i, 1] * 3 - A[9 - i, 1] * 3"""
    )


def test_a_store_inside_of_a_while_is_no_statement_of_its_own():
    s = schedule("X = T.alloc_shared((4,), 'int32')\nn = T.alloc_local((1,), 'int32')\nn[0] = 0\nwhile n[0] < 2:\n"
                 "    for x in T.serial(4):\n        X[x] = B[x, 0] * 2\n    n[0] = n[0] + 1\n"
                 "for i in T.serial(4):\n    A[i, 0] = X[i]")
    error = refused("HV1008", lambda: s.inline(s.store("X")))
    assert "'X[x] = B[x, 0] * 2' is a part of a statement whose iterations have no numbers" in error.message


def test_the_store_stays_while_others_read():
    s = schedule(
        "X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = B[x, 1] + 1\n"
        "for i in T.serial(10):\n    A[i, 0] = X[i]\nT.copy(X, A[0:10, 1])"
    )
    s.inline("x")
    assert "X[x] = B[x, 1] + 1" in body_of(s) and "A[i, 0] = B[i, 1] + 1" in body_of(s)


@pytest.mark.parametrize(
    "between, operand",
    [
        ("A[3, 0] = 7", "A[x, 0]"),
        ("for k in T.serial(9):\n    A[k, 0] = 0", "A[x, 0]"),
        ("T.update(A[3, 0], 1, 'add')", "A[x, 0]"),
    ],
)
def test_a_stale_value_is_refused(between, operand):
    s = schedule(
        f"X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = {operand} * 2\n{between}\n"
        "for i in T.serial(10):\n    B[i, 0] = X[i]",
        check=False,
    )
    error = refused("HV1007", lambda: s.inline("x"))
    assert "'A[x, 0]' at x = " in error.message
    assert "reads what stood there before, and would read what 'A[" in error.message
    assert len(error.notes) >= 2  # both accesses
    refused("HV1007", lambda: s.inline("x", unsafe="it looks right"))


def test_a_value_that_its_reader_overwrites():
    stale = "X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = A[x, 0]\nfor i in T.{}(9):\n    {}"
    refused("HV1007", lambda: schedule(stale.format("serial", "A[i + 1, 0] = X[i] + 1"), check=False).inline("x"))
    s = schedule(stale.format("serial", "A[i, 0] = X[i] + X[i + 1]"))
    s.inline("x")  # overwritten behind the last read
    assert "A[i, 0] = A[i, 0] + A[i + 1, 0]" in body_of(s)
    s = schedule(stale.format("Parallel", "A[i, 0] = X[i] + X[i + 1]"), check=False)
    assert "in iterations that have no order" in refused("HV1007", lambda: s.inline("x")).message


def test_a_load_that_sees_another_store_is_refused():
    s = schedule(
        "X = T.alloc_shared((12,), 'int32')\nfor x in T.serial(12):\n    X[x] = 1\nX[3] = 2\n" + CONSUMER, check=False
    )
    error = refused("HV1007", lambda: s.inline(s.store("X", 0)))
    assert "reads what 'X[3]' writes, and would read what 'X[x]' at x = 3 writes" in error.message


def test_a_recurrence_is_a_value_of_the_element_before():
    s = schedule("X = T.alloc_shared((12,), 'int32')\nX[0] = 1\nfor x in T.serial(1, 12):\n    X[x] = X[x - 1] * 2\n"
                 "for i in T.serial(1, 10):\n    A[i, 0] = X[i]")
    s.inline(s.store("X", 1))
    assert "X[x] = X[x - 1] * 2" in body_of(s) and "A[i, 0] = X[i - 1] * 2" in body_of(s)


def test_a_sum_is_no_value():
    s = schedule(
        "X = T.alloc_shared((12,), 'int32')\nX[0] = 1\nfor x in T.serial(1, 12):\n    X[x] = X[x - 1] * 2\n" + CONSUMER,
        check=False,
    )
    refused("HV1007", lambda: s.inline(s.store("X", 1)))
    s = schedule(
        "X = T.alloc_shared((12,), 'int32')\nfor x in T.serial(12):\n    T.update(X[x], 1, 'add')\n" + CONSUMER,
        check=False,
    )
    refused("HV1006", lambda: s.inline("x"))


def test_the_last_of_several_stores_counts():
    s = schedule(
        "X = T.alloc_local((1,), 'int32')\nfor x in T.serial(5):\n    X[0] = B[x, 1]\nfor i in T.serial(10):\n"
        "    A[i, 0] = X[0]"
    )
    s.inline("x")
    assert body_of(s) == "for i in T.serial(10):\n    A[i, 0] = B[4, 1]"


def test_a_scalar_of_the_iteration():
    s = schedule(
        "X = T.alloc_local((1,), 'int32')\nfor x in T.serial(10):\n    X[0] = B[x, 1] + 1\n    A[x, 0] = X[0] * X[0]"
    )
    s.inline(s.store("X"))
    assert body_of(s) == "for x in T.serial(10):\n    A[x, 0] = (B[x, 1] + 1) * (B[x, 1] + 1)"


def test_loads_under_a_condition_need_not_see_the_store_elsewhere():
    s = schedule(
        "X = T.alloc_shared((5,), 'int32')\nfor x in T.serial(5):\n    X[x] = B[x, 1]\nfor i in T.serial(10):\n"
        "    A[i, 0] = T.if_then_else(i < 5, X[i], 0)"
    )
    s.inline("x")
    assert "T.if_then_else(i < 5, B[i, 1], 0)" in body_of(s)


def test_memory_of_the_producer_is_inlined_first():
    s = schedule(
        "X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    t = T.alloc_local((1,), 'int32')\n"
        "    t[0] = B[x, 0]\n    X[x] = t[0] * t[0]\nfor i in T.serial(8):\n    A[i, 0] = X[i + 2]"
    )
    refused("HV1006", lambda: s.inline(s.store("X")))
    s.inline(s.store("t"))
    s.inline(s.store("X"))
    assert body_of(s) == "for i in T.serial(8):\n    A[i, 0] = B[i + 2, 0] * B[i + 2, 0]"


def test_a_value_needs_its_operands_where_it_is_read():
    s = schedule(
        "X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    B[x, 0] = x\n"
        "    t = T.alloc_local((1,), 'int32')\n    t[0] = B[x, 1]\n    X[x] = t[0] + 1\n"
        "for i in T.serial(8):\n    A[i, 0] = X[i + 2]"
    )
    error = refused("HV1006", lambda: s.inline(s.store("X")))  # not first in its block
    assert "the value uses 't', which is not defined where it is read" in error.message


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_values_are_rounded_as_the_store_rounds(dtype):
    s = schedule(
        f"X = T.alloc_shared((10,), '{dtype}')\nfor x in T.serial(10):\n    X[x] = A[x, 1] + A[x, 2]\n"
        "for i in T.serial(10):\n    B[i, 0] = X[i] * X[i]",
        f"A: T.Tensor((10, 7), '{dtype}'), B: T.Tensor((10, 7), '{dtype}')",
    )
    before = s.function
    s.inline("x")
    assert ("T.cast(" in body_of(s)) == (dtype in ("bfloat16", "float16"))
    args, again = helve.testing.make_arguments(s), helve.testing.make_arguments(s)
    helve.compile(s)(*args)
    helve.testing.interpret(before.function, *again)
    np.testing.assert_array_equal(args[1].astype("float64"), again[1].astype("float64"))


def test_a_store_that_converts():
    s = schedule(
        "X = T.alloc_shared((10,), 'float16')\nfor x in T.serial(10):\n    X[x] = A[x, 1] + A[x, 2]\n"
        "for i in T.serial(10):\n    B[i, 0] = X[i]",
        "A: T.Tensor((10, 7), 'float32'), B: T.Tensor((10, 7), 'float32')",
    )
    s.inline("x")
    assert 'T.cast(T.cast(A[i, 1] + A[i, 2], "float16"), "float32")' in body_of(s)


def test_traces_replay():
    s = schedule(PRODUCER + CONSUMER)
    s.split("i", 4)
    s.inline(s.store("X"))
    again = schedule(PRODUCER + CONSUMER)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
