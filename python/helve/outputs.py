"""Parameters that a call allocates and returns, `out=` of `helve.compile`.

What an output's shape follows from is known when the kernel is compiled, so that a call only computes and allocates.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from helve import _core
from helve.arguments import PACKED, array_of, evaluator, numpy_dtype, variables_of
from helve.arrays import empty, is_array
from helve.caller import warn_caller
from helve.errors import error, shown, suggestion

_OUT_OF_MEMORY = "OutOfMemoryError"  # as PyTorch and CuPy call theirs


class Outputs:
    """The outputs of a function, chosen by `out`.

    Args:
        function: the function of the core; extents of different values have different names.
        out: the name or the position of an output, or a sequence of them.
        target: what the kernel is compiled for.

    Attributes:
        names: of the outputs, in the order in which a call returns them.
        positions: their places among the parameters.
        inputs: the places of all other parameters, in order.
        params: the outputs themselves.

    Raises:
        helve.Error: an output that is none (HV0815), or whose shape the inputs do not give (HV0816).
    """

    def __init__(self, function: _core.Function, out: Any, target: str):
        self._function = function
        params = function.params
        self.positions = _positions(function, out)
        self.names = tuple(params[position].name for position in self.positions)
        self.inputs = tuple(p for p in range(len(params)) if p not in self.positions)
        self.params = tuple(params[position] for position in self.positions)
        tensors = [p for p in self.inputs if isinstance(params[p], _core.Buffer)]
        self._like = tensors[0] if tensors else None
        if self._like is None and target == "cuda":
            raise _refusal(function, self.names[0], "no input is a tensor, which would tell the device and the stream",
                           f"leave out= out, and pass '{self.names[0]}'")
        self._shapes = self.shape_function({"index": operator.index})
        first = ", ".join(str(extent) for extent in params[self.positions[0]].shape)
        self._declared = f"({first})"

    def shape_function(self, known: dict[str, Any]) -> Callable:
        """From all arguments, those of outputs being anything, to the shapes of the outputs.

        Args:
            known: `index`, which makes an extent of a scalar argument, and `T`, whose functions extents are made with
                where they are no numbers.
        """
        params = self._function.params
        sources = {}  # variable -> text of its value in the arguments
        for position in self.inputs:
            if not isinstance(params[position], _core.Buffer):
                continue
            for dim, extent in enumerate(params[position].shape):
                if isinstance(extent, _core.Var):
                    halves = params[position].dtype in PACKED and dim + 1 == params[position].rank
                    sources.setdefault(extent, f"args[{position}].shape[{dim}]{' * 2' if halves else ''}")
        for position in self.inputs:
            if isinstance(params[position], _core.Var):
                sources[params[position]] = f"index(args[{position}])"
        shapes = [params[position].shape for position in self.positions]
        for name, shape in zip(self.names, shapes):
            for extent in shape:
                for variable in variables_of(extent):
                    if variable not in sources:
                        raise error("OutputShape", parameter=name, extent=variable.name)
        return evaluator(shapes, {variable.name: text for variable, text in sources.items()}, known)

    def runner(self, run: Callable, run_new: Callable | None = None) -> Callable:
        """The call of a kernel that `run` runs on all arguments: it allocates the outputs that it is not given.

        `run_new`, where there is one, runs those calls in its place; it takes the positions of new arrays before them.
        """
        positions, inputs, whole = self.positions, self.inputs, len(self._function.params)
        only = positions[0] if len(positions) == 1 else None
        least = len(inputs)

        def call(*args: Any) -> Any:
            if len(args) == least:
                values: Any = [None] * whole
                for position, value in zip(inputs, args):
                    values[position] = value
                new = self._allocate(values)
            elif len(args) == whole:
                values, new = args, ()
                for position in positions:
                    if args[position] is None:
                        values = list(args)
                        new = self._allocate(values)
                        break
            else:
                raise self._count_error(len(args))
            if run_new is None or not new:
                run(*values)
            else:
                run_new(new, *values)
            return values[only] if only is not None else tuple([values[position] for position in positions])

        return call

    def _allocate(self, values: list) -> list[int]:
        """Puts new arrays in the place of outputs that are None, and returns their positions."""
        try:
            shapes = self._shapes(values)
        except Exception as problem:  # noqa: BLE001 - whatever objects are given for arrays and numbers
            raise self._wrong_input(values) or self._failure(0, self._declared, _words(problem)) from None
        torch = sys.modules.get("torch")
        if torch is not None and torch.is_grad_enabled():
            self._note_gradients(values)
        like = None if self._like is None else values[self._like]
        new = []
        for n, (position, shape, param) in enumerate(zip(self.positions, shapes, self.params)):
            if values[position] is not None:
                continue
            try:
                values[position] = empty(*array_of(shape, param.dtype), like)
                new.append(position)
            except Exception as problem:  # noqa: BLE001 - the library's own
                fault = self._wrong_input(values)
                if fault is None:
                    if isinstance(problem, MemoryError) or type(problem).__name__ == _OUT_OF_MEMORY:
                        raise
                    negative = any(extent < 0 for extent in shape)
                    fault = self._failure(n, shape, "an extent is negative" if negative else _words(problem))
                raise fault from None
        return new

    def _note_gradients(self, values: list) -> None:
        """New arrays are results of no operator that PyTorch knows."""
        for position in self.inputs:
            if getattr(values[position], "requires_grad", False):
                warn_caller("GradientIsLost", parameter=self._function.params[position].name)
                return

    def _failure(self, n: int, shape: Any, reason: str) -> Exception:
        return error("OutputAllocation", parameter=self.names[n], shape=str(shape), reason=reason)

    def _wrong_input(self, values: list) -> Exception | None:
        """The error for the first input from which no shape follows."""
        for position in self.inputs:
            param, value = self._function.params[position], values[position]
            if isinstance(param, _core.Buffer):
                if not is_array(value) or not hasattr(value, "shape"):
                    return error("NotAnArray", parameter=param.name, given=shown(value), reason="it has no __dlpack__",
                                 dtype=param.dtype)
                if len(value.shape) != param.rank:
                    return error("ArgumentRank", parameter=param.name, expected=param.rank, given=len(value.shape))
            elif not param.dtype.startswith(("float", "bfloat", "bool")):
                if isinstance(value, float):
                    return error("ScalarArgumentType", parameter=param.name, expected=param.dtype, given=value)
                try:
                    number = operator.index(value)
                except Exception:  # noqa: BLE001 - an object of the user's, whatever it does
                    return error("NotANumber", parameter=param.name, given=shown(value), expected=param.dtype)
                limits = np.iinfo(numpy_dtype(param.dtype))
                if not limits.min <= number <= limits.max:
                    return error("ScalarArgumentRange", parameter=param.name, expected=param.dtype, given=number,
                                 low=limits.min, high=limits.max)
        return None

    def _count_error(self, given: int) -> Exception:
        names = [param.name for param in self._function.params]
        inputs = ", ".join(names[position] for position in self.inputs) or "none"
        return error("CallArgumentCount", kernel=self._function.name, expected=len(self.inputs), given=given,
                     names=f"{inputs}; outputs, which may be left out: {', '.join(self.names)}")


def _words(problem: Exception) -> str:
    if isinstance(problem, ZeroDivisionError):
        return "it divides by zero"
    return str(problem).partition("\n")[0] or type(problem).__name__


def _refusal(function: _core.Function, given: Any, reason: str, remedy: str, fixes: Sequence[str] = ()) -> Exception:
    text = f"'{given}'" if isinstance(given, str) else shown(given)
    return error("NotAnOutput", given=text, kernel=function.name, reason=reason, remedy=remedy, fixes=list(fixes))


def _positions(function: _core.Function, out: Any) -> tuple[int, ...]:
    """The places of the outputs among the parameters, each checked to be one."""
    names = [param.name for param in function.params]
    listed = f"its parameters are: {', '.join(names) or 'none'}"
    found: list[int] = []
    for each in out if isinstance(out, (tuple, list)) else [out]:
        if isinstance(each, str):
            if each not in names:
                raise _refusal(function, each, "it is no parameter", listed, suggestion(each, names))
            position = names.index(each)
        elif isinstance(each, int) and not isinstance(each, bool):
            if not -len(names) <= each < len(names):
                raise _refusal(function, each, f"it has {len(names)} parameters", listed)
            position = each % len(names)
        else:
            raise _refusal(function, each, "it is neither a name nor a position", listed)
        if position in found:
            raise _refusal(function, names[position], "it is given twice", "give each output once")
        found.append(position)
    effects = iter(_core.tensor_effects(function))
    kinds = [next(effects) if isinstance(param, _core.Buffer) else None for param in function.params]
    for position in found:
        _check(function, function.params[position], kinds[position])
    return tuple(found)


def _check(function: _core.Function, param: _core.Buffer | _core.Var, effects: tuple[bool, bool, bool] | None) -> None:
    """Raises unless a call may allocate the parameter."""
    if effects is None:
        raise _refusal(function, param.name, "it is a scalar", "write the result to a tensor of one element")
    _, written, read_first = effects
    if not written:
        raise _refusal(function, param.name, "it is never written", "store the result to it, or leave it out of out=")
    if read_first:
        raise _refusal(function, param.name, "it is read before it is written, and a new array has no contents",
                       f"write it first, for example with T.clear({param.name}), or leave it out of out= and pass it")
    if param.strides:
        raise _refusal(function, param.name, "it has strides, and new arrays are row-major without gaps",
                       "leave it out of out= and pass it")
