"""Outputs that a call allocates on a GPU: on the device of the input, and in the order of its stream.

Skips itself without a GPU.
"""

import helve
import numpy as np
import pytest
from helve import T

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

M = T.dyn("M")


@T.prim_func
def increment(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
    with T.Kernel(T.ceildiv(M, 256), threads=256) as b:
        for i in T.Parallel(256):
            if b * 256 + i < M:
                B[b * 256 + i] = A[b * 256 + i] + 1.0


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_tensor_of_pytorch(rows):
    kernel = helve.compile(increment, "cuda", out="B")
    a = torch.arange(rows, dtype=torch.float32, device="cuda")
    b = kernel(a)
    assert b.device == a.device and torch.equal(b, a + 1)
    c = torch.empty_like(a)
    assert kernel(a, c) is c and torch.equal(c, b)


def test_memory_is_of_the_current_stream():
    """A chain of calls on a stream of its own, while memory that was freed on it is handed out again at once."""
    kernel = helve.compile(increment, "cuda", out="B")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 20, device="cuda")
        for _ in range(100):
            x = kernel(x)
    stream.synchronize()
    assert (x == 100).all()


def test_a_call_in_a_captured_graph():
    kernel = helve.compile(increment, "cuda", out="B")
    a = torch.zeros(1000, device="cuda")
    kernel(a)  # loads the module
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b = kernel(kernel(a))
    a.fill_(5)
    graph.replay()
    assert (b == 7).all()


def test_jit_compiles_for_the_device_of_its_input():
    function = helve.jit(increment, out="B")
    a = torch.ones(10, device="cuda")
    assert function(a).device == a.device and (function(a) == 2).all()
    assert (function(np.ones(10, "float32")) == 2).all()
    assert sorted(kernel.target for kernel in function.kernels()) == ["cuda", "llvm"]

    @helve.jit(out="B")
    def build(x):
        return increment

    assert (build(a) == 2).all() and (build(a.cpu()) == 2).all()
    assert [kernel.target for kernel in build.kernels()] == ["cuda", "llvm"]


def test_cupy():
    cupy = pytest.importorskip("cupy")
    kernel = helve.compile(increment, "cuda", out="B")
    with cupy.cuda.Stream() as stream:
        b = kernel(cupy.ones(1000, "float32"))
    stream.synchronize()
    assert type(b) is cupy.ndarray and (b == 2).all()
