"""Operators in PyTorch's dispatcher: a schema with what runs on a device, on tensors without data, and backward.

The one place that registers. `torch.library.Library` is used, since a call through it costs the host about half of what
one through `torch.library.custom_op` adds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from helve.caller import at_caller
from helve.errors import Error, error
from helve.errors import shown as as_python

_NAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)")
_libraries: dict[str, torch.library.Library] = {}  # PyTorch forgets an operator whose library is gone


def register(name: str, schema: str, run: Callable, fake: Callable, *, setup: Callable | None = None,
             backward: Callable | None = None, devices: Sequence[str] = ("CPU", "CUDA")) -> torch._ops.OpOverload:
    """Makes an operator, in the place of one of that name that was made here before.

    Args:
        name: "namespace::name".
        schema: parameters and results, "(Tensor x, float eps) -> Tensor", as `torch.library.define` takes them.
        run: computes.
        fake: makes results of the right shapes, dtypes and devices from tensors that have no data.
        setup: `setup_context` of `torch.library.register_autograd`.
        backward: as there; without one, a gradient that is asked for is refused (HV0108).
        devices: the dispatch keys that `run` is for.

    Raises:
        helve.Error: HV0108 for a name that is none, or that another library took.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise refused("helve.torch.op", name, "name", "it is no name of an operator",
                      'give a namespace and a name, such as "mylib::scale"')
    _libraries.pop(name, None)
    try:
        library = torch.library.Library(match[1], "FRAGMENT")
        library.define(match[2] + schema, tags=(torch.Tag.pt2_compliant_tag,))
    except (RuntimeError, ValueError) as fault:  # a name, or a namespace, that is PyTorch's own
        reason = str(fault).partition("\n")[0]
        raise refused("helve.torch.op", name, "name", f"PyTorch refuses it: {reason}", "choose another name") from None
    for device in devices:
        library.impl(match[2], run, device)
    torch.library.register_fake(name, fake, lib=library)
    _libraries[name] = library
    operator = getattr(getattr(torch.ops, match[1]), match[2]).default
    if not operator._schema.is_mutable:
        torch.library.register_autograd(name, backward or _without_gradient(name), setup_context=setup, lib=library)
    return operator


def _without_gradient(name: str) -> Callable:
    reason, remedy = "it has none", "helve.torch.op takes a kernel for gradients as backward="
    if name.endswith("_backward"):
        reason = "it is one itself, by a kernel"
        remedy = "second ones need a Python function as backward= of helve.torch.op"

    def backward(ctx: Any, *gradients: Any) -> None:
        raise at_caller(no_gradient(name, reason, "call it on tensors that require no gradient, or under "
                                    f"torch.no_grad(); {remedy}"))

    return backward


def no_gradient(name: str, reason: str, remedy: str) -> Error:
    """The error HV0108 of a backward pass that an operator does not have."""
    return error("BadArgument", function=name, value="a gradient", parameter="backward", reason=reason, remedy=remedy)


def refused(function: str, value: Any, parameter: str, reason: str, remedy: str) -> Error:
    """The error HV0108: an argument that a function cannot take. Tensors are shown by dtype and shape."""
    return error("BadArgument", function=function, value=shown(value), parameter=parameter, reason=reason,
                 remedy=remedy)


def shown(value: Any) -> str:
    """A value in a message: "float32[4, 8]" of a tensor, "'softmax'" of a function, others as Python shows them."""
    if not isinstance(value, torch.Tensor):
        name = getattr(value, "__name__", None)
        return f"'{name}'" if isinstance(name, str) and callable(value) else as_python(value)
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(str(extent) for extent in value.shape)}]"
