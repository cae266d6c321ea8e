"""A kernel function's signature, as Python's tools and texts of objects show it.

Functions, kernels and what keeps kernels say by it what they are called with; the types are those of the program.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from helve import _core


def type_text(param: _core.Buffer | _core.Var) -> str:
    """The type of a parameter: "float32[M, 64]", "int32"."""
    if isinstance(param, _core.Var):
        return param.dtype
    return f"{param.dtype}[{', '.join(str(extent) for extent in param.shape)}]"


def call_text(function: _core.Function, outputs: Sequence[str] = ()) -> str:
    """A call in a line: "scale(A: float32[M, 64]) -> B: float32[M, 64]"; `outputs` by name, in the order returned."""
    types = {param.name: f"{param.name}: {type_text(param)}" for param in function.params}
    inputs = ", ".join(text for name, text in types.items() if name not in outputs)
    results = ", ".join(types[name] for name in outputs)
    return f"{function.name}({inputs})" + (f" -> {results}" if outputs else "")


def signature(function: _core.Function, outputs: Sequence[str] = ()) -> inspect.Signature:
    """What Python's `inspect.signature` says of a kernel. Outputs may be left out."""
    kinds = inspect.Parameter
    types = {param.name: type_text(param) for param in function.params}
    names = [name for name in types if name not in outputs]
    trailing = list(types)[len(names):]
    last = set(trailing) == set(outputs)
    parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, annotation=types[name]) for name in names]
    parameters += [kinds(name, kinds.POSITIONAL_OR_KEYWORD if last else kinds.KEYWORD_ONLY, default=None,
                         annotation=types[name]) for name in types if name in outputs]
    returned = [types[name] for name in outputs]
    if len(returned) < 2:
        return inspect.Signature(parameters, return_annotation=returned[0] if returned else None)
    return inspect.Signature(parameters, return_annotation=f"({', '.join(returned)})")
