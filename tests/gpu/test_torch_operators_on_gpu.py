"""Operators of PyTorch on a device: the same tests as on the CPU, on its tensors and its streams.

Skips itself where PyTorch finds no device.
"""

import functools

import pytest

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

import helve.torch as ht  # noqa: E402 - it needs torch
import test_torch_kernels as library  # noqa: E402
import test_torch_operators as own  # noqa: E402


@pytest.fixture(autouse=True)
def _on_the_device():
    with torch.device("cuda"):
        yield


def moved(operator):
    """The operator on copies of its tensors on the device; its results come back."""
    return lambda *given, **named: operator(*(each.cuda() for each in given), **named).cpu()


@pytest.mark.parametrize("dtype", library.STEP, ids=str)
@pytest.mark.parametrize("name", [name for name in library.CASES if not name.startswith(("cross", "rope"))])
def test_operators_agree_with_pytorch(name, dtype):
    operator, definition, shapes = library.CASES[name]
    with torch.device("cpu"):
        library.check(moved(operator), definition, shapes, dtype)


@pytest.mark.parametrize("name", library.PRODUCTS)
def test_products_agree_with_pytorch(name):
    options, shapes = library.PRODUCTS[name]
    with torch.device("cpu"):
        library.check(moved(functools.partial(ht.gemm, **options)),
                      functools.partial(library.reference_gemm, **options), shapes, torch.bfloat16)


def test_losses_and_rotations():
    x = torch.randn(2, 3, 40, requires_grad=True)
    labels = library.LABELS.cuda()
    wanted = torch.nn.functional.cross_entropy(x.flatten(0, 1), labels.flatten())
    got = ht.cross_entropy(x, labels)
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    for a, b in zip(torch.autograd.grad(got, x), torch.autograd.grad(wanted, x)):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    cos, sin = (each.float().cuda() for each in library.angles(5, 8))
    y = torch.randn(3, 5, 2, 8)
    torch.testing.assert_close(ht.rope(ht.rope(y, cos, sin), cos, sin, inverse=True), y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_agrees_with_pytorch(causal):
    given = [torch.randn(2, heads, 70, 128).bfloat16().requires_grad_() for heads in (4, 2, 2)]
    exact = [each.detach().double().requires_grad_() for each in given]
    wanted = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=causal, enable_gqa=True)
    got, do = ht.attention(*given, causal=causal), torch.randn(2, 4, 70, 128).bfloat16()
    torch.testing.assert_close(got.double(), wanted, rtol=2e-2, atol=2e-2)
    for mine, right in zip(torch.autograd.grad(got, given, do), torch.autograd.grad(wanted, exact, do.double())):
        torch.testing.assert_close(mine.double(), right, rtol=2e-2, atol=5e-2)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph(backend):
    op = helve.torch.op("test_helve::scaled", own.scaled, out="B", backward=own.scaled_backward)
    compiled = torch.compile(lambda a: op(a.cos(), 3.0) + 1, backend=backend, fullgraph=True, dynamic=True)
    for shape in ((3, 5), (4, 7)):
        a = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        torch.testing.assert_close(compiled(a), 3 * a.cos() ** 2 + 1)
        gradient, = torch.autograd.grad(compiled(a).sum(), a)
        torch.testing.assert_close(gradient, -6 * (a.cos() * a.sin()).detach())
    torch.library.opcheck(op, (a, 2.0))


def test_the_current_stream_and_graphs_of_cuda():
    x, w = torch.randn(64, 512), torch.randn(512)
    wanted = ht.rms_norm(x, w)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        y = ht.rms_norm(x * 1, w)
    stream.synchronize()
    assert torch.equal(y, wanted)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = ht.rms_norm(x, w)
    x.mul_(-1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(z, -wanted)


def test_tensors_of_two_devices_are_refused():
    with pytest.raises(helve.Error):
        ht.rms_norm(torch.randn(2, 8), torch.ones(8, device="cpu"))
