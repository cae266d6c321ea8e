"""Operators from builders: Python functions that return a kernel function for shapes, dtypes and constants.

The operator's parameters are the builder's, since its kernel's are known only when it was called.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import torch

from helve import _core
from helve.arrays import dtype_name
from helve.caller import at_caller
from helve.errors import Error
from helve.jit import JitBuilder, JitOptions, TensorSpec
from helve.script.prim_func import PrimFunc
from helve.target import core_function, outputs_of
from helve.torch.functions import DEVICES, ShapesOfOutputs, schema
from helve.torch.gradients import Named
from helve.torch.registration import refused

_CONSTANTS = {int: "int", float: "float", bool: "bool", str: "str"}
_OPTIONAL = {f"{kind.__name__} | None": f"{text}?" for kind, text in _CONSTANTS.items()}
_MOST_SHAPES = 256


class BuilderBody:
    """What an operator of a builder does. Attributes as of `FunctionBody`."""

    mutates = False

    def __init__(self, name: str, builder: Callable, out: Any, options: dict[str, Any]):
        made = builder if isinstance(builder, JitBuilder) else None
        build = made.__wrapped__ if made is not None else builder
        self._name = name
        self._out = made.options.out if made is not None else out
        count = len(self._out) if isinstance(self._out, (tuple, list)) else 1
        if self._out is None or not count:
            raise refused("helve.torch.op", builder, "kernel", "which parameters of its kernels are results is not "
                          "said", "name them by out=")
        parameters = list(inspect.signature(build).parameters.values())
        types = [_schema_type(builder, each) for each in parameters]
        self._places = [n for n, kind in enumerate(types) if kind == "Tensor"]
        if not self._places:
            raise refused("helve.torch.op", builder, "kernel", "none of its parameters is a tensor, by which PyTorch "
                          "chooses a device", "annotate those for tensors with torch.Tensor")
        names = tuple(each.name for each in parameters)
        results = self._out if isinstance(self._out, (tuple, list)) else [self._out]
        self.named = Named(names, frozenset(names[place] for place in self._places),
                           tuple(each if isinstance(each, str) else "" for each in results))
        texts = [f"{each.name}{_default(each)}" for each in parameters]
        self.schema = schema(types, tuple(texts), count)
        chosen = made.options if made is not None else \
            JitOptions(options.pop("target", None), options.pop("mesh", None), out, options)
        self.devices = DEVICES[chosen.target]
        self._call = JitBuilder(self._checked(build), chosen)
        self._build = build
        self._lock = threading.Lock()
        self._shapes: dict[Any, ShapesOfOutputs] = {}

    def run(self, *values: Any) -> Any:
        """Builds and compiles the kernel, if it is not kept, and calls it."""
        given = list(values)
        for place in self._places:
            given[place] = given[place].contiguous()
        try:
            return self._call(*given)
        except Error as fault:
            raise at_caller(fault) from None

    def fake(self, *values: Any) -> Any:
        """The results without data. Extents that PyTorch traces as symbols become numbers here."""
        try:
            given = list(values)
            for place in self._places:
                given[place] = self._spec(values[place])
            key = tuple((type(each), each) for each in given)
            with self._lock:
                shapes = self._shapes.get(key)
            if shapes is None:
                function = core_function(self._checked(self._build)(*given))
                shapes = ShapesOfOutputs(self._name, outputs_of(function, self._out, None))
                with self._lock:
                    if len(self._shapes) >= _MOST_SHAPES:
                        self._shapes.clear()
                    self._shapes[key] = shapes
            return shapes.made(tuple(values[place] for place in self._places))
        except Error as fault:
            raise at_caller(fault) from None

    def _spec(self, value: torch.Tensor) -> TensorSpec:
        name = dtype_name(value.dtype)
        if name is None:
            raise refused(self._name, value, "dtype", f"helve has no dtype {value.dtype}", "convert it with .to(dtype)")
        return TensorSpec(tuple(int(extent) for extent in value.shape), name)

    def _checked(self, build: Callable) -> Callable:
        """The builder, whose kernels are refused if they write to inputs, which the operator's schema denies."""

        @functools.wraps(build)
        def checked(*args: Any) -> PrimFunc:
            built = build(*args)
            function = core_function(built)
            outputs = outputs_of(function, self._out, None)
            effects = iter(_core.tensor_effects(function))
            written = [isinstance(param, _core.Buffer) and next(effects)[1] for param in function.params]
            for place in outputs.inputs:
                if written[place]:
                    name = function.params[place].name
                    raise refused("helve.torch.op", self._name, "kernel", f"it writes to '{name}', and an operator of "
                                  "a builder writes to its outputs only",
                                  f"name '{name}' in out=, or pass a kernel function")
            return built

        return checked


def _schema_type(builder: Callable, parameter: inspect.Parameter) -> str:
    """The type of a builder's parameter in PyTorch's notation.

    Raises:
        helve.Error: HV0108 for one that an operator cannot have.
    """
    note = parameter.annotation
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
        raise refused("helve.torch.op", builder, "kernel", f"its parameter '{parameter.name}' cannot be given by "
                      "position", "write a function that takes each by name and position")
    if note in _CONSTANTS or note in {kind.__name__ for kind in _CONSTANTS}:
        return note if isinstance(note, str) else _CONSTANTS[note]
    if str(note) in _OPTIONAL:
        return _OPTIONAL[str(note)]
    if note is inspect.Parameter.empty and type(parameter.default) in _CONSTANTS:
        return _CONSTANTS[type(parameter.default)]
    tensors = (inspect.Parameter.empty, torch.Tensor, TensorSpec, "torch.Tensor", "Tensor", "TensorSpec")
    if note in tensors and parameter.default is inspect.Parameter.empty:
        return "Tensor"
    text = note if isinstance(note, str) else getattr(note, "__name__", note)
    given = f"annotated {text}" if note is not inspect.Parameter.empty else f"{parameter.default!r} by default"
    raise refused("helve.torch.op", builder, "kernel", f"its parameter '{parameter.name}' is {given}, which an "
                  "operator does not take", "annotate it with torch.Tensor, int, float, bool or str")


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return ""
    if isinstance(parameter.default, str):
        return f'="{parameter.default}"'
    return f"={parameter.default}"
