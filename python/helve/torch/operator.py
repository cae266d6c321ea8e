"""`helve.torch.op`: an operator of PyTorch from a kernel.

The schema, the shapes of results and what is written follow from the kernel's signature; a gradient's kernel is matched
to it by names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from helve.caller import at_caller
from helve.errors import Error
from helve.jit import JitBuilder, JitFunction
from helve.schedule import Schedule
from helve.script.prim_func import PrimFunc
from helve.target import Kernel
from helve.torch.builders import BuilderBody
from helve.torch.functions import FunctionBody
from helve.torch.gradients import Named, gradient_function, matched
from helve.torch.registration import refused, register

_made: dict[torch._ops.OpOverload, Named] = {}


def op(name: str, kernel: PrimFunc | Schedule | Callable, *,
       out: str | int | Sequence[str | int] | None = None, backward: Any = None,
       setup_context: Callable | None = None, **options: Any) -> torch._ops.OpOverload:
    """Makes an operator of PyTorch, which is called as `torch.ops.<namespace>.<name>` is.

    It runs on tensors of the CPU (target "llvm") and of NVIDIA GPUs ("cuda", on PyTorch's current stream), compiled at
    the first call for each; `torch.compile` keeps it in one graph, and dynamic shapes stay dynamic where the kernel's
    extents are `T.dyn`. Tensors that it only reads are made contiguous, unless the kernel declares their strides;
    tensors that it writes have to be as a call of the kernel takes them.

    Args:
        name: "namespace::name". An operator that was made by that name before is replaced.
        kernel: a kernel function, a schedule, or what `helve.jit` made of one; its inputs are the operator's
            parameters, in order: tensors, and scalars as numbers. What it writes besides `out` is declared as mutated.
            With `target=`, it runs on tensors of that target only. Or a builder, as `helve.jit` takes it: its
            parameters are those of the operator. Tensors are parameters annotated `torch.Tensor`, or without an
            annotation and a default; constants are annotated `int`, `float`, `bool` or `str`, or have such a default.
            A builder is called, and its kernel compiled, for each combination of constants, shapes and dtypes.
        out: the parameters that are returned, as `helve.compile` takes it.
        backward: a kernel function, a schedule, or an operator that `op` made, which computes gradients. What its
            parameters are follows from their names: those of the forward pass's inputs and outputs, "DY" (or "grad_Y")
            for the gradient of output Y, and its results "DX" for that of input X, cast to the dtype of X. Inputs
            without a result have no gradient. A kernel function becomes an operator "<name>_backward". Or a function
            of Python, with `setup_context=`.
        setup_context: keeps what a `backward` in Python needs; both as `torch.library.register_autograd` takes them.
        options: compile options, as `helve.jit` takes them.

    Returns:
        The operator, `torch.ops.<namespace>.<name>.default`.

    Raises:
        helve.Error: HV0108 for a name, a kernel or a gradient that no operator can be made of; HV0815, HV0816 for
            outputs that are none or whose shapes the inputs do not give.
    """
    argument: int | str = 1
    try:
        body = _body(name, kernel, out, options)
        argument = "backward"
        setup, run_backward = setup_context, backward
        if setup_context is not None:
            _check_python(name, body, backward, setup_context)
        elif backward is not None:
            gradient = _gradient_operator(name, body, backward)
            setup, run_backward = gradient_function(gradient, matched(name, body.named, _made[gradient]))
        argument = 0
        made = register(name, body.schema, body.run, body.fake, setup=setup, backward=run_backward,
                        devices=body.devices)
    except Error as fault:
        if fault.name in ("NotAnOutput", "OutputShape"):
            argument = "out"
        raise at_caller(fault, argument) from None
    _made[made] = body.named
    return made


def _body(name: str, kernel: Any, out: Any, options: dict[str, Any]) -> FunctionBody | BuilderBody:
    if isinstance(kernel, (JitFunction, JitBuilder)) and (out is not None or options):
        raise refused("helve.torch.op", kernel, "kernel", "it has its outputs and options already",
                      "leave out= and options out, or pass the function that it was made of")
    if isinstance(kernel, (PrimFunc, Schedule)):
        return FunctionBody(name, kernel, out, options)
    if isinstance(kernel, Kernel):
        raise refused("helve.torch.op", kernel, "kernel", "it is compiled already, for one target",
                      "pass the function that it was compiled from, with out= and the options")
    if isinstance(kernel, JitBuilder) or (callable(kernel) and not isinstance(kernel, type)):
        return BuilderBody(name, kernel, out, options)
    raise refused("helve.torch.op", kernel, "kernel", "it is no kernel",
                  "pass a function below @T.prim_func, a compiled kernel, or a function that returns one")


def _check_python(name: str, forward: FunctionBody | BuilderBody, backward: Any, setup_context: Any) -> None:
    """Raises helve.Error HV0108 for what is no gradient in Python."""
    _check_written(name, forward, backward)
    for parameter, value in (("backward", backward), ("setup_context", setup_context)):
        if not callable(value) or isinstance(value, (PrimFunc, Schedule, torch._ops.OpOverload)):
            raise refused("helve.torch.op", value, parameter, "with setup_context= it is a function of Python",
                          "give both as torch.library.register_autograd takes them, or no setup_context=")


def _check_written(name: str, forward: FunctionBody | BuilderBody, backward: Any) -> None:
    """Raises helve.Error HV0108 for a gradient of an operator that writes to its inputs."""
    if forward.mutates:
        raise refused("helve.torch.op", backward, "backward", f"'{name}' writes to its inputs, and PyTorch has no "
                      "gradients of such operators", "make what it writes an output, by out=")


def _gradient_operator(name: str, forward: FunctionBody | BuilderBody, backward: Any) -> torch._ops.OpOverload:
    """The operator that computes gradients; made, if a kernel function is given."""
    _check_written(name, forward, backward)
    if isinstance(backward, torch._ops.OpOverload) and backward in _made:
        return backward
    if not isinstance(backward, (PrimFunc, Schedule)):
        raise refused("helve.torch.op", backward, "backward", "it is neither a kernel function nor an operator that "
                      "helve.torch.op made", "make an operator of it first, by helve.torch.op; with a gradient in "
                      "Python give setup_context=")
    body = FunctionBody(f"{name}_backward", backward, forward.named.gradients_of(backward), {})
    made = register(f"{name}_backward", body.schema, body.run, body.fake, devices=body.devices)
    _made[made] = body.named
    return made
