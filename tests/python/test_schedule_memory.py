"""Primitives of schedules that change memory: copies of footprints, and what of them is refused.

Each step is compared with the program before it by the interpreter (`check=True`); random programs are in
test_schedule_accepted.py, random copies with faults in tests/cpp/schedule/values_test.cc.
"""

import re

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_schedule import body_of, refused, schedule

SUM = "for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, 0] = A[i, 0] + B[i, k]"


def test_cache_write_accumulates_in_a_copy():
    s = schedule(SUM)
    copied_in, loop, copied_back = s.cache_write("k", "A")
    assert body_of(s) == """\
for i in T.serial(10):
    A_local = T.alloc_local((1, 1), "int32")
    A_local[0, 0] = A[i, 0]
    for k in T.serial(7):
        A_local[0, 0] = A_local[0, 0] + B[i, k]
    A[i, 0] = A_local[0, 0]"""
    assert loop == s.loop("k")
    assert [copied_in.text, copied_back.text] == ["A_local[0, 0] = A[i, 0]", "A[i, 0] = A_local[0, 0]"]


def test_cache_write_copies_in_only_what_is_read_or_left():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = 0\n    for k in T.serial(7):\n"
                 "        A[i, 0] = A[i, 0] + B[i, k]")
    loop, copied_back = s.cache_write("i", "A", "shared")
    assert loop == s.loop("i") and copied_back == s.loop("v0")
    assert body_of(s) == """\
A_shared = T.alloc_shared((10, 1), "int32")
for i in T.serial(10):
    A_shared[i, 0] = 0
    for k in T.serial(7):
        A_shared[i, 0] = A_shared[i, 0] + B[i, k]
for v0 in T.serial(10):
    A[v0, 0] = A_shared[v0, 0]"""
    left = schedule("for i in T.serial(5):\n    A[2 * i, 0] = B[i, 0]")
    assert len(left.cache_write("i", "A")) == 3  # what stands between is copied back as it was


def test_cache_read_copies_the_least_box():
    s = schedule("for i in T.serial(8):\n    for k in T.serial(3):\n        A[i, 0] = A[i, 0] + B[i + k, 2]")
    copy, loop = s.cache_read("k", "B")
    assert body_of(s) == """\
for i in T.serial(8):
    B_local = T.alloc_local((3, 1), "int32")
    for w0 in T.serial(3):
        B_local[w0, 0] = B[i + w0, 2]
    for k in T.serial(3):
        A[i, 0] = A[i, 0] + B_local[k, 0]"""
    assert copy == s.loop("w0") and loop == s.loop("k")


def test_a_guarded_block_is_copied_up_to_its_end():
    s = schedule("for i in T.serial(10):\n    A[i, 0] = B[i, 0]")
    s.split("i", 4)
    s.cache_read("ii", "B")
    s.cache_write("ii", "A")
    assert "T.alloc_local((4, 1)" in body_of(s)
    assert "for v0 in T.serial(T.min(io * 4 + 3, 9) - io * 4 + 1)" in body_of(s)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_dynamic_extents_are_blocks_of_constant_ones(n):
    s = schedule("for i in T.serial(n):\n    A[i] = A[i] + B[i]",
                 "A: T.Tensor((n,), 'int32'), B: T.Tensor((n,), 'int32')", before="n = T.dyn('n')\n")
    s.split("i", 4)
    s.cache_read("ii", "B", "shared")
    s.cache_write("ii", "A")
    a, b = np.arange(n, dtype="int32"), np.arange(n, dtype="int32") * 3
    helve.compile(s)(a, b)
    np.testing.assert_array_equal(a, np.arange(n) * 4)


def test_updates_keep_the_order_of_their_values():
    s = schedule("for i in T.serial(10):\n    for k in T.serial(7):\n        T.update(A[i, 0], B[i, k], 'add')")
    s.cache_write("k", "A")
    assert [step.effect for step in s.report()] == ["equal"]
    assert 'T.update(A_local[0, 0], B[i, k], "add")' in body_of(s)


def test_a_copy_that_becomes_stale_is_refused():
    s = schedule("for i in T.serial(9):\n    A[i + 1, 0] = A[i, 0] + 1", check=False)
    error = refused("HV1007", lambda: s.cache_read("i", "A"))
    assert error.message == ("'cache_read' would change results: 'A[i, 0]' at i = 1 reads what 'A[i + 1, 0]' at i = 0 "
                             "writes, and would read what stood there before")
    s.cache_write("i", "A")  # reads and writes go to one copy
    assert "A_local[i + 1, 0] = A_local[i, 0] + 1" in body_of(s)


def test_iterations_without_order_share_no_copy():
    s = schedule("for i in T.Parallel(5):\n    for k in T.serial(3):\n        A[i * 2, k] = B[i, k]", check=False)
    s.cache_write("k", "A")  # a copy of each iteration
    s = schedule("for i in T.Parallel(5):\n    for k in T.serial(2):\n        A[i + k * 5, 0] = B[i, 0]",
                 check=False)
    refused("HV1008", lambda: s.cache_write("k", "A"))  # the box holds elements of other iterations


def test_subscripts_that_are_read_have_no_box():
    s = schedule("for i in T.serial(10):\n    A[T.index(B[i, 0]) % 10, 0] = i", check=False)
    refused("HV1006", lambda: s.cache_write("i", "A"))


def test_steps_with_copies_are_traced():
    s = schedule(SUM)
    s.cache_write("k", "A", "shared")
    s.cache_read("k", "B")
    assert str(s.trace()) == ('s.cache_write(s.loop("k"), "A", scope="shared")\n'
                              's.cache_read(s.loop("k"), "B", scope="local")\n')
    again = schedule(SUM)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


def test_the_value_of_a_variable_prints_as_it_is_parsed():
    s = schedule("for i in T.serial(2):\n    A[1 - i, 0] = B[i, 0]")
    s.cache_write("i", "A")
    s.unroll("i")
    helve.testing.assert_round_trip(s.function.function)


def product(m, n, k):
    return helve.parse(f"""
@T.prim_func
def product(A: T.Tensor(({m}, {k}), "float32"), B: T.Tensor(({k}, {n}), "float32"), C: T.Tensor(({m}, {n}), "float32")):
    with T.Kernel(1) as b:
        for i in T.serial({m}):
            for j in T.serial({n}):
                C[i, j] = 0.0
        for i in T.serial({m}):
            for j in T.serial({n}):
                for k in T.serial({k}):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]
""")


def tiled(function, panel):
    """Tiles of 6 x 16 of C in registers, panels of `panel` x 16 of B packed."""
    s = helve.Schedule(function)
    io, ii = s.split(s.loop("i", 1), 6, tail="exact")
    jo, ji = s.split(s.loop("j", within=io), 16, tail="exact")
    ko, ki = s.split("k", panel, tail="exact")
    s.reorder(jo, ko, io, ki, ii, ji)
    s.cache_read(io, "B")
    s.cache_write(ki, "C")
    for columns in ("w1", "w1_1", "v1", ji):
        s.vectorize(columns)
    s.unroll(ii)
    return s


@pytest.mark.parametrize("m, n, k, panel", [(6, 16, 1, 1), (12, 48, 40, 8), (18, 32, 64, 64)])
def test_a_product_of_register_tiles_and_packed_panels(m, n, k, panel):
    s = tiled(product(m, n, k), panel)
    assert len(s) == 11
    random = np.random.default_rng(0)
    a, b = random.random((m, k), "float32"), random.random((k, n), "float32")
    c, again = np.zeros((m, n), "float32"), np.zeros((m, n), "float32")
    helve.compile(s)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    helve.testing.interpret(product(m, n, k), a, b, again)
    np.testing.assert_array_equal(c, again)  # the order of each sum stays


def test_tiles_are_in_registers():
    kernel = helve.compile(tiled(product(12, 32, 64), 32))
    assert re.findall(r"alloca .*", kernel.source("llvm")) == ["alloca [512 x float], align 64"]  # of the panel alone


def test_an_allocation_moves_out_of_loops_and_back():
    s = schedule(SUM)
    s.cache_write("k", "A")
    wanted = body_of(s)
    lifted = s.lift("A_local", "i")
    assert body_of(s).startswith('A_local = T.alloc_local((1, 1), "int32")\nfor i in T.serial(10):\n    A_local[0')
    assert lifted.text.startswith("A_local = T.alloc_local")
    s.sink(lifted, "i")
    assert body_of(s) == wanted
    again = schedule(SUM)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


def test_iterations_without_order_share_no_allocation():
    body = ("for i in T.Parallel(10):\n    W = T.alloc_shared((1,), 'int32')\n    W[0] = B[i, 0]\n"
            "    A[i, 0] = W[0]")
    s = schedule(body, check=False)
    refused("HV1007", lambda: s.lift("W", "i"))
    s.serial("i")
    s.lift("W", "i")
    assert body_of(s).splitlines()[0] == 'W = T.alloc_shared((1,), "int32")'


def test_what_iterations_leave_for_each_other_stays_shared():
    s = schedule("W = T.alloc_local((1,), 'int32')\nW[0] = 0\nfor i in T.serial(10):\n    W[0] = W[0] + B[i, 0]\n"
                 "    A[i, 0] = W[0]", check=False)
    refused("HV1006", lambda: s.sink("W", "i"))  # the store in front of the loop needs it
    s = schedule("W = T.alloc_local((1,), 'int32')\nfor i in T.serial(10):\n    if i == 0:\n        W[0] = 7\n"
                 "    A[i, 0] = W[0]", check=False)
    assert "memory of their own" in refused("HV1007", lambda: s.sink("W", "i")).message


def test_allocations_move_over_loops_around_them_only():
    s = schedule("for i in T.serial(10):\n    W = T.alloc_local((1,), 'int32')\n    W[0] = i\n    A[i, 0] = W[0]\n"
                 "for j in T.serial(7):\n    A[0, j] = j", check=False)
    refused("HV1006", lambda: s.lift("W", "j"))
    refused("HV1006", lambda: s.sink("W", "j"))
    refused("HV1006", lambda: s.lift(s.loop("j"), "j"))
    refused("HV1001", lambda: s.lift("V", "i"))


@pytest.mark.parametrize("size", [(12, 32, 16), (13, 35, 17), (5, 3, 1), (7, 33, 40)])
def test_a_product_with_tails_in_all_dimensions(size):
    m, n, depth = size
    program = helve.parse(
        f"@T.prim_func\ndef f(A: T.Tensor(({m}, {depth}), 'float32'), B: T.Tensor(({depth}, {n}), 'float32'), "
        f"C: T.Tensor(({m}, {n}), 'float32')):\n    with T.Kernel(1) as b:\n        for i in T.serial({m}):\n"
        f"            for j in T.serial({n}):\n                for k in T.serial({depth}):\n"
        "                    C[i, j] = C[i, j] + A[i, k] * B[k, j]\n")
    s = helve.Schedule(program)
    io, ii = s.split("i", 6)
    jo, ji = s.split("j", 16)
    ko, ki = s.split("k", 8)
    s.reorder(ko, jo, io, ki, ii, ji)
    s.cache_read(jo, "B", "shared")
    s.set_layout("B_shared", "tile(8, 16)")
    s.cache_write(ki, "C")
    for lanes in ("w1", "w1_1", "v1", ji):
        s.vectorize(s.split(lanes, 16)[1])
    s.unroll(ii)
    helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s.function))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype("float32") for shape in ((m, depth), (depth, n)))
    c = np.zeros((m, n), "float32")
    helve.compile(s)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_a_fragment_is_in_registers_of_a_block():
    s = schedule("for i in T.serial(10):\n    for k in T.serial(7):\n        A[i, k] = B[i, k] + 1")
    s.bind("i")
    copy, loop = s.cache_read("k", "B", "fragment")
    s.cache_write("k", "A", "fragment")
    s.parallel(copy)
    s.parallel(loop)
    s.parallel("v1")
    assert "A_fragment[0, k] = B_fragment[0, k] + 1" in body_of(s)
    helve.testing.check_stages(s.function, lambda: helve.testing.make_arguments(s), check="all")
    text = helve.compile(s, target="cuda", arch="sm_90a").source("cuda")
    assert "int B_fragment[1];" in text and "helve_shared" not in text


@pytest.mark.parametrize("step", [
    lambda s: s.cache_read("i", "t"), lambda s: s.cache_write("i", "t"), lambda s: s.rfactor("k", around="i"),
    lambda s: s.rfactor("k", around="i", unsafe="to see"),
])
def test_memory_of_the_named_loop_has_no_name_in_front_of_it(step):
    s = helve.Schedule(helve.parse("""@T.prim_func
def main(A: T.Tensor((8, 8), "int32"), S: T.Tensor((8,), "int32")):
    with T.Kernel(1) as b:
        for i in T.serial(8):
            t = T.alloc_local((1,), "int32")
            t[0] = 0
            for k in T.serial(8):
                T.update(t[0], A[i, k], "add")
            S[i] = t[0]
"""))
    with pytest.raises(helve.Error, match="'t' is allocated inside of the statement") as refused:
        step(s)
    assert refused.value.code == "HV1006" and "lift()" in refused.value.help
