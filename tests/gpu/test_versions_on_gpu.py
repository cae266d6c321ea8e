"""Kernels in versions on a CUDA device: rows of whole vectors, other rows, and tensors that begin anywhere.

Skips itself where PyTorch finds no device.
"""

import pytest
import test_versions as programs

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_transpose(dtype):
    kernel = helve.compile(helve.parse(programs.TRANSPOSE.format(dtype=dtype)), target="cuda")
    for m, n in [(64, 128), (4104, 520), (40, 24), (7, 16), (16, 7), (8, 0), (1, 1), (1001, 333)]:
        for offset in (0, 1):
            memory = torch.randint(-99, 99, (m * n + 1,), device="cuda").to(getattr(torch, dtype))
            x = memory[offset : offset + m * n].view(m, n)
            y = torch.empty(n, m, device="cuda", dtype=x.dtype)
            kernel(x, y)
            assert torch.equal(y, x.t()), (m, n, offset)
