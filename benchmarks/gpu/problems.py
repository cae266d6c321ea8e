"""What is measured: for each kernel its arguments, what has to move, and what a user would call instead.

A problem is a function of rows and columns that returns calls over the same tensors; torch.compile gets the expression
that eager PyTorch gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import measure
import torch
from torch.nn import functional

from helve import kernels


K = 1024
EVERY = tuple(2**n * K for n in range(9))  # 1k to 256k
TENSOR_BYTES = 256 << 20  # of the largest tensor of a problem
TRITON_MOST = 64 * K  # a row is one block of registers there; longer ones take minutes to compile


@dataclass
class Setup:
    """One problem with its tensors.

    Attributes:
        moved: bytes that have to be read and written at the least.
        inputs: tensors that helve's kernel reads.
        outputs: tensors that it writes.
        expression: what PyTorch computes.
        call_of: from such an expression (eager or compiled) a call without arguments that gives the results, for the
            device only.
        wanted: gives the outputs in float32.
        triton: gives a call that writes `outputs`; None where there is none.
    """

    moved: int
    inputs: list
    outputs: list
    expression: Callable
    call_of: Callable
    wanted: Callable
    triton: Callable | None = None


@dataclass(frozen=True)
class Problem:
    """A kernel and the row lengths that it is measured at.

    Attributes:
        build: columns and tuning parameters to a function for helve.compile; without such parameters those that
            were measured to be the best.
        setup: rows and columns to a Setup.
        columns, quick: row lengths of the whole run and of the short one.
        grids: values of tuning parameters to try, all combinations of each grid.
    """

    build: Callable
    setup: Callable
    columns: tuple
    quick: tuple = ()
    grids: tuple = ()


def rows_of(N: int) -> int:
    """Rows of bfloat16 for the usual size of a tensor."""
    return max(1, TENSOR_BYTES // 2 // N)


def size(*tensors) -> int:
    """Bytes of the tensors."""
    return sum(t.numel() * t.element_size() for t in tensors)


def together(found) -> tuple:
    """Results as a tuple."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def simple(inputs, outputs, expression, triton=None) -> Setup:
    """A problem whose expression in float32 is its definition."""
    exact = lambda: expression(*(t.float() if t.is_floating_point() else t for t in inputs))  # noqa: E731
    return Setup(size(*inputs, *outputs), list(inputs), list(outputs), expression, lambda f: lambda: f(*inputs),
                 lambda: together(exact()), triton)


def rms_norm(M, N):
    x, w = measure.random(M, N), measure.random(N)
    y = torch.empty_like(x)

    def triton():
        import triton_kernels

        return triton_kernels.rms_norm(x, w, y, 1e-6)

    return simple([x, w], [y], lambda x, w: functional.rms_norm(x, (N,), w, 1e-6), triton if N <= TRITON_MOST else None)


def layer_norm(M, N):
    x, w, b = measure.random(M, N), measure.random(N), measure.random(N)
    return simple([x, w, b], [torch.empty_like(x)], lambda x, w, b: functional.layer_norm(x, (N,), w, b, 1e-5))


def softmax(M, N):
    x = measure.random(M, N)
    y = torch.empty_like(x)

    def triton():
        import triton_kernels

        return triton_kernels.softmax(x, y)

    return simple([x], [y], lambda x: functional.softmax(x, -1), triton if N <= TRITON_MOST else None)


def cross_entropy(M, N):
    """PyTorch has the loss alone; the logarithm of the sum is checked against logsumexp."""
    x, label = measure.random(M, N), measure.labels(M, N)
    outputs = [torch.empty(M, device=x.device), torch.empty(M, device=x.device)]
    setup = simple([x, label], outputs, lambda x, label: functional.cross_entropy(x, label, reduction="none"))
    setup.wanted = lambda: (functional.cross_entropy(x.float(), label, reduction="none"), torch.logsumexp(x.float(), 1))
    return setup


def gradients(M, N, parameters, forward) -> Setup:
    """A backward pass: PyTorch, eager and compiled, goes forward once and then back as often as it is called.

    The gradients of parameters are float32 in helve, and in the parameters' dtype in PyTorch.
    """
    x, dy = measure.random(M, N), measure.random(M, N)
    leaves = [t.requires_grad_() for t in (x.clone(), *parameters)]
    outputs = [torch.empty_like(x), *(torch.empty(N, device=x.device) for _ in parameters)]

    def call_of(f):
        y = f(*leaves)
        return lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)

    def wanted():
        exact = [t.detach().float().requires_grad_() for t in leaves]
        return torch.autograd.grad(forward(*exact), exact, dy.float())

    w = parameters[0].detach()
    return Setup(size(x, dy, w, *outputs), [x, w, dy], outputs, forward, call_of, wanted)


def rms_norm_backward(M, N):
    w = measure.random(N)
    return gradients(M, N, [w], lambda x, w: functional.rms_norm(x, (N,), w, 1e-6))


def layer_norm_backward(M, N):
    w, b = measure.random(N), measure.random(N)
    return gradients(M, N, [w, b], lambda x, w, b: functional.layer_norm(x, (N,), w, b, 1e-5))


def softmax_backward(M, N):
    y, dy = functional.softmax(measure.random(M, N), -1), measure.random(M, N)
    return simple([y, dy], [torch.empty_like(y)],
                  lambda y, dy: torch.ops.aten._softmax_backward_data(dy, y, -1, y.dtype))


def rope(M, N):
    """Rows are positions of 4 batches, columns all heads of 128 elements of one."""
    heads, D, batch = N // 128, 128, 4
    S = max(1, M // batch)
    x = measure.random(batch, S, heads, D)
    cos, sin = (measure.random(S, D // 2, dtype=torch.float32) for _ in range(2))

    def expression(x, cos, sin):
        left, right = x.float().chunk(2, -1)
        c, s = cos[None, :, None], sin[None, :, None]
        return torch.cat((left * c - right * s, right * c + left * s), -1).to(x.dtype)

    return simple([x, cos, sin], [torch.empty_like(x)], expression)


def swiglu(M, N):
    a, b = measure.random(M, N), measure.random(M, N)
    return simple([a, b], [torch.empty_like(a)], lambda a, b: functional.silu(a) * b)


def swiglu_backward(M, N):
    a, b, dy = measure.random(M, N), measure.random(M, N), measure.random(M, N)

    def expression(a, b, dy):
        s = torch.sigmoid(a)
        return dy * b * s * (1 + a * (1 - s)), dy * a * s

    return simple([a, b, dy], [torch.empty_like(a), torch.empty_like(a)], expression)


def transpose(M, N):
    x = measure.random(M, N)
    return simple([x], [torch.empty(N, M, dtype=x.dtype, device=x.device)], lambda x: x.t().contiguous())


def row_sums(M, N):
    x = measure.random(M, N)
    return simple([x], [torch.empty(M, device=x.device)], lambda x: x.sum(1, dtype=torch.float32))


def column_sums(M, N):
    x = measure.random(M, N)
    return simple([x], [torch.empty(N, device=x.device)], lambda x: x.sum(0, dtype=torch.float32))


def measured(best: dict) -> Callable:
    """Columns to parameters: those of the largest key that is not more; none below the first."""

    def choice(N: int) -> dict:
        fitting = [columns for columns in best if N >= columns]
        return best[max(fitting)] if fitting else {}

    return choice


def ring(cluster: int, clusters: int, threads: int, stages: int, **more) -> dict:
    """Parameters of rows that stream through rings."""
    return {"cluster": cluster, "clusters": clusters, "threads": threads, "stages": stages, **more}


ELEMENTS = {"threads": (32, 64, 128, 256, 512, 1024), "elements": (8, 16, 32, 64)}
RINGS = {"cluster": (2, 4, 8, 16), "clusters": (7, 15, 30, 60, 66), "threads": (128, 256, 512, 1024),
         "stages": (2, 3, 4), "elements": (8, 16, 32)}
HELD = {**RINGS, "held": (0, 1, 2)}
FORWARD = {**ELEMENTS, "on_chip": (0, 112 * K, 224 * K)}
BACKWARD = {**ELEMENTS, "blocks": (132, 264, 396, 528)}


def rows_kernel(builder, setup, columns, quick, grids=(ELEMENTS,), best=()) -> Problem:
    """A kernel over rows of bfloat16 whose builder takes their length first."""
    choice = measured(dict(best))
    return Problem(lambda N, **tuning: builder(N, "bfloat16", **(tuning or choice(N))), setup, columns, quick, grids)


PROBLEMS = {
    "rms_norm": rows_kernel(
        kernels.rms_norm, rms_norm, EVERY, (4 * K, 64 * K), (FORWARD, HELD),
        {64 * K: ring(2, 66, 1024, 3), 128 * K: ring(8, 15, 512, 4, held=1), 256 * K: ring(16, 7, 512, 4, held=1)},
    ),
    "softmax": rows_kernel(
        kernels.softmax, softmax, EVERY, (4 * K, 64 * K), (FORWARD, RINGS),
        {128 * K: {"cluster": 8}, 256 * K: ring(8, 15, 512, 3, elements=16)},
    ),
    "cross_entropy": rows_kernel(kernels.cross_entropy, cross_entropy, EVERY, (32 * K,)),
    "layer_norm": rows_kernel(
        kernels.layer_norm, layer_norm, EVERY, (4 * K,), (FORWARD, HELD),
        {32 * K: ring(2, 66, 512, 3, held=2), 64 * K: ring(4, 30, 512, 4, elements=16, held=2),
         128 * K: ring(8, 15, 512, 4, elements=16, held=2), 256 * K: ring(16, 7, 256, 4, elements=32, held=2)},
    ),
    "rms_norm_backward": rows_kernel(
        kernels.rms_norm_backward, rms_norm_backward, EVERY[:7], (4 * K,), (BACKWARD, RINGS),
        {16 * K: ring(8, 60, 128, 3), 32 * K: {"cluster": 8}, 64 * K: ring(8, 15, 256, 3)},
    ),
    "layer_norm_backward": rows_kernel(
        kernels.layer_norm_backward, layer_norm_backward, EVERY[:7], (4 * K,), (BACKWARD, RINGS),
        {16 * K: ring(8, 60, 128, 4), 32 * K: {"cluster": 8}, 64 * K: ring(8, 15, 256, 4)},
    ),
    "softmax_backward": rows_kernel(kernels.softmax_backward, softmax_backward, (K, 4 * K, 32 * K), (4 * K,)),
    "rope": Problem(
        lambda N, **tuning: kernels.rope(N // 128, 128, "bfloat16", **tuning), rope, (4 * K,), (4 * K,),
        ({"threads": (64, 128, 256), "elements": (8, 16, 32)},),
    ),
    "swiglu": rows_kernel(kernels.swiglu, swiglu, (4 * K, 11008), (11008,)),
    "swiglu_backward": rows_kernel(kernels.swiglu_backward, swiglu_backward, (11008,), ()),
    "transpose": Problem(
        lambda N, **tuning: kernels.transpose("bfloat16", M=rows_of(N), N=N, **tuning), transpose, (4 * K, 16 * K),
        (4 * K,),
        ({"tile": (32, 64, 128), "threads": (128, 256, 512)},),
    ),
    "row_sums": rows_kernel(kernels.row_sums, row_sums, (K, 4 * K, 32 * K), (4 * K,)),
    "column_sums": rows_kernel(
        kernels.column_sums, column_sums, (K, 4 * K, 32 * K), (4 * K,),
        ({"blocks": (264, 396, 528), "threads": (128, 256, 512), "rows": (16, 32, 64)},),
    ),
}  # fmt: skip
