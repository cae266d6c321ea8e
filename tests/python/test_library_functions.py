"""Functions below T that are written in the language: numbers, random numbers, greatest elements; and views.

What they cannot be given is in tests/errors/forms.cases.
"""

import ml_dtypes
import numpy as np
import pytest
from agreement import TARGETS, agree

import helve
import helve.testing
from helve import T

N = T.dyn("N")
SPECIAL = np.array([0.0, -0.0, 1e-8, -1e-4, 0.3, -0.4, 0.5, 0.51, -0.51, 1.0, -0.99, 2.5, 40.0,
                    np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_kinds_of_numbers(dtype):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N, 3), "bool"), S: T.Tensor((N,), dtype)):
        with T.Kernel(N) as i:
            B[i, 0] = T.isnan(A[i])
            B[i, 1] = T.isinf(A[i])
            B[i, 2] = T.isfinite(A[i])
            S[i] = T.sign(A[i])

    a = SPECIAL.astype(getattr(ml_dtypes, dtype, dtype))
    wide = a.astype("float64")
    expected = np.stack([np.isnan(wide), np.isinf(wide), np.isfinite(wide)], axis=1)
    for fast in (False, True):
        for target in TARGETS:
            b, s = np.zeros((len(a), 3), "bool"), np.zeros_like(a)
            helve.compile(main, target=target, fast_math=fast)(a, b, s)
            assert (b == expected).all()
            np.testing.assert_array_equal(s.astype("float64"), np.sign(wide))
    helve.testing.check_stages(main, lambda: [a, np.zeros((len(a), 3), "bool"), np.zeros_like(a)])


def test_signs_of_integers():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(N) as i:
            B[i] = T.sign(A[i])

    a = np.int32([-5, 0, 7])
    agree(main, lambda: [a, np.zeros(3, "int32")], np.sign(a))


def test_powers_of_two_of_e8m0():
    @T.prim_func
    def main(A: T.Tensor((256,), "uint8"), B: T.Tensor((256,), "float32")):
        with T.Kernel(8, threads=32) as b:
            for i in T.Parallel(32):
                B[b * 32 + i] = T.e8m0(A[b * 32 + i])

    a = np.arange(256, dtype="uint8")
    agree(main, lambda: [a, np.zeros(256, "float32")], a.view(ml_dtypes.float8_e8m0fnu).astype("float32"))


def test_exponentials_and_logarithms_near_zero():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N, 2), "float32")):
        with T.Kernel(N) as i:
            B[i, 0] = T.expm1(A[i])
            B[i, 1] = T.log1p(A[i])

    rng = np.random.default_rng(0)
    a = np.concatenate([SPECIAL[:13], rng.uniform(-0.99, 3, 500), 10.0 ** rng.uniform(-30, 1, 300)]).astype("float32")
    with np.errstate(all="ignore"):
        expected = np.stack([np.expm1(a.astype("f8")), np.log1p(a.astype("f8"))], axis=1)
    for target in TARGETS:
        b = np.zeros((len(a), 2), "float32")
        helve.compile(main, target=target)(a, b)
        np.testing.assert_allclose(b, expected, rtol=1e-6)


# Counter, key and words of the implementation's own tests (Random123, kat_vectors).
PHILOX = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


def test_philox_is_the_published_one():
    @T.prim_func
    def main(C: T.Tensor((3, 4), "uint32"), K: T.Tensor((3, 2), "uint32"), W: T.Tensor((3, 4), "uint32")):
        with T.Kernel(3) as i:
            a, b, c, d = T.philox(C[i, 0], C[i, 1], C[i, 2], C[i, 3], K[i, 0], K[i, 1])
            W[i, 0] = a
            W[i, 1] = b
            W[i, 2] = c
            W[i, 3] = d

    counters, keys, words = (np.array(each, "uint32") for each in zip(*PHILOX))
    agree(main, lambda: [counters, keys, np.zeros((3, 4), "uint32")], words)


def test_random_numbers_of_a_seed():
    @T.prim_func
    def main(seed: T.int64, B: T.Tensor((N,), "uint32"), F: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 32)) as b:
            for i in T.Parallel(32):
                if b * 32 + i < N:
                    B[b * 32 + i] = T.random_bits(seed, b * 32 + i)
                    F[b * 32 + i] = T.rand(seed, b * 32 + i)

    results = []
    for target in TARGETS:
        for seed in (7, -3):
            bits, floats = np.zeros(4000, "uint32"), np.zeros(4000, "float32")
            helve.compile(main, target=target)(seed, bits, floats)
            assert (floats == (bits >> 8).astype("float64") * 2.0**-24).all()
            assert floats.min() >= 0.0 and floats.max() < 1.0 and abs(floats.mean() - 0.5) < 0.02
            assert len(np.unique(bits)) > 3990
            results.append(bits)
    assert (results[0] == results[2]).all() and (results[1] == results[3]).all() and (results[0] != results[1]).any()


SHAPES = [((5, 7), 1, False, "float32"), ((5, 7), 0, True, "int32"), ((9,), -1, False, "float32"),
          ((2, 4, 3), 1, False, "float16"), ((2, 4, 3), -1, True, "uint8")]


@pytest.mark.parametrize("shape, dim, keep, dtype", SHAPES)
def test_greatest_elements(shape, dim, keep, dtype):
    """Ties go to the first; NaN is what NumPy takes it for."""
    axis = dim % len(shape)
    reduced = shape[:axis] + (1,) * keep + shape[axis + 1 :] or (1,)
    top = (*shape[:axis], 3, *shape[axis + 1 :])

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), X: T.Tensor(reduced, "int32"), Y: T.Tensor(reduced, "int64"),
             V: T.Tensor(top, dtype), I: T.Tensor(top, "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared(shape, dtype)
            x = T.alloc_fragment(reduced, "int32")
            y = T.alloc_fragment(reduced, "int64")
            v = T.alloc_fragment(top, dtype)
            i = T.alloc_fragment(top, "int32")
            T.copy(A, a)
            T.argmax(a, x, dim)
            T.argmin(a, y, dim=dim)
            T.topk(a, v, i, dim)
            T.copy(x, X)
            T.copy(y, Y)
            T.copy(v, V)
            T.copy(i, I)

    a = np.random.default_rng(1).integers(0, 4, shape).astype(dtype)
    if "float" in dtype:
        a.flat[2], a.flat[4], a.flat[6] = np.nan, np.nan, -np.inf

    def make():
        return [a, np.zeros(reduced, "int32"), np.zeros(reduced, "int64"), np.zeros(top, dtype), np.zeros(top, "int32")]

    wide = a.astype("float64")
    order = np.argsort(np.where(np.isnan(wide), -np.inf, -np.where(wide == -np.inf, -1e9, wide)), axis=axis,
                       kind="stable")
    places = np.take(order, range(3), axis=axis)
    agree(main, make, a.argmax(axis).reshape(reduced), 1)
    for target in TARGETS:
        arguments = make()
        helve.compile(main, target=target)(*arguments)
        assert (arguments[2] == a.argmin(axis).reshape(reduced)).all()
        assert (arguments[4] == places).all()
        np.testing.assert_array_equal(arguments[3], np.take_along_axis(a, places, axis))


@pytest.mark.parametrize("shape", [(96,), (2, 48), (8, 12), (4, 2, 12), (1, 24, 4), (3, 1, 32, 1)])
def test_views_of_elements(shape):
    letters = "ijkl"[: len(shape)]
    index, extents = ", ".join(letters), ", ".join(map(str, shape))
    text = f'''
@T.prim_func
def main(A: T.Tensor((4, 24), "int32"), B: T.Tensor(({extents},), "int32")):
    with T.Kernel(1):
        x = T.alloc_shared((4, 24), "int32")
        T.copy(A, x)
        y = T.reshape(x, ({extents},))
        z = T.view(y, (4, 24))
        for {letters and index} in T.Parallel({extents}):
            y[{index}] += 1
            B[{index}] = y[{index}] * 2
        T.copy(z, A)
'''
    function = helve.parse(text)
    a = np.arange(96, dtype="int32").reshape(4, 24)
    agree(function, lambda: [a.copy(), np.zeros(shape, "int32")], (2 * a + 2).reshape(shape))
    agree(function, lambda: [a.copy(), np.zeros(shape, "int32")], a + 1, 0)


def test_views_of_dynamic_extents_and_other_types():
    @T.prim_func
    def main(A: T.Tensor((N, 6), "float32"), B: T.Tensor((N, 2, 3), "int32")):
        rows = T.reshape(A, (N, 2, 3))
        bits = T.view(A, (N, 2, 3), "int32")
        with T.Kernel(N) as n:
            for i, j in T.Parallel(2, 3):
                B[n, i, j] = bits[n, i, j]
                if rows[n, i, j] > 3.0:
                    bits[n, i, j] = 0x3F800000

    a = np.arange(18, dtype="float32").reshape(3, 6)
    make = lambda: [a.copy(), np.zeros((3, 2, 3), "int32")]  # noqa: E731
    agree(main, make, a.view("int32").reshape(3, 2, 3))
    agree(main, make, np.where(a > 3, 1, a), 0)


def test_updates_of_views():
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32")):
        with T.Kernel(4) as b:
            flat = T.reshape(A, (24,))
            T.atomic_add(flat[b * 6 + 5], 100)
            T.update(flat[b * 6], 7, "max")

    a = np.arange(24, dtype="int32").reshape(4, 6)
    expected = a.copy()
    expected[:, 5] += 100
    expected[:, 0] = np.maximum(expected[:, 0], 7)
    agree(main, lambda: [a.copy()], expected)


def test_operations_on_views():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), S: T.Tensor((4, 2), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((4, 64), "float32")
            s = T.alloc_fragment((8,), "float32")
            T.copy(A, T.reshape(x, (4, 64)))
            T.fill(s, 100.0)
            T.reduce_max(T.reshape(x, (4, 2, 32)), T.reshape(s, (4, 2)), dim=2, clear=False)
            T.copy(T.reshape(s, (4, 2)), S)
            flat = T.view(x, (256,))
            T.cumsum(flat, flat)
            T.copy(flat, B)

    a = np.arange(256, dtype="float32").reshape(4, 64) % 150
    make = lambda: [a, np.zeros((4, 2), "float32"), np.zeros(256, "float32")]  # noqa: E731
    agree(main, make, np.cumsum(a.ravel()))
    agree(main, make, np.maximum(a.reshape(4, 2, 32).max(axis=2), 100), 1)


def test_functions_in_index_notation():
    (i,) = helve.indices("i")
    A, B = helve.tensor("A", (16,), "float32"), helve.tensor("B", (16,), "float32")
    B[i] = T.if_then_else(T.isnan(A[i]), 7.0, T.sign(A[i]) + T.log1p(A[i]) - T.expm1(A[i]))
    a = np.concatenate([SPECIAL[:12], [np.nan] * 4]).astype("float32")
    with np.errstate(all="ignore"):
        expected = np.where(np.isnan(a), 7, np.sign(a) + np.log1p(a.astype("f8")) - np.expm1(a.astype("f8")))
    for target in TARGETS:
        b = np.zeros(16, "float32")
        helve.compile(helve.function(B), target=target)(a, b)
        np.testing.assert_allclose(b, expected, rtol=1e-5, atol=1e-7)
