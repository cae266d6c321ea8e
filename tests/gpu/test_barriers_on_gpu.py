"""Global memory that threads of a block write for each other, on a CUDA device.

What a thread has read before a barrier it must read again after it. Skips itself where PyTorch finds no device.
"""

import numpy as np
import pytest

import helve
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def one_writes_for_all(dtype):
    @T.prim_func
    def main(X: T.Tensor((256,), dtype), W: T.Tensor((8,), dtype), Y: T.Tensor((256,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(256):
                Y[i] = X[i] - W[0]
            for i in T.serial(8):
                W[i] = X[i] * X[i + 8]
            for i in T.Parallel(256):
                Y[i] = Y[i] + W[0] * W[i % 8]

    return main


def all_write_for_all(dtype):
    @T.prim_func
    def main(X: T.Tensor((256,), dtype), W: T.Tensor((256,), dtype), Y: T.Tensor((256,), dtype)):
        with T.Kernel(1, threads=128):
            s = T.alloc_fragment((256,), dtype)
            T.clear(s)
            for k in T.serial(3):
                for i in T.Parallel(256):
                    s[i] = s[i] + W[255 - i] + W[0]
                for i in T.Parallel(256):
                    W[i] = X[i] + s[i]
            T.copy(s, Y)

    return main


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_that_may_not_run_orders_nothing_behind_it(turns):
    """The barriers of its body are not those of what stands around it."""

    @T.prim_func
    def main(X: T.Tensor((256,), "int32"), W: T.Tensor((256,), "int32"), Z: T.Tensor((256,), "int32"),
             Y: T.Tensor((256,), "int32"), n: T.index):
        with T.Kernel(1, threads=256):
            for i in T.Parallel(256):
                W[i] = X[i] * 2
            for k in T.serial(n):
                for i in T.Parallel(256):
                    Z[i] = X[i] + k
                for i in T.Parallel(256):
                    Y[i] = Y[i] + Z[255 - i]
            for i in T.Parallel(256):
                Y[i] = Y[i] + W[255 - i]

    data = np.arange(256, dtype="int32")
    kernel = helve.compile(main, target="cuda")
    for _ in range(5):
        given = [torch.from_numpy(array.copy()).cuda() for array in (data, *[np.zeros_like(data)] * 3)]
        kernel(*given, turns)
        np.testing.assert_array_equal(given[3].cpu().numpy(), data[::-1] * (2 + turns) + sum(range(turns)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
@pytest.mark.parametrize("program", [one_writes_for_all, all_write_for_all])
def test_memory_is_read_again_behind_a_barrier(program, dtype):
    function = program(dtype)
    rng = np.random.default_rng(1)
    shapes = [(256,), (8,) if program is one_writes_for_all else (256,), (256,)]
    arrays = [rng.integers(-2, 3, shape).astype(dtype) for shape in shapes]
    wanted = [array.copy() for array in arrays]
    helve.compile(function, target="interp")(*wanted)
    kernel = helve.compile(function, target="cuda")
    for _ in range(5):
        given = [torch.from_numpy(array).cuda() for array in arrays]
        kernel(*given)
        for got, want in zip(given, wanted):
            np.testing.assert_array_equal(got.cpu().numpy(), want)
