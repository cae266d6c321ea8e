"""Tensors whose elements or strides lie beyond 2^31: addresses are formed in 64 bits everywhere.

The memory is anonymous and reserved without backing, so that only pages that a kernel touches exist; the tests that
touch every element of such a tensor run under HELVE_TEST_LONG.
"""

import mmap
import os

import helve
import numpy as np
import pytest

BEYOND = 2**31
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python names it from 3.12; the number is that of Linux
long_test = pytest.mark.skipif(os.environ.get("HELVE_TEST_LONG") != "1", reason="set HELVE_TEST_LONG=1 (uses 5 GB)")


def sparse(elements, dtype="int8"):
    """A writable array of zeros that has memory only where it is written."""
    size = max(elements, 1) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    except OSError:
        pytest.skip(f"{size} bytes of addresses cannot be reserved")
    return np.frombuffer(memory, dtype, elements)


def strided(shape, strides, dtype="int8"):
    """An array over sparse memory; strides in elements."""
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    flat = sparse(span, dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])


def fill_rows(array, seed=1):
    rng = np.random.default_rng(seed)
    array[...] = rng.integers(-100, 100, array.shape).astype(array.dtype)
    return array


def compiled(text, **options):
    return helve.compile(helve.parse(text), **options)


def test_elements_past_the_end_of_int32():
    n, lo, hi = BEYOND + 1000, BEYOND - 70, BEYOND + 130
    kernel = compiled(
        f'@T.prim_func\ndef main(A: T.Tensor(({n},), "int8"), B: T.Tensor(({n},), "int8")):\n'
        f'    with T.Kernel(1) as b:\n'
        f"        for i in T.Parallel(({lo}, {hi})):\n            B[i] = A[i] + A[{n - 1} - i + {lo}]\n"
    )
    a, b = sparse(n), sparse(n)
    fill_rows(a[lo:])
    kernel(a, b)
    i = np.arange(lo, hi)
    np.testing.assert_array_equal(b[lo:hi], a[i] + a[n - 1 - i + lo])
    assert not b[hi:].any() and not b[lo - 4096 : lo].any()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_strides_past_the_end_of_int32(dtype):
    """Five rows, each more than 2^31 elements after the one before."""
    stride = BEYOND + 192
    text = (
        f'@T.prim_func\n'
        f'def main(A: T.Tensor((5, 100), "{dtype}", strides=({stride}, 1)), '
        f'B: T.Tensor((5, 100), "{dtype}", strides=({stride}, 1))):\n'
        f"    with T.Kernel(5) as b:\n        for j in T.Parallel(100):\n            B[4 - b, j] = A[b, 99 - j] * 2\n"
    ).replace("* 2\n", "* 2.0\n" if dtype == "float32" else "* 2\n")
    a, b = fill_rows(strided((5, 100), (stride, 1), dtype)), strided((5, 100), (stride, 1), dtype)
    compiled(text)(a, b)
    np.testing.assert_array_equal(b, (a[::-1, ::-1] * a.dtype.type(2)))


def test_dynamic_strides_and_extents():
    kernel = compiled(
        'M = T.dyn("M")\nN = T.dyn("N")\n@T.prim_func\n'
        'def main(ld: T.index, A: T.Tensor((M, N), "int8", strides=(ld, 1)), B: T.Tensor((M, N), "int8")):\n'
        "    with T.Kernel(T.ceildiv(M, 4)) as b:\n        for i, j in T.Parallel(4, N):\n"
        "            if b * 4 + i < M:\n"
        "                B[b * 4 + i, j] = A[b * 4 + i, j]\n"
    )
    for m, n, stride in [(3, 70, BEYOND + 64), (1, 1, 2**40), (7, 33, 2**32)]:
        a, b = fill_rows(strided((m, n), (stride, 1))), np.zeros((m, n), np.int8)
        kernel(stride, a, b)
        np.testing.assert_array_equal(b, a)


def test_copies_and_tiles_of_rows_far_apart():
    stride = BEYOND + 4096
    kernel = compiled(
        f'@T.prim_func\n'
        f'def main(A: T.Tensor((6, 90), "int8", strides=({stride}, 1)), '
        f'B: T.Tensor((6, 90), "int8", strides=({stride}, 1)), '
        f'S: T.Tensor((6,), "int32")):\n    with T.Kernel(3) as b:\n'
        f'        X = T.alloc_shared_tiles((2, 90), "int8", tile_size=(2, 32))\n'
        f'        Y = T.alloc_shared((2, 90), "int32")\n        R = T.alloc_shared((2,), "int32")\n'
        f"        T.copy(A[b * 2 : b * 2 + 2, :], X)\n        T.copy(X, Y)\n        T.reduce_sum(Y, R, dim=1)\n"
        f"        for i, j in T.foreach_tiles(X, parallel=True):\n            X[i, j] = X[i, j] + X[i, j]\n"
        f"        T.copy(X, B[b * 2 : b * 2 + 2, :])\n        T.copy(R, S[b * 2 : b * 2 + 2])\n"
    )
    a, b, s = fill_rows(strided((6, 90), (stride, 1))), strided((6, 90), (stride, 1)), np.zeros(6, np.int32)
    kernel(a, b, s)
    np.testing.assert_array_equal(b, a + a)
    np.testing.assert_array_equal(s, a.astype(np.int32).sum(axis=1))


def test_copy_regions_past_the_end_of_int32():
    n, at = BEYOND + 5000, BEYOND + 100
    kernel = compiled(
        f'@T.prim_func\ndef main(A: T.Tensor(({n},), "int8"), B: T.Tensor(({n},), "int8")):\n'
        f'    with T.Kernel(8) as b:\n'
        f'        X = T.alloc_shared((700,), "int8")\n        T.copy(A[{at} + b * 700 : {at} + b * 700 + 700], X)\n'
        f"        T.copy(X, B[{at} + b * 700 : {at} + b * 700 + 700])\n"
    )
    a, b = sparse(n), sparse(n)
    fill_rows(a[at:])
    kernel(a, b)  # the last block reaches past the end: it reads zeros and writes nothing there
    np.testing.assert_array_equal(b[at:], a[at:])


def test_mesh_blocks_past_the_end_of_int32():
    """Each core's block begins more than 2^31 elements after the one before it."""
    stride, rows = BEYOND // 2 + 64, 9
    text = (
        f'@T.prim_func\n'
        f'def main(A: T.Tensor(({rows}, 64), "int8", strides=({stride}, 1)), '
        f'B: T.Tensor(({rows}, 64), "int8", strides=({stride}, 1))):\n'
        f'    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0}}, "tiling": [3, 64]}}, '
        f'B: {{"sharding": {{"x": 0}}, "tiling": [3, 64]}}}}, nrows=3, ncols=1)\n'
        f'    with T.Kernel(3, 1) as (r, c):\n        X = T.alloc_shared_tiles((3, 64), "int8", tile_size=(3, 64))\n'
        f'        S = T.alloc_shared((3, 64), "int8")\n        T.mesh_tensor_copy(A, X, coord=[0, 0])\n'
        f'        T.copy(X, S)\n'
        f'        T.comm.all_reduce(S, S, axis="x", op="sum")\n        T.copy(S, X)\n'
        f'        T.mesh_tensor_copy(X, B, coord=[0, 0])\n'
    )
    a, b = fill_rows(strided((rows, 64), (stride, 1))), strided((rows, 64), (stride, 1))
    compiled(text, mesh=helve.Mesh((3, 1)))(a, b)
    total = a[0:3] + a[3:6] + a[6:9]
    np.testing.assert_array_equal(b, np.concatenate([total] * 3))


@long_test
def test_every_element_of_a_tensor_beyond_int32():
    n = BEYOND + 12345
    a = np.empty(n, np.int8)
    for start in range(0, n, 1 << 24):
        part = np.arange(start, min(start + (1 << 24), n))
        a[start : start + (1 << 24)] = (part * 2654435761 >> 20).astype(np.int8)
    b = np.zeros_like(a)
    compiled(
        f'@T.prim_func\ndef main(A: T.Tensor(({n},), "int8"), B: T.Tensor(({n},), "int8")):\n'
        f'    with T.Kernel(64) as b:\n'
        f"        for i in T.Parallel({-(-n // 64)}):\n            if b * {-(-n // 64)} + i < {n}:\n"
        f"                B[b * {-(-n // 64)} + i] = A[b * {-(-n // 64)} + i] + 1\n"
    )(a, b)
    assert np.array_equal(b, a + np.int8(1))
    dynamic = compiled(
        'N = T.dyn("N")\n@T.prim_func\n'
        'def main(A: T.Tensor((N,), "int8"), B: T.Tensor((N,), "int8"), S: T.Tensor((1,), "int64")):\n'
        "    with T.Kernel(T.ceildiv(N, 65536)) as b:\n"
        '        X = T.alloc_shared((65536,), "int8")\n        T.copy(A[b * 65536 : b * 65536 + 65536], X)\n'
        "        T.copy(X, B[b * 65536 : b * 65536 + 65536])\n"
        "    with T.Kernel(1) as b:\n        L = T.alloc_local((1,), \"int64\")\n        L[0] = 0\n"
        "        for i in T.serial(N):\n            L[0] = L[0] + T.cast(A[i], \"int64\")\n        S[0] = L[0]\n"
    )
    b[:] = 0
    s = np.zeros(1, np.int64)
    dynamic(a, b, s)
    assert np.array_equal(a, b)
    assert s[0] == a.sum(dtype=np.int64)


@long_test
def test_a_mesh_over_a_tensor_beyond_int32():
    rows, columns = 65539, 32771  # 2^31 and some elements, extents that nothing divides
    a = np.random.default_rng(3).integers(-100, 100, (rows, columns), np.int8)
    b = np.zeros_like(a)
    text = (
        f'@T.prim_func\ndef main(A: T.Tensor(({rows}, {columns}), "int8"), B: T.Tensor(({rows}, {columns}), "int8")):\n'
        f'    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [64, 1024]}}, '
        f'B: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [64, 1024]}}}}, nrows=2, ncols=3)\n'
        f"    rows, columns = T.get_sharded_shape(A)\n    with T.Kernel(2, 3) as (r, c):\n"
        f'        X = T.alloc_shared_tiles((64, 1024), "int8", tile_size=(64, 1024))\n'
        f"        for i, j in T.Persistent([T.ceildiv(rows, 64), T.ceildiv(columns, 1024)]):\n"
        f"            T.mesh_tensor_copy(A, X, coord=[i, j])\n"
        f"            for ti, tj in T.foreach_tiles(X, parallel=True):\n"
        f"                X[ti, tj] = X[ti, tj] + X[ti, tj]\n"
        f"            T.mesh_tensor_copy(X, B, coord=[i, j])\n"
    )
    compiled(text, mesh=helve.Mesh((2, 3)))(a, b)
    a += a
    assert np.array_equal(a, b)
