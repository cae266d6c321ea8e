"""Attention without the matrix of scores in memory, forward.

The library has no kernel for its gradients yet, so one that is asked for is refused.
"""

from __future__ import annotations

import torch

from helve import kernels
from helve.kernels.attention_plan import DTYPES, HEADS
from helve.torch.calls import operator
from helve.torch.library import Kernels, architecture, check_dtype, checked
from helve.torch.registration import refused, register, shown

_kernels = Kernels(kernels.attention, "O")


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
def _run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    dtype = _check(q, k, v)
    kernel = _kernels(q, q.shape[1], q.shape[3], dtype, heads_kv=k.shape[1], causal=causal, scale=scale,
                      arch=architecture(q))
    return kernel(q.contiguous(), k.contiguous(), v.contiguous())


@checked
def _fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    _check(q, k, v)
    return q.new_empty(q.shape)


_attention = register("helve::attention", "(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> Tensor", _run,
                      _fake)


@operator
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
              scale: float | None = None) -> torch.Tensor:
    """softmax(q @ k^T * scale) @ v for every head, on tensor cores, with sums in float32. It has no gradient yet.

    Args:
        q: (batch, heads, queries, head) of bfloat16 or float16, heads of 64, 128 or 256 elements; made contiguous if it
            is not, and so are others.
        k: (batch, heads_kv, keys, head) of the same dtype; heads_kv divides heads.
        v: like `k`.
        causal: does a query see no later key? The last query is aligned to the last key.
        scale: of scores, positive; by default 1 / sqrt(head).

    Returns:
        A tensor like `q`.

    Raises:
        helve.Error: HV0108 for arguments that are not these, and for a gradient.
    """
    return _attention(q, k, v, causal, scale)
