"""Loops over the threads of a block: the form that GPU code is generated from is a program like any other."""

import ml_dtypes
import numpy as np
import pytest

import helve
import helve.testing
from helve import T

ROWS, COLUMNS, THREADS = 3, 512, 64


@T.prim_func
def row_sums(A: T.Tensor((ROWS, COLUMNS), "bfloat16"), B: T.Tensor((ROWS,), "float32")):
    with T.Kernel(ROWS, threads=THREADS) as b:
        x = T.alloc_fragment((THREADS, 8), "float32")
        s = T.alloc_fragment((THREADS, 1), "float32")
        t = T.alloc_fragment((THREADS, 1), "float32")
        w = T.alloc_shared((THREADS // 32,), "float32")
        for tx in T.threads(THREADS):
            for v in T.vectorized(8):
                x[tx, v] = T.cast(A[b, tx * 8 + v], "float32")
            s[tx, 0] = 0.0
            for r in T.unroll(8):
                s[tx, 0] = s[tx, 0] + x[tx, r]
        for k in T.unroll(5):
            for tx in T.threads(THREADS):
                t[tx, 0] = s[tx ^ (1 << k), 0]
            for tx in T.threads(THREADS):
                s[tx, 0] = s[tx, 0] + t[tx, 0]
        for tx in T.threads(THREADS):
            if tx % 32 == 0:
                w[tx // 32] = s[tx, 0]
        T.sync_threads()
        for tx in T.threads(THREADS):
            if tx == 0:
                B[b] = w[0] + w[1]


def arguments():
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (ROWS, COLUMNS)).astype(ml_dtypes.bfloat16)
    return [a, np.zeros(ROWS, "float32")]


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_reduction_over_threads(target):
    a, out = arguments()
    helve.compile(row_sums, target=target)(a, out)
    np.testing.assert_array_equal(out, a.astype("float32").sum(1))


def test_every_stage_agrees_and_reads_back():
    helve.testing.check_stages(row_sums, arguments)
    for _, stage in helve.testing.lowering_stages(row_sums):
        helve.testing.assert_round_trip(stage)


def test_threads_that_share_an_element_are_refused():
    @T.prim_func
    def racing(B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=64):
            for tx in T.threads(64):
                B[tx // 2] = T.cast(tx, "float32")

    with pytest.raises(helve.Error) as caught:
        helve.compile(racing)
    assert caught.value.code == "HV0306"


def test_threads_are_all_threads_of_the_block():
    with pytest.raises(helve.Error) as caught:
        @T.prim_func
        def partial(B: T.Tensor((32,), "float32")):
            with T.Kernel(1, threads=64):
                for tx in T.threads(32):
                    B[tx] = 0.0

    assert "give the number that T.Kernel states" in str(caught.value)


def test_threads_are_not_divided_again():
    with pytest.raises(helve.Error) as caught:
        @T.prim_func
        def nested(B: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    for tx in T.threads(64):
                        B[i, tx] = 0.0

    assert "divide the block's work once" in str(caught.value)
