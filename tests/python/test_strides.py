"""Declared strides: what a kernel writes has an address of its own for each element, or kernel or call is refused.

What is right is said by counting addresses.
"""

import itertools
import re

import helve
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided


def addresses(shape, strides):
    return [sum(i * s for i, s in zip(at, strides)) for at in itertools.product(*map(range, shape))]


def overlaps(shape, strides):
    """Do two elements lie at one address?"""
    places = addresses(shape, strides)
    return len(set(places)) < len(places)


def view(shape, strides, dtype="float32"):
    """An array of these strides, in memory of its own."""
    places = addresses(shape, strides) or [0]
    memory = np.zeros(max(places) - min(places) + 1, dtype)
    return as_strided(memory[-min(places):], shape, [s * memory.itemsize for s in strides])


def assert_elements_meet(message, shape, strides):
    """The elements that the message names are two, exist, and lie at one address."""
    one, two = (tuple(int(n) for n in re.findall(r"\d+", text))
                for text in re.search(r"elements (\(.*?\)) and (\(.*?\)) have one address$", message).groups())
    assert one != two
    assert all(0 <= i < extent for at in (one, two) for i, extent in zip(at, shape, strict=True))
    assert sum(i * s for i, s in zip(one, strides)) == sum(i * s for i, s in zip(two, strides))


WRITE_PLANES = """
M = T.dyn("M")
N = T.dyn("N")
K = T.dyn("K")

@T.prim_func
def main(p: T.index, q: T.index, r: T.index, A: T.Tensor((M, N, K), "float32", strides=(p, q, r))):
    with T.Kernel(1):
        for i, j, k in T.Parallel(M, N, K):
            A[i, j, k] = T.cast((i * N + j) * K + k + 1, "float32")
"""


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_call_is_refused_where_two_elements_meet(target):
    kernel = helve.compile(helve.parse(WRITE_PLANES), target)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1500):
        shape = tuple(int(n) for n in rng.integers(0, 6, 3))
        strides = tuple(int(s) for s in rng.integers(-12, 13, 3))
        a = view(shape, strides)
        if overlaps(shape, strides):
            refused += 1
            with pytest.raises(helve.Error) as error:
                kernel(*strides, a)
            assert error.value.code == "HV0641", error.value
            assert_elements_meet(error.value.message, shape, strides)
        else:
            kernel(*strides, a)
            np.testing.assert_array_equal(a, np.arange(1, 1 + a.size).reshape(shape))
    assert 300 < refused < 1200


def of_strides(shape, strides, body):
    return helve.parse(f"""
M = T.dyn("M")

@T.prim_func
def main(A: T.Tensor({shape}, "float32", strides={strides}), B: T.Tensor({shape}, "float32")):
    with T.Kernel(1):
        {body}
""")


@pytest.mark.parametrize("shape, strides", [
    ((4, 3), (2, 1)), ((4, 3), (3, 1)), ((4, 3), (1, 4)), ((4, 3), (1, 3)), ((4, 3), (0, 1)), ((1, 3), (0, 1)),
    ((3, 3), (2, 3)), ((2, 2), (5, 5)), ((2, 3), (3, 2)),
    ((4, 1), (1, 7)), ((3, 2), (4, 6)), ((3, 4), (4, 3)), ((4, 4), (4, 3)), ((0, 5), (0, 0)), ((3, 5), (5, 3)),
    ((2, 3, 4), (12, 4, 1)), ((2, 3, 4), (1, 2, 6)), ((2, 3, 4), (7, 2, 3)), ((3, 3, 3), (1, 5, 2)),
])
def test_constant_strides_are_refused_where_the_kernel_is_compiled(shape, strides):
    written = of_strides(shape, strides, "T.copy(B, A)")
    for target in ("interp", "llvm"):
        if overlaps(shape, strides):
            with pytest.raises(helve.Error) as error:
                helve.compile(written, target)
            assert error.value.code == "HV0211"
            assert_elements_meet(error.value.message, shape, strides)
        else:
            a, b = view(shape, strides), np.arange(np.prod(shape), dtype="float32").reshape(shape)
            helve.compile(written, target)(a, b)
            np.testing.assert_array_equal(a, b)
        # Who only reads may find an element in two places.
        a, b = view(shape, strides), np.zeros(shape, "float32")
        a[...] = 3.0
        helve.compile(of_strides(shape, strides, "T.copy(A, B)"), target)(a, b)
        np.testing.assert_array_equal(a, b)


def test_cuda_refuses_constant_strides_too():
    with pytest.raises(helve.Error) as error:
        helve.compile(of_strides((4, 3), (2, 1), "T.copy(B, A)"), "cuda")
    assert error.value.code == "HV0211"


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_an_extent_that_a_call_decides(target):
    """What the constants leave open is asked of each call; what they decide is not."""
    kernel = helve.compile(of_strides("(4, M)", (2, 1), "T.copy(B, A)"), target)
    for extent in range(5):
        a, b = view((4, extent), (2, 1)), np.ones((4, extent), "float32")
        if extent < 3:
            kernel(a, b)
            np.testing.assert_array_equal(a, b)
        else:
            with pytest.raises(helve.Error) as error:
                kernel(a, b)
            assert error.value.code == "HV0641"
    with pytest.raises(helve.Error) as error:
        helve.compile(of_strides("(4, M)", (0, 1), "T.copy(B, A)"), target)
    assert error.value.code == "HV0211"


def test_strides_that_are_too_many_to_search_are_not_taken_for_separate():
    """Six long dimensions whose strides interleave: the search is given up, and the call refused."""
    letters = "abcdef"
    scalars = ", ".join(f"s{x}: T.index" for x in letters)
    function = helve.parse(f"""
@T.prim_func
def main({scalars}, A: T.Tensor(({", ".join(["30"] * 6)}), "int8", strides=({", ".join("s" + x for x in letters)}))):
    with T.Kernel(1):
        A[0, 0, 0, 0, 0, 0] = 1
""")
    strides = [30000000000000091, 30712345678900007, 31298765432100013,
               29123581321345589, 28718281828459045, 31415926535897932]
    memory = np.zeros(1, "int8")  # never touched
    with pytest.raises(helve.Error) as error:
        helve.compile(function)(*strides, as_strided(memory, (30,) * 6, strides))
    assert error.value.code == "HV0641"
    assert error.value.message.endswith("its elements could not be shown to have addresses of their own")


SCALED = """
@T.prim_func
def main(A: T.Tensor({shape}, "float32", strides={read}), B: T.Tensor({shape}, "float32", strides={written}),
         S: T.Tensor(({rows},), "float32")):
    with T.Kernel({rows}) as b:
        row = T.alloc_shared(({columns},), "float32")
        T.copy(A[b, :], row)
        T.reduce_sum(row, S[b : b + 1], dim=0)
        for j in T.Parallel({columns}):
            B[b, j] = 2.0 * A[b, j] + row[{columns} - 1 - j]
"""


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("rows, columns", [(3, 5), (4, 64), (2, 1003)])
@pytest.mark.parametrize("up, down", [((1, -1), (-1, 1)), ((-1, -1), (1, 1)), ((-1, 1), (1, -1))])
@pytest.mark.parametrize("transposed", [False, True])
def test_negative_strides_that_constants_declare(target, rows, columns, up, down, transposed):
    """Either way round, by rows or by columns, with room between them."""
    shape = (rows, columns)
    steps = (1, rows + 2) if transposed else (columns + 3, 1)
    read, written = ([sign * step for sign, step in zip(signs, steps)] for signs in (up, down))
    kernel = helve.compile(helve.parse(SCALED.format(shape=shape, read=tuple(read), written=tuple(written), rows=rows,
                                                     columns=columns)), target)
    a, b, s = view(shape, read), view(shape, written), np.zeros(rows, "float32")
    a[...] = np.arange(rows * columns).reshape(shape) % 17
    kernel(a, b, s)
    np.testing.assert_array_equal(b, 2 * a + a[:, ::-1])
    np.testing.assert_array_equal(s, a.sum(axis=1))
