"""What PyTorch keeps of a tensor beside its memory: pending negations, gradients, and the count of writes."""

import subprocess
import sys
import warnings

import helve
import numpy as np
import pytest
from helve import T

torch = pytest.importorskip("torch")
import helve.torch  # noqa: E402 - it needs torch


@T.prim_func
def double(a: T.Tensor((T.dyn("n"),), "float32"), b: T.Tensor((T.dyn("n"),), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(a.shape[0]):
            b[i] = a[i] * 2.0


@T.prim_func
def double_pairs(a: T.Tensor((4,), "float32", strides=(2,)), b: T.Tensor((4,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(4):
            b[i] = a[i] * 2.0


@T.prim_func
def double_five(a: T.Tensor((5,), "float32"), b: T.Tensor((5,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(5):
            b[i] = a[i] * 2.0


@pytest.fixture(params=["interp", "llvm"])
def kernel(request):
    return helve.compile(double, target=request.param)


def refusal(call):
    with pytest.raises(helve.Error) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_pending_negation_is_refused_and_resolved_it_is_right(target):
    kernel = helve.compile(double_pairs, target=target)
    r = torch.arange(4, dtype=torch.float32)
    view, b = torch.complex(r, r).conj().imag, torch.zeros(4)
    assert view.is_neg()
    fault = refusal(lambda: kernel(view, b))
    assert (fault.code, fault.help) == ("HV0642", "pass tensor.resolve_neg()")
    assert b.tolist() == [0.0] * 4
    plain = helve.compile(double, target=target)
    plain(view.resolve_neg().contiguous(), b)
    np.testing.assert_array_equal(b.numpy(), -2 * np.arange(4, dtype=np.float32))
    assert refusal(lambda: plain(r, torch._neg_view(torch.zeros(4)))).code == "HV0642"


def test_autograd_notices_writes(kernel):
    x = torch.ones(5)
    a = torch.ones(5, requires_grad=True)
    buffer = torch.full((5,), 3.0)
    z = (a * buffer).sum()
    before = buffer._version, x._version
    kernel(x, buffer)
    assert (buffer._version > before[0], x._version == before[1]) == (True, True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    view = torch.zeros(10)[5:]
    whole = view._base
    kernel(x, view)
    assert whole._version == view._version > 0  # views share the count


def test_written_tensors_that_require_grad_are_refused_outside_no_grad(kernel):
    x = torch.ones(5)
    leaf = torch.zeros(5, requires_grad=True)
    inner = leaf * 1.0
    for written in (leaf, inner, torch.nn.Parameter(torch.zeros(5))):
        assert refusal(lambda: kernel(x, written)).code == "HV0643"
        assert written.tolist() == [0.0] * 5
        with torch.no_grad():
            kernel(x, written)
        assert written.tolist() == [2.0] * 5
    kernel(leaf, x)  # reading is no matter
    assert x.tolist() == [4.0] * 5
    kernel(x, inner.detach())


def test_tensors_of_inference_have_no_count(kernel):
    with torch.inference_mode():
        x, y = torch.ones(5), torch.zeros(5)
        kernel(x, y)
    assert y.tolist() == [2.0] * 5
    z = torch.zeros(5)
    kernel(x, z)
    assert z.tolist() == [2.0] * 5
    kernel(z, y)  # autograd never keeps such a tensor, so nobody misses the count
    assert y.tolist() == [4.0] * 5


def test_subclasses_are_tensors_of_torch(targets):
    class Named(torch.Tensor):
        pass

    x = torch.ones(5)
    y = torch.zeros(5, requires_grad=True).as_subclass(Named)
    for target in targets:
        kernel = helve.compile(double, target=target)
        assert refusal(lambda: kernel(x, y)).code == "HV0643"
        written = torch.zeros(5).as_subclass(Named)
        kernel(x, written)
        assert written._version == 1 and written.tolist() == [2.0] * 5


def test_a_tensor_that_is_asked_may_change_the_arguments_before_it(kernel):
    class Resizing(torch.Tensor):
        @property
        def requires_grad(self):
            first.resize(1 << 20, refcheck=False)  # its memory is elsewhere now
            first[:5] = 7
            first.resize(5, refcheck=False)
            return False

    first, out = np.zeros(5, np.float32), torch.zeros(5)
    kernel(first, out.as_subclass(Resizing))
    assert out.tolist() == [14.0] * 5


def test_what_ends_midway_counts_as_written():
    @T.prim_func
    def outside(a: T.Tensor((4,), "float32"), where: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            a[0] = 1.0
            a[T.index(where[0])] = 1.0

    a = torch.zeros(4)
    with pytest.raises(helve.Error):
        helve.compile(outside, target="interp")(a, torch.tensor([9], dtype=torch.int32))
    assert a[0] == 1 and a._version > 0


def test_a_refused_call_has_not_written(kernel):
    a, short = torch.ones(5), torch.zeros(4)
    assert refusal(lambda: kernel(a, short)).code == "HV0616"
    assert (short._version, short.tolist()) == (0, [0.0] * 4)


PROGRAM = """
import sys
import helve, helve.kernels, helve.testing
import numpy as np

text = "@T.prim_func\\ndef f(a: T.Tensor((4,), 'float32')):\\n    with T.Kernel(1):\\n        T.clear(a)\\n"
helve.compile(helve.parse(text), target="interp")(np.ones(4, np.float32))
assert "torch" not in sys.modules
"""


def test_importing_and_calling_leaves_torch_alone():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_results_without_a_gradient_are_said(target):
    """Once for a line of the caller; not where no gradient is wanted, and not in an operator."""
    kernel = helve.compile(double_five, target=target, out="b")
    x = torch.ones(5, requires_grad=True)
    with pytest.warns(helve.Warning, match="for 'a' requires grad, and what the kernel returns has no") as w:
        kernel(x)
    first, *_, remedy = str(w[0].message).splitlines()
    assert first == "warning[HV0644]: the argument for 'a' requires grad, and what the kernel returns has no gradient"
    assert remedy == ("help: make the kernel an operator of PyTorch by helve.torch.op, call it under torch.no_grad(), "
                      "or pass tensor.detach()")
    assert w[0].message.code == "HV0644" and w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(x.detach())
        with torch.no_grad():
            kernel(x)
        operator = helve.torch.op(f"test_helve::doubled_by_{target}", double_five, out="b", target=target)
        assert not operator(x.detach()).requires_grad
        operator(x)


REASON = ("HV0645: torch.compile cannot take the call of a kernel into its graph; "
          "make an operator of the kernel's function by helve.torch.op, and call that")


@pytest.mark.parametrize("kind", ["kernel", "function", "builder"])
def test_a_call_ends_the_graph_or_says_what_to_do(kind):
    @helve.jit(out="b")
    def build(a):
        @T.prim_func
        def doubled(a: T.Tensor(a.shape, "float32"), b: T.Tensor(a.shape, "float32")):
            with T.Kernel(1):
                for i in T.Parallel(a.shape[0]):
                    b[i] = a[i] * 2.0

        return doubled

    call = {"kernel": helve.compile(double_five, out="b"), "function": helve.jit(double_five, out="b"),
            "builder": build}[kind]
    x = torch.ones(5)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(lambda a: call(a) + 1, backend="eager")(x), torch.full((5,), 3.0))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported) as caught:
        torch.compile(lambda a: call(a) + 1, backend="eager", fullgraph=True)(x)
    assert REASON in str(caught.value)
