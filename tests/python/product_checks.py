"""What tests of tensor cores on a device share."""

import helve
import numpy as np

TORCH = {"float8_e4m3": "float8_e4m3fn"}  # other types have one name


def check_exact(function, given, expected, dtype):
    """Runs the function on copies of its arguments; sums of small whole numbers are exact."""
    import torch

    kinds = [dtype, dtype, str(given[2].dtype)]
    tensors = [torch.from_numpy(each.astype("float32")).cuda().to(getattr(torch, TORCH.get(kind, kind)))
               for each, kind in zip(given, kinds)]
    helve.compile(function, target="cuda")(*tensors)
    np.testing.assert_array_equal(tensors[2].cpu().numpy(), expected)
