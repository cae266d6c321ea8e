"""Kernels that are bound by memory, ready to use; each is also an example of how such a kernel is written.

A builder takes sizes, an element type and tuning parameters and returns a function for `helve.compile`; `compiled` does
both and keeps the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import helve
from helve.kernels.cross_entropy import cross_entropy
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
    "column_sums",
    "compiled",
    "cross_entropy",
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


@cache
def compiled(builder: Callable, *args, target: str | None = None, arch: str | None = None,
             fast_math: bool = False, **parameters) -> helve.Kernel:
    """The kernel of `builder(*args, **parameters)`, compiled at the first call with these arguments.

        kernel = helve.kernels.compiled(helve.kernels.softmax, 4096, "bfloat16", target="cuda")
        kernel(x, y)

    Args:
        builder: a function of this package, or any that returns what `helve.compile` takes.
        args, parameters: the builder's arguments.
        target, arch, fast_math: as for `helve.compile`.

    Raises:
        helve.Error: the kernel does not compile.
        ValueError: the builder refuses its arguments.
    """
    return helve.compile(builder(*args, **parameters), target=target, arch=arch, fast_math=fast_math)
