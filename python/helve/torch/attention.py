"""Attention without the matrix of scores in memory, and its gradient.

The forward pass keeps the logarithm of the sum of a row's weights, from which the backward pass makes them once more.
"""

from __future__ import annotations

from typing import Any

import torch

from helve import kernels
from helve.caller import at_caller
from helve.kernels.attention_plan import BACKWARD, DTYPES, HEADS
from helve.torch.calls import operator
from helve.torch.library import Kernels, architecture, check_dtype, checked, under_autocast
from helve.torch.registration import no_gradient, refused, register, shown

_kernels = Kernels(kernels.attention, ("O", "LSE"))
_backward_kernels = Kernels(kernels.attention_backward, ("DQ", "DK", "DV"))


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> str:
    dtype = check_dtype("attention", "q", q, DTYPES)
    if q.dim() != 4 or q.shape[-1] not in HEADS:
        raise refused("helve.torch.attention", q, "q", "it is no (batch, heads, queries, head) with heads of "
                      f"{', '.join(map(str, HEADS))} elements", "pass a tensor of these dimensions")
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != q.dtype or tensor.dim() != 4 or (tensor.shape[0], tensor.shape[3]) != \
                (q.shape[0], q.shape[3]) or tensor.shape[1] == 0 or q.shape[1] % tensor.shape[1]:
            raise refused("helve.torch.attention", tensor, name, f"q is {shown(q)}",
                          "pass (batch, heads_kv, keys, head) of that dtype, where heads_kv divides the heads of q")
    if k.shape != v.shape:
        raise refused("helve.torch.attention", v, "v", f"k is {shown(k)}", "give both the same shape")
    return dtype


@checked
def _run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool,
         scale: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = _check(q, k, v)
    kernel = _kernels(q, q.shape[1], q.shape[3], dtype, heads_kv=k.shape[1], causal=causal, lse=True, scale=scale,
                      arch=architecture(q))
    return kernel(q.contiguous(), k.contiguous(), v.contiguous())


@checked
def _fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool,
          scale: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    _check(q, k, v)
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)


@checked
def _backward_run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor,
                  do: torch.Tensor, causal: bool,
                  scale: float | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    kernel = _backward_kernels(q, q.shape[1], q.shape[3], _check(q, k, v), heads_kv=k.shape[1], causal=causal,
                               scale=scale, arch=architecture(q))
    return kernel(*(each.contiguous() for each in (q, k, v, o, lse, do)))


def _backward_fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor,
                   do: torch.Tensor, causal: bool,
                   scale: float | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _setup(ctx: Any, inputs: tuple, output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, ctx.causal, ctx.scale = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(q, k, v, *output)


def _gradients(ctx: Any, do: torch.Tensor, _: torch.Tensor) -> tuple:
    q, k, v, o, lse = ctx.saved_tensors
    if q.shape[3] not in BACKWARD["threads"]:
        raise at_caller(no_gradient("helve::attention", f"heads of {q.shape[3]} elements have none",
                                    "use heads of 64 or 128 elements where gradients are wanted"))
    return *_attention_backward(q, k, v, o, lse, do, ctx.causal, ctx.scale), None, None


_attention_backward = register(
    "helve::attention_backward",
    "(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor do, bool causal, float? scale) -> "
    "(Tensor, Tensor, Tensor)", _backward_run, _backward_fake)
_attention = register("helve::attention",
                      "(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> (Tensor, Tensor)", _run, _fake,
                      setup=_setup, backward=_gradients)


@operator
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
              scale: float | None = None) -> torch.Tensor:
    """softmax(q @ k^T * scale) @ v for every head, on tensor cores, with sums in float32.

    Args:
        q: (batch, heads, queries, head) of bfloat16, float16 or float32 (which no tensor core multiplies), heads of 64,
            128 or 256 elements; made contiguous if it is not, and so are others.
        k: (batch, heads_kv, keys, head) of the same dtype; heads_kv divides heads.
        v: like `k`.
        causal: does a query see no later key? The last query is aligned to the last key.
        scale: of scores, positive; by default 1 / sqrt(head).

    Returns:
        A tensor like `q`. Heads of 64 and 128 elements have gradients for `q`, `k` and `v`.

    Raises:
        helve.Error: HV0108 for arguments that are not these, and for a gradient of heads of 256.
    """
    q, k, v = under_autocast(None, q, k, v)
    return _attention(q, k, v, causal, scale)[0]
