"""Element types as programs name them.

A name is that of the language or of another library; what an object of another library is called decides there.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core
from helve.errors import error, shown
from helve.language.constructs import DType
from helve.script.context import Context
from helve.spellings import dtype_meant


def dtype_of(context: Context, node: ast.expr, value: Any) -> DType:
    """An element type: its name, T's object, or a NumPy or PyTorch dtype."""
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        name = shown(value).rpartition(".")[2]
    # Other libraries call the language's float8_e4m3 float8_e4m3fn; their float8_e4m3 is a type with infinities.
    foreign = name if not isinstance(value, (str, DType)) else ""
    found = _core.parse_dtype(name)
    if found is None or foreign == "float8_e4m3" or isinstance(value, (_core.Expr, _core.Buffer)):
        names = _core.dtype_names()
        fixes = dtype_meant(name)
        if foreign == "float8_e4m3":
            name = f"the {foreign} of ml_dtypes"
            fixes = ['"float8_e4m3" has no infinity, as float8_e4m3fn elsewhere; write one of the two']
        raise error("UnknownDType", context.span(node), name=name, known=", ".join(names), fixes=fixes)
    return DType(found)
