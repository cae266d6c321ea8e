"""T.reshape and T.view, and operations on whole views.

An operation of the block on a whole view works on a copy in that shape, which the compiler keeps in registers or in
shared memory as it does the buffer.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core
from helve.script import views
from helve.script.arguments import match
from helve.script.expressions import Expressions
from helve.script.views import View


def view(expressions: Expressions, call: ast.Call) -> View:
    """`T.reshape(x, shape)` or `T.view(x, shape, dtype)`."""
    context = expressions.context
    function = expressions.evaluate(call.func)
    arguments = match(context, function, call)
    base = expressions.evaluate(arguments["x"])
    if not isinstance(base, (_core.Buffer, View)):
        raise context.bad_argument(arguments["x"], function.text, "x", "it is no buffer", "name a buffer")
    buffer = base.buffer if isinstance(base, View) else base
    if buffer.tile:
        raise context.bad_argument(arguments["x"], function.text, "x", "its elements are in tiles",
                                   "allocate it without tile_size")
    shape, dtype = list(base.shape), base.dtype
    node = arguments.get("shape")
    if node is not None and expressions.evaluate(node) is not None:
        shape = expressions.index_list(node, f"an extent of {function.text}")
        if views.elements(shape) != views.elements(list(buffer.shape)):
            text = f"({', '.join(map(str, buffer.shape))}{',' if buffer.rank == 1 else ''})"
            raise context.bad_argument(node, function.text, "shape", f"'{buffer.name}' has shape {text}",
                                       "give a shape with as many elements")
    node = arguments.get("dtype")
    if node is not None and expressions.evaluate(node) is not None:
        dtype = expressions.dtype(node, expressions.evaluate(node))
        bits = [_core.dtype_bits(each) for each in (dtype, buffer.dtype)]
        if dtype != buffer.dtype and (bits[0] != bits[1] or {"bool", "index", "int4"}.intersection(
                (dtype, buffer.dtype))):
            raise context.bad_argument(node, function.text, "dtype", f"'{buffer.name}' is {buffer.dtype}",
                                       "name a type of the same width")
    return View(buffer, shape, str(dtype))


class Copies:
    """The copies that one operation works on, in place of views."""

    def __init__(self, expressions: Expressions, function: str):
        self.expressions = expressions
        self.function = function
        self._back: list[_core.Stmt] = []

    def of(self, node: ast.expr, parameter: str, kind: str, seen: View, keeps: bool) -> _core.Region:
        """A buffer with the elements of a view, for a parameter of the table's kind.

        `keeps`: may the operation leave or use what an output holds?
        """
        context, span = self.expressions.context, self.expressions.context.span(node)
        if context.kernel_vars is None or not all(isinstance(extent, _core.IntImm) for extent in seen.shape):
            raise context.bad_argument(node, self.function, parameter, f"it is '{seen.name}' in another shape",
                                       "copy its elements in a loop of the kernel")
        scope = "shared" if seen.buffer.scope == "shared" else "fragment"
        copy = _core.make_buffer(seen.name, seen.dtype, scope, list(seen.shape), [], [], span)
        context.emit(_core.alloc(copy, span))
        if kind != "Out" or keeps:
            context.emit(self._loop(seen, span, lambda at: _core.store(copy, at, views.load(seen, at, span), span)))
        if kind in ("Out", "InOut"):
            self._back.append(self._loop(
                seen, span, lambda at: views.store(seen, at, _core.load(copy, at, span), span)))
        return _core.whole_region(copy)

    def _loop(self, seen: View, span: _core.Span, body: Any) -> _core.Stmt:
        variables = [self.expressions.context.make_var(name) for name in "ijklmnpq"[: seen.rank]]
        begins = [_core.int_imm(0)] * seen.rank
        return _core.for_loop("Parallel", variables, begins, seen.shape, body(variables), 1, span)

    def write_back(self) -> list[_core.Stmt]:
        """What leaves in the views what the operation left in the copies."""
        return self._back
