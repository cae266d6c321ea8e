"""The type stub of the language, for editors and checkers.

The names below `T` come from tables at import, where no editor sees them; this writes them down: `python -m
helve.language.stub > python/helve/language/__init__.pyi`.
"""

from __future__ import annotations

import textwrap

from helve.language import NAMES
from helve.language.constructs import (
    Construct,
    DType,
    FrontEnd,
    HostConstruct,
    LibraryFunction,
    MacroMaker,
    Namespace,
    Operator,
    Parameter,
)

_HEAD = '''\
"""What `T` is: the names that kernels are written with."""

import builtins as _b
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import overload as _overload

from helve._core import Expr as _Expr
from helve._core import Var as _Var
from helve.language.constructs import DType as _DType
from helve.language.constructs import Macro as _Macro
from helve.language.constructs import TensorType as _TensorType
from helve.mesh import Mesh as _Mesh
from helve.notation import Expression as _Expression
from helve.script.prim_func import PrimFunc as _PrimFunc

_Scalar = _Expr | _Expression | _b.int | _b.float | _b.bool
_Extent = _Expr | _b.int
_Shape = _Sequence[_Extent]
_Region = _Any

NAMES: dict[str, _Any]
'''

# What a parameter takes: by the table's kind, else by its name.
_KINDS = {
    "In": "_Region",
    "Out": "_Region",
    "InOut": "_Region",
    "Source": "_Region | _Scalar",
    "Value": "_Scalar",
    "Coord": "_Sequence[_Extent]",
    "Index": "_Extent",
    "Map": "_Callable[[_Any], _Any] | None",
    "Integer": "_b.int",
    "Flag": "_b.bool",
    "Text": "_b.str",
    "Axes": "_b.str | _Sequence[_b.str]",
    "Layout": "_Any",
    "Barriers": "_Region",
}
_TYPES = {
    "shape": "_Shape",
    "strides": "_Shape | None",
    "dtype": "_Any",  # a name, or a type of NumPy or PyTorch
    "tile_size": "_Sequence[_b.int] | None",
    "scope": "_b.str",
    "start": "_Extent",
    "stop": "_Extent | None",
    "step": "_b.int",
    "num_stages": "_b.int",
    "threads": "_b.int | _Sequence[_b.int]",
    "dim": "_b.int",
    "shown": "dict[_b.str, _Any] | None",
    "cluster": "_b.int",
    "producers": "_b.int",
    "domain": "_Sequence[_Any] | _Extent",
    "buffer": "_Any",
    "tensor": "_Any",
    "parallel": "_b.bool",
    "scheduled": "_b.bool",
    "rolled": "_b.bool",
    "annotations": "dict[_Any, _Any]",
    "nrows": "_b.int | None",
    "ncols": "_b.int | None",
    "send": "_Region",
    "recv": "_Region",
    "name": "_b.str",
    "names": "_Sequence[_b.str]",
    "device": "_b.str",
}
_HOST = {
    "Tensor": "_TensorType",
    "dyn": "_Var",
    "dynamic": "_Var",
    "symbolic": "_Var",
    "Mesh": "_Mesh",
    "ceildiv": "_Any",
    "infinity": "_Any",
    "multiprocessors": "_b.int",
    "nan": "_Any",
}
_VALUES = ("cast", "Cast", "clamp", "reinterpret", "bitcast", "get_thread_binding", "get_block_binding", "shfl_sync",
           "shfl_xor", "shfl_up", "shfl_down")


def stub_text() -> str:
    """The text of the stub."""
    parts = [_HEAD]
    for name, value in sorted(NAMES.items()):
        if isinstance(value, Namespace):
            members = "\n".join(_function(member, "    ", "@staticmethod\n") for member in value.members.values())
            parts.append(f"class {name}:\n{members}")
        elif isinstance(value, DType):
            parts.append(f"{name}: _DType\n")
        elif isinstance(value, MacroMaker):
            parts.append(f"def {name}(function: _Callable[..., _Any]) -> _Macro: ...\n")
        elif isinstance(value, FrontEnd):
            parts.append(
                f"@_overload\ndef {name}(\n    function: _Callable[..., _Any], /, *, mesh: _Mesh | None = None\n"
                f") -> _PrimFunc: ...\n\n@_overload\ndef {name}(\n"
                "    function: None = None, /, *, mesh: _Mesh | None = None\n"
                ") -> _Callable[[_Callable[..., _Any]], _PrimFunc]: ...\n"
            )
        else:
            parts.append(_function(value))
    return "\n".join(parts)


def _function(construct: Construct, indent: str = "", decorator: str = "") -> str:
    rest = [f"*{construct.variadic}: _Any"] if construct.variadic else []
    parameters = ", ".join(rest + [_parameter(construct, parameter) for parameter in construct.parameters])
    head = f"{decorator}def {construct.__name__}({parameters}) -> {_result(construct)}:"
    lines = textwrap.wrap(construct.documentation.strip().partition("\n\n")[0], 108 - len(indent))
    body = '"""' + "\n".join(lines) + '"""'
    return textwrap.indent(f"{head}\n{textwrap.indent(body, '    ')}\n", indent)


def _parameter(construct: Construct, parameter: Parameter) -> str:
    numeric = isinstance(construct, Operator) or construct.name in (*_VALUES, "ceildiv")
    kind = _KINDS.get(parameter.kind) or _TYPES.get(parameter.name) or ("_Scalar" if numeric else "_Any")
    optional = parameter.default is None and not parameter.required and not kind.endswith("None")
    default = "" if parameter.required else f" = {parameter.default!r}"
    if construct.name == "cumsum" and parameter.name == "dst":  # in place without one
        default = " = ..."
    return f"{parameter.name}: {kind}{' | None' if optional else ''}{default}"


def _result(construct: Construct) -> str:
    if isinstance(construct, HostConstruct):
        return _HOST[construct.name]
    if isinstance(construct, Operator) or construct.name in _VALUES:  # in a kernel or in index notation
        return "_Any"
    if isinstance(construct, LibraryFunction):
        return "None" if construct.buffers else "_Any"
    if getattr(construct, "is_atomic", False):
        return "_Any"
    return "None" if hasattr(construct, "op") else "_Any"


if __name__ == "__main__":
    print(stub_text(), end="")
