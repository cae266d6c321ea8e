"""Arrays that hold the parts of a tensor: NumPy's and PyTorch's.

What a part is made of stays as it was given, library, dtype and device; this file asks the libraries. None is imported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from helve import _core
from helve.arrays import dtype_name

# The greatest number of types of floats that have no infinity.
_GREATEST = {"float8_e4m3": 448.0}


def is_torch(value: object) -> bool:
    """Is it a tensor of PyTorch? Nobody has one who has not imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fault_of(value: object) -> tuple[str, str] | None:
    """Why the value can be no part of a tensor, and the remedy."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            return "a masked array", "pass x.filled(value), or x.data without the mask"
        if value.dtype.hasobject:
            return f"an array of dtype {value.dtype}", "give numbers, not objects"
        if any(stride % max(1, value.itemsize) for stride in value.strides):
            return "an array with steps of parts of an element", "pass numpy.ascontiguousarray(x)"
        return None
    if not is_torch(value):
        return f"a {type(value).__name__}", "give arrays of NumPy or tensors of PyTorch"
    torch = sys.modules["torch"]
    if value.layout != torch.strided:
        return f"a tensor of layout {value.layout}", "pass tensor.to_dense()"
    if hasattr(value, "device_mesh"):
        return "a DTensor", "convert it by DistTensor.from_dtensor"
    if value.is_neg() or value.is_conj():
        return "a view that is yet to be negated or conjugated", "pass tensor.resolve_neg().resolve_conj()"
    return None


def item_bytes(array: Any) -> int:
    """The size of an element, in bytes."""
    return array.dtype.itemsize


def make(shape: Sequence[int], like: Any) -> Any:
    """A new array of the library, dtype and device of another, whose elements are undefined."""
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(tuple(shape))


def identity(op: str, dtype: Any) -> int | float | bool:
    """What a reduction by `op` of elements of a library's dtype leaves as it is."""
    if op in ("sum", "prod"):
        return int(op == "prod")
    name = dtype_name(dtype) or ""
    sign = -1 if op == "max" else 1
    if name == "bool":
        return op == "min"
    if "int" not in name:
        return sign * _GREATEST.get(name, float("inf"))
    bits, signed = int(name.rpartition("int")[2]), not name.startswith("u")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return low if op == "max" else high


def is_in_memory(array: Any) -> bool:
    """Does the core move its elements? Not those of PyTorch's that are on other devices, or only pretended, and none
    where PyTorch lacks DLPack's C exchange.
    """
    if isinstance(array, np.ndarray):
        return True
    torch = sys.modules["torch"]
    plain = type(array) in (torch.Tensor, torch.nn.Parameter) and array.device.type == "cpu"
    return plain and _core.LocalExchange.reads(array)


_WIDE = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2")  # reduced in float32 and rounded once
_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def reduced(op: str, terms: Sequence[Any]) -> Any:
    """The reduction of PyTorch's tensors, in their order, on the device of the first."""
    torch, first = sys.modules["torch"], terms[0]
    combine = getattr(torch, _COMBINE[op])
    wide = torch.float32 if dtype_name(first.dtype) in _WIDE else first.dtype
    whole = first.to(wide)
    for term in terms[1:]:
        whole = combine(whole, term.to(first.device, wide))
    return whole.to(first.dtype)


def without_gradients(array: Any) -> contextlib.AbstractContextManager:
    """PyTorch's, for its tensors: moves of elements are no functions of theirs."""
    return sys.modules["torch"].no_grad() if is_torch(array) else contextlib.nullcontext()
