"""Loops over the threads of a block: the form that GPU code is generated from is a program like any other."""

import ml_dtypes
import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core

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


ONE_ROW = """@T.prim_func
def main(A: T.Tensor((4, 1, 8), "float32"), K: T.Tensor((8,), "int32"), B: T.Tensor((4, 1, 8), "float32")):
    with T.Kernel(1, threads=32) as b:
        x = T.alloc_{memory}((4, 1, 8), "float32"{layout})
        T.copy(A, x)
        for i, j, k in T.Parallel(4, 1, 8):
            if K[k] < 1:
                {store}
        T.copy(x, B)
"""

STORES_OF_ONE_ROW = ["x[i, j, k] = x[i, k, k] + 1.0", "x[i, k, k] = x[i, j, k] + 1.0", "x[i, k, k] += x[i, i * k, k]"]
PLACES_OF_ONE_ROW = [("fragment", ""), ("shared", ""), ("fragment", ', layout="S[(32,) : (1@tx,)]"')]
ROWS_OF_ONE = np.arange(32, dtype="float32").reshape(4, 1, 8)
KEYS_OF_ONE = np.int32([0, 5, 5, 5, 5, 5, 5, 5])


@pytest.mark.parametrize("store", STORES_OF_ONE_ROW)
@pytest.mark.parametrize(("memory", "layout"), PLACES_OF_ONE_ROW)
def test_any_subscript_of_a_dimension_of_one_names_its_element(memory, layout, store):
    """It is 0 in the iterations that come to the access, though a variable of the loop stands there."""
    function = helve.parse(ONE_ROW.format(memory=memory, layout=layout, store=store))
    a, keys = ROWS_OF_ONE, KEYS_OF_ONE
    wanted = a.copy()
    wanted[:, 0, 0] = a[:, 0, 0] * 2 if "+=" in store else a[:, 0, 0] + 1
    for options in ({"target": "llvm"}, {"target": "cuda", "arch": "sm_80"}, {"target": "cuda", "arch": "sm_90a"}):
        for name, stage in helve.testing.changed_stages(helve.testing.lowering_stages(function, **options)):
            b = np.zeros_like(a)
            helve.testing.interpret(stage, a, keys, b)
            np.testing.assert_array_equal(b, wanted, err_msg=f"{name} {options}")
    for target in ("interp", "llvm"):
        b = np.zeros_like(a)
        helve.compile(function, target=target)(a, keys, b)
        np.testing.assert_array_equal(b, wanted)


def test_a_thread_runs_independent_loops_by_itself():
    """T.Parallel inside of T.threads, over several variables and with bounds that differ between threads."""
    function = helve.parse("""
@T.prim_func
def main(A: T.Tensor((32, 4, 5), "int32"), B: T.Tensor((32, 4, 5), "int32")):
    with T.Kernel(1, threads=32) as b:
        for t in T.threads(32):
            for i, j in T.Parallel(4, 5):
                B[t, i, j] = A[t, i, j] * 2
            for i in T.Parallel((t % 3, 4)):
                B[t, i, 0] = B[t, i, 0] + 1
""")
    a = np.arange(640, dtype="int32").reshape(32, 4, 5)
    wanted = a * 2
    wanted[:, :, 0] += np.arange(4) >= np.arange(32)[:, None] % 3
    for options in ({"target": "llvm"}, {"target": "cuda", "arch": "sm_80"}, {"target": "cuda", "arch": "sm_90a"}):
        stages = helve.testing.lowering_stages(function, **options)
        for name, stage in helve.testing.changed_stages(stages):
            b = np.zeros_like(a)
            helve.testing.interpret(stage, a, b)
            np.testing.assert_array_equal(b, wanted, err_msg=f"{name} {options}")
        if options["target"] == "cuda":
            assert "for (" in _core.cuda_source(stages[-1][1])[0]
