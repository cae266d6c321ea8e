"""Asynchronous copies and pipelined loops on a CUDA device, against the interpreter and NumPy.

Skips itself where PyTorch finds no device. Small programs meet every length of a loop and every width of a copy; the
large ones run on all of the device at once, many times, so that a missing wait or barrier has its chance to show.
"""

import numpy as np
import pytest
from test_async_copies import PROGRAMS, arguments, products

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_the_interpreter(name):
    function = PROGRAMS[name][0]
    wanted = arguments(name)
    helve.compile(function, target="interp")(*wanted)
    tensors = [torch.from_numpy(array).cuda() for array in arguments(name)]
    helve.compile(function, target="cuda")(*tensors)
    np.testing.assert_array_equal(tensors[-1].cpu().numpy(), wanted[-1])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_large_products(stages, dtype):
    kernel = helve.compile(products(1024, 1024, 1000, stages, dtype, tile=32), target="cuda")
    rng = np.random.default_rng(stages)
    a, b = (torch.from_numpy(rng.integers(-3, 4, shape).astype(dtype)).cuda()
            for shape in [(1024, 1000), (1000, 1024)])
    wanted = a.float() @ b.float()  # whole numbers: exact in any order
    for _ in range(20):
        c = torch.full((1024, 1024), -1.0, device="cuda")
        kernel(a, b, c)
        assert torch.equal(c, wanted)
