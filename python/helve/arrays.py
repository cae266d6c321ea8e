"""Arrays of other libraries: their element types, their devices, and new ones like them.

No library is imported here. One whose array is at hand is loaded, and says itself how it makes another array.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from helve import _core
from helve.arguments import numpy_dtype

# Names of dtypes in array libraries, and those of helve, where they differ.
_NAMES = {"float8_e4m3fn": "float8_e4m3"}
_LIBRARY_NAMES = {"float8_e4m3": "float8_e4m3fn", "index": "int64"}
_CUDA = 2  # DLPack's kDLCUDA


class NoArrays(TypeError):
    """A library that does not say how to make an array."""


def dtype_name(dtype: Any) -> str | None:
    """The name in helve of a library's dtype; None where there is none."""
    name = str(dtype).rpartition(".")[2]
    return _core.parse_dtype(_NAMES.get(name, name))


def is_array(value: Any) -> bool:
    """Can a kernel take it as a tensor?"""
    return isinstance(value, np.ndarray) or hasattr(type(value), "__dlpack__")


def is_on_cuda(value: Any) -> bool:
    """Is it an array on a CUDA device?"""
    if isinstance(value, np.ndarray):
        return False
    answer = getattr(value, "is_cuda", None)  # PyTorch's, which takes less time than DLPack's question
    if isinstance(answer, bool):
        return answer
    if not hasattr(type(value), "__dlpack_device__"):
        return False
    return int(value.__dlpack_device__()[0]) == _CUDA


def empty(shape: Sequence[int], dtype: str, like: Any = None) -> Any:
    """A new array of the library and on the device of `like`, whose elements are undefined.

    Libraries that keep memory for each stream take it from the current one.

    Args:
        shape: extents.
        dtype: the element type, as helve calls it.
        like: an array; NumPy's by default.

    Raises:
        NoArrays: the library says no way to make one, or has no such dtype.
        Exception: what the library itself raises.
    """
    if like is None or isinstance(like, np.ndarray):
        return np.empty(shape, numpy_dtype(dtype))
    library = type(like).__module__.partition(".")[0]
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=_dtype_of(sys.modules.get("torch"), dtype, "torch"))
    if library == "cupy":
        with like.device:
            return sys.modules[library].empty(shape, dtype=numpy_dtype(dtype))
    if not hasattr(like, "__array_namespace__"):
        raise NoArrays(f"arrays of '{library}' do not say how to make another one")
    space = like.__array_namespace__()
    made = space.empty(shape, dtype=_dtype_of(space, dtype, library), device=like.device)
    if dtype_name(made.dtype) != dtype_name(numpy_dtype(dtype)):
        raise NoArrays(f"'{library}' makes it of dtype {made.dtype}, not {dtype}")
    return made


def _dtype_of(library: Any, dtype: str, name: str) -> Any:
    """The library's own object for a dtype."""
    found = getattr(library, _LIBRARY_NAMES.get(dtype, dtype), None)
    if found is None:
        raise NoArrays(f"'{name}' has no dtype {dtype}")
    return found
