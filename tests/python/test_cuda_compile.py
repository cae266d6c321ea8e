"""Compiling for CUDA where there is no GPU: what it needs, what it refuses, what a launch is told."""

import os
import subprocess
import sys

import helve
import pytest
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form


def doubled(columns, dtype="bfloat16"):
    @T.prim_func
    def main(A: T.Tensor((64, columns), dtype), B: T.Tensor((64, columns), dtype)):
        with T.Kernel(64) as b:
            x = T.alloc_fragment((columns,), "float32")
            T.copy(A[b, :], x)
            for i in T.Parallel(columns):
                x[i] = x[i] * 2.0
            T.copy(x, B[b, :])

    return main


@pytest.mark.parametrize("columns, width", [(4096, 16), (4104, 16), (4100, 8), (4098, 4), (4097, 2)])
def test_rows_move_by_the_widest_vectors_that_divide_them(columns, width):
    text, (kernel,) = _core.cuda_source(thread_form(doubled(columns)))
    assert kernel["alignments"] == [width, width]
    assert ("helve_load<" in text) == (width > 2)


def test_an_unaligned_kernel_asks_for_no_alignment():
    text, (kernel,) = _core.cuda_source(_core.narrow_accesses(thread_form(doubled(4096))))
    assert kernel["alignments"] == [2, 2]
    assert "helve_load" not in text and "helve_store" not in text


@needs_nvrtc
def test_the_unaligned_text_compiles():
    assert_compiles(_core.cuda_source(_core.narrow_accesses(thread_form(doubled(512))))[0])


@needs_nvrtc
def test_a_launch_knows_what_its_kernel_relies_on():
    kernel = helve.compile(doubled(4100), target="cuda", arch="sm_90a")
    assert " aligned [8, 8]" in kernel.source("plan")


def staged(bytes_):
    rows = bytes_ // 512

    @T.prim_func
    def main(A: T.Tensor((rows, 128), "float32"), B: T.Tensor((rows, 128), "float32")):
        with T.Kernel(1) as b:
            X = T.alloc_shared((rows, 128), "float32")
            T.copy(A, X)
            for i, j in T.Parallel(rows, 128):
                B[i, j] = X[rows - 1 - i, j]

    return main


@needs_nvrtc
@pytest.mark.parametrize("arch, kilobytes", [("sm_80", 163), ("sm_86", 99), ("sm_89", 99), ("sm_90a", 227)])
def test_shared_memory_of_an_architecture(arch, kilobytes):
    helve.compile(staged(kilobytes * 1024), target="cuda", arch=arch)
    with pytest.raises(helve.Error) as refused:
        helve.compile(staged(kilobytes * 1024 + 512), target="cuda", arch=arch)
    assert refused.value.code == "HV0924"
    assert refused.value.message.endswith(f"{arch} has {kilobytes * 1024}")
    assert refused.value.notes == [f"'X' takes {kilobytes * 1024 + 512} bytes"]


def test_without_a_driver_the_architecture_is_asked_for(tmp_path):
    program = tmp_path / "kernel.py"
    program.write_text("""import helve
from helve import T

@T.prim_func
def main(A: T.Tensor((4,), "float32")):
    with T.Kernel(1) as b:
        A[0] = 1.0

try:
    helve.compile(main, target="cuda")
except helve.Error as error:
    print(error.code, error.help)
""")
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                         env={**os.environ, "HELVE_LIBCUDA": str(tmp_path / "libcuda.so")})
    assert run.stdout.startswith("HV0901 "), run.stderr
    assert 'arch="sm_90a"' in run.stdout
