"""Python functions that kernels call with their values: the body takes the place of the call.

What such a call cannot be is in tests/errors/inlined.cases.
"""

import functools
import math

import numpy as np
import pytest
from agreement import agree

import helve
import helve.testing
from helve import T, _core
from script_texts import registered

N = T.dyn("N")
SLOPE = 0.25


def leaky(x, slope=SLOPE):
    if x > 0.0:
        return x
    return slope * x


def square(x):
    return x * x


def both(x, y):
    total = x + y
    return total, x - y


def log_plus(x):
    return math.log(x) + 1.0


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def of(self, x):
        return x * self.factor


@T.macro
def fill_from(dst, src, start):
    for i in T.Parallel(dst.shape[0]):
        dst[i] = src[start + i]


def largest(x: T.float32, n):
    best = T.alloc_var("float32", x)
    for i in T.serial(n):
        best = T.max(best, x * T.float32(i))
    return best


def numbers(n=8):
    return np.arange(n, dtype="float32") - 3


def out(n=8):
    return np.zeros(n, "float32")


def test_functions_methods_partials_and_lambdas():
    half, times = functools.partial(leaky, slope=0.5), Scale(3.0)
    shift = lambda x, by=1.0: x + by  # noqa: E731 - the subject

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N) as i:
            total, rest = both(A[i], 2.0)
            B[i] = leaky(A[i]) + half(A[i]) + times.of(square(rest)) + shift(total) + shift(A[i], by=2.0)

    a = numbers()
    expected = np.where(a > 0, a, 0.25 * a) + np.where(a > 0, a, 0.5 * a) + 3 * (a - 2) ** 2 + (a + 3) + (a + 2)
    agree(main, lambda: [numbers(), out()], expected)


def test_functions_of_the_kernel_see_its_names():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N) as i:
            def near(step, scale=2.0):
                at = i + step
                return A[at] * scale if at < N else 0.0

            pick = lambda k: near(k) + near(k, scale=1.0)  # noqa: E731 - the subject
            x = pick(1)
            B[i] = x + near(0)

    a = numbers()
    expected = 3 * np.append(a[1:], 0) + 2 * a
    agree(main, lambda: [numbers(), out()], expected.astype("float32"))


def test_macros_store_and_return():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(2) as b:
            x = T.alloc_shared((8,), "float32")
            fill_from(x, A, b * 8)
            for i in T.Parallel(8):
                y = largest(x[i], 4)
                B[b * 8 + i] = y

    agree(main, lambda: [numbers(16), out(16)], np.where(numbers(16) > 0, 3 * numbers(16), 0 * numbers(16)) + 0.0)


def test_an_argument_is_computed_once_before_the_body():
    def swap(A, x, i):
        A[i] = A[i] + 1.0
        A[i + 1] = x

    @T.prim_func
    def main(A: T.Tensor((2,), "float32")):
        with T.Kernel(1):
            swap(A, A[0] * 2.0, 0)

    agree(main, lambda: [np.float32([3, 5])], np.float32([4, 6]))


def test_what_is_not_needed_is_not_evaluated():
    """An operand of `and`, a branch and the condition of a loop: nothing of the call stands before them."""
    def at(A, i):
        place = i * 2
        return A[place] + A[place]

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1):
            for i in T.serial(N):
                B[i] = at(A, i) if i * 2 < N and at(A, i) < 100.0 else -1.0
            n = T.alloc_var("int32", 0)
            while n * 2 < N and at(A, T.index(n)) < 3.0:
                n += 1
            B[N - 1] = T.cast(n, "float32")

    def expected(a):
        b = np.array([2 * a[2 * i] if 2 * i < len(a) else -1 for i in range(len(a))], "float32")
        b[-1] = next(n for n in range(len(a) + 1) if 2 * n >= len(a) or 2 * a[2 * n] >= 3)
        return b

    for size in (1, 5, 9):
        agree(main, lambda size=size: [numbers(size), out(size)], expected(numbers(size)))


def test_constants_are_computed_by_python():
    calls = []

    def host(n):
        calls.append(n)
        return n * 2

    @T.prim_func
    def main(B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            B[0] = host(3)
            B[1] = log_plus(math.e)
            B[2] = square(T.exp(0.0) if False else 3.0)
            B[3] = leaky(-4)

    agree(main, lambda: [out(4)], np.float32([6, 2, 9, -1]))
    assert calls == [3]


def test_a_function_with_operations_of_the_language_takes_constants_too():
    def e_to(x):
        return T.exp(x)

    @T.prim_func
    def main(B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            B[0] = e_to(0.0)

    agree(main, lambda: [out(1)], np.float32([1]))


def test_tiles_are_values_of_functions():
    @T.prim_func
    def main(A: T.Tensor((5, 7), "float32"), B: T.Tensor((5, 7), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared_tiles((5, 7), "float32", tile_size=(2, 4))
            T.copy(A, x)
            for i, j in T.foreach_tiles(x, parallel=True):
                x[i, j] = square(x[i, j]) + leaky(x[i, j])
            T.copy(x, B)

    a = numbers(35).reshape(5, 7)
    agree(main, lambda: [a.copy(), np.zeros_like(a)], a * a + np.where(a > 0, a, SLOPE * a))


def scale_part(x, factor):
    for i, j in T.Parallel(x.shape[0], x.shape[1]):
        x[i, j] = x[i, j] * factor
        x[i, j] += 1.0


@T.macro
def move(src, dst):
    T.copy(src, dst)
    T.copy(dst[0:1, :], dst[1:2, :])


def sum_of(row, n):
    total = T.alloc_var("float32", 0.0)
    for i in T.serial(n):
        total += row[i]
    return total


def test_parts_of_buffers_are_arguments():
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), B: T.Tensor((8, 16), "float32"), S: T.Tensor((8,), "float32")):
        with T.Kernel(2) as b:
            x = T.alloc_shared((4, 16), "float32")
            move(A[b * 4 : b * 4 + 4, :], x)
            scale_part(x[2:4, 0:8], 3.0)
            T.copy(x, B[b * 4, 0])
            for r in T.serial(4):
                S[b * 4 + r] = sum_of(x[r, :], 16)

    a = numbers(128).reshape(8, 16)
    expected = a.reshape(2, 4, 16).copy()
    expected[:, 1] = expected[:, 0]
    expected[:, 2:, :8] = expected[:, 2:, :8] * 3 + 1
    make = lambda: [a, np.zeros((8, 16), "float32"), np.zeros(8, "float32")]  # noqa: E731
    agree(main, make, expected.reshape(8, 16), 1)
    agree(main, make, expected.sum(axis=2).ravel())


def test_types_of_parameters_convert():
    def twice(x: T.float32):
        return x + x

    @T.prim_func
    def main(A: T.Tensor((N,), "float16"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N) as i:
            B[i] = twice(A[i]) + twice(1)

    agree(main, lambda: [numbers().astype("float16"), out()], 2 * numbers() + 2)


def test_functions_may_have_names_of_the_kernel_and_of_each_other():
    x = 100.0

    def inner(i):
        y = i + 1.0
        return y

    def outer(x):
        y = inner(x) * 2.0
        return y + inner(y)

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N) as i:
            y = A[i]
            B[i] = outer(y) + x

    agree(main, lambda: [numbers(), out()], 4 * numbers() + 4 + 101)


def test_host_bodies_call_functions():
    def half(n):
        return (n + 1) // 2

    def launch(A, B, n):
        with T.Kernel(n) as i:
            B[i] = A[i] * 2.0

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        launch(A, B, half(N))

    expected = 2 * numbers(7)
    expected[4:] = 0
    agree(main, lambda: [numbers(7), out(7)], expected)


def test_a_fault_is_shown_in_the_function_and_where_it_is_called():
    names = registered('''
        def bad(A, i):
            return A[i] + missing

        @T.macro
        def worse(A):
            for i in T.serial(2):
                A[i] = bad(A, i)
        ''', "helpers.py")
    text = '''
        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            with T.Kernel(1):
                worse(A)
        '''
    with pytest.raises(helve.Error) as caught:
        registered(text, "kernel.py", names)
    assert str(caught.value) == """\
error[HV0101]: name 'missing' is not defined
 --> helpers.py:3:19
  |
3 |     return A[i] + missing
  |                   ^^^^^^^
note: the function is called here
 --> helpers.py:8:16
  |
8 |         A[i] = bad(A, i)
  |                ^^^^^^^^^
note: the function is called here
 --> kernel.py:5:9
  |
5 |         worse(A)
  |         ^^^^^^^^
help: define 'missing' before the kernel, or correct the spelling"""


def test_a_fault_that_the_core_finds_has_both_places():
    names = registered('''
        def tile(A, x, at):
            T.copy(A[at : at + 4], x, dispatch="tma")
            T.copy(A[at, 0], x)
        ''', "helpers.py")
    text = '''
        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            with T.Kernel(1):
                x = T.alloc_shared((4,), "float32")
                tile(A, x, 0)
        '''
    with pytest.raises(helve.Error) as caught:
        registered(text, "kernel.py", names)
    assert (caught.value.code, caught.value.filename, caught.value.lineno) == ("HV0201", "helpers.py", 4)
    assert caught.value.notes == ["the function is called here"]


def test_spans_of_statements_tell_of_the_call():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N) as i:
            B[i] = square(A[i] + 1.0)

    store = main.function.body.body
    while not isinstance(store, _core.Store):
        store = store.stmts[-1] if isinstance(store, _core.Seq) else store.body
    span = store.value.span
    assert (span.line, span.caller.line) == (square.__code__.co_firstlineno + 1, store.span.line)
    assert span.caller.caller is None


def test_a_run_reports_a_fault_in_the_function():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(N) as i:
            B[i] = square(A[i] // A[i])

    with pytest.raises(helve.Error, match="division by zero"):
        helve.compile(main, target="interp")(np.zeros(2, "int32"), np.zeros(2, "int32"))


def test_a_branch_computes_only_where_it_is_chosen():
    """What the function reads is inside of the tensor only there."""

    def halved(A, i):
        x = A[i] * 0.5
        return x + x

    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = T.if_then_else(i < 4, halved(A, i), 0.0)
                C[i] = halved(A, i) if i < 4 else 0.0

    wanted = np.float32([0, 1, 2, 3, 0, 0, 0, 0])
    for target in ("interp", "llvm"):
        b, c = np.zeros(8, "float32"), np.zeros(8, "float32")
        helve.compile(main, target=target)(np.arange(4, dtype="float32"), b, c)
        np.testing.assert_array_equal(b, wanted)
        np.testing.assert_array_equal(c, wanted)
