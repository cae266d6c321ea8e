"""compute_at: what moves, with which bounds, what runs again, and what is refused.

Each step is compared with the program before it by the interpreter (`check=True`); random programs are in
test_schedule_accepted.py, random repetitions in tests/cpp/schedule/recompute_test.cc.
"""

import helve
import helve.testing
import numpy as np
import pytest
from test_schedule import body_of, refused, schedule

STENCIL = """\
X = T.alloc_{scope}(({n} + 2,), 'int32')
for x in T.serial({n} + 2):
    X[x] = B[x] * 2
for i in T.serial({n}):
    A[i] = X[i] + X[i + 1] + X[i + 2]"""


def stencil(n, scope="shared"):
    signature = f"A: T.Tensor(({n},), 'int32'), B: T.Tensor(({n} + 2,), 'int32')"
    return schedule(STENCIL.format(n=n, scope=scope), signature)


def test_what_overlaps_is_computed_again():
    s = stencil(10)
    moved = s.compute_at(s.store("X"), "i")
    assert body_of(s) == """\
X = T.alloc_shared((12,), "int32")
for i in T.serial(10):
    for x in T.serial(i, i + 3):
        X[x] = B[x] * 2
    A[i] = X[i] + X[i + 1] + X[i + 2]"""
    assert moved == s.loop("x")
    assert [step.effect for step in s.report()] == ["equal"]
    assert str(s.trace()) == 's.compute_at(s.store("X"), s.loop("i"))\n'


def run(s, n):
    a, b = np.zeros(n, "int32"), np.arange(n + 2, dtype="int32") ** 2
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a, 2 * (b[:n] + b[1:n + 1] + b[2:n + 2]))


@pytest.mark.parametrize("scope", ["shared", "local"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 10])
@pytest.mark.parametrize("factors", [(1, 1), (4, 3), (5, 4)])
def test_blocks_of_uneven_sizes_on_both_sides(n, scope, factors):
    s = stencil(n, scope)
    io, _ = s.split("i", factors[0])
    s.split("x", factors[1])
    s.compute_at(s.store("X"), io)
    assert body_of(s).splitlines()[1].startswith("for io in")
    run(s, n)


def test_a_guarded_block_computes_up_to_its_end():
    s = stencil(10)
    s.split("i", 4)
    s.compute_at("x", "io")
    assert "for x in T.serial(io * 4, io * 4 + (T.min(io * 4 + 5, 11) - io * 4 + 1)):" in body_of(s)
    run(s, 10)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_dynamic_extents(n):
    s = schedule(STENCIL.format(n="n", scope="shared").split("\n", 1)[1],
                 "A: T.Tensor((n,), 'int32'), B: T.Tensor((n + 2,), 'int32'), X: T.Tensor((n + 2,), 'int32')",
                 before="n = T.dyn('n')\n")
    s.split("i", 4)
    error = refused("HV1007", lambda: s.compute_at("x", "io"))  # without blocks none of the parameter is written
    assert "'X[0]' holds what" in error.message
    s = schedule("for x in T.serial(n):\n    X[x] = B[x] * 2\nfor i in T.serial(n):\n    A[i] = X[i] + X[n - 1 - i]",
                 "A: T.Tensor((n,), 'int32'), B: T.Tensor((n,), 'int32'), X: T.Tensor((n,), 'int32')",
                 before="n = T.dyn('n')\n")
    s.split("i", 4)
    s.compute_at("x", "io")
    a, b, x = (np.arange(n, dtype="int32") for _ in range(3))
    helve.compile(s)(a, b, x)
    np.testing.assert_array_equal(a, 2 * b + 2 * b[::-1])
    np.testing.assert_array_equal(x, 2 * b)


def test_only_dimensions_that_the_loop_fixes_are_narrowed():
    s = schedule("X = T.alloc_shared((10, 7), 'int32')\nfor x in T.serial(10):\n    for y in T.serial(7):\n"
                 "        X[x, y] = B[x, y] * 2\nfor i in T.serial(9):\n    for j in T.serial(7):\n"
                 "        A[i, j] = X[i, j] - X[i + 1, 6 - j]")
    s.compute_at(s.store("X"), "j")
    assert "for x in T.serial(i, i + 2):" in body_of(s)
    s = s.version(0)
    s.compute_at(s.store("X"), "i")
    assert body_of(s).splitlines()[2:4] == ["    for x in T.serial(i, i + 2):", "        for y in T.serial(7):"]


def test_a_sum_moves_as_a_whole():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = 0\n    for k in T.serial(7):\n"
                 "        T.update(X[x], B[x, k], 'add')\nfor i in T.serial(9):\n    A[i, 0] = X[i] + X[i + 1]")
    refused("HV1006", lambda: s.compute_at(s.store("X", 1), "i"))  # the loop holds more than the update
    s.compute_at("x", "i")
    assert body_of(s) == """\
X = T.alloc_shared((10,), "int32")
for i in T.serial(9):
    for x in T.serial(i, i + 2):
        X[x] = 0
        for k in T.serial(7):
            T.update(X[x], B[x, k], "add")
    A[i, 0] = X[i] + X[i + 1]"""


APART = "X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = 0\nfor y in T.serial(10):\n    {}\n" \
        "for i in T.serial({}):\n    A[i, 0] = {}"


@pytest.mark.parametrize("store", ["X[y] = X[y] + B[y, 0]", "T.update(X[y], B[y, 0], 'add')"])
def test_what_goes_on_with_its_own_result_runs_once(store):
    s = schedule(APART.format(store, 9, "X[i] + X[i + 1]"), check=False)
    error = refused("HV1007", lambda: s.compute_at("y", "i"))
    assert "'X[y]' at y = 1 reads what 'X[x]' at x = 1 writes, and would read what 'X[y]' at y = 1 writes" in str(error)
    s = schedule(APART.format(store, 10, "X[i]"))
    s.compute_at("y", "i")  # each element in one iteration
    assert "for y in T.serial(i, i + 1)" in body_of(s)


def test_memory_of_the_producer_moves_along():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    t = T.alloc_local((1,), 'int32')\n"
                 "    t[0] = B[x, 0]\n    X[x] = t[0] * t[0]\nfor i in T.serial(8):\n    A[i, 0] = X[i] + X[i + 2]")
    s.compute_at("x", "i")
    assert body_of(s).splitlines()[1:4] == ["for i in T.serial(8):", "    for x in T.serial(i, i + 3):",
                                            "        t = T.alloc_local((1,), \"int32\")"]


def test_a_chain_moves_from_its_end():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nY = T.alloc_shared((9,), 'int32')\nfor x in T.serial(10):\n"
                 "    X[x] = B[x, 0]\nfor y in T.serial(9):\n    Y[y] = X[y] + X[y + 1]\nfor i in T.serial(8):\n"
                 "    A[i, 0] = Y[i] * Y[i + 1]")
    s.compute_at("y", "i")
    s.compute_at("x", "i")
    assert body_of(s).splitlines()[2:6] == ["for i in T.serial(8):", "    for x in T.serial(i, i + 3):",
                                            "        X[x] = B[x, 0]", "    for y in T.serial(i, i + 2):"]


def test_memory_of_an_outer_loop_is_left_as_it_was_only_where_it_is_read():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor t in T.serial(3):\n    for x in T.serial(10):\n"
                 "        X[x] = B[x, t]\n    for i in T.serial(8):\n        A[i, t] = X[i] + X[i + 1]")
    s.compute_at("x", "i")  # X[9] is not computed any more
    assert "for x in T.serial(i, i + 2)" in body_of(s)


RECURRENCE = "X = T.alloc_shared((10,), 'int32')\nX[0] = 0\nfor x in T.serial(1, 10):\n    X[x] = X[x - 1] + B[x, 0]\n"


def test_a_recurrence_computes_what_the_iterations_before_left():
    s = schedule(RECURRENCE + "for i in T.serial(9):\n    A[i, 0] = X[i] + X[i + 1]")
    s.compute_at("x", "i")
    s = schedule(RECURRENCE + "for i in T.serial(1, 5):\n    A[i, 0] = X[2 * i]", check=False)
    error = refused("HV1007", lambda: s.compute_at("x", "i"))  # X[1] is read by nobody but the producer
    assert "'X[x - 1]' at x = 2 reads what 'X[x]' at x = 1 writes" in error.message


@pytest.mark.parametrize("read, ok", [("X[i]", True), ("X[i] + X[i + 1]", False)])
def test_iterations_without_order_compute_no_element_twice(read, ok):
    s = schedule("X = T.alloc_shared((11,), 'int32')\nfor x in T.serial(11):\n    X[x] = B[x % 10, 1]\n"
                 f"for i in T.Parallel(10):\n    A[i, 0] = {read}", check=False)
    if ok:
        s.compute_at("x", "i")
    else:
        assert "in iterations that have no order" in refused("HV1007", lambda: s.compute_at("x", "i")).message


def test_loops_over_several_variables():
    s = schedule("X = T.alloc_shared((10, 7), 'int32')\nfor x, y in T.Parallel(10, 7):\n    X[x, y] = B[x, y]\n"
                 "for i in T.serial(9):\n    for j in T.serial(7):\n        A[i, j] = X[i, j] + X[i + 1, j]")
    s.separate("x")
    s.compute_at("x", "i")
    assert "for x in T.Parallel((i, i + 2))" in body_of(s)


def test_which_store_a_guard_lets_through_is_not_known():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = 0\n    if B[x, 0] > 0:\n"
                 "        X[x] = B[x, 0]\nfor i in T.serial(9):\n    A[i, 0] = X[i] + X[i + 1]")
    refused("HV1008", lambda: s.compute_at("x", "i"))
    s.compute_at("x", "i", unsafe="the guard reads what nobody writes")
    assert body_of(s).splitlines()[2:5] == ["    for x in T.serial(i, i + 2):", "        X[x] = 0",
                                            "        if B[x, 0] > 0:"]


def test_cursors_and_traces_follow():
    s = stencil(10)
    store, loop = s.store("X"), s.loop("i")
    s.compute_at(store, loop)
    assert s.now(store) == s.store("X") and s.now(loop) == s.loop("i")
    again = stencil(7)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert "for i in T.serial(7)" in body_of(again)
    run(again, 7)


def test_a_consumer_runs_where_the_last_element_is_written():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = B[x, 0] * 2\n"
                 "for i in T.serial(1, 9):\n    A[i, 0] = X[i - 1] + X[i] + X[i + 1]")
    moved = s.reverse_compute_at(s.store("A"), "x")
    assert moved == s.loop("i", within="x")
    assert [line.split(" in ")[0] for line in body_of(s).splitlines()[1::2]] == ["for x", "    for i"]
    a, b = np.zeros((10, 7), "int32"), np.arange(70, dtype="int32").reshape(10, 7)
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a[1:9, 0], 2 * (b[:8, 0] + b[1:9, 0] + b[2:, 0]))


@pytest.mark.parametrize("factors", [(1, 1), (4, 3), (3, 5)])
@pytest.mark.parametrize("read, begin", [("X[i]", 0), ("X[9 - i]", 0), ("X[i] - X[i - 1]", 1)])
def test_consumers_of_blocks(factors, read, begin):
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = B[x, 0] * 2\n"
                 f"for i in T.serial({begin}, 10):\n    A[i, 0] = {read}")
    xo, _ = s.split("x", factors[0])
    s.split("i", factors[1])
    s.reverse_compute_at(s.store("A"), xo)
    helve.testing.check_stages(s, lambda: helve.testing.make_arguments(s))


def test_a_consumer_behind_a_sum():
    s = schedule("X = T.alloc_shared((10,), 'int32')\nfor x in T.serial(10):\n    X[x] = 0\n    for k in T.serial(7):\n"
                 "        X[x] = X[x] + B[x, k]\nfor i in T.serial(10):\n    A[i, 0] = X[i] * 2")
    refused("HV1007", lambda: s.reverse_compute_at("i", "k"))  # an element is written by every iteration
    s.reverse_compute_at("i", "x")
    assert body_of(s) == """\
X = T.alloc_shared((10,), "int32")
for x in T.serial(10):
    X[x] = 0
    for k in T.serial(7):
        X[x] = X[x] + B[x, k]
    for i in T.serial(x, x + 1):
        A[i, 0] = X[i] * 2"""


def test_a_consumer_that_reads_what_the_loop_does_not_write_is_lost():
    s = schedule("for x in T.serial(5):\n    B[x, 0] = B[x, 1]\nfor i in T.serial(10):\n    A[i, 0] = B[i, 0]")
    assert "'A[i, 0] = B[i, 0]' at i = 5 would not run" in refused(
        "HV1007", lambda: s.reverse_compute_at("i", "x")).message
    s = schedule("for x in T.serial(9):\n    B[x, 0] = A[x + 1, 0]\nfor i in T.serial(9):\n    A[i + 1, 0] = B[i, 0]")
    s.reverse_compute_at("i", "x")
    s = schedule("for x in T.serial(9):\n    B[x, 0] = A[x, 0]\nfor i in T.serial(9):\n    A[i + 1, 0] = B[i, 0]")
    refused("HV1007", lambda: s.reverse_compute_at("i", "x"))  # the next iteration still reads what is overwritten


BLUR = """\
n = T.dyn('n')
m = T.dyn('m')
@T.prim_func
def blur(A: T.Tensor((n, m), 'float32'), B: T.Tensor((n + 2, m + 2), 'float32')):
    X = T.alloc_global((n + 2, m), 'float32')
    with T.Kernel(1) as b:
        for x in T.serial(n + 2):
            for y in T.serial(m):
                X[x, y] = B[x, y] + B[x, y + 1] + B[x, y + 2]
        for i in T.serial(n):
            for j in T.serial(m):
                A[i, j] = X[i, j] + X[i + 1, j] + X[i + 2, j]
"""


def test_tiles_of_dynamic_extents():
    s = helve.Schedule(helve.parse(BLUR))
    before = helve.compile(s.function)
    io, ii = s.split("i", 8)
    jo, ji = s.split("j", 8)
    s.reorder(io, jo, ii, ji)
    s.compute_at("x", jo)
    assert "for y in T.serial(jo * 8, " in s.script()  # also where n is 0 no element is missed: nobody reads it
    after = helve.compile(s)
    for n, m in [(0, 3), (1, 1), (7, 0), (8, 16), (19, 13)]:
        b = np.random.default_rng(n).random((n + 2, m + 2), "float32")
        one, other = np.zeros((n, m), "float32"), np.zeros((n, m), "float32")
        before(one, b)
        after(other, b)
        np.testing.assert_array_equal(one, other)


CROSS = """\
n = T.dyn('n')
m = T.dyn('m')
@T.prim_func
def cross(A: T.Tensor((n, m), 'float32'), B: T.Tensor((n + 2, m + 2), 'float32')):
    X = T.alloc_global((n + 2, m + 2), 'float32')
    with T.Kernel(1) as b:
        for x in T.serial(n + 2):
            for y in T.serial(m + 2):
                X[x, y] = B[x, y] * 2.0
        for i in T.serial(n):
            for j in T.serial(m):
                A[i, j] = X[i, j + 1] + X[i + 1, j] + X[i + 1, j + 1] + X[i + 1, j + 2] + X[i + 2, j + 1]
"""


def test_a_cross_gets_the_square_around_it():
    """Which columns of a row are read differs from row to row; the bounds of a box have no cases, tails included."""
    s = helve.Schedule(helve.parse(CROSS))
    before = helve.compile(s.function)
    io, ii = s.split("i", 8)
    jo, ji = s.split("j", 8)
    s.reorder(io, jo, ii, ji)
    s.compute_at("x", jo)
    assert "for y in T.serial(jo * 8, jo * 8 + (T.min(m + 1, jo * 8 + 9) - jo * 8 + 1)" in s.script()
    assert "if_then_else" not in s.script()
    after = helve.compile(s)
    for n, m in [(0, 3), (1, 1), (7, 0), (8, 16), (19, 13)]:
        b = np.random.default_rng(n).random((n + 2, m + 2), "float32")
        one, other = np.zeros((n, m), "float32"), np.zeros((n, m), "float32")
        before(one, b)
        after(other, b)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("operation", ["T.reduce_sum(B[r, :], X[0], dim=0, clear={})",
                                       "T.reduce_max(B[r, :], X[0], dim=0, clear={})"])
def test_an_operation_reads_the_result_that_it_goes_on_with(operation):
    """What starts a running sum does not move into the loop that adds to it, where it would start each time anew."""
    text = f"""\
X = T.alloc_shared((1,), 'int32')
for i in T.serial(1):
    X[i] = 1
for r in T.serial(4):
    {operation.format(False)}
    A[r] = X[0]"""
    s = schedule(text, "A: T.Tensor((4,), 'int32'), B: T.Tensor((4, 6), 'int32')")
    refused("HV1007", lambda: s.compute_at("i", "r"))
