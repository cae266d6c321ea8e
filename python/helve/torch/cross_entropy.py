"""Cross entropy against labels, with its gradient.

The scores are read once in each pass, and only their log-sum-exp is kept between the passes, a number for each row.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.caller import at_caller
from helve.torch.calls import operator
from helve.torch.library import Kernels, check_dtype, check_rows, checked, rows_of
from helve.torch.registration import refused, register

_kernels = Kernels(kernels.cross_entropy, ("LOSS", "LSE"))
_backward_kernels = Kernels(kernels.cross_entropy_backward, "DX")
_REDUCTIONS = ("mean", "sum", "none")


def _check(x: torch.Tensor, target: torch.Tensor) -> tuple[int, str, str]:
    N, dtype = check_rows("cross_entropy", "x", x)
    label_dtype = check_dtype("cross_entropy", "target", target, ("int64", "int32"))
    if tuple(target.shape) != tuple(x.shape[:-1]):
        raise refused("helve.torch.cross_entropy", target, "target", "x has rows of shape "
                      f"[{', '.join(map(str, x.shape[:-1]))}]", "give each row of x, along its last dimension, a label")
    return N, dtype, label_dtype


@checked
def _run(x: torch.Tensor, target: torch.Tensor, ignore_index: int) -> tuple[torch.Tensor, torch.Tensor]:
    kernel = _kernels(x, *_check(x, target), ignore_index)
    loss, lse = kernel(rows_of(x), target.reshape(-1).contiguous())
    return loss.view(target.shape), lse.view(target.shape)


@checked
def _fake(x: torch.Tensor, target: torch.Tensor, ignore_index: int) -> tuple[torch.Tensor, torch.Tensor]:
    _check(x, target)
    return x.new_empty(target.shape, dtype=torch.float32), x.new_empty(target.shape, dtype=torch.float32)


@checked
def _backward_run(x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, dloss: torch.Tensor,
                  ignore_index: int) -> torch.Tensor:
    flat = [each.reshape(-1).contiguous() for each in (target, lse, dloss)]
    return _backward_kernels(x, *_check(x, target), ignore_index)(rows_of(x), *flat).view(x.shape)


def _backward_fake(x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, dloss: torch.Tensor,
                   ignore_index: int) -> torch.Tensor:
    return x.new_empty(x.shape)


def _setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, target, ctx.ignore_index = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(x, target, output[1])


def _gradients(ctx: Any, dloss: torch.Tensor, _: Any) -> tuple:
    return _backward(*ctx.saved_tensors, dloss, ctx.ignore_index), None, None


_backward = register("helve::cross_entropy_backward",
                     "(Tensor x, Tensor target, Tensor lse, Tensor dloss, int ignore_index) -> Tensor", _backward_run,
                     _backward_fake)
_cross_entropy = register("helve::cross_entropy",
                          "(Tensor x, Tensor target, int ignore_index) -> (Tensor, Tensor)", _run, _fake, setup=_setup,
                          backward=_gradients)


@operator
def cross_entropy(x: torch.Tensor, target: torch.Tensor, ignore_index: int = -100,
                  reduction: str = "mean") -> torch.Tensor:
    """log(sum of exp(x)) - x[target] over the last dimension, in float32.

    Args:
        x: scores, (..., N) of float32, float16 or bfloat16; made contiguous if it is not. Classes are the last
            dimension, other than the second one as in `torch.nn.functional.cross_entropy`.
        target: labels, (...) of int64 or int32. One that is no column gives NaN.
        ignore_index: the label of rows that do not count.
        reduction: "mean" over the rows that count, "sum", or "none".

    Returns:
        The loss in float32: a number, or (...) without a reduction.

    Raises:
        helve.Error: HV0108 for arguments that are not these.
    """
    if reduction not in _REDUCTIONS:
        raise at_caller(refused("helve.torch.cross_entropy", reduction, "reduction", "it is none",
                                'give "mean", "sum" or "none"'))
    loss = _cross_entropy(x, target, ignore_index)[0]
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else total / (target != ignore_index).sum()
