"""Loops that become tile operations: which operands are found, what is refused.

Each step is compared with the program before it by the interpreter (`check=True`); what operations mean as loops is
tested against the interpreter in tests/cpp/schedule/operation_loops_test.cc.
"""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_schedule import body_of, refused, schedule

MATRICES = "A: T.Tensor((20, 30), 'int32'), B: T.Tensor((30, 26), 'int32'), C: T.Tensor((20, 26), 'int32')"
PRODUCT = """\
for i in T.serial(20):
    for j in T.serial(26):
        for k in T.serial(30):
            T.update(C[i, j], A[i, k] * B[k, j], "add")"""
FLOATS = "A: T.Tensor((10, 7), 'float32'), S: T.Tensor((10,), 'float32')"


def floats(text):
    return text.replace("int32", "float32")


def test_a_product_becomes_one_operation():
    s = schedule(PRODUCT, MATRICES)
    operation = s.tensorize("i", "gemm")
    assert body_of(s) == "T.gemm(A, B, C)"
    assert operation.text == "T.gemm(A, B, C)"
    assert [step.effect for step in s.report()] == ["equal"]  # integers wrap


def test_products_of_floats_are_reassociated():
    s = schedule(PRODUCT, floats(MATRICES), check=False)
    s.tensorize("i", "gemm")
    assert [step.effect for step in s.report()] == ["reassociated"]


@pytest.mark.parametrize("order", ["ijk", "ikj", "jik", "jki", "kij", "kji"])
@pytest.mark.parametrize("product", ["{a} * {b}", "{b} * {a}"])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_products_in_every_order_with_transposes(order, product, ta, tb):
    m, n, k = 5, 4, 3
    extents = {"i": m, "j": n, "k": k}
    value = product.format(a="A[k, i]" if ta else "A[i, k]", b="B[j, k]" if tb else "B[k, j]")
    lines = [f"{'    ' * d}for {v} in T.serial({extents[v]}):" for d, v in enumerate(order)]
    lines.append(f"            T.update(C[i, j], {value}, 'add')")
    s = schedule("\n".join(lines), f"A: T.Tensor({(k, m) if ta else (m, k)}, 'int32'), "
                 f"B: T.Tensor({(n, k) if tb else (k, n)}, 'int32'), C: T.Tensor({(m, n)}, 'int32')")
    s.tensorize(order[0], "gemm")
    flags = ", transpose_A=True" * ta + ", transpose_B=True" * tb
    assert body_of(s) == f"T.gemm(A, B, C{flags})"


def test_tiles_become_products_of_regions():
    s = schedule(PRODUCT, MATRICES)
    io, ii = s.split("i", 8)
    jo, ji = s.split("j", 13)
    ko, ki = s.split("k", 16)
    s.reorder(io, jo, ko, ii, ji, ki)
    s.tensorize(ii, "gemm")
    assert body_of(s) == """\
for io in T.serial(3):
    for jo in T.serial(2):
        for ko in T.serial(2):
            T.gemm(A[io * 8:io * 8 + T.min(20 - io * 8, 8), ko * 16:ko * 16 + T.min(30 - ko * 16, 16)], \
B[ko * 16:ko * 16 + T.min(30 - ko * 16, 16), jo * 13:jo * 13 + 13], \
C[io * 8:io * 8 + T.min(20 - io * 8, 8), jo * 13:jo * 13 + 13])"""


def test_a_store_that_clears_is_part_of_the_operation():
    body = PRODUCT.replace("        for k", "        C[i, j] = 0\n        for k")
    s = schedule(body, MATRICES)
    s.tensorize("i", "gemm")
    assert body_of(s) == "T.gemm(A, B, C, clear=True)"
    other = schedule(body.replace("= 0", "= 1"), MATRICES, check=False)
    refused("HV1008", lambda: other.tensorize("i", "gemm"))


def test_a_plain_sum_of_integers_is_a_product_but_not_one_of_floats():
    plain = PRODUCT.replace('T.update(C[i, j], A[i, k] * B[k, j], "add")', "C[i, j] = C[i, j] + A[i, k] * B[k, j]")
    s = schedule(plain, MATRICES)
    s.tensorize("i", "gemm")
    assert body_of(s) == "T.gemm(A, B, C)"
    s = schedule(plain, floats(MATRICES), check=False)
    error = refused("HV1008", lambda: s.tensorize("i", "gemm"))
    assert "T.update" in str(error)
    s.tensorize("i", "gemm", unsafe="the order of the sums does not matter here")
    assert body_of(s) == "T.gemm(A, B, C)"


def test_small_floats_accumulate_in_float32():
    signature = "A: T.Tensor((4, 8), 'float16'), B: T.Tensor((8, 4), 'float16'), C: T.Tensor((4, 4), 'float32')"
    product = ("for i in T.serial(4):\n    for j in T.serial(4):\n        for k in T.serial(8):\n"
               "            T.update(C[i, j], {} * {}, 'add')")
    s = schedule(product.format("T.cast(A[i, k], 'float32')", "T.cast(B[k, j], 'float32')"), signature, check=False)
    s.tensorize("i", "gemm")
    assert body_of(s) == "T.gemm(A, B, C)"
    s = schedule(product.format("A[i, k]", "B[k, j]"), signature, check=False)  # a product of float16
    refused("HV1006", lambda: s.tensorize("i", "gemm"))


@pytest.mark.parametrize("m, n, k", [(0, 5, 3), (1, 1, 1), (5, 1, 7), (13, 9, 0), (17, 33, 11)])
def test_dynamic_products_compile(m, n, k):
    s = schedule("for i in T.serial(m):\n    for j in T.serial(n):\n        for k in T.serial(l):\n"
                 "            T.update(C[i, j], A[i, k] * B[k, j], 'add')",
                 "A: T.Tensor((m, l), 'float32'), B: T.Tensor((l, n), 'float32'), C: T.Tensor((m, n), 'float32')",
                 before="m = T.dyn('m')\nn = T.dyn('n')\nl = T.dyn('l')\n", check=False)
    io, ii = s.split("i", 8)
    jo, ji = s.split("j", 8)
    s.reorder(io, jo, ii, ji, "k")
    s.tensorize(ii, "gemm")
    s.bind(io)
    s.bind(jo)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype="float32"), rng.standard_normal((k, n), dtype="float32")
    c = np.ones((m, n), "float32")
    helve.compile(s)(a, b, c)
    np.testing.assert_allclose(c, 1 + a @ b, rtol=1e-4, atol=1e-5)


def test_products_of_index_notation():
    i, j, k = helve.indices("i j k")
    A, B = helve.tensor("A", (21, 10), "float32"), helve.tensor("B", (10, 96), "float32")
    C = helve.tensor("C", (21, 96), "float32")
    C[i, j] = A[i, k] * B[k, j]
    s = helve.Schedule(helve.function(C).nest)
    io, ii = s.split("i", 8)
    s.tensorize(ii, "gemm")
    s.bind(io)
    assert "T.gemm(A[io * 8:io * 8 + T.min(21 - io * 8, 8), :], B, C[io * 8:" in s.script()
    a, b = np.random.rand(21, 10).astype("float32"), np.random.rand(10, 96).astype("float32")
    c = np.empty((21, 96), "float32")
    helve.compile(s)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_what_is_no_product_is_refused():
    def no(body, code, signature=MATRICES):
        s = schedule(body, signature, check=False)
        return refused(code, lambda: s.tensorize("i", "gemm"))

    no(PRODUCT.replace("* B[k, j]", "+ B[k, j]"), "HV1006")
    no(PRODUCT.replace("A[i, k]", "A[i, j]"), "HV1006")
    no(PRODUCT.replace("A[i, k]", "A[i, 0]"), "HV1006")
    no(PRODUCT.replace("A[i, k]", "A[i, 2 * k % 30]"), "HV1006")
    no(PRODUCT.replace('"add"', '"max"'), "HV1008")
    no(PRODUCT.replace("serial(30)", "serial(i + 1)"), "HV1007")  # a triangle is no box
    no(PRODUCT.replace("            T.up", "            if j < i:\n                T.up"), "HV1007")
    no(PRODUCT.replace("B[k, j]", "C[k, j]"), "HV1006", MATRICES.replace("(20, 26)", "(30, 26)"))
    no(PRODUCT.replace("for k in T.serial(30):\n", "for k in T.serial(30):\n            A[i, k] = 0\n"), "HV1006")


def test_copies():
    body = "for i in T.serial(10):\n    for j in T.serial(7):\n        A[i, j] = B[i, j]"
    s = schedule(body)
    s.tensorize("i", "copy")
    assert body_of(s) == "T.copy(B, A)"
    s = schedule(body)
    s.split("i", 4)
    s.tensorize("ii", "copy")
    assert body_of(s) == """\
for io in T.serial(3):
    T.copy(B[io * 4:io * 4 + T.min(10 - io * 4, 4), :], A[io * 4:io * 4 + T.min(10 - io * 4, 4), :])"""
    s = schedule("for i in T.serial(6):\n    for j in T.serial(7):\n        A[i + 2, j] = B[i, 6]", check=False)
    refused("HV1006", lambda: s.tensorize("i", "copy"))  # a broadcast
    s = schedule("for i in T.serial(7):\n    for j in T.serial(7):\n        A[i, j] = B[j, i]", check=False)
    refused("HV1006", lambda: s.tensorize("i", "copy"))  # a transpose
    s = schedule("for i in T.serial(9):\n    A[i + 1, 0] = A[i, 0]", check=False)
    refused("HV1007", lambda: s.tensorize("i", "copy"))  # one element goes through all rows


def test_copies_of_caches():
    s = schedule("for i in T.serial(10):\n    for j in T.serial(7):\n        A[i, j] = B[i, j] * 2")
    s.split("i", 4)
    copy, _ = s.cache_read("ii", "B", "shared")
    s.tensorize(copy, "copy")
    assert "T.copy(B[io * 4:io * 4 + (T.min(io * 4 + 3, 9) - io * 4 + 1), :], B_shared[" in s.script()


def test_copies_convert():
    s = schedule("for i in T.serial(10):\n    S[i] = T.cast(A[i], 'float32')",
                 "A: T.Tensor((10,), 'int32'), S: T.Tensor((10,), 'float32')")
    s.tensorize("i", "copy")
    assert body_of(s) == "T.copy(A, S)"


def test_fills():
    s = schedule("for i in T.serial(2, 9):\n    for j in T.serial(7):\n        A[i, j] = B[0, 0] + 1")
    s.tensorize("i", "fill")
    assert body_of(s) == "T.fill(A[2:9, :], B[0, 0] + 1)"
    s = schedule("for i in T.serial(10):\n    A[i, 0] = A[0, 0] + 1", check=False)
    refused("HV1007", lambda: s.tensorize("i", "fill"))
    s = schedule("for i in T.serial(10):\n    A[i, 0] = i", check=False)
    refused("HV1006", lambda: s.tensorize("i", "fill"))


@pytest.mark.parametrize("operation, op, first", [
    ("reduce_sum", "add", "0.0"), ("reduce_prod", "mul", "1.0"), ("reduce_max", "max", "-T.infinity()"),
    ("reduce_min", "min", "T.infinity()"), ("reduce_absmax", "max", "0.0")])
def test_reductions(operation, op, first):
    value = "T.abs(A[i, k])" if operation == "reduce_absmax" else "A[i, k]"
    update = f"        T.update(S[i], {value}, '{op}')"
    s = schedule(f"for i in T.serial(10):\n    for k in T.serial(7):\n{update}", FLOATS)
    s.tensorize("i", operation)
    assert body_of(s) == f"T.{operation}(A, S, clear=False)"
    exact = operation not in ("reduce_sum", "reduce_prod")
    assert [step.effect for step in s.report()] == ["equal" if exact else "reassociated"]
    s = schedule(f"for i in T.serial(10):\n    S[i] = {first}\n    for k in T.serial(7):\n{update}", FLOATS)
    s.tensorize("i", operation)
    assert body_of(s) == f"T.{operation}(A, S)"


def test_reductions_of_other_dimensions():
    s = schedule("for k in T.serial(10):\n    for i in T.serial(7):\n        T.update(S[i, 0], A[k, i], 'add')",
                 "A: T.Tensor((10, 7), 'int32'), S: T.Tensor((7, 1), 'int32')")
    s.tensorize("k", "reduce_sum")
    assert body_of(s) == "T.reduce_sum(A, S[:, 0], dim=0, clear=False)"
    s = schedule("for k in T.serial(10):\n    for i in T.serial(7):\n        T.update(S[0], A[k, i], 'add')",
                 "A: T.Tensor((10, 7), 'int32'), S: T.Tensor((7,), 'int32')", check=False)
    refused("HV1006", lambda: s.tensorize("k", "reduce_sum"))  # two dimensions at once
    s.tensorize("i", "reduce_sum")
    assert body_of(s) == "for k in T.serial(10):\n    T.reduce_sum(A[k, :], S[0], clear=False)"


def test_what_holds_no_loops_of_elements_is_refused():
    s = schedule("for i in T.serial(10):\n    T.fill(A[i, :], 1)\n", check=False)
    refused("HV1006", lambda: s.tensorize("i", "fill"))
    s = schedule("i = T.alloc_local((1,), 'int32')\ni[0] = 0\nwhile i[0] < 9:\n    i[0] = i[0] + 1", check=False)
    refused("HV1006", lambda: s.tensorize(s.text("while*"), "fill"))
    s = schedule("for i in T.Parallel(10):\n    for j in T.serial(7):\n        A[i, j] = 0", check=False)
    refused("HV1006", lambda: s.tensorize("j", "fill"))  # operations are of a block
    s.tensorize("i", "fill")
    assert body_of(s) == "T.fill(A, 0)"
    refused("HV1005", lambda: schedule(PRODUCT, MATRICES).tensorize("i", "matmul"))


def test_operands_that_may_share_memory_are_refused():
    s = helve.Schedule(helve.parse(
        "@T.prim_func\ndef f(A: T.Tensor((10, 7), 'int32'), B: T.Tensor((10, 7), 'int32')):\n    T.may_alias(A, B)\n"
        "    with T.Kernel(1) as b:\n        for i in T.serial(10):\n            for j in T.serial(7):\n"
        "                A[i, j] = B[i, j]\n"))
    refused("HV1008", lambda: s.tensorize("i", "copy"))


CLEARED = PRODUCT.replace("        for k", "        C[i, j] = 0\n        for k")


def block_of_a_product(s):
    """Tiles of 8 x 16, of which 20 x 26 are no multiple, in registers: (initial values, terms, what copies back)."""
    io, ii = s.split("i", 8)
    jo, ji = s.split("j", 16)
    s.reorder(io, jo, ii, ji)
    _, block = s.split(jo, 1)
    terms = s.loop("k")
    for _ in range(4):
        initial, terms = s.fission(terms)
    s.reorder("k", terms, "ji_1")
    *_, back = s.cache_write(block, "C", "fragment")
    return initial, s.loop("k"), back


def test_tiles_of_the_end_are_tiles_like_others():
    s = schedule(CLEARED, MATRICES)
    initial, terms, back = block_of_a_product(s)
    s.tensorize(initial, "fill", tail="whole")
    for name in "AB":
        s.tensorize(s.cache_read(terms, name, "shared")[0], "copy", tail="whole")
    s.tensorize(terms, "gemm", tail="whole")
    s.tensorize(back, "copy", tail="whole")
    s.unroll("joi")
    assert body_of(s) == """\
for io in T.serial(3):
    for joo in T.serial(2):
        C_fragment = T.alloc_fragment((8, 16), "int32")
        T.fill(C_fragment, 0)
        A_shared = T.alloc_shared((8, 30), "int32")
        T.copy(A[io * 8:io * 8 + 8, :], A_shared)
        B_shared = T.alloc_shared((30, 16), "int32")
        T.copy(B[:, joo * 16:joo * 16 + 16], B_shared)
        T.gemm(A_shared, B_shared, C_fragment)
        T.copy(C_fragment, C[io * 8:io * 8 + 8, joo * 16:joo * 16 + 16])"""
    assert {step.effect for step in s.report()} == {"equal"}
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


def test_a_whole_tile_reads_only_what_was_written():
    s = schedule(CLEARED, MATRICES, check=False)
    initial, terms, _ = block_of_a_product(s)
    copies = [s.cache_read(terms, name, "shared")[0] for name in "AB"]
    error = refused("HV1008", lambda: s.tensorize(terms, "gemm", tail="whole"))
    assert "may hold nothing" in error.message
    for copy in copies:
        s.tensorize(copy, "copy", tail="cut")  # the rows past the end stay unwritten
    refused("HV1008", lambda: s.tensorize(terms, "gemm", tail="whole"))
    s.tensorize(terms, "gemm", tail="cut")
    assert "T.gemm(A_shared[0:T.min(20 - io * 8, 8), :]" in s.script()


def test_what_a_whole_tile_computes_is_read_by_nobody():
    s = schedule(CLEARED, MATRICES, check=False)
    initial, terms, back = block_of_a_product(s)
    s.tensorize(initial, "fill", tail="whole")
    for name in "AB":
        s.tensorize(s.cache_read(terms, name, "shared")[0], "copy", tail="whole")
    s.tensorize(back, "copy", tail="whole")  # of the region that the copy names, elements past the end are read too
    error = refused("HV1007", lambda: s.tensorize(terms, "gemm", tail="whole"))
    assert "reads what" in error.message and "would write, and does not now" in error.message


def test_the_terms_of_a_whole_tile_end_with_the_nest():
    s = schedule(CLEARED, MATRICES)
    initial, terms, _ = block_of_a_product(s)
    ko, ki = s.split("k", 16)
    s.tensorize(initial, "fill", tail="whole")
    for name in "AB":
        s.tensorize(s.cache_read(ki, name, "shared")[0], "copy", tail="whole")
    s.tensorize(ki, "gemm", tail="whole")
    assert "T.gemm(A_shared[:, 0:T.min(30 - ko * 16, 16)], B_shared[0:T.min(30 - ko * 16, 16), " in s.script()


@pytest.mark.parametrize("m, n, k", [(0, 5, 3), (1, 1, 1), (13, 9, 0), (17, 33, 21)])
def test_whole_tiles_of_any_extents(m, n, k):
    s = schedule(CLEARED.replace("20", "m").replace("26", "n").replace("30", "l"),
                 "A: T.Tensor((m, l), 'int32'), B: T.Tensor((l, n), 'int32'), C: T.Tensor((m, n), 'int32')",
                 before="m = T.dyn('m')\nn = T.dyn('n')\nl = T.dyn('l')\n", check=False)
    initial, terms, back = block_of_a_product(s)
    _, *parts = s.split("k", 8, tail="cut")
    s.tensorize(initial, "fill", tail="whole")
    for part in parts:
        for name in "AB":
            s.tensorize(s.cache_read(part, name, "shared")[0], "copy", tail="whole")
        s.tensorize(part, "gemm", tail="whole")
    s.tensorize(back, "copy", tail="whole")
    assert not s.proofs()
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (m, k)).astype("int32"), rng.integers(-9, 9, (k, n)).astype("int32")
    for target in ("llvm", "interp"):
        c = np.ones((m, n), "int32")
        helve.compile(s, target)(a, b, c)
        np.testing.assert_array_equal(c, a @ b)


def test_loops_of_one_iteration_are_copied_too():
    body = "for i in T.serial(10):\n    for j in T.serial(1):\n        A[i, j] = B[i, j]"
    signature = "A: T.Tensor((10, 1), 'int32'), B: T.Tensor((10, 1), 'int32')"
    s = schedule(body, signature)
    s.tensorize("i", "copy")
    assert body_of(s) == "T.copy(B, A)"
    s = schedule(body, signature)
    s.tensorize("j", "copy")
    assert body_of(s) == "for i in T.serial(10):\n    T.copy(B[i, :], A[i, :])"
