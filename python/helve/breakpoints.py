"""Where a kernel under the interpreter meets a breakpoint, Python's debugger looks at what is in scope.

A kernel has no frame of Python's, which debuggers stand in, so one is made with the kernel's names.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from helve import _core
from helve.arguments import numpy_dtype


def stop(span: _core.Span, function: str, values: dict[str, Any], arrays: dict[str, tuple[str, list[int], bytes]]
         ) -> None:
    """Calls sys.breakpointhook, by default pdb, in a frame whose locals are those of the kernel.

    The frame stands at the statement's line of the kernel's file. Changes of its locals do not reach the kernel.

    Args:
        span: the statement.
        function: the kernel function's name.
        values: scalars by name.
        arrays: by name the dtype, the shape and the elements of a buffer, row-major.
    """
    scope = dict(values)
    for name, (dtype, shape, elements) in arrays.items():
        scope[name] = np.frombuffer(elements, numpy_dtype(dtype)).reshape(shape)
    tree = ast.parse("breakpoint()")
    file, line = (span.file, span.line) if span.known else ("<kernel>", 1)
    ast.increment_lineno(tree, line - 1)
    code = compile(tree, file, "exec").replace(co_name=function)
    exec(code, {"__name__": function}, scope)
