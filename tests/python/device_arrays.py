"""NumPy arrays as tensors on a device and back: PyTorch reads neither bfloat16 nor 8-bit floats from NumPy."""

import ml_dtypes
import numpy as np
import torch

import helve

# The tensor's type of an array's, and the integer of its size.
SMALL = {
    np.dtype(ml_dtypes.bfloat16): (torch.bfloat16, "int16"),
    np.dtype(ml_dtypes.float8_e4m3fn): (torch.float8_e4m3fn, "int8"),
    np.dtype(ml_dtypes.float8_e5m2): (torch.float8_e5m2, "int8"),
}  # fmt: skip


def on_device(array):
    """The array as a tensor on the device."""
    if array.dtype not in SMALL:
        return torch.from_numpy(np.array(array)).cuda()
    dtype, word = SMALL[array.dtype]
    return torch.from_numpy(np.array(array.view(word))).cuda().view(dtype)


def on_host(tensor, dtype):
    """The tensor as an array of `dtype` again."""
    if dtype not in SMALL:
        return tensor.cpu().numpy()
    return tensor.view(getattr(torch, SMALL[dtype][1])).cpu().numpy().view(dtype)


def check_on_device(call):
    """Runs a call of the kernel library there, and checks its results (matrix_kernel_cases.py)."""
    before = call.arguments()
    given = [each if isinstance(each, int) else on_device(np.ascontiguousarray(each)) for each in before]
    helve.compile(call.function, target="cuda")(*given)
    call.check([each if isinstance(each, int) else on_host(each, old.dtype)
                for each, old in zip(given, before, strict=True)])
