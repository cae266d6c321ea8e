"""Kernels ready to use: norms and the like, products, attention; each is also an example of how it is written.

A builder takes sizes, an element type and tuning parameters and returns a function for `helve.compile`;
`helve.jit(builder)` does both and keeps the result.
"""

from __future__ import annotations

from helve.kernels.attention import attention
from helve.kernels.attention_backward import attention_backward
from helve.kernels.attention_varlen import attention_varlen
from helve.kernels.cross_entropy import cross_entropy
from helve.kernels.cross_entropy_backward import cross_entropy_backward
from helve.kernels.gemm import gemm
from helve.kernels.gemm_w4a16 import gemm_w4a16
from helve.kernels.grouped_gemm import grouped_gemm
from helve.kernels.layer_norm import layer_norm
from helve.kernels.layer_norm_backward import layer_norm_backward
from helve.kernels.rms_norm import rms_norm
from helve.kernels.rms_norm_backward import rms_norm_backward
from helve.kernels.rope import rope
from helve.kernels.softmax import softmax, softmax_backward
from helve.kernels.sums import column_sums, row_sums
from helve.kernels.swiglu import swiglu, swiglu_backward
from helve.kernels.transpose import transpose

__all__ = [
    "attention",
    "attention_backward",
    "attention_varlen",
    "column_sums",
    "cross_entropy",
    "cross_entropy_backward",
    "gemm",
    "gemm_w4a16",
    "grouped_gemm",
    "layer_norm",
    "layer_norm_backward",
    "rms_norm",
    "rms_norm_backward",
    "rope",
    "row_sums",
    "softmax",
    "softmax_backward",
    "swiglu",
    "swiglu_backward",
    "transpose",
]
