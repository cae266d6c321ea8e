"""Tensors that end where memory ends.

Code that fetches ahead of its loop reads nothing that the program does not.
"""

import ctypes
import mmap

import helve
import helve.testing
import numpy as np
from helve import T

LIBC = ctypes.CDLL(None, use_errno=True)


def last_in_memory(values):
    """A copy of `values` whose last byte is the last that may be read: what follows belongs to nobody."""
    pages = -(-values.nbytes // mmap.PAGESIZE) + 1
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = begin + (pages - 1) * mmap.PAGESIZE
    assert LIBC.mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0, ctypes.get_errno()
    flat = np.frombuffer(memory, values.dtype, values.size, (pages - 1) * mmap.PAGESIZE - values.nbytes)
    out = flat.reshape(values.shape)
    out[...] = values
    return out


def test_rows_picked_by_a_table(llvm):
    """Rows are read twice, and fetched for the next iteration: the next entry of the table is not its own."""

    @T.prim_func
    def main(at: T.Tensor((1024,), "int64"), A: T.Tensor((64, 512), "float32"), Y: T.Tensor((1024, 512), "float32")):
        with T.Kernel(1):
            for i in T.serial(1024):
                s = T.alloc_local((1,), "float32")
                s[0] = 0.0
                for j in T.serial(512):
                    s[0] = s[0] + A[T.index(at[i]) % 64, j]
                for j in T.vectorized(512):
                    Y[i, j] = A[T.index(at[i]) % 64, j] - s[0]

    rng = np.random.default_rng(0)
    at = last_in_memory(rng.integers(0, 64, 1024))
    a = last_in_memory(rng.integers(-8, 8, (64, 512)).astype("float32"))
    for stream_bytes in (None, 1):
        y = np.zeros((1024, 512), "float32")
        options = {} if stream_bytes is None else {"stream_bytes": stream_bytes}
        helve.compile(main, "llvm", **options)(at, a, y)
        np.testing.assert_array_equal(y, a[at] - a[at].sum(1, keepdims=True))


def test_the_count_of_a_pipeline_is_in_the_memory_that_it_fills():
    """The loop's bound has its value at the entry; the copy changes that element afterwards."""

    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), Y: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((8,), "int32")
            T.fill(X, 4)
            for k in T.Pipelined(T.index(X[0]), num_stages=2):
                T.copy(A[k, 0:8], X)
                for j in T.Parallel(8):
                    Y[k, j] = X[j] + 1

    a = np.arange(32, dtype="int32").reshape(4, 8) + 7
    helve.testing.check_stages(main, lambda: [a, np.zeros((4, 8), "int32")])
    y = np.zeros((4, 8), "int32")
    helve.compile(main, "llvm")(a, y)
    np.testing.assert_array_equal(y, a + 1)
