"""RMSNorm and LayerNorm over the last dimension, with gradients.

The backward kernels start from the inputs: nothing but those is kept between the passes.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.torch.calls import operator
from helve.torch.library import Kernels, check_like, check_rows, checked, rows_of, under_autocast
from helve.torch.registration import register

_rms_norm_kernels = Kernels(kernels.rms_norm, "Y")
_rms_norm_backward_kernels = Kernels(kernels.rms_norm_backward, ("DX", "DW"))
_layer_norm_kernels = Kernels(kernels.layer_norm, "Y")
_layer_norm_backward_kernels = Kernels(kernels.layer_norm_backward, ("DX", "DW", "DB"))


def _check(function: str, x: torch.Tensor, **others: torch.Tensor) -> tuple[int, str]:
    N, dtype = check_rows(function, "x", x)
    for name, tensor in others.items():
        check_like(function, name, tensor, "x", x, (N,))
    return N, dtype


@checked
def _rms_norm_run(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    N, dtype = _check("rms_norm", x, weight=weight)
    return _rms_norm_kernels(x, N, dtype, eps)(rows_of(x), weight.contiguous()).view(x.shape)


@checked
def _rms_norm_fake(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    _check("rms_norm", x, weight=weight)
    return x.new_empty(x.shape)


@checked
def _rms_norm_backward_run(x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor,
                           eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    kernel = _rms_norm_backward_kernels(x, *check_rows("rms_norm", "x", x), eps)
    dx, dw = kernel(rows_of(x), weight.contiguous(), rows_of(dy))
    return dx.view(x.shape), dw


def _rms_norm_backward_fake(x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor,
                            eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    return x.new_empty(x.shape), weight.new_empty(weight.shape, dtype=torch.float32)


def _setup(ctx: Any, inputs: tuple, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.eps = inputs[-1]


def _rms_norm_gradients(ctx: Any, dy: torch.Tensor) -> tuple:
    x, weight = ctx.saved_tensors
    dx, dw = _rms_norm_backward(x, weight, dy, ctx.eps)
    return dx, dw.to(weight.dtype), None


@checked
def _layer_norm_run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    N, dtype = _check("layer_norm", x, weight=weight, bias=bias)
    kernel = _layer_norm_kernels(x, N, dtype, eps)
    return kernel(rows_of(x), weight.contiguous(), bias.contiguous()).view(x.shape)


@checked
def _layer_norm_fake(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    _check("layer_norm", x, weight=weight, bias=bias)
    return x.new_empty(x.shape)


@checked
def _layer_norm_backward_run(x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor,
                             eps: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    kernel = _layer_norm_backward_kernels(x, *check_rows("layer_norm", "x", x), eps)
    dx, dw, db = kernel(rows_of(x), weight.contiguous(), rows_of(dy))
    return dx.view(x.shape), dw, db


def _layer_norm_backward_fake(x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor,
                              eps: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    sums = (weight.new_empty(weight.shape, dtype=torch.float32) for _ in range(2))
    return (x.new_empty(x.shape), *sums)


def _layer_norm_gradients(ctx: Any, dy: torch.Tensor) -> tuple:
    x, weight = ctx.saved_tensors
    dx, dw, db = _layer_norm_backward(x, weight, dy, ctx.eps)
    return dx, dw.to(weight.dtype), db.to(weight.dtype), None


_rms_norm_backward = register("helve::rms_norm_backward",
                              "(Tensor x, Tensor weight, Tensor dy, float eps) -> (Tensor, Tensor)",
                              _rms_norm_backward_run, _rms_norm_backward_fake)
_rms_norm = register("helve::rms_norm", "(Tensor x, Tensor weight, float eps) -> Tensor", _rms_norm_run,
                     _rms_norm_fake, setup=_setup, backward=_rms_norm_gradients)
_layer_norm_backward = register("helve::layer_norm_backward",
                                "(Tensor x, Tensor weight, Tensor dy, float eps) -> (Tensor, Tensor, Tensor)",
                                _layer_norm_backward_run, _layer_norm_backward_fake)
_layer_norm = register("helve::layer_norm", "(Tensor x, Tensor weight, Tensor bias, float eps) -> Tensor",
                       _layer_norm_run, _layer_norm_fake, setup=_setup, backward=_layer_norm_gradients)


@operator
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean of x squared over the last dimension + eps) * weight, in float32 and rounded once.

    Args:
        x: (..., N) of float32, float16 or bfloat16; made contiguous if it is not.
        weight: (N,) of the same dtype.
        eps: what is added to the mean square.

    Returns:
        A tensor like `x`.

    Raises:
        helve.Error: HV0108 for tensors that are not these.
    """
    (weight,) = under_autocast(x.dtype, weight)
    return _rms_norm(x, weight, eps)


@operator
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimension, in float32 and rounded once.

    Args:
        x: (..., N) of float32, float16 or bfloat16; made contiguous if it is not.
        weight: (N,) of the same dtype.
        bias: (N,) of the same dtype.
        eps: what is added to the variance, that of the whole row.

    Returns:
        A tensor like `x`.

    Raises:
        helve.Error: HV0108 for tensors that are not these.
    """
    weight, bias = under_autocast(x.dtype, weight, bias)
    return _layer_norm(x, weight, bias, eps)
