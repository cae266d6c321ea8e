"""rfactor: reductions by partial results, and what of them is refused.

Each step is compared with the program before it by the interpreter (`check=True`); mutants of the law of partial
results are in tests/cpp/schedule/reductions_test.cc.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from helve.arguments import numpy_dtype
from nvrtc import assert_compiles, needs_nvrtc
from test_schedule import body_of, refused, schedule

SUM = 'for i in T.serial(10):\n    for k in T.serial(7):\n        T.update(A[i, 0], B[i, k], "add")'


def test_each_iteration_has_a_partial_result():
    s = schedule(SUM)
    s.split("k", 4)
    fill, nest, merge = s.rfactor("ki")
    assert (
        body_of(s)
        == """\
for i in T.serial(10):
    A_local = T.alloc_local((4,), "int32")
    for w0 in T.serial(4):
        A_local[w0] = 0
    for ko in T.serial(2):
        for ki in T.serial(4):
            if ko * 4 + ki < 7:
                T.update(A_local[ki], B[i, ko * 4 + ki], "add")
    for v0 in T.serial(4):
        T.update(A[i, 0], A_local[v0], "add")"""
    )
    assert [fill, nest, merge] == [s.loop("w0"), s.loop("ko"), s.loop("v0")]
    assert [each.effect for each in s.report()] == ["equal", "reassociated"]
    s.vectorize("ki")
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    assert 's.rfactor(s.loop("ki"), scope="local")' in str(s.trace())


def test_partial_results_in_global_memory_get_launches_of_their_own():
    s = schedule('A[0, 0] = 0\nfor i in T.serial(10):\n    for k in T.serial(7):\n'
                 '        T.update(A[0, 0], B[i, k], "add")')
    fill, nest, merge = s.rfactor("i", scope="global")
    assert [fill, nest, merge] == [s.loop("w0"), s.loop("i"), s.loop("v0")]
    s.fission(nest)
    s.fission(merge)
    s.bind("i")
    script = s.script().replace(", scheduled=True", "")
    assert script[script.index("    A_global"):] == """\
    A_global = T.alloc_global((10,), "int32")
    with T.Kernel(1) as b:
        A[0, 0] = 0
        for w0 in T.serial(10):
            A_global[w0] = 0
    with T.Kernel(10) as i:
        for k in T.serial(7):
            T.update(A_global[i], B[i, k], "add")
    with T.Kernel(1) as b_2:
        for v0 in T.serial(10):
            T.update(A[0, 0], A_global[v0], "add")
"""
    arguments, wanted = (helve.testing.make_arguments(s) for _ in range(2))
    helve.testing.interpret(s.version(0), *wanted)
    helve.compile(s)(*arguments)
    np.testing.assert_array_equal(arguments[0], wanted[0])


def test_blocks_may_not_share_partial_results_in_global_memory():
    s = schedule(SUM, check=False)
    s.bind("i")
    refused("HV1007", lambda: s.rfactor("k", scope="global"))


def test_partial_results_in_fragments():
    s = schedule(SUM)
    s.rfactor("k", scope="fragment")
    assert 'A_fragment = T.alloc_fragment((7,), "int32")' in body_of(s)


def test_elements_inside_of_the_reduction_are_dimensions():
    s = schedule('for k in T.serial(7):\n    for i in T.serial(10):\n        T.update(A[i, 0], B[i, k], "add")')
    nest, merge = s.rfactor("k")
    assert [nest, merge] == [s.loop("k"), s.loop("v0")]
    assert (
        body_of(s)
        == """\
A_local = T.alloc_local((7, 10), "int32")
for k in T.serial(7):
    for i in T.serial(10):
        A_local[k, i] = B[i, k]
for v0 in T.serial(7):
    for v1 in T.serial(10):
        T.update(A[v1, 0], A_local[v0, v1], "add")"""
    )


def test_lanes_are_the_last_dimension():
    s = schedule(
        "for ko in T.serial(2):\n    for i in T.serial(10):\n        for ki in T.serial(3):\n"
        '            T.update(A[i, 0], B[i, ko * 3 + ki], "add")'
    )
    s.rfactor("ki")
    assert 'T.update(A_local[i, ki], B[i, ko * 3 + ki], "add")' in body_of(s)


def test_partial_results_live_for_the_time_of_around():
    s = schedule(
        "for t in T.serial(2):\n    for i in T.serial(4):\n        for k in T.serial(3):\n"
        '            T.update(A[i, 0], B[i + t, k], "add")'
    )
    s.copy().rfactor("k")
    s.rfactor("k", "k")
    assert 'A_local = T.alloc_local((3,), "int32")' in body_of(s)
    assert 's.rfactor(s.loop("k"), s.loop("k"), scope="local")' in str(s.trace())
    again = s.version(0)
    again.replay(s.trace())
    assert again.script() == s.script()


def test_partial_results_have_partial_results():
    s = schedule('for k in T.serial(56):\n    T.update(A[0, 0], B[k // 7 % 8, k % 7], "add")')
    s.split("k", 14)
    s.split("ki", 7)
    s.rfactor("kii")
    s.rfactor("kio")
    assert "T.update(A_local_local[kio, kii], " in body_of(s)
    assert 'T.update(A_local[v1], A_local_local[v0_1, v1], "add")' in body_of(s)


@pytest.mark.parametrize(
    ("op", "identity"), [("add", "0"), ("mul", "1"), ("max", "-2147483648"), ("min", "2147483647")]
)
def test_partial_results_begin_with_the_identity(op, identity):
    s = schedule(f'for k in T.serial(7):\n    T.update(A[0, 0], B[0, k], "{op}")')
    s.split("k", 3)
    s.rfactor("ki")
    assert f"A_local[w0] = {identity}" in body_of(s)


@pytest.mark.parametrize(
    ("body", "loop", "around", "filled"),
    [
        ("for k in T.serial(7):\n    {u}", "k", None, False),
        ("for k in T.serial(7):\n    if k < 4:\n        {u}", "k", None, True),
        ("for k in T.serial(7):\n    {u}\n    {u}", "k", None, True),
        ("for k in T.serial(7):\n    for t in T.serial(2):\n        {u}", "k", "k", True),
        ("for t in T.serial(2):\n    for k in T.serial(7):\n        {u}", "k", "t", True),
        ("for i in T.serial(2, 6):\n    for k in T.serial(7):\n        {i}", "k", "i", False),
        ("for k in T.serial(7):\n    for i in T.serial(2, 6):\n        {i}", "k", "k", False),
        ("for i in T.serial(4):\n    for k in T.serial(7):\n        T.update(A[i * 2, 0], B[i, k], 'max')", "k", "i",
         True),
        ("for i in T.serial(4):\n    for k in T.serial(i, 7):\n        for n in T.serial(1):\n            {i}", "n",
         "i", True),
    ],
)
def test_a_partial_result_of_one_update_is_what_it_adds(body, loop, around, filled):
    s = helve.Schedule(schedule(body.format(u='T.update(A[0, 0], B[3, k], "add")',
                                            i='T.update(A[i, 0], B[i, k], "min")')).function, check=True)
    results = s.rfactor(loop, around)
    assert len(results) == (3 if filled else 2)
    assert ("T.update(A_local" in body_of(s)) == filled


@pytest.mark.parametrize("value", ["A[0, 0] + B[0, k]", "B[0, k] + A[0, 0] + 3", "T.max(A[0, 0], B[0, k])"])
def test_plain_stores_of_integers_are_updates(value):
    s = schedule(f"for k in T.serial(7):\n    A[0, 0] = {value}")
    s.split("k", 3)
    s.rfactor("ki")
    assert "T.update(A_local[ki], " in body_of(s)


def test_plain_sums_of_floats_keep_their_order():
    s = schedule(
        "for k in T.serial(7):\n    A[0, 0] = A[0, 0] + B[0, k]",
        "A: T.Tensor((10, 7), 'float32'), B: T.Tensor((10, 7), 'float32')",
    )
    error = refused("HV1006", lambda: s.rfactor("k"))
    assert error.help == 'write T.update(A[0, 0], ..., "add"), if any order will do'


@pytest.mark.parametrize("use", ["B[t, 0] = A[0, 0]", "A[0, 0] = 3", 'T.update(A[0, 0], 3, "max")'])
def test_other_uses_keep_their_order(use):
    s = schedule(
        f'for t in T.serial(5):\n    for k in T.serial(7):\n        T.update(A[0, 0], B[9, k], "add")\n    {use}'
    )
    refused("HV1007", lambda: s.rfactor("k", "t"))
    s.rfactor("k")
    assert "    for k in T.serial(7):\n        A_local[k] = B[9, k]\n    for v0 in" in body_of(s)


def test_other_updates_by_the_operator_may_be_anywhere():
    s = schedule(
        'for t in T.serial(5):\n    for k in T.serial(7):\n        T.update(A[0, 0], B[9, k], "add")\n'
        '    T.update(A[0, 0], 3, "add")'
    )
    s.rfactor("k")
    assert body_of(s).startswith("A_local")


@pytest.mark.parametrize("extent", [0, 1, 5, 7])
def test_extents(extent):
    s = schedule(f'for i in T.serial(10):\n    for k in T.serial({extent}):\n        T.update(A[i, 0], B[i, k], "add")')
    s.split("k", 4)
    if extent == 0:
        refused("HV1006", lambda: s.rfactor("ki"))
    else:
        s.rfactor("ki")


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("m", [1, 3])
def test_dynamic_extents(m, n):
    rows, columns = T.dyn("m"), T.dyn("n")

    @T.prim_func
    def sums(A: T.Tensor((rows, columns), "int32"), C: T.Tensor((rows,), "int32")):
        with T.Kernel(rows) as i:
            C[i] = 5
            for k in T.serial(columns):
                T.update(C[i], A[i, k], "add")

    s = helve.Schedule(sums, check=True)
    s.split("k", 4)
    s.rfactor("ki")
    a, c = np.arange(m * n, dtype="int32").reshape(m, n), np.zeros(m, "int32")
    helve.compile(s)(a, c)
    np.testing.assert_array_equal(c, 5 + a.sum(axis=1))


def test_what_other_iterations_may_touch_is_not_merged():
    """Without the first store nothing says that an element without terms is this iteration's own."""
    rows, columns = T.dyn("m"), T.dyn("n")

    @T.prim_func
    def sums(A: T.Tensor((rows, columns), "int32"), C: T.Tensor((rows,), "int32")):
        with T.Kernel(rows) as i:
            for k in T.serial(columns):
                T.update(C[i], A[i, k], "add")

    s = helve.Schedule(sums, check=True)
    s.split("k", 4)
    error = refused("HV1008", lambda: s.rfactor("ki"))
    assert "iterations of a loop around it have no order" in error.message


@pytest.mark.parametrize(
    "body",
    [
        "for k in T.serial(7):\n    A[k, 0] = 1",
        'for k in T.serial(7):\n    T.update(A[k, 0], 1, "add")',
        'for k in T.serial(7):\n    T.update(A[0, 0], 1, "add")\n    T.update(A[1, 0], 1, "max")',
        'for k in T.serial(7):\n    T.update(A[0, 0], 1, "add")\n    T.update(B[1, 0], 1, "add")',
        "for k in T.serial(7):\n    T.atomic_add(A[0, 0], 1)",
    ],
)
def test_loops_that_reduce_no_one_buffer(body):
    refused("HV1006", lambda: schedule(body).rfactor("k"))


@pytest.mark.parametrize(
    "statement",
    [
        'while A[0, 0] < 3:\n        T.update(A[0, 0], 1, "add")',
        'T.update(A[T.index(B[0, k]), 0], 1, "add")',
        'T.copy(A[0:1, 0:1], B[0:1, 0:1])\n    T.update(A[0, 0], 1, "add")',
    ],
)
def test_what_is_not_known_is_refused(statement):
    s = schedule(f"for k in T.serial(7):\n    {statement}")
    with pytest.raises(helve.Error) as caught:
        s.rfactor("k")
    assert caught.value.code in ("HV1006", "HV1007", "HV1008"), str(caught.value)


def test_dot_product_in_lanes():
    @T.prim_func
    def dot(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32"), C: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            C[0] = 0.0
            for k in T.serial(1000):
                T.update(C[0], A[k] * B[k], "add")

    s = helve.Schedule(dot, check=True)
    _, lanes, _ = s.split("k", 32, tail="cut")
    s.rfactor(lanes)
    unrolled, lanes = s.split(lanes, 8)
    s.vectorize(lanes)
    s.unroll(unrolled)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1000)).astype("float32")
    c = np.zeros(1, "float32")
    helve.compile(s)(a, b, c)
    np.testing.assert_allclose(c[0], a.astype("float64") @ b, rtol=1e-4)
    helve.testing.check_stages(s.function, lambda: [a.copy(), b.copy(), np.zeros(1, "float32")], rtol=1e-4)


def row_sums():
    @T.prim_func
    def rows(A: T.Tensor((5, 300), "float32"), C: T.Tensor((5,), "float32")):
        with T.Kernel(5, threads=64) as i:
            C[i] = 0.0
            for k in T.serial(300):
                T.update(C[i], A[i, k], "add")

    s = helve.Schedule(rows, check=True)
    s.split("k", 64)
    fill, _, _ = s.rfactor("ki", scope="shared")
    s.reorder("ki", "ko")
    s.parallel("ki")
    s.parallel(fill)
    return s


@needs_nvrtc
def test_row_sums_of_a_block_compile():
    kernel = helve.compile(row_sums(), target="cuda", arch="sm_90a")
    assert_compiles(kernel.source("cuda"))


def test_row_sums_of_a_block():
    a = np.random.default_rng(1).integers(-8, 8, (5, 300)).astype("float32")
    helve.testing.check_stages(row_sums().function, lambda: [a.copy(), np.zeros(5, "float32")], check="all")
    c = np.zeros(5, "float32")
    helve.compile(row_sums())(a, c)
    np.testing.assert_array_equal(c, a.sum(axis=1))


@pytest.mark.parametrize("dtype,operand,partial", [
    ("bfloat16", "A[k]", "float32"), ("float16", "A[k] * A[k]", "float32"), ("float8_e5m2", "A[k]", "float32"),
    ("bfloat16", "T.cast(A[k], 'float32')", "float32"), ("float32", "T.cast(A[k], 'float64')", "float64"),
    ("float32", "A[k]", "float32")])
def test_partial_sums_are_rounded_when_they_are_merged(dtype, operand, partial):
    """4 partial sums of 1024 ones each, which no float below 32 bits counts."""
    text = (f"@T.prim_func\ndef f(A: T.Tensor((4096,), '{dtype}'), S: T.Tensor((1,), '{dtype}')):\n"
            f"    with T.Kernel(1) as b:\n        S[0] = 0.0\n        for k in T.serial(4096):\n"
            f"            T.update(S[0], {operand}, 'add')\n")
    s = helve.Schedule(helve.parse(text))
    s.divide("k", 4)
    s.rfactor("ko")
    assert f'S_local = T.alloc_local((4,), "{partial}")' in s.script()
    assert [step.effect for step in s.report()] == ["equal", "reassociated"]
    for target in ("interp", "llvm"):
        a, total = np.ones(4096, numpy_dtype(dtype)), np.zeros(1, numpy_dtype(dtype))
        helve.compile(s, target)(a, total)
        assert float(total[0]) == 4096


@pytest.mark.parametrize("op", ["max", "min"])
def test_partial_maxima_are_of_the_type_of_the_element(op):
    text = ("@T.prim_func\ndef f(A: T.Tensor((64,), 'bfloat16'), S: T.Tensor((1,), 'bfloat16')):\n"
            f"    with T.Kernel(1) as b:\n        for k in T.serial(64):\n            T.update(S[0], A[k], '{op}')\n")
    s = helve.Schedule(helve.parse(text))
    s.divide("k", 4)
    s.rfactor("ko")
    assert 'S_local = T.alloc_local((4,), "bfloat16")' in s.script()
