"""The variant of a kernel for tensors that are aligned only as an element is.

It accesses single elements of global memory, and has no asynchronous copies.
"""

import re

import numpy as np
import pytest
import test_async_copies
import test_box_copies
import test_bulk_copies

import helve
import helve.testing
from helve import T, _core

ASYNCHRONOUS = re.compile(r"T\.(cp_async|cp_async_bulk|cp_async_bulk_tensor|commit_async|wait_async)\(")


def narrow(text):
    """What the variant of a function in thread form does, one line each."""
    lines = _core.print(_core.narrow_accesses(helve.parse(text).function)).splitlines()
    return [line.strip() for line in lines[lines.index("    with T.Kernel(1, threads=32) as bx:") + 1 :]]


def test_vectors_of_global_memory_become_single_elements():
    assert narrow("""
@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        X = T.alloc_shared((128,), "float32")
        Y = T.alloc_shared((128,), "float32")
        for tx in T.threads(32):
            for v in T.vectorized(4):
                X[tx * 4 + v] = A[tx * 4 + v]
            for v_1 in T.vectorized(4):
                Y[tx * 4 + v_1] = X[tx * 4 + v_1]
            for v_2 in T.vectorized(4):
                B[tx * 4 + v_2] = Y[tx * 4 + v_2]
""") == [
        'X = T.alloc_shared((128,), "float32")',
        'Y = T.alloc_shared((128,), "float32")',
        "for tx in T.threads(32):",
        "for v in T.unroll(4):",
        "X[tx * 4 + v] = A[tx * 4 + v]",
        "for v_1 in T.vectorized(4):",
        "Y[tx * 4 + v_1] = X[tx * 4 + v_1]",
        "for v_2 in T.unroll(4):",
        "B[tx * 4 + v_2] = Y[tx * 4 + v_2]",
    ]


def test_a_run_of_a_thread_is_copied_or_zero():
    assert narrow("""
@T.prim_func
def main(A: T.Tensor((100,), "int16"), B: T.Tensor((256,), "int16")):
    with T.Kernel(1, threads=32) as bx:
        X = T.alloc_shared((128,), "int16")
        for tx in T.threads(32):
            T.cp_async(A[tx * 4:tx * 4 + 4], X[tx * 4:tx * 4 + 4])
        T.commit_async()
        T.wait_async()
        T.sync_threads()
        for tx_1 in T.threads(32):
            B[tx_1] = X[127 - tx_1]
""") == [
        'X = T.alloc_shared((128,), "int16")',
        "for tx in T.threads(32):",
        "if tx < 25:",
        "for i in T.unroll(4):",
        "X[tx * 4 + i] = A[tx * 4 + i]",
        "else:",
        "for i_1 in T.unroll(4):",
        "X[tx * 4 + i_1] = 0",
        "T.sync_threads()",
        "for tx_1 in T.threads(32):",
        "B[tx_1] = X[127 - tx_1]",
    ]


def test_all_threads_copy_what_tma_did():
    """Past the end a load is zero, and a store is none."""
    assert narrow("""
@T.prim_func
def main(A: T.Tensor((6, 20), "float32"), B: T.Tensor((6, 20), "float32")):
    with T.Kernel(1, threads=32) as bx:
        X = T.alloc_shared((4, 8), "float32")
        T.cp_async_bulk_tensor(A[4:8, 0:8], X)
        T.wait_async()
        T.sync_threads()
        T.cp_async_bulk_tensor(X, B[0:4, 16:24], wait=True)
""") == [
        'X = T.alloc_shared((4, 8), "float32")',
        "for tx in T.threads(32):",
        "if tx // 8 < 2:",
        "X[tx // 8, tx % 8] = A[tx // 8 + 4, tx % 8]",
        "else:",
        "X[tx // 8, tx % 8] = 0.0",
        "T.sync_threads()",
        "for tx_1 in T.threads(32):",
        "if tx_1 % 8 < 4:",
        "B[tx_1 // 8, tx_1 % 8 + 16] = X[tx_1 // 8, tx_1 % 8]",
    ]


@pytest.mark.parametrize("module", [test_async_copies, test_bulk_copies, test_box_copies])
def test_no_copy_is_asynchronous(module):
    seen = 0
    for name, (function, *_) in module.PROGRAMS.items():
        form = module.thread_form(function)
        seen += bool(ASYNCHRONOUS.search(_core.print(form)))
        text = _core.print(_core.narrow_accesses(form))
        assert not ASYNCHRONOUS.search(text), f"{name}:\n{text}"
        for kernel in _core.cuda_source(_core.narrow_accesses(form))[1]:
            assert max(kernel["alignments"], default=0) <= 8 and kernel["maps"] == []
    assert seen


def test_a_kernel_shows_its_variant():
    @T.prim_func
    def main(A: T.Tensor((512,), "float16"), B: T.Tensor((512,), "float16")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(512):
                B[i] = A[i] + A[511 - i]

    stages = helve.testing.lowering_stages(main, target="cuda")
    variant = helve.testing.with_variant(stages)[-1][1]
    make = lambda: [np.arange(512).astype("float16"), np.zeros(512, "float16")]  # noqa: E731
    helve.testing.check_lowered({helve.testing.PIPELINES[1]: stages}, [make])
    assert "T.vectorized" in _core.print(stages[-1][1])
    assert "T.vectorized" not in _core.print(variant)
    assert helve.compile(main, "cuda", arch="sm_80").source("narrow_accesses") == _core.print(variant)
