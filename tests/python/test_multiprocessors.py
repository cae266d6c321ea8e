"""T.multiprocessors(): a launch has as many blocks as its machine runs side by side, whatever the program is compiled
for; each target binds the number at the call.
"""

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned

import helve
import helve.testing
from helve import T, _core

M = T.dyn("M")
FOUR = 4  # what the interpreter has


@T.prim_func
def doubled(X: T.Tensor((M, 40), "float32"), Y: T.Tensor((M, 40), "float32")):
    with T.Kernel(T.multiprocessors(), threads=32):
        row = T.alloc_fragment((40,), "float32")
        for i in T.Persistent([M]):
            T.copy(X[i, :], row)
            for j in T.Parallel(40):
                row[j] = row[j] * 2.0
            T.copy(row, Y[i, :])


@T.prim_func
def column_sums(X: T.Tensor((M, 40), "int32"), Y: T.Tensor((40,), "int32")):
    """Each block sums rows of its own; the parts stand in memory of as many rows as there are blocks."""
    parts = T.alloc_global((T.multiprocessors(), 40), "int32")
    with T.Kernel(T.multiprocessors(), threads=32) as b:
        own = T.alloc_fragment((40,), "int32")
        T.clear(own)
        for i in T.serial(T.ceildiv(M - b, T.multiprocessors())):
            for j in T.Parallel(40):
                own[j] = own[j] + X[i * T.multiprocessors() + b, j]
        T.copy(own, parts[b, :])
    with T.Kernel(1, threads=32):
        for j in T.Parallel(40):
            Y[j] = 0
            for b in T.serial(T.multiprocessors()):
                Y[j] += parts[b, j]


@T.prim_func
def number(N: T.Tensor((1,), "int64")):
    with T.Kernel(1):
        N[0] = T.cast(T.multiprocessors(), "int64")


def rows(count, dtype):
    return np.random.default_rng(count).integers(-9, 9, (count, 40)).astype(dtype)


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("count", [0, 1, 5, 133])
def test_blocks_share_the_work(target, count):
    x, y = rows(count, "float32"), np.full((count, 40), 7, "float32")
    helve.compile(doubled, target=target)(x, y)
    np.testing.assert_array_equal(y, x * 2)
    x, y = rows(count, "int32"), np.full(40, 7, "int32")
    helve.compile(column_sums, target=target)(x, y)
    np.testing.assert_array_equal(y, x.sum(axis=0))


def test_each_machine_has_its_own_number():
    n = np.zeros(1, np.int64)
    helve.compile(number, target="interp")(n)
    assert n[0] == FOUR
    kernel, before = helve.compile(number, target="llvm"), helve.num_threads()
    try:
        for count in (1, 2, 3):
            helve.set_num_threads(count)
            kernel(n)
            assert n[0] == count
    finally:
        helve.set_num_threads(before)


@pytest.mark.parametrize("function", [doubled, column_sums])
def test_every_stage(function):
    dtype = "float32" if function is doubled else "int32"
    shape = (9, 40) if function is doubled else (40,)
    helve.testing.check_stages(function, lambda: [rows(9, dtype), np.zeros(shape, dtype)])


@pytest.mark.parametrize("blocks", [1, 3, 132])
def test_the_text_takes_the_number_from_the_call(tmp_path, blocks):
    form = helve.testing.lowering_stages(doubled, target="cuda", arch="sm_90a")[-1][1]
    kernels = HostKernels([form], tmp_path)
    x, y = aligned(rows(9, "float32")), aligned(np.zeros((9, 40), "float32"))
    kernels.run("doubled", blocks, {"X": x, "Y": y}, {"M": 9, "multiprocessors": blocks})
    np.testing.assert_array_equal(y, x * 2)


def test_it_is_positive_and_the_same_in_all_functions():
    text = _core.print(doubled.function)
    assert "T.assume(1 <= T.multiprocessors())" in text and "multiprocessors = T.dyn" not in text
    helve.testing.assert_round_trip(doubled.function)
    assert doubled.function.dims[-1] == column_sums.function.dims[-1] == _core.multiprocessors()
    outside = T.multiprocessors() * 2

    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(outside) as b:
            if b < 8:
                A[b] = 1.0

    a = np.zeros(8, "float32")
    helve.compile(main, target="interp")(a)
    assert (a == 1).all()
    assert not _core.structural_equal(shaped(T.multiprocessors()), shaped(T.dyn("K")))[0]


def shaped(extent):
    @T.prim_func
    def main(A: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            A[0] = 1.0

    return main.function


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_parameter_of_that_extent_is_checked(target):
    kernel = helve.compile(shaped(T.multiprocessors()), target=target)
    wanted = FOUR if target == "interp" else helve.num_threads()
    kernel(np.zeros(wanted, "float32"))
    with pytest.raises(helve.Error) as caught:
        kernel(np.zeros(wanted + 1, "float32"))
    assert caught.value.code == "HV0605", caught.value


def test_a_function_that_is_called_means_the_number_of_its_caller():
    @T.prim_func
    def main(X: T.Tensor((M, 40), "float32"), Y: T.Tensor((M, 40), "float32")):
        doubled(X, Y)

    x, y = rows(9, "float32"), np.zeros((9, 40), "float32")
    helve.compile(main)(x, y)
    np.testing.assert_array_equal(y, x * 2)
    helve.testing.assert_round_trip(main.function)
