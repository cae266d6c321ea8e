"""Arguments made from a function's signature.

A program is tried on them without anyone having written what it is called with: a recipe whose call the checking
interpreter accepts is one that the program is meant for.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from helve import _core

# Extents that tails, whole tiles and whole warps ask for; each list is dealt to the dynamic extents in turn.
EXTENTS = ((5, 7, 3, 6), (1,), (8,), (16,), (32,), (64,), (128,), (2, 4))
# Ends of whole numbers; the narrow ones are subscripts and extents of almost everything.
INTEGERS = ((-4, 9), (0, 4), (0, 2), (1, 2))

_DTYPES = {"float8_e4m3": ml_dtypes.float8_e4m3fn, "int4": ml_dtypes.int4, "float4_e2m1": ml_dtypes.float4_e2m1fn}
# Two elements of these share a byte; a tensor of them is an array of uint8 in a call.
PACKED = ("int4", "float4_e2m1")


def cast_integer(value: int, dtype: str) -> int:
    """T.cast of an integer, which wraps around."""
    return value if dtype == "index" else int(np.array(value & (2**64 - 1), "uint64").astype(dtype))


MULTIPROCESSORS = 4  # of the interpreter
_PRINTED = {"T": types.SimpleNamespace(min=min, max=max, abs=abs, cast=cast_integer), "__builtins__": {}}


class NegativeExtent(ValueError):
    """A tensor would have less than no elements along an axis: no call has such arguments."""


@dataclass(frozen=True)
class Recipe:
    """What a call is made of.

    Attributes:
        extents: dealt to the dynamic extents in turn.
        low, high: whole numbers are low <= x < high; below zero only where the type has a sign.
        seed: of the random numbers.
    """

    extents: tuple[int, ...] = EXTENTS[0]
    low: int = INTEGERS[0][0]
    high: int = INTEGERS[0][1]
    seed: int = 0


def recipes(function: _core.Function) -> Iterator[Recipe]:
    """What to try on a function, the most telling first."""
    whole = any(numpy_dtype(param.dtype).kind in "iu" for param in function.params)
    for low, high in INTEGERS if whole else INTEGERS[:1]:
        if function.dims:
            yield from (Recipe(each, low, high) for each in EXTENTS)
        else:
            yield from (Recipe(EXTENTS[0], low, high, seed) for seed in (0, 1))


@functools.cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a helve dtype; `index` is int64."""
    return np.dtype("int64" if name == "index" else _DTYPES.get(name) or getattr(ml_dtypes, name, name))


def array_of(shape: Sequence[int], dtype: str) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of the array that a call passes for a tensor: the bytes, where two elements share one."""
    return ((*shape[:-1], shape[-1] // 2), "uint8") if dtype in PACKED else (tuple(shape), dtype)


def _numbers(shape: tuple[int, ...], dtype: str, recipe: Recipe, rng: np.random.Generator) -> np.ndarray:
    """Random elements. Floats are quarters: every float type holds them, and sums of them are exact in any order."""
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("float", "bfloat")):
        return (rng.integers(-8, 9, shape) / 4.0).astype(kind)
    low = max(recipe.low, 0) if dtype.startswith("uint") else recipe.low
    return rng.integers(low, recipe.high, shape).astype(kind)


def variables_of(expr: _core.Expr) -> Iterator[_core.Var]:
    """The variables of an expression from left to right."""
    if isinstance(expr, _core.Var):
        yield expr
    for name in expr.fields:
        value = getattr(expr, name)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, _core.Expr):
                yield from variables_of(part)


def evaluate(expression: _core.Expr, known: dict[str, int]) -> int:
    """The value of an extent or a stride for known values of the names in it."""
    text = str(expression).replace("T.multiprocessors()", "multiprocessors")
    return int(eval(text, dict(_PRINTED), known))  # noqa: S307 - the printer's own text


def evaluator(shapes: Sequence[Sequence[_core.Expr]], sources: dict[str, str], known: dict[str, Any]) -> Callable:
    """A function from all arguments of a call, `args`, to shapes.

    Args:
        shapes: extents of each.
        sources: how the names in them follow from `args`, in Python.
        known: what these texts use besides.
    """
    used = {variable.name for shape in shapes for extent in shape for variable in variables_of(extent)}
    names = [name for name in sources if name in used]
    results = "".join(f"({''.join(f'{extent}, ' for extent in shape)}), " for shape in shapes)
    text = f"lambda args: (lambda {', '.join(names)}: ({results}))({', '.join(sources[name] for name in names)})"
    return eval(text, {**_PRINTED, **known})  # noqa: S307 - the printer's own text


def make_arguments(function: _core.Function, recipe: Recipe = Recipe(), limit: int | None = None) -> list:
    """Fresh arguments for a function, the same for the same recipe.

    Args:
        function: the function of the core; of its parameters the dtypes, shapes and strides count.
        recipe: sizes and values.
        limit: elements that all tensors may have together.

    Returns:
        Arrays and numbers in the order of the parameters.

    Raises:
        MemoryError: they would have more.
        NegativeExtent: the extents that the recipe deals give a tensor an extent below zero.
    """
    rng = np.random.default_rng(recipe.seed)
    known = dict(zip((str(dim) for dim in function.dims), itertools.cycle(recipe.extents)))
    known["multiprocessors"] = MULTIPROCESSORS
    for param in function.params:
        if not isinstance(param, _core.Var) and param.dtype in PACKED and str(param.shape[-1]) in known:
            known[str(param.shape[-1])] += known[str(param.shape[-1])] % 2  # whole bytes
    for param in function.params:
        if isinstance(param, _core.Var):
            number = _numbers((), param.dtype, recipe, rng).item()
            known[param.name] = abs(number) if param.dtype == "index" else number
    places = {}
    for param in function.params:
        if not isinstance(param, _core.Var):
            shape = tuple(evaluate(extent, known) for extent in param.shape)
            for axis, extent in enumerate(shape):
                if extent < 0:
                    raise NegativeExtent(f"'{param.name}' would have {extent} elements along axis {axis}")
            places[param.name] = shape, [evaluate(stride, known) for stride in param.strides]
    if limit is not None and sum(_span(*place) for place in places.values()) > limit:
        raise MemoryError(f"the arguments have more than {limit} elements")
    out = []
    for param in function.params:
        if isinstance(param, _core.Var):
            out.append(known[param.name])
        else:
            shape, strides = places[param.name]
            if param.dtype in PACKED:
                out.append(rng.integers(0, 256, array_of(shape, param.dtype)[0]).astype("uint8"))
            else:
                out.append(_laid_out(_numbers(shape, param.dtype, recipe, rng), strides))
    return out


def _span(shape: tuple[int, ...], strides: list[int]) -> int:
    """Elements of memory from the lowest to the highest."""
    if not strides or 0 in shape:
        return math.prod(shape)
    return 1 + sum(abs(stride) * (extent - 1) for stride, extent in zip(strides, shape))


def _laid_out(array: np.ndarray, strides: list[int]) -> np.ndarray:
    """The array with those strides, in elements, in memory of its own."""
    if not strides or not array.size:
        return array
    memory = np.zeros(_span(array.shape, strides), array.dtype)
    first = sum(-stride * (extent - 1) for stride, extent in zip(strides, array.shape) if stride < 0)
    size = array.itemsize
    view = np.ndarray(array.shape, array.dtype, memory, first * size, [stride * size for stride in strides])
    view[...] = array
    return view
