"""What the operators of helve.kernels have in common: kernels by constants and device, and checks of tensors.

A tensor of any rank is a matrix of rows for a kernel that works row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from helve import _core
from helve.arrays import dtype_name
from helve.caller import at_caller
from helve.errors import Error, error
from helve.jit import jit
from helve.kernels.rows import DTYPES
from helve.target import Kernel
from helve.torch.registration import refused


class Kernels:
    """The kernels of a builder for the CPU and for GPUs, kept by constants.

    Args:
        builder: of helve.kernels.
        out: the parameters that a call returns.
    """

    def __init__(self, builder: Callable, out: str | tuple[str, ...]):
        self._name = builder.__name__
        self._of = {"cpu": jit(builder, target="llvm", out=out), "cuda": jit(builder, target="cuda", out=out)}

    def __call__(self, like: torch.Tensor, *constants: Any, **named: Any) -> Kernel:
        """The kernel for the device of a tensor.

        Raises:
            helve.Error: HV0115 for constants that the builder refuses.
        """
        try:
            return self._of[like.device.type](*constants, **named)
        except ValueError as fault:
            raise error("HostCallFailed", expression=f"helve.kernels.{self._name}", reason=str(fault),
                        fixes=["pass what that kernel takes"]) from None


def checked(function: Callable) -> Callable:
    """A body of an operator, whose errors name the line of the call of PyTorch's dispatcher."""

    @functools.wraps(function)
    def body(*args: Any) -> Any:
        try:
            return function(*args)
        except Error as fault:
            raise at_caller(fault) from None

    return body


_CONVERTED = (torch.float32, torch.float16, torch.bfloat16)  # by torch.autocast


def under_autocast(dtype: torch.dtype | None, *tensors: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    """Where torch.autocast is on, tensors in one dtype, as the kernels need: in autocast's own, if None is given.

    Tensors of other types than 16-bit floats and float32 stay as they are, as PyTorch leaves them.
    """
    device = next((each.device.type for each in tensors if each is not None), None)
    if device is None or not torch.is_autocast_enabled(device):
        return tensors
    dtype = dtype or torch.get_autocast_dtype(device)
    return tuple(each.to(dtype) if each is not None and each.dtype in _CONVERTED else each for each in tensors)


def check_dtype(function: str, name: str, x: torch.Tensor, known: tuple[str, ...] = tuple(DTYPES)) -> str:
    """The name of a tensor's dtype in helve.

    Raises:
        helve.Error: HV0108 for one that the kernel does not take.
    """
    found = dtype_name(x.dtype)
    if found not in known:
        names = ", ".join(f"torch.{each if each != 'float8_e4m3' else 'float8_e4m3fn'}" for each in known)
        raise refused(f"helve.torch.{function}", x, name, f"its dtype is {x.dtype}", f"convert it to one of {names}")
    return found


def check_rows(function: str, name: str, x: torch.Tensor) -> tuple[int, str]:
    """(elements of a row, name of the dtype) of a tensor whose last dimension is a row.

    Raises:
        helve.Error: HV0108 for a tensor without rows or of another dtype.
    """
    found = check_dtype(function, name, x)
    if x.dim() == 0 or x.shape[-1] == 0:
        raise refused(f"helve.torch.{function}", x, name, "it has no row of elements",
                      "pass a tensor whose last dimension has elements")
    return x.shape[-1], found


def check_like(function: str, name: str, tensor: torch.Tensor, other: str, x: torch.Tensor,
               shape: tuple[int, ...]) -> None:
    """Raises helve.Error HV0108 for a tensor of another dtype than `x`, or of another shape than is wanted."""
    if tensor.dtype != x.dtype:
        raise refused(f"helve.torch.{function}", tensor, name, f"{other} is {x.dtype}",
                      f"convert one of them, as {name}.to({other}.dtype)")
    if tuple(tensor.shape) != tuple(shape):
        raise refused(f"helve.torch.{function}", tensor, name, "its shape is another than "
                      f"[{', '.join(map(str, shape))}]", f"pass a tensor that fits {other}")


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """A matrix of the tensor's rows, without gaps; it has elements in a row."""
    return x.reshape(-1, x.shape[-1]).contiguous()


def architecture(x: torch.Tensor) -> str:
    """What tiles are planned for: the architecture of the tensor's GPU, with the products of warpgroups where it has
    them; for a CPU that of the builders' own default.
    """
    if x.device.type != "cuda":
        return "sm_90a"
    major, minor = torch.cuda.get_device_capability(x.device)
    name = "sm_90a" if major == 9 else f"sm_{major}{minor}"
    return name if _core.gpu_machine(name) is not None else "sm_80"
