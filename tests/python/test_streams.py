"""Tensors written around the caches: the same bits as through them, wherever the rows begin."""

import helve
import numpy as np
import pytest
from helve import T
from helve.kernels import layer_norm, softmax

M = T.dyn("M")


def doubled(columns, dtype, tile):
    """Y = 2 X + 1 in tiles of a row."""

    @T.prim_func
    def main(X: T.Tensor((M, columns), dtype), Y: T.Tensor((M, columns), dtype)):
        with T.Kernel(M, T.ceildiv(columns, tile)) as (r, c):
            x = T.alloc_shared((tile,), dtype)
            T.copy(X[r, c * tile : c * tile + tile], x)
            for i in T.Parallel(tile):
                x[i] = x[i] * 2 + 1
            T.copy(x, Y[r, c * tile : c * tile + tile])

    return main


def two_outputs(columns):
    @T.prim_func
    def main(X: T.Tensor((M, columns), "float32"), Y: T.Tensor((M, columns), "float32"),
             Z: T.Tensor((M, columns), "float32")):
        with T.Kernel(M) as r:
            for j in T.Parallel(columns):
                Y[r, j] = X[r, j] + 1.0
                Z[r, j] = X[r, j] * X[r, j]

    return main


def shifted(columns):
    """Reads at two other places, and by the number of the column."""

    @T.prim_func
    def main(X: T.Tensor((M, columns + 3), "float32"), Y: T.Tensor((M, columns), "float32")):
        with T.Kernel(M) as r:
            for j in T.Parallel(columns):
                Y[r, j] = X[r, j + 3] - X[r, j] + T.cast(j, "float32")

    return main


def placed(shape, dtype, offset, fill=0):
    """An array that begins `offset` elements behind a line of the cache, and the memory around it."""
    itemsize = np.dtype(dtype).itemsize
    count = int(np.prod(shape))
    memory = np.full(count + 256, fill, dtype)
    begin = (-memory.ctypes.data // itemsize) % (64 // itemsize) + offset + 64
    return memory[begin : begin + count].reshape(shape), memory


def agrees(function, arrays, shape, dtype, offset, outputs=1):
    """Both forms write the same bits, and nothing beside them."""
    results = []
    for options in ({}, {"stream_bytes": 1}):
        kernel = helve.compile(function, "llvm", **options)
        assert ("nontemporal" in kernel.source("llvm")) or not options
        out = [placed(shape, dtype, offset, 85) for _ in range(outputs)]
        kernel(*arrays, *(array for array, _ in out))
        for array, memory in out:
            results.append(array.copy())
            array[...] = 85
            assert np.all(memory == np.asarray(85, dtype))
    for plain, streamed in zip(results[:outputs], results[outputs:]):
        np.testing.assert_array_equal(plain, streamed)


@pytest.mark.parametrize("seed", range(24))
def test_rows_of_any_length_at_any_place(seed):
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float16", "float64", "int8", "int32"]))
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(1, 9000 if seed % 2 else 400))
    tile = columns if seed % 3 else int(rng.choice([16, 64, 128, 1000]))
    x = rng.integers(-9, 9, (rows, columns)).astype(dtype)
    function = doubled(columns, dtype, tile)
    if "nontemporal" not in helve.compile(function, "llvm", stream_bytes=1).source("llvm"):
        assert min(columns, tile) < 2 * 64, "rows of two vectors have a line to begin at"
        return
    agrees(function, [x], x.shape, dtype, int(rng.integers(0, 64 // x.itemsize)))


@pytest.mark.parametrize("offset", [0, 1, 7, 12])
@pytest.mark.parametrize("columns", [64, 1000, 4096, 8192])
def test_reductions_and_rows_with_weights(columns, offset):
    rng = np.random.default_rng(columns)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((3, columns), columns, columns))
    agrees(softmax(columns), [x], x.shape, "float32", offset)
    agrees(layer_norm(columns), [x, w, b], x.shape, "float32", offset)


@pytest.mark.parametrize("offset", [0, 4, 5])
def test_several_outputs_and_values_of_the_column(offset):
    x = np.random.default_rng(0).standard_normal((3, 5000)).astype("float32")
    agrees(two_outputs(5000), [x], x.shape, "float32", offset, outputs=2)
    agrees(shifted(4997), [x], (3, 4997), "float32", offset)


def test_the_option():
    function = doubled(64, "float32", 64)
    for value in (0, -1, True, 1.5, "1", 2**63):
        with pytest.raises(helve.Error) as refused:
            helve.compile(function, "llvm", stream_bytes=value)
        assert refused.value.code == "HV0813"
    with pytest.raises(helve.Error) as refused:
        helve.compile(function, "interp", stream_bytes=1)
    assert "'stream_bytes'" in str(refused.value)
