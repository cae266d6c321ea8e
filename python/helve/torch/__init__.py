"""Kernels as operators of PyTorch: eager, under `torch.compile`, and with gradients.

`op` makes an operator of any kernel; the others are those of helve.kernels, called as PyTorch's own functions are. This
package needs PyTorch, and nothing else in helve does: `import helve.torch` asks for it.
"""

from __future__ import annotations

import os

try:
    import torch
except ModuleNotFoundError as fault:
    if fault.name != "torch":
        raise
    raise ModuleNotFoundError("helve.torch needs PyTorch, which is not installed: pip install torch",
                              name="torch") from None

from helve import source
from helve.torch.attention import attention
from helve.torch.cross_entropy import cross_entropy
from helve.torch.matrices import column_sums, row_sums, transpose
from helve.torch.norms import layer_norm, rms_norm
from helve.torch.operator import op
from helve.torch.products import gemm
from helve.torch.rope import rope
from helve.torch.rows import softmax, swiglu

source.add_inner(os.path.dirname(torch.__file__))  # its dispatcher stands between a user's call and the kernel's

__all__ = [
    "attention",
    "column_sums",
    "cross_entropy",
    "gemm",
    "layer_norm",
    "op",
    "rms_norm",
    "rope",
    "row_sums",
    "softmax",
    "swiglu",
    "transpose",
]
