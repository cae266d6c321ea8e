"""Transposes and sums of matrices, with gradients.

The gradient of a sum is the sum's own gradient in every element, which PyTorch expands without a copy.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.torch.calls import operator
from helve.torch.library import Kernels, check_dtype, check_rows, checked, rows_of
from helve.torch.registration import refused, register

_transpose_kernels = Kernels(kernels.transpose, "Y")
_row_kernels = Kernels(kernels.row_sums, "S")
_column_kernels = Kernels(kernels.column_sums, "S")


def _check_matrix(x: torch.Tensor) -> str:
    if x.dim() != 2:
        raise refused("helve.torch.transpose", x, "x", "it is no matrix", "pass a tensor of two dimensions")
    return check_dtype("transpose", "x", x)


@checked
def _transpose_run(x: torch.Tensor) -> torch.Tensor:
    return _transpose_kernels(x, _check_matrix(x))(x.contiguous())


@checked
def _transpose_fake(x: torch.Tensor) -> torch.Tensor:
    _check_matrix(x)
    return x.new_empty(x.shape[1], x.shape[0])


@checked
def _row_sums_run(x: torch.Tensor) -> torch.Tensor:
    return _row_kernels(x, *check_rows("row_sums", "x", x))(rows_of(x)).view(x.shape[:-1])


@checked
def _row_sums_fake(x: torch.Tensor) -> torch.Tensor:
    check_rows("row_sums", "x", x)
    return x.new_empty(x.shape[:-1], dtype=torch.float32)


@checked
def _column_sums_run(x: torch.Tensor) -> torch.Tensor:
    return _column_kernels(x, *check_rows("column_sums", "x", x))(rows_of(x))


@checked
def _column_sums_fake(x: torch.Tensor) -> torch.Tensor:
    check_rows("column_sums", "x", x)
    return x.new_empty(x.shape[-1], dtype=torch.float32)


def _setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    ctx.shape, ctx.dtype = inputs[0].shape, inputs[0].dtype


_transpose = register("helve::transpose", "(Tensor x) -> Tensor", _transpose_run, _transpose_fake,
                      backward=lambda ctx, dy: _transpose(dy))
_row_sums = register("helve::row_sums", "(Tensor x) -> Tensor", _row_sums_run, _row_sums_fake, setup=_setup,
                     backward=lambda ctx, ds: ds.to(ctx.dtype).unsqueeze(-1).expand(ctx.shape))
_column_sums = register("helve::column_sums", "(Tensor x) -> Tensor", _column_sums_run, _column_sums_fake,
                        setup=_setup, backward=lambda ctx, ds: ds.to(ctx.dtype).expand(ctx.shape))


@operator
def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transposed matrix, in memory of its own.

    Args:
        x: (M, N) of float32, float16 or bfloat16; made contiguous if it is not.

    Returns:
        (N, M) of the dtype of `x`.

    Raises:
        helve.Error: HV0108 for another tensor.
    """
    return _transpose(x)


@operator
def row_sums(x: torch.Tensor) -> torch.Tensor:
    """Sums over the last dimension, in float32.

    Args:
        x: (..., N) of float32, float16 or bfloat16; made contiguous if it is not.

    Returns:
        (...) of float32.

    Raises:
        helve.Error: HV0108 for another tensor.
    """
    return _row_sums(x)


@operator
def column_sums(x: torch.Tensor) -> torch.Tensor:
    """Sums over all dimensions but the last, in float32; the same bits in every run.

    Args:
        x: (..., N) of float32, float16 or bfloat16; made contiguous if it is not.

    Returns:
        (N,) of float32.

    Raises:
        helve.Error: HV0108 for another tensor.
    """
    return _column_sums(x)
