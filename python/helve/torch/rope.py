"""Rotary position embedding, with gradients.

A rotation's transpose is its inverse, so the gradient is the operator itself with the angle's sign turned.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.torch.calls import operator
from helve.torch.library import Kernels, check_dtype, checked
from helve.torch.registration import refused, register

_kernels = Kernels(kernels.rope, "Y")


def _check(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> str:
    dtype = check_dtype("rope", "x", x)
    if x.dim() < 3 or x.shape[-1] % 2 or not x.shape[-1] or not x.shape[-2]:
        raise refused("helve.torch.rope", x, "x", "it is no (..., positions, heads, D) with an even D",
                      "pass a tensor of these dimensions")
    for name, tensor in (("cos", cos), ("sin", sin)):
        check_dtype("rope", name, tensor, ("float32",))
        if tuple(tensor.shape) != (x.shape[-3], x.shape[-1] // 2):
            raise refused("helve.torch.rope", tensor, name, f"x has {x.shape[-3]} positions and {x.shape[-1]} elements "
                          "a head", f"pass a tensor of shape [{x.shape[-3]}, {x.shape[-1] // 2}]")
    return dtype


@checked
def _run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool) -> torch.Tensor:
    dtype = _check(x, cos, sin)
    kernel = _kernels(x, x.shape[-2], x.shape[-1], dtype, inverse)
    batch = x.reshape(-1, *x.shape[-3:]) if x.shape[-3] else x.new_empty(0, *x.shape[-3:])
    return kernel(batch.contiguous(), cos.contiguous(), sin.contiguous()).view(x.shape)


@checked
def _fake(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool) -> torch.Tensor:
    _check(x, cos, sin)
    return x.new_empty(x.shape)


def _setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    _, cos, sin, ctx.inverse = inputs
    ctx.save_for_backward(cos, sin)


def _gradients(ctx: Any, dy: torch.Tensor) -> tuple:
    return _rope(dy, *ctx.saved_tensors, not ctx.inverse), None, None, None


_rope = register("helve::rope", "(Tensor x, Tensor cos, Tensor sin, bool inverse) -> Tensor", _run, _fake,
                 setup=_setup, backward=_gradients)


@operator
def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool = False) -> torch.Tensor:
    """Turns the pairs of a head's elements, half a head apart, by the angle of their position, in float32.

    Args:
        x: (..., S, heads, D), D even, of float32, float16 or bfloat16; made contiguous if it is not.
        cos: (S, D / 2) of float32, the cosines of the angles; no gradient.
        sin: (S, D / 2) of float32, the sines; no gradient.
        inverse: turn back.

    Returns:
        A tensor like `x`.

    Raises:
        helve.Error: HV0108 for tensors that are not these.
    """
    return _rope(x, cos, sin, inverse)
