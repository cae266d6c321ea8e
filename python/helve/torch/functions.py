"""Operators from kernel functions: the schema and the shapes of results follow from the parameters.

Extents stay symbols where PyTorch traces with symbols, so that one graph serves all sizes as one kernel does.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from helve import _core
from helve.arguments import cast_integer
from helve.arrays import dtype_name
from helve.caller import at_caller
from helve.errors import Error, error
from helve.jit import JitFunction, jit
from helve.outputs import Outputs
from helve.schedule import Schedule
from helve.script.prim_func import PrimFunc
from helve.target import outputs_of
from helve.torch.gradients import Named
from helve.torch.registration import refused

DEVICES = {"cuda": ("CUDA",), "llvm": ("CPU",), "interp": ("CPU",), None: ("CPU", "CUDA")}
# What extents are computed with, on numbers of Python and on symbols alike.
_ON_SYMBOLS = {
    "index": lambda value: value,
    "T": SimpleNamespace(
        min=torch.sym_min, max=torch.sym_max, abs=lambda value: torch.sym_max(value, -value),
        cast=lambda value, dtype: value if dtype == "index" else cast_integer(int(value), dtype),
    ),
}


class FunctionBody:
    """What an operator of one kernel function does.

    Attributes:
        named: its inputs and outputs.
        schema: its parameters and results, in PyTorch's notation.
        mutates: does it write to inputs?
        devices: the dispatch keys that it runs for.
    """

    def __init__(self, name: str, kernel: PrimFunc | Schedule, out: Any, options: dict[str, Any]):
        self._call = kernel if isinstance(kernel, JitFunction) else jit(kernel, out=out, **options)
        self.devices = DEVICES[self._call.options.target]
        function = self._call.function
        outputs = outputs_of(function, self._call.returns, None)
        params = function.params
        places = outputs.inputs if outputs is not None else tuple(range(len(params)))
        self._shapes = ShapesOfOutputs(name, outputs) if outputs is not None else None
        effects = iter(_core.tensor_effects(function))
        written = [isinstance(param, _core.Buffer) and next(effects)[1] for param in params]
        self.mutates = any(written[place] for place in places)
        self._params = [params[place] for place in places]
        for param in self._params:
            if isinstance(param, _core.Buffer):
                torch_dtype(name, param)
        self._contiguous = tuple(
            n for n, place in enumerate(places)
            if isinstance(params[place], _core.Buffer) and not written[place] and not params[place].strides
        )
        tensors = frozenset(param.name for param in self._params if isinstance(param, _core.Buffer))
        if not tensors:
            raise refused("helve.torch.op", kernel, "kernel", "none of its inputs is a tensor, by which PyTorch "
                          "chooses a device", "pass it what it writes, instead of naming that in out=")
        self.named = Named(tuple(param.name for param in self._params), tensors, self._call.returns)
        types = [_schema_type(param, n if written[place] else None)
                 for n, (param, place) in enumerate(zip(self._params, places))]
        self.schema = schema(types, self.named.inputs, len(self._call.returns))

    def run(self, *values: Any) -> Any:
        """Calls the kernel."""
        given = list(values)
        for n in self._contiguous:
            given[n] = given[n].contiguous()
        if not self.mutates:
            return self._call(*given)
        with torch.no_grad():  # PyTorch has seen to gradients before it comes here
            return self._call(*given)

    def fake(self, *values: Any) -> Any:
        """The results without data; what a call refuses by dtype or rank is refused."""
        try:
            check(self._params, values)
            return self._shapes.made(values) if self._shapes is not None else None
        except Error as fault:
            raise at_caller(fault) from None


class ShapesOfOutputs:
    """Makes results without data.

    Args:
        name: of the operator.
        outputs: of its function.
    """

    def __init__(self, name: str, outputs: Outputs):
        self._outputs = outputs
        self._shapes = outputs.shape_function(_ON_SYMBOLS)
        self._dtypes = [torch_dtype(name, param) for param in outputs.params]

    def made(self, values: tuple) -> Any:
        """A tensor for each output, from all inputs; the tensor itself where there is one."""
        arguments: list[Any] = [None] * (len(self._outputs.inputs) + len(self._outputs.positions))
        for place, value in zip(self._outputs.inputs, values):
            arguments[place] = value
        like = next(value for value in values if isinstance(value, torch.Tensor))
        made = tuple(like.new_empty(shape, dtype=dtype) for shape, dtype in zip(self._shapes(arguments), self._dtypes))
        return made[0] if len(made) == 1 else made


def check(params: list, values: tuple) -> None:
    """Raises helve.Error for a tensor of another dtype or rank than its parameter, as the kernel's call does."""
    for param, value in zip(params, values):
        if isinstance(param, _core.Buffer):
            given = dtype_name(value.dtype)
            if given != param.dtype:
                raise error("ArgumentDType", parameter=param.name, expected=param.dtype, given=given or value.dtype)
            if value.dim() != param.rank:
                raise error("ArgumentRank", parameter=param.name, expected=param.rank, given=value.dim())


def torch_dtype(name: str, param: _core.Buffer) -> torch.dtype:
    """PyTorch's dtype of a parameter.

    Raises:
        helve.Error: HV0108 where it has none.
    """
    found = getattr(torch, {"float8_e4m3": "float8_e4m3fn", "index": "int64"}.get(param.dtype, param.dtype), None)
    if not isinstance(found, torch.dtype):
        raise refused("helve.torch.op", name, "kernel", f"'{param.name}' is {param.dtype}, which PyTorch does not have",
                      "give the parameter a dtype of PyTorch")
    return found


def schema(types: list[str], names: tuple[str, ...], results: int) -> str:
    """Parameters and results in PyTorch's notation."""
    returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    return f"({', '.join(f'{kind} {name}' for kind, name in zip(types, names))}) -> {returned}"


def _schema_type(param: _core.Buffer | _core.Var, alias: int | None) -> str:
    if isinstance(param, _core.Buffer):
        return "Tensor" if alias is None else f"Tensor(a{alias}!)"
    if param.dtype == "bool":
        return "bool"
    return "float" if param.dtype.startswith(("float", "bfloat")) else "SymInt"
