"""Spellings that people bring along, each with the meaning of the program that it stands for.

What they cannot be is in tests/errors/forms.cases.
"""

import warnings

import ml_dtypes
import numpy as np
import pytest
from agreement import TARGETS, agree

import helve
import helve.testing
from helve import T

M, N = T.dynamic("M"), T.symbolic("N", "int32")


def same(one, other):
    """Are two functions printed alike, names aside?"""
    assert one.script().replace(one.name, "main", 1) == other.script().replace(other.name, "main", 1)


def numbers(*shape, dtype="float32"):
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


def test_types_of_parameters_in_brackets():
    @T.prim_func
    def brackets(A: T.Tensor[(M, 4), T.float], B: T.Tensor[[4], "half"], C: T.Tensor[M, N], D: T.Tensor[(M,)]):
        pass

    @T.prim_func
    def calls(A: T.Tensor((M, 4), "float32"), B: T.Tensor((4,), "float16"), C: T.Tensor((M, N)), D: T.Tensor((M,))):
        pass

    same(brackets, calls)


def test_names_of_dtypes():
    assert (T.float, T.double, T.half, T.int, T.long) == ("float32", "float64", "float16", "int32", "int64")
    assert T.float8_e4m3fn == "float8_e4m3"

    @T.prim_func
    def main(A: T.Tensor((4,), T.float8_e4m3fn), B: T.Tensor((4,), "float8_e4m3fn"), C: T.Tensor((4,), "double")):
        with T.Kernel(4) as i:
            B[i] = A[i].astype("float") * T.float(2)
            C[i] = T.Cast("double", A[i]) + T.double(A[i].astype(ml_dtypes.float8_e4m3fn))

    a = numbers(4, dtype=ml_dtypes.float8_e4m3fn)
    for target in TARGETS:
        b, c = np.zeros_like(a), np.zeros(4)
        helve.compile(main, target=target)(a, b, c)
        assert (b.astype("float32") == 2 * a.astype("float32")).all() and (c == 2 * a.astype("float64")).all()


def test_points_open_the_last_dimensions():
    def point(where, size):
        @T.prim_func
        def main(A: T.Tensor((2, 6, 8), "float32"), B: T.Tensor((2, 6, 8), "float32")):
            with T.Kernel(2, 3) as (b, i):
                x = T.alloc_shared(size, "float32")
                if where == "point":
                    T.copy(A[b, i * 2, 4], x)
                    T.copy(x, B[b, i * 2, 4])
                else:
                    T.copy(A[b, i * 2 : i * 2 + 2, 4:8], x)
                    T.copy(x, B[b, i * 2 : i * 2 + 2, 4:8])
        return main

    same(point("point", (2, 4)), point("box", (2, 4)))
    expected = numbers(2, 6, 8)
    expected[:, :, :4] = 0
    agree(point("point", (2, 4)), lambda: [numbers(2, 6, 8), np.zeros((2, 6, 8), "float32")], expected)


def test_points_may_reach_past_the_end_and_open_slices():
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 4)) as b:
            x = T.alloc_shared((2, 4), "float32")
            T.copy(A[b * 4], x[1, :])
            T.copy(x[1, 0:4], B[b * 4])

    for n in (1, 4, 7):
        agree(main, lambda n=n: [numbers(n), np.zeros(n, "float32")], numbers(n))


def test_points_on_both_sides_are_elements():
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M, 2), "float32")):
        with T.Kernel(M) as b:
            T.copy(A[b], B[b, 1])

    expected = np.zeros((3, 2), "float32")
    expected[:, 1] = numbers(3)
    agree(main, lambda: [numbers(3), np.zeros((3, 2), "float32")], expected)


def test_variables():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            n = T.alloc_var("int32", init=0)
            last = T.alloc_var(T.int32)
            last = -1
            for i in T.serial(N):
                if A[i] > 2:
                    n += A[i]
                    last = T.cast(i, "int32")
            B[0] = n
            B[1] = last
            for i in T.Parallel(2):
                own = T.alloc_var("int32", n)
                own = own + 1
                if i == 1:
                    B[2] = own

    agree(main, lambda: [numbers(6, dtype="int32"), np.zeros(3, "int32")], np.int32([18, 5, 19]))


def test_loaded_integers_are_subscripts_bounds_and_extents():
    @T.prim_func
    def implicit(I: T.Tensor((N,), "int64"), A: T.Tensor((M,), "float32"), n: T.int32, B: T.Tensor((M,), "float32")):
        with T.Kernel(n) as b:
            x = T.alloc_shared((4,), "float32")
            k = I[b]
            T.copy(A[k * 2 : k * 2 + 4], x)
            for i in T.serial(I[b] % 5):
                B[I[b] + i] = x[i] + A[k + 1 - 1]

    @T.prim_func
    def explicit(I: T.Tensor((N,), "int64"), A: T.Tensor((M,), "float32"), n: T.int32, B: T.Tensor((M,), "float32")):
        with T.Kernel(T.index(n)) as b:
            x = T.alloc_shared((4,), "float32")
            k = I[b]
            T.copy(A[T.index(k) * 2 : T.index(k) * 2 + 4], x)
            for i in T.serial(T.index(I[b]) % 5):
                B[T.index(I[b]) + i] = x[i] + A[T.index(k) + 1 - 1]

    same(implicit, explicit)
    places = np.int64([0, 2, 4])
    expected = np.zeros(12, "float32")
    for k in places:
        for i in range(k % 5):
            expected[k + i] = numbers(12)[k * 2 + i] + numbers(12)[k]
    agree(implicit, lambda: [places, numbers(12), 3, np.zeros(12, "float32")], expected)


def test_a_slice_between_loaded_bounds_has_a_constant_extent():
    """The arithmetic is that of indices: an int8 that would wrap does not."""
    @T.prim_func
    def main(I: T.Tensor((1,), "int8"), A: T.Tensor((300,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            k = I[0]
            T.copy(A[k + 120 : k + 120 + 32], B)

    agree(main, lambda: [np.int8([100]), numbers(300), np.zeros(32, "float32")], numbers(300)[220:252])


def test_ands_and_ors_of_truths():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), Q: T.Tensor((N,), "bool"), B: T.Tensor((4, N), "int32")):
        with T.Kernel(N) as i:
            B[0, i] = 1 if (A[i] > 2) & (i < 5) else 0
            B[1, i] = 1 if (A[i] > 5) | Q[i] else 0
            B[2, i] = 1 if Q[i] ^ (A[i] > 3) else 0
            B[3, i] = 1 if ~Q[i] & (A[i] > 1) & True else 0

    q = np.array([True, False, True, False, False, True, True])
    a = numbers(7, dtype="int32")
    expected = np.stack([(a > 2) & (np.arange(7) < 5), (a > 5) | q, q ^ (a > 3), ~q & (a > 1)]).astype("int32")
    agree(main, lambda: [a, q, np.zeros((4, 7), "int32")], expected)


def test_both_sides_are_evaluated():
    """What `and` would have guarded is an access past the end: calls are refused, and the definition warns."""
    def guarded(eager):
        @T.prim_func
        def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
            with T.Kernel(T.ceildiv(N, 4)) as b:
                for i in T.serial(4):
                    j = b * 4 + i
                    if ((j < N) & (A[j] > 0)) if eager else (j < N and A[j] > 0):
                        B[j] = A[j]
        return main

    with pytest.warns(helve.Warning, match="HV0121") as caught:
        eager = guarded(True)
    assert len(caught) == 1
    arguments = numbers(5, dtype="int32"), np.zeros(5, "int32")
    with pytest.raises(helve.Error) as error:
        helve.compile(eager, target="interp")(*arguments)
    assert error.value.code == "HV0616"
    helve.compile(guarded(False), target="interp")(*arguments)
    assert (arguments[0] == arguments[1]).all()


def test_a_loop_of_no_stages_is_serial():
    def loop(stages):
        @T.prim_func
        def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((8, 32), "float32")):
            with T.Kernel(1):
                x = T.alloc_shared((32,), "float32")
                for k in T.Pipelined(8, num_stages=stages):
                    T.copy(A[k, :], x)
                    T.copy(x, B[k, :])
        return main

    same(loop(0), loop(1))


def test_hints_are_accepted_with_a_warning_each():
    def product(hints):
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, threads=64):
                a = T.alloc_shared((32, 32), "float32")
                b = T.alloc_shared((32, 32), "float32")
                c = T.alloc_fragment((32, 32), "float32")
                if hints:
                    T.annotate_layout({a: T.make_swizzled_layout(a)})
                    T.use_swizzle(panel_size=10)
                    T.copy(A, a, coalesced_width=4)
                    T.copy(B, b)
                    T.gemm(a, b, c, policy="FullRow", clear_accum=True)
                else:
                    T.copy(A, a)
                    T.copy(B, b)
                    T.gemm(a, b, c, clear=True)
                T.copy(c, C)
        return main

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hinted = product(True)
        plain = product(False)
    assert [each.message.code for each in caught] == ["HV0120"] * 4
    assert [each.message.message.split(" is a hint")[0] for each in caught] == [
        "T.make_swizzled_layout", "T.use_swizzle", "coalesced_width=", "policy="]
    same(hinted, plain)


BITS = [("float32", "uint32"), ("float32", "int32"), ("float64", "int64"), ("float64", "uint64"), ("float16", "uint16"),
        ("float16", "int16"), ("bfloat16", "uint16"), ("bfloat16", "int16"), ("float8_e4m3", "uint8"),
        ("float8_e4m3", "int8"), ("float8_e5m2", "uint8"), ("uint32", "int32"), ("float16", "bfloat16")]


def numpy_dtype(name):
    return np.dtype(ml_dtypes.float8_e4m3fn if name == "float8_e4m3" else getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("floats, whole", BITS)
def test_bits_of_values_as_another_type(floats, whole):
    n = 256

    @T.prim_func
    def main(A: T.Tensor((n,), floats), B: T.Tensor((n,), whole), W: T.Tensor((n,), whole), F: T.Tensor((n,), floats)):
        with T.Kernel(1):
            for i in T.Parallel(n):
                W[i] = T.reinterpret(A[i], whole)
                F[i] = T.reinterpret(floats, B[i])

    size = numpy_dtype(floats).itemsize
    random = np.random.default_rng(0).integers(0, 256, n * size, dtype="uint8")
    with np.errstate(all="ignore"):
        a = random.view(numpy_dtype(floats))
        # Which bits a NaN has is unspecified.
        a = np.where(np.isnan(a.astype("float64")), np.ones((), a.dtype), a).astype(a.dtype)
    b = a.view(numpy_dtype(whole))
    for target in TARGETS:
        w, f = np.zeros_like(b), np.zeros_like(a)
        helve.compile(main, target=target)(a, b, w, f)
        assert np.array_equal(w.view("uint8"), b.view("uint8")) and np.array_equal(f.view("uint8"), a.view("uint8"))
    helve.testing.check_stages(main, lambda: [a, b, np.zeros_like(b), np.zeros_like(a)])


def test_bits_of_computed_values_and_constants():
    @T.prim_func
    def main(A: T.Tensor((N,), "float16"), B: T.Tensor((N,), "uint16"), C: T.Tensor((2,), "uint32")):
        with T.Kernel(N) as i:
            B[i] = T.bitcast(A[i] / 3.0, "uint16")  # of the quotient as a float16
            if i == 0:
                C[0] = T.reinterpret(1.0, "uint32")
                C[1] = T.reinterpret(T.reinterpret(0x40000000, "float32") + 0.0, "uint32")

    a = numbers(5, dtype="float16")
    expected = (a.astype("float32") / 3).astype("float16").view("uint16")
    agree(main, lambda: [a, np.zeros(5, "uint16"), np.zeros(2, "uint32")], expected, 1)
    agree(main, lambda: [a, np.zeros(5, "uint16"), np.zeros(2, "uint32")], np.uint32([0x3F800000, 0x40000000]))


def test_a_parameter_of_none_is_left_out():
    """Its name is a constant, of which conditions and operands that are not evaluated may speak."""

    def make(kind):
        @T.prim_func
        def optional(A: T.Tensor((4,), "float32"), B: kind, n: None, C: "T.Tensor((4,), 'float32')"):  # noqa: F821
            with T.Kernel(1):
                for i in T.Parallel(4):
                    x = A[i] if n is None else A[i] + n
                    C[i] = x if B is None else x * B[i]

        return optional

    @T.prim_func
    def without(A: T.Tensor((4,), "float32"), C: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                x = A[i]
                C[i] = x

    same(make(None), without)
    given = numbers(4), numbers(4), np.zeros(4, "float32")
    agree(make(T.Tensor((4,), "float32")), lambda: [each.copy() for each in given], numbers(4) ** 2)
    assert list(make(None).__signature__.parameters) == ["A", "C"]
