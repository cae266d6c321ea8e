"""Softmax over a dimension, and SwiGLU, with gradients.

Softmax keeps its result for the backward pass, SwiGLU its inputs.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.torch.calls import operator
from helve.torch.library import Kernels, check_like, check_rows, checked, rows_of
from helve.torch.registration import register

_softmax_kernels = Kernels(kernels.softmax, "Y")
_softmax_backward_kernels = Kernels(kernels.softmax_backward, "DX")
_swiglu_kernels = Kernels(kernels.swiglu, "Y")
_swiglu_backward_kernels = Kernels(kernels.swiglu_backward, ("DA", "DB"))


@checked
def _softmax_run(x: torch.Tensor) -> torch.Tensor:
    return _softmax_kernels(x, *check_rows("softmax", "x", x))(rows_of(x)).view(x.shape)


@checked
def _softmax_fake(x: torch.Tensor) -> torch.Tensor:
    check_rows("softmax", "x", x)
    return x.new_empty(x.shape)


@checked
def _softmax_backward_run(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return _softmax_backward_kernels(y, *check_rows("softmax", "y", y))(rows_of(y), rows_of(dy)).view(y.shape)


def _softmax_backward_fake(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return y.new_empty(y.shape)


def _softmax_setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    ctx.save_for_backward(output)


def _softmax_gradients(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
    return _softmax_backward(ctx.saved_tensors[0], dy)


def _check_swiglu(a: torch.Tensor, b: torch.Tensor) -> tuple[int, str]:
    found = check_rows("swiglu", "a", a)
    check_like("swiglu", "b", b, "a", a, a.shape)
    return found


@checked
def _swiglu_run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _swiglu_kernels(a, *_check_swiglu(a, b))(rows_of(a), rows_of(b)).view(a.shape)


@checked
def _swiglu_fake(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _check_swiglu(a, b)
    return a.new_empty(a.shape)


@checked
def _swiglu_backward_run(a: torch.Tensor, b: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    da, db = _swiglu_backward_kernels(a, *_check_swiglu(a, b))(rows_of(a), rows_of(b), rows_of(dy))
    return da.view(a.shape), db.view(a.shape)


def _swiglu_backward_fake(a: torch.Tensor, b: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return a.new_empty(a.shape), a.new_empty(a.shape)


def _swiglu_setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _swiglu_gradients(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _swiglu_backward(*ctx.saved_tensors, dy)


_softmax_backward = register("helve::softmax_backward", "(Tensor y, Tensor dy) -> Tensor", _softmax_backward_run,
                             _softmax_backward_fake)
_softmax = register("helve::softmax", "(Tensor x) -> Tensor", _softmax_run, _softmax_fake, setup=_softmax_setup,
                    backward=_softmax_gradients)
_swiglu_backward = register("helve::swiglu_backward", "(Tensor a, Tensor b, Tensor dy) -> (Tensor, Tensor)",
                            _swiglu_backward_run, _swiglu_backward_fake)
_swiglu = register("helve::swiglu", "(Tensor a, Tensor b) -> Tensor", _swiglu_run, _swiglu_fake, setup=_swiglu_setup,
                   backward=_swiglu_gradients)


@operator
def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """exp(x) / sum of exp(x) over a dimension, in float32 from the maximum, rounded once.

    Args:
        x: of float32, float16 or bfloat16, any shape with elements along `dim`; made contiguous if it is not.
        dim: the dimension; any but the last one is moved behind the others, which copies.

    Returns:
        A tensor like `x`.

    Raises:
        helve.Error: HV0108 for another tensor.
    """
    if dim in (-1, x.dim() - 1):
        return _softmax(x)
    return _softmax(x.movedim(dim, -1)).movedim(-1, dim)


@operator
def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a * sigmoid(a) * b, in float32 and rounded once.

    Args:
        a: the gate, (..., N) of float32, float16 or bfloat16; made contiguous if it is not.
        b: like `a`.

    Returns:
        A tensor like `a`.

    Raises:
        helve.Error: HV0108 for tensors that are not these.
    """
    return _swiglu(a, b)
