"""What PyTorch keeps of a tensor on a device beside its memory, and strides by which two elements meet.

Skips itself where PyTorch finds no device.
"""

import pytest

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

import test_torch_tensors as tensors  # noqa: E402 - it needs torch
from test_strides import WRITE_PLANES  # noqa: E402


@pytest.fixture(scope="module")
def kernel():
    return helve.compile(tensors.double, target="cuda")


def test_a_pending_negation_is_refused_and_resolved_it_is_right(kernel):
    r = torch.arange(4, dtype=torch.float32, device="cuda")
    view, b = torch.complex(r, r).conj().imag, torch.zeros(4, device="cuda")
    pairs = helve.compile(tensors.double_pairs, target="cuda")
    assert tensors.refusal(lambda: pairs(view, b)).code == "HV0642"
    kernel(view.resolve_neg().contiguous(), b)
    assert b.tolist() == [0.0, -2.0, -4.0, -6.0]


def test_autograd_notices_writes(kernel):
    x, a = torch.ones(5, device="cuda"), torch.ones(5, device="cuda", requires_grad=True)
    buffer = torch.full((5,), 3.0, device="cuda")
    z = (a * buffer).sum()
    kernel(x, buffer)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    assert (buffer._version, x._version) == (1, 0)


def test_written_tensors_that_require_grad_are_refused_outside_no_grad(kernel):
    x, leaf = torch.ones(5, device="cuda"), torch.zeros(5, device="cuda", requires_grad=True)
    assert tensors.refusal(lambda: kernel(x, leaf)).code == "HV0643"
    with torch.no_grad():
        kernel(x, leaf)
    assert leaf.tolist() == [2.0] * 5


def test_a_call_is_refused_where_two_elements_meet():
    kernel = helve.compile(helve.parse(WRITE_PLANES), target="cuda")
    memory = torch.zeros(64, device="cuda")
    kernel(16, 4, 1, memory.as_strided((2, 3, 4), (16, 4, 1)))
    assert memory[:12].tolist() == [float(i) for i in range(1, 13)]
    for strides in ((2, 1, 1), (0, 4, 1), (4, 4, 1)):
        refused = tensors.refusal(lambda: kernel(*strides, memory.as_strided((2, 3, 4), strides)))
        assert refused.code == "HV0641"
