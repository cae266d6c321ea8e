"""Programs on a CUDA device, against the interpreter. Importing it skips a module where there is no PyTorch."""

import numpy as np
import pytest

import helve
import helve.testing

torch = pytest.importorskip("torch")
needs_tma = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9,
                                       reason="there is no CUDA device with TMA")


def agrees(function, arrays, offset=0):
    """The last array is what the interpreter makes of it; `offset` elements misalign every tensor."""
    wanted = [array.copy() for array in arrays]
    helve.testing.interpret(function, *wanted)
    tensors = []
    for array in arrays:
        memory = torch.empty(array.size + offset, dtype=torch.from_numpy(array).dtype, device="cuda")
        tensors.append(memory[offset:].view(array.shape))
        tensors[-1].copy_(torch.from_numpy(array))
    helve.compile(function, target="cuda")(*tensors)
    np.testing.assert_array_equal(tensors[-1].cpu().numpy(), wanted[-1])
