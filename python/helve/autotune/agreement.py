"""Whether two kernels compute the same, to what their dtype can tell.

Parameters of a search change the order of sums, and nothing else; a candidate that is fast and wrong is no candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from helve import _core
from helve.arrays import dtype_name, is_array
from helve.target import Kernel

# Of the largest magnitude in a result; whole numbers are exact.
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2, "float8_e4m3": 0.15,
             "float8_e5m2": 0.3}


@dataclass(frozen=True)
class Result:
    """What a kernel left in one tensor.

    Attributes:
        name: of the parameter.
        dtype: of the tensor.
        elements: of it, in float64 where it is of floats.
    """

    name: str
    dtype: str
    elements: np.ndarray


def copies_of_written(function: _core.Function, outputs: tuple[str, ...], args: tuple) -> tuple:
    """The arguments of a call, with copies in the place of those that it writes.

    Args:
        function: of the core.
        outputs: its parameters that a call returns, by name.
        args: of the call.
    """
    named, written = _named(function, outputs, args), _written(function)
    return tuple(_copy(value) if name in written and is_array(value) else value for name, value in zip(named, args))


def results_of(kernel: Kernel, function: _core.Function, args: tuple) -> list[Result]:
    """Calls the kernel on copies of what it writes.

    Args:
        kernel: compiled from `function`.
        function: of the core.
        args: of the call; they stay as they are.

    Raises:
        helve.Error: the call is wrong.
    """
    given = copies_of_written(function, kernel.outputs, args)
    returned = kernel(*given)
    written = _written(function)
    results = {name: value for name, value in zip(_named(function, kernel.outputs, args), given)
               if name in written and is_array(value)}
    if kernel.outputs:
        results.update(zip(kernel.outputs, returned if len(kernel.outputs) > 1 else (returned,)))
    return [Result(name, dtype_name(value.dtype) or "", _elements(value)) for name, value in results.items()]


def _named(function: _core.Function, outputs: tuple[str, ...], args: tuple) -> list[str]:
    """The parameters that positional arguments are for; as many names as arguments."""
    names = [param.name for param in function.params]
    inputs = [name for name in names if name not in outputs]
    names = names if len(args) > len(inputs) else inputs
    return names + [""] * (len(args) - len(names))


def _written(function: _core.Function) -> set[str]:
    effects = iter(_core.tensor_effects(function))
    return {param.name for param in function.params if isinstance(param, _core.Buffer) and next(effects)[1]}


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value.copy()


def difference(first: list[Result], other: list[Result], tolerance: float | None) -> str | None:
    """Where two kernels' results differ, in words; None where they agree."""
    for a, b in zip(first, other):
        allowed = TOLERANCE.get(a.dtype, 0.0) if tolerance is None else tolerance
        if a.elements.shape != b.elements.shape:
            return f"'{b.name}' has the shape {b.elements.shape}, not {a.elements.shape}"
        if not a.elements.size:
            continue
        if not allowed:
            wrong = a.elements != b.elements
        else:
            finite = np.isfinite(a.elements)
            size = np.abs(a.elements[finite]).max(initial=0.0)
            with np.errstate(invalid="ignore"):
                far = np.abs(a.elements - b.elements) > allowed * size
                same = (a.elements == b.elements) | (np.isnan(a.elements) & np.isnan(b.elements))
            wrong = np.where(finite & np.isfinite(b.elements), far, ~same)
        if wrong.any():
            place = tuple(int(n) for n in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            at = ", ".join(map(str, place))
            return (f"'{b.name}[{at}]' is {b.elements[place]:.6g}, not {a.elements[place]:.6g}, and "
                    f"{int(wrong.sum())} of {wrong.size} elements differ")
    return None


def _elements(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):  # PyTorch, which has dtypes that NumPy lacks
        value = value.detach().cpu()
        return value.double().numpy() if value.is_floating_point() else value.numpy()
    if hasattr(value, "get"):  # CuPy
        value = value.get()
    value = np.asarray(value)
    return value if value.dtype.kind in "biu" else value.astype(np.float64)
