"""Matrix products against NumPy.

T.gemm cuts its operands into register blocks, panels and blocks of the depth; every extent here leaves another part
over, and operands lie in every kind of memory that a region can.
"""

import itertools
import random

import numpy as np
import pytest

import helve
import helve.testing
from helve import T

EXTENTS = [0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 47, 64, 100]
# Each extent stands in each place; the combinations are drawn once and for all.
SHAPES = sorted(
    {(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (1, 64, 300), (64, 1, 300), (64, 64, 1), (97, 131, 300), (12, 32, 256),
     (13, 33, 257)}
    | set(random.Random(5).sample(list(itertools.product(EXTENTS, repeat=3)), 40))
)
FLAGS = list(itertools.product((False, True), repeat=3))  # transpose_A, transpose_B, clear


def operands(m, n, k, transpose_a, transpose_b, dtype="float32", out=None, seed=0):
    """A, B, C of shapes (M, K) or (K, M), (K, N) or (N, K), (M, N), and the float64 product with C as it is."""
    rng = np.random.default_rng(seed)

    def draw(shape, kind):
        if np.dtype(kind).kind == "f":
            return rng.standard_normal(shape).astype(kind)
        return rng.integers(-9 if np.dtype(kind).kind == "i" else 0, 9, shape).astype(kind)

    a = draw((k, m) if transpose_a else (m, k), dtype)
    b = draw((n, k) if transpose_b else (k, n), dtype)
    c = draw((m, n), out or dtype)
    wide = np.float64 if np.dtype(out or dtype).kind == "f" else np.int64
    product = (a.T if transpose_a else a).astype(wide) @ (b.T if transpose_b else b).astype(wide)
    return a, b, c, product


def expect(got, c, product, clear, k):
    wanted = product + (0 if clear else c.astype(product.dtype))
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))
        return
    unit = {2: 1e-3, 4: 2e-7, 8: 1e-15}[got.dtype.itemsize]
    np.testing.assert_allclose(got, wanted, rtol=2 * unit, atol=4 * unit * (k + 2))


def in_place(m, n, k, transpose_a, transpose_b, clear, dtype="float32", out=None):
    """The product of whole parameters, read and written where they lie."""
    a_shape = (k, m) if transpose_a else (m, k)
    b_shape = (n, k) if transpose_b else (k, n)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), out or dtype)):
        with T.Kernel(1) as g:
            T.gemm(A, B, C, transpose_A=transpose_a, transpose_B=transpose_b, clear=clear)

    return main


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_every_extent_leaves_its_rest_right(shape):
    m, n, k = shape
    transpose_a, transpose_b, clear = FLAGS[(m * 7 + n * 3 + k) % len(FLAGS)]
    a, b, c, product = operands(m, n, k, transpose_a, transpose_b)
    function = in_place(m, n, k, transpose_a, transpose_b, clear)
    for target in ("llvm", "interp") if m * n * k <= 20000 else ("llvm",):
        got = c.copy()
        helve.compile(function, target=target, verify=True)(a, b, got)
        expect(got, c, product, clear, k)


@pytest.mark.parametrize("flags", FLAGS, ids=lambda f: "".join("ft"[x] for x in f))
@pytest.mark.parametrize(
    ("dtype", "out"),
    [("float32", None), ("float64", None), ("float16", "float32"), ("float16", None), ("float32", "float64"),
     ("int8", "int32"),
     ("int32", None), ("uint8", "int32"), ("int64", None)],
)  # fmt: skip
def test_dtypes(dtype, out, flags):
    m, n, k = 29, 45, 301
    a, b, c, product = operands(m, n, k, *flags[:2], dtype, out)
    if (out or dtype) == "float16":
        a, b = a / np.float16(8), b / np.float16(8)
        product = product / 64 if not flags[0] and not flags[1] else None
    if product is None:
        left, right = (a.T if flags[0] else a), (b.T if flags[1] else b)
        product = left.astype(np.float64) @ right.astype(np.float64)
    got = c.copy()
    helve.compile(in_place(m, n, k, *flags, dtype, out))(a, b, got)
    if (out or dtype) == "float16":
        # Sums are kept in float32 and rounded once: the result is a neighbour of the exact one.
        wanted = product + (0 if flags[2] else c.astype(np.float64))
        np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2**-11 * 1.01, atol=1e-4)
    else:
        expect(got, c, product, flags[2], k)


def test_sums_of_a_narrow_result_are_rounded_once():
    k = 2048
    a = np.full((4, k), 1.0, np.float16)
    b = np.full((k, 16), 1.0, np.float16)
    b[1024:] = 2**-11
    c = np.zeros((4, 16), np.float16)
    helve.compile(in_place(4, 16, k, False, False, True, "float16"))(a, b, c)
    assert (c == np.float16(1024.5)).all()


def tiled(m, n, k, transpose_a, transpose_b, clear, tile=(32, 32)):
    a_shape = (k, m) if transpose_a else (m, k)
    b_shape = (n, k) if transpose_b else (k, n)

    @T.prim_func
    def main(A: T.Tensor(a_shape, "float32"), B: T.Tensor(b_shape, "float32"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1) as g:
            a = T.alloc_shared_tiles(a_shape, "float32", tile_size=tile)
            b = T.alloc_shared_tiles(b_shape, "float32", tile_size=tile)
            c = T.alloc_shared_tiles((m, n), "float32", tile_size=tile)
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, clear=clear)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("tile", [(32, 32), (16, 16), (8, 48), (7, 5), (1, 32)], ids=lambda t: "x".join(map(str, t)))
@pytest.mark.parametrize("shape", [(64, 96, 64), (33, 50, 65), (5, 3, 2), (100, 64, 300)],
                         ids=lambda s: "x".join(map(str, s)))
def test_tiled_operands(shape, tile):
    m, n, k = shape
    for transpose_a, transpose_b, clear in FLAGS[(m + tile[0]) % 2 :: 2]:
        a, b, c, product = operands(m, n, k, transpose_a, transpose_b)
        got = c.copy()
        helve.compile(tiled(m, n, k, transpose_a, transpose_b, clear, tile), verify=True)(a, b, got)
        expect(got, c, product, clear, k)


def regions(clear):
    """A product of boxes that begin anywhere, in tensors of three dimensions, one with declared strides."""

    @T.prim_func
    def main(
        A: T.Tensor((3, 40, 70), "float32"), B: T.Tensor((90, 2, 60), "float32"),
        C: T.Tensor((50, 60), "float32", strides=(64, 1)),
        at: T.index,
    ):  # fmt: skip
        with T.Kernel(2) as g:
            T.gemm(A[at, 3:36, 5:68], B[7:70, g, 1:28], C[9:42, g * 30 + 1 : g * 30 + 28], clear=clear)

    return main


@pytest.mark.parametrize("target", ["llvm", "interp"])
@pytest.mark.parametrize("clear", [False, True])
def test_regions(clear, target):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((3, 40, 70), dtype=np.float32), rng.standard_normal((90, 2, 60), dtype=np.float32)
    memory = rng.standard_normal((50, 64), dtype=np.float32)
    before = memory.copy()
    helve.compile(regions(clear), target=target)(a, b, memory[:, :60], 2)
    wanted = before.astype(np.float64)
    for g in range(2):
        place = np.s_[9:42, g * 30 + 1 : g * 30 + 28]
        product = a[2, 3:36, 5:68].astype(np.float64) @ b[7:70, g, 1:28].astype(np.float64)
        wanted[place] = product + (0 if clear else before[place])
    np.testing.assert_allclose(memory, wanted, rtol=1e-6, atol=2e-5)
    untouched = np.ones((50, 64), bool)
    untouched[9:42, 1:28] = untouched[9:42, 31:58] = False
    assert np.array_equal(memory[untouched], before[untouched])


@T.prim_func
def columns_of_a_box(A: T.Tensor((20, 30), "float32"), B: T.Tensor((30, 40), "float32"),
                     C: T.Tensor((20, 40, 2), "float32")):
    """C's columns stand two elements apart: no vector of them lies side by side."""
    with T.Kernel(1) as g:
        T.gemm(A, B, C[:, :, 1])


def test_columns_that_are_not_side_by_side():
    a, b, _, product = operands(20, 40, 30, False, False)
    c = np.ones((20, 40, 2), np.float32)
    helve.compile(columns_of_a_box)(a, b, c)
    np.testing.assert_allclose(c[:, :, 1], product + 1, rtol=1e-6, atol=1e-5)
    assert (c[:, :, 0] == 1).all()


M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")


@T.prim_func
def any_extents(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
    with T.Kernel(1) as g:
        T.gemm(A, B, C, clear=True)


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (3, 3, 0), (1, 1, 1), (12, 32, 256), (37, 129, 515),
                                   (300, 1100, 70)], ids=str)
def test_extents_of_the_call(shape):
    m, n, k = shape
    a, b, c, product = operands(m, n, k, False, False)
    helve.compile(any_extents)(a, b, c)
    expect(c, c, product, True, k)


def blocked(m, n, k, bm, bn, bk, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, bm), T.ceildiv(n, bn)) as (bx, by):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bk, bn), dtype)
            c = T.alloc_shared((bm, bn), "float32")
            T.clear(c)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[bx * bm : (bx + 1) * bm, t * bk : (t + 1) * bk], a)
                T.copy(B[t * bk : (t + 1) * bk, by * bn : (by + 1) * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * bm : (bx + 1) * bm, by * bn : (by + 1) * bn])

    return main


@pytest.mark.parametrize(
    ("shape", "block"), [((64, 64, 64), (32, 32, 32)), ((77, 103, 51), (32, 48, 16)), ((130, 70, 300), (100, 64, 128))],
    ids=str
)
def test_blocked_products(shape, block):
    a, b, _, product = operands(*shape, False, False)
    c = np.full(shape[:2], np.nan, np.float32)
    kernel = helve.compile(blocked(*shape, *block))
    kernel(a, b, c)
    expect(c, c, product, True, shape[2])
    again = np.empty_like(c)
    kernel(a, b, again)
    assert np.array_equal(c, again)


@pytest.mark.parametrize(
    "function",
    [
        lambda: in_place(13, 19, 37, True, False, False),
        lambda: in_place(5, 33, 0, False, True, True),
        lambda: tiled(14, 34, 40, False, False, True),
        lambda: tiled(14, 34, 40, True, True, False, (8, 8)),
        lambda: in_place(17, 18, 9, False, True, False, "int8", "int32"),
    ],
    ids=["transposed", "no depth", "tiled", "tiled transposed", "int8"],
)
def test_every_stage_means_the_same(function):
    built = function()
    helve.testing.check_stages(built, lambda: arguments_of(built), rtol=1e-5, atol=1e-5)


def arguments_of(function):
    rng = np.random.default_rng(4)
    out = []
    for parameter in function.function.params:
        shape, dtype = [int(str(e)) for e in parameter.shape], str(parameter.dtype)
        out.append(rng.integers(-4, 4, shape).astype(dtype))
    return out


def test_special_values_stay_in_their_row_and_column():
    a, b, c, _ = operands(29, 45, 37, False, False)
    a[28, 3] = np.inf
    b[36, 44] = np.nan
    helve.compile(in_place(29, 45, 37, False, False, True))(a, b, c)
    assert np.isfinite(c[:28, :44]).all()
    assert not np.isfinite(c[28]).any() and np.isnan(c[:, 44]).all()


def test_blocks_of_registers_serve_and_say_why_not():
    wide = helve.compile(in_place(64, 64, 64, False, False, True)).source("lowered")
    assert "T.vectorized" in wide and "B_panels" in wide
    narrow = helve.compile(in_place(64, 1, 64, False, False, True)).source("lowered")
    assert "B_panels" not in narrow
