"""Products of matrices on tensor cores, with bias, activation and residual, and their gradients.

A gradient of a product is two products. What stood between the product and an activation is not kept but computed once
more, in float32, so that the gradient is that of what was computed.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.caller import at_caller
from helve.kernels.gemm import ACTIVATIONS
from helve.kernels.gemm_plan import FACTORS, OUTPUTS
from helve.torch.calls import operator
from helve.torch.library import Kernels, architecture, check_dtype, checked, under_autocast
from helve.torch.matrices import column_sums
from helve.torch.registration import no_gradient, refused, register

_kernels = Kernels(kernels.gemm, "C")
_SCHEMA = ("(Tensor a, Tensor b, Tensor? bias, Tensor? residual, Tensor? scale, str? activation, bool transpose_a, "
           "bool transpose_b, ScalarType dtype) -> Tensor")
_DERIVATIVES = {
    "relu": lambda dc, z: torch.ops.aten.threshold_backward(dc, z, 0.0),
    "silu": lambda dc, z: torch.ops.aten.silu_backward(dc, z),
    "gelu": lambda dc, z: torch.ops.aten.gelu_backward(dc, z),
}


def _shape(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> tuple[int, ...]:
    """Of the result. Raises helve.Error HV0108 for factors that do not fit each other."""
    check_dtype("gemm", "a", a, tuple(FACTORS))
    if b.dtype != a.dtype:
        raise refused("helve.torch.gemm", b, "b", f"a is {a.dtype}", "convert one of them, as b.to(a.dtype)")
    if a.dim() not in (2, 3) or a.dim() != b.dim():
        raise refused("helve.torch.gemm", a, "a", f"b is {b.dim()}-dimensional, and both are matrices, or batches of "
                      "as many", "reshape them to two or three dimensions")
    rows, terms = (a.shape[-1], a.shape[-2]) if transpose_a else (a.shape[-2], a.shape[-1])
    others, columns = (b.shape[-1], b.shape[-2]) if transpose_b else (b.shape[-2], b.shape[-1])
    if terms != others or a.shape[:-2] != b.shape[:-2]:
        raise refused("helve.torch.gemm", b, "b", f"a has {terms} terms a sum where b has {others}" if terms != others
                      else f"a has {a.shape[0]} matrices where b has {b.shape[0]}",
                      "make the extents equal; transpose_a and transpose_b say which is transposed")
    return *a.shape[:-2], rows, columns


def _check(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None,
           scale: torch.Tensor | None, activation: str | None, transpose_a: bool, transpose_b: bool,
           dtype: torch.dtype) -> tuple[tuple[int, ...], str]:
    shape = _shape(a, b, transpose_a, transpose_b)
    if activation not in ACTIVATIONS:
        raise refused("helve.torch.gemm", activation, "activation", "it is none of the library",
                      f"give one of {', '.join(name for name in ACTIVATIONS if name)}, or None")
    out = str(dtype).removeprefix("torch.")
    if out not in OUTPUTS:
        raise refused("helve.torch.gemm", dtype, "dtype", "results are not of this dtype",
                      f"give one of {', '.join(f'torch.{each}' for each in OUTPUTS)}")
    for name, tensor, wanted, kind in (("bias", bias, shape[-1:], dtype), ("residual", residual, shape, dtype),
                                       ("scale", scale, (1,), torch.float32)):
        if tensor is not None and (tuple(tensor.shape) != tuple(wanted) or tensor.dtype != kind):
            raise refused("helve.torch.gemm", tensor, name, f"here it is {str(kind).removeprefix('torch.')}"
                          f"[{', '.join(map(str, wanted))}]", "convert it, or reshape it")
    return shape, out


@checked
def _run(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None,
         scale: torch.Tensor | None, activation: str | None, transpose_a: bool, transpose_b: bool,
         dtype: torch.dtype) -> torch.Tensor:
    _, out = _check(a, b, bias, residual, scale, activation, transpose_a, transpose_b, dtype)
    kernel = _kernels(a, check_dtype("gemm", "a", a, tuple(FACTORS)), out, transpose_A=transpose_a,
                      transpose_B=transpose_b, batch=a.dim() == 3, scale=scale is not None, bias=bias is not None,
                      activation=activation, residual=residual is not None, arch=architecture(a))
    more = [each.contiguous() for each in (scale, bias, residual) if each is not None]
    return kernel(a.contiguous(), b.contiguous(), *more)


@checked
def _fake(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None,
          scale: torch.Tensor | None, activation: str | None, transpose_a: bool, transpose_b: bool,
          dtype: torch.dtype) -> torch.Tensor:
    shape, _ = _check(a, b, bias, residual, scale, activation, transpose_a, transpose_b, dtype)
    return a.new_empty(shape, dtype=dtype)


def _setup(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    a, b, bias, residual, scale, ctx.activation, *ctx.transposed, ctx.dtype = inputs
    ctx.has_scale = scale is not None
    ctx.save_for_backward(a, b, bias if ctx.activation else None)


def _gradients(ctx: Any, dc: torch.Tensor) -> tuple:
    a, b, bias = ctx.saved_tensors
    left, right = ctx.transposed
    if ctx.has_scale or a.dtype not in (torch.bfloat16, torch.float16):
        raise at_caller(no_gradient("helve::gemm", "products with a scale, and of 8-bit floats, have none",
                                    "multiply in bfloat16 or float16 where gradients are wanted"))
    needed = ctx.needs_input_grad
    dresidual = dc if needed[3] else None
    if ctx.activation is not None:
        z = _gemm(a, b, None if bias is None else bias.float(), None, None, None, left, right, torch.float32)
        dc = _DERIVATIVES[ctx.activation](dc.float(), z)
    dc = dc.to(a.dtype)
    da = db = None
    if needed[0]:  # dA = dC @ B^T, and its transpose where A is transposed
        da = _product(b, dc, right, True) if left else _product(dc, b, False, not right)
    if needed[1]:  # dB = A^T @ dC
        db = _product(dc, a, True, left) if right else _product(a, dc, not left, False)
    dbias = column_sums(dc).to(ctx.dtype) if needed[2] else None
    return da, db, dbias, dresidual, None, None, None, None, None


def _product(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    return _gemm(a, b, None, None, None, None, transpose_a, transpose_b, a.dtype)


_gemm = register("helve::gemm", _SCHEMA, _run, _fake, setup=_setup, backward=_gradients)


@operator
def gemm(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, residual: torch.Tensor | None = None, *,
         scale: torch.Tensor | None = None, activation: str | None = None, transpose_a: bool = False,
         transpose_b: bool = False, dtype: torch.dtype | None = None) -> torch.Tensor:
    """activation(a @ b * scale + bias) + residual, in sums of float32 that are rounded once.

    Args:
        a: (M, K), or (K, M) if transposed, of bfloat16, float16, float8_e4m3fn or float8_e5m2; with a further dimension
            in front, a batch of products; or (..., K) where `b` is a matrix, as layers have it. Made contiguous if it
            is not, and so are others. Under torch.autocast all are converted, other than those of 8 bits.
        b: (K, N), or (N, K) if transposed, of the same dtype, and as many as of `a`. 8-bit factors have K last.
        bias: (N,) of the result's dtype.
        residual: like the result.
        scale: (1,) of float32.
        activation: "relu", "silu" or "gelu".
        transpose_a: is `a` (K, M)?
        transpose_b: is `b` (N, K), as weights of a linear layer are?
        dtype: of the result, bfloat16, float16 or float32; by default that of `a`, bfloat16 for 8 bits.

    Returns:
        (M, N), a batch, or (..., N). Products of 16-bit floats without a scale have gradients, made of products of the
        same kind.

    Raises:
        helve.Error: HV0108 for arguments that are not these.
    """
    a, b = under_autocast(None, a, b)
    if dtype is None:
        dtype = a.dtype if a.dtype == torch.float16 else torch.bfloat16
    bias, residual = under_autocast(dtype, bias, residual)
    rows = a.shape[:-1]
    if is_layer := b.dim() == 2 < a.dim() and not transpose_a:
        a, residual = a.flatten(0, -2), None if residual is None else residual.flatten(0, -2)
    c = _gemm(a, b, bias, residual, scale, activation, transpose_a, transpose_b, dtype)
    return c.unflatten(0, rows) if is_layer else c
