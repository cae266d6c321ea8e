"""helve.kernels.attention on a CUDA device, against its definition in float64.

Skips itself where PyTorch finds none. Sequences have tails, and heads begin at whole vectors or elsewhere.
"""

import matrix_kernel_cases as cases
import numpy as np
import pytest
import test_attention
import test_attention_backward
import test_attention_varlen

import helve
from helve import kernels

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
ARCH = "sm_90a" if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0) else "sm_80"

from device_arrays import check_on_device as check  # noqa: E402 - it needs torch


@pytest.mark.parametrize("name", test_attention.CALLS)
@pytest.mark.parametrize("arch", sorted({"sm_80", ARCH}))
def test_small_sequences(name, arch):
    check(test_attention.call(name, arch))


@pytest.mark.parametrize("name", test_attention_varlen.CALLS)
@pytest.mark.parametrize("arch", sorted({"sm_80", ARCH}))
def test_small_packed_sequences(name, arch):
    check(test_attention_varlen.call(name, arch))


@pytest.mark.parametrize("head", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_of_any_length(head, causal):
    lengths = [(300, 300), (1, 513), (0, 7), (129, 64), (128, 128), (77, 0), (700, 900)]
    check(cases.attention_varlen(lengths, head, "bfloat16", heads=4, heads_kv=2, causal=causal, lse=True, arch=ARCH))


@pytest.mark.parametrize("name", test_attention_backward.CALLS)
@pytest.mark.parametrize("arch", sorted({"sm_80", ARCH}))
def test_gradients_of_small_sequences(name, arch):
    check(cases.attention_backward(**test_attention_backward.CALLS[name], arch=arch))


SHAPES = [(1, 1), (1, 1000), (128, 128), (300, 77), (77, 300), (513, 1025), (1024, 1024)]


@pytest.mark.parametrize("head", [64, 128, 256])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sequences_of_any_length(shape, head):
    """Tiles of the plan, of both dtypes, with and without a mask."""
    check(cases.attention(*shape, head, "bfloat16", heads=4, heads_kv=2, batch=2, lse=True, arch=ARCH))
    check(cases.attention(*shape, head, "float16", heads=3, causal=True, lse=True, arch=ARCH))


@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_sequences_of_any_length(shape, head):
    check(cases.attention_backward(*shape, head, "bfloat16", heads=4, heads_kv=2, batch=2, arch=ARCH))
    check(cases.attention_backward(*shape, head, "float16", heads=3, causal=True, arch=ARCH))


@pytest.mark.parametrize("causal", [False, True])
def test_a_kernel_serves_many_calls(causal):
    """Against float32 of PyTorch, again and again: what is left over shows itself."""
    kernel = helve.compile(kernels.attention(4, 128, causal=causal, arch=ARCH), target="cuda")
    rng = np.random.default_rng(1)
    torch.manual_seed(1)
    for _ in range(12):
        batch, m, n = (int(x) for x in rng.integers(1, [4, 900, 900]))
        q, k, v = (torch.randn((batch, 4, each, 128), device="cuda").to(torch.bfloat16) for each in (m, n, n))
        got = torch.full_like(q, float("nan"))
        kernel(q, k, v, got)
        hidden = torch.ones((m, n), device="cuda", dtype=torch.bool).triu(n - m + 1) & causal
        scores = (q.float() @ k.float().mT / 128**0.5).masked_fill(hidden, -torch.inf)
        wanted = torch.nan_to_num(scores.softmax(-1)) @ v.float()  # rows without a key are zeros
        assert torch.allclose(got.float(), wanted, rtol=2.0**-7, atol=2.0**-6), (batch, m, n)
