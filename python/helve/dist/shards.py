"""Arrays that hold the parts of a tensor: NumPy's and PyTorch's, and on GPUs of processes those of other libraries.

What a part is made of stays as it was given, library, dtype and device; this file asks the libraries. None is imported
that an array at hand has not brought.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from helve import _core
from helve.arguments import numpy_dtype
from helve.arrays import dtype_name, empty, is_on_cuda

# The greatest number of types of floats that have no infinity.
_GREATEST = {"float8_e4m3": 448.0}


def is_torch(value: object) -> bool:
    """Is it a tensor of PyTorch? Nobody has one who has not imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fault_of(value: object, on_gpu: bool = False) -> tuple[str, str] | None:
    """Why the value can be no part of a tensor, and the remedy.

    Args:
        value: anything.
        on_gpu: are parts on GPUs of processes, where every library that has DLPack will do?
    """
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            return "a masked array", "pass x.filled(value), or x.data without the mask"
        if value.dtype.hasobject:
            return f"an array of dtype {value.dtype}", "give numbers, not objects"
        if any(stride % max(1, value.itemsize) for stride in value.strides):
            return "an array with steps of parts of an element", "pass numpy.ascontiguousarray(x)"
        return None
    if not is_torch(value):
        if on_gpu and hasattr(type(value), "__dlpack__") and is_on_cuda(value):
            return None
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
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype)
    return like.new_empty(tuple(shape)) if is_torch(like) else empty(tuple(shape), dtype_name(like.dtype), like)


def make_bytes(count: int, like: Any) -> Any:
    """A new array of so many bytes, as `make`."""
    return empty((count,), "uint8", like)


def card_of(array: Any) -> str:
    """The library and the dtype of an array, by which a process that has none makes one."""
    library = "numpy" if isinstance(array, np.ndarray) else "torch" if is_torch(array) else type(array).__module__
    return f"{library.partition('.')[0]} {dtype_name(array.dtype) or array.dtype}"


def of_card(card: str, on_gpu: bool) -> Any:
    """An array without elements of the library and the dtype that a card names, on this process's current GPU or in
    memory of the CPU."""
    library, _, dtype = card.partition(" ")
    module = importlib.import_module(library)
    if library == "torch":
        name = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype).removeprefix("torch.")
        return module.empty(0, dtype=getattr(module, name), device="cuda" if on_gpu else "cpu")
    return module.empty(0, dtype=numpy_dtype(dtype))


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
