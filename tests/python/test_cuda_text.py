"""CUDA C of kernels in thread form: the text itself, and that it compiles."""

from pathlib import Path

import pytest
import test_threads
from nvrtc import assert_compiles, needs_nvrtc

from helve import T, _core

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "cuda"


def cuda_source(function, **options):
    return _core.cuda_source(function.function, **options)


@T.prim_func
def scaled_rows(A: T.Tensor((48, 96), "float32", strides=(104, 1)), s: T.float32, B: T.Tensor((48, 96), "float16")):
    with T.Kernel(4, 3, threads=96) as (by, bx):
        for tx in T.threads(96):
            for r in T.serial(4):
                for v in T.vectorized(8):
                    B[by * 12 + tx // 4 % 12, bx * 32 + tx % 4 * 8 + v] = (
                        A[by * 12 + tx // 4 % 12, bx * 32 + tx % 4 * 8 + v] * s
                    )


GOLDENS = {"row_sums": test_threads.row_sums, "scaled_rows": scaled_rows}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_text_is_as_kept(name):
    text, _ = cuda_source(GOLDENS[name])
    assert text == (GOLDEN / f"{name}.cu").read_text()


@needs_nvrtc
@pytest.mark.parametrize("name", GOLDENS)
def test_the_text_compiles(name):
    assert_compiles(cuda_source(GOLDENS[name])[0])


def test_vector_accesses_are_reported():
    _, (kernel,) = cuda_source(test_threads.row_sums)
    assert dict(zip(kernel["buffers"], kernel["alignments"])) == {"A": 16, "B": 4}
    assert kernel["threads"] == test_threads.THREADS
    assert kernel["shared_bytes"] == 128
