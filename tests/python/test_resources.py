"""What kernels take of a GPU, PTX and machine code: by the assembler, without a GPU."""

import shutil
import warnings

import helve
import pytest
from helve import T, kernels, source
from nvrtc import needs_nvrtc


def tiles(threads, rows, dispatch="cp_async"):
    @T.prim_func
    def tiles(A: T.Tensor((1024, 1024), "float32"), B: T.Tensor((1024, 1024), "float32")):
        with T.Kernel(1024 // rows, threads=threads) as b:
            tile = T.alloc_shared((rows, 1024), "float32")
            T.copy(A[b * rows : (b + 1) * rows, :], tile, dispatch=dispatch)
            for i, j in T.Parallel(rows, 1024):
                B[b * rows + i, j] = tile[i, j] * 2.0

    return tiles


@needs_nvrtc
@pytest.mark.parametrize(("threads", "rows", "arch", "blocks"),
                         [(256, 8, "sm_90a", 6), (256, 32, "sm_90a", 1), (1024, 1, "sm_90a", 2),
                          (1024, 1, "sm_89", 1), (32, 1, "sm_80", 32), (64, 8, "sm_86", 3)])
def test_blocks_of_a_multiprocessor(threads, rows, arch, blocks):
    (use,) = helve.compile(tiles(threads, rows), target="cuda", arch=arch).resources()
    assert (use.kernel, use.threads, use.shared_bytes) == ("tiles_0", threads, rows * 4096)
    assert 8 <= use.registers <= 64
    assert (use.local_bytes, use.spilled_bytes) == (0, 0)
    assert use.blocks == blocks
    assert repr(use) == (f"<tiles_0: {threads} threads with {use.registers} registers, {rows * 4096} bytes of shared "
                         f"memory a block; {blocks} blocks a multiprocessor>")


def scattered():
    @T.prim_func
    def scattered(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as b:
            with T.thread() as tx:
                x = T.alloc_local((64,), "int32")
                for i in T.serial(64):
                    x[A[i]] = A[i] * tx
                for i in T.serial(64):
                    T.atomic_add(B[i], x[A[63 - i] // 2])

    return scattered


@needs_nvrtc
def test_local_memory_is_told_at_the_kernel_of_those_who_can_change_it(monkeypatch):
    with pytest.warns(helve.Warning) as caught:
        kernel = helve.compile(scattered(), target="cuda", arch="sm_80")
    (told,) = (each.message for each in caught if each.message.code == "HV0908")
    (use,) = kernel.resources()
    assert use.local_bytes >= 256
    assert str(told).splitlines()[1].endswith("test_resources.py:" + str(scattered.__code__.co_firstlineno + 3) + ":14")
    monkeypatch.setattr(source, "_inner", __file__)  # as one of helve's own kernels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        helve.compile(scattered(), target="cuda", arch="sm_80")


def test_other_targets_take_nothing_of_a_gpu():
    assert helve.compile(tiles(256, 8, "")).resources() == []


@needs_nvrtc
def test_ptx_of_the_architecture():
    text = helve.compile(tiles(256, 8), target="cuda", arch="sm_90a").source("ptx")
    assert ".target sm_90a" in text
    assert ".entry tiles_0(" in text
    assert text.endswith("\n")


@needs_nvrtc
def test_machine_code(monkeypatch):
    kernel = helve.compile(tiles(256, 8), target="cuda", arch="sm_80")
    if shutil.which("nvdisasm"):
        assert "EXIT" in kernel.source("sass")
    monkeypatch.setenv("HELVE_NVDISASM", "/none/nvdisasm")
    with pytest.raises(helve.Error) as caught:
        kernel.source("sass")
    assert caught.value.code == "HV0913"
    assert caught.value.message == ("nvdisasm, which prints machine code, cannot be run: /none/nvdisasm: No such file "
                                    "or directory")


@needs_nvrtc
@pytest.mark.parametrize("fast_math, corrections", [(True, 0), (False, 2)])
def test_a_sigmoid_is_corrected_where_functions_are_exact(fast_math, corrections):
    """The correction costs a fifth of the speed of SwiGLU, which is bound by memory without it."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = T.sigmoid(A[i])

    @T.prim_func
    def exponential(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = T.exp(A[i])

    whole, part = (helve.compile(each, target="cuda", arch="sm_90a", fast_math=fast_math).source("ptx")
                   for each in (main, exponential))
    elements = whole.count("rcp.approx")
    assert elements > 0
    assert whole.count("fma.rn") - part.count("fma.rn") == corrections * elements


# As fast as a copy when they were measured (docs/performance.md): fewer resident blocks hide less of the latency.
RESIDENT = {
    "swiglu": (lambda: kernels.swiglu(11008, "bfloat16"), 8),
    "swiglu_backward": (lambda: kernels.swiglu_backward(11008, "bfloat16"), 5),
    "rope": (lambda: kernels.rope(32, 128, "bfloat16"), 12),
    "rms_norm": (lambda: kernels.rms_norm(4096, "bfloat16"), 8),
    "softmax": (lambda: kernels.softmax(4096, "bfloat16"), 10),
    "layer_norm": (lambda: kernels.layer_norm(4096, "bfloat16"), 7),
    "softmax_backward": (lambda: kernels.softmax_backward(4096, "bfloat16"), 6),
}


@needs_nvrtc
@pytest.mark.parametrize("name", RESIDENT)
def test_kernels_that_memory_bounds_keep_their_blocks_resident(name):
    build, blocks = RESIDENT[name]
    (use,) = helve.compile(build(), target="cuda", arch="sm_90a", fast_math=True).resources()
    assert use.blocks >= blocks, use
