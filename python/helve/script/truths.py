"""`&`, `|` and `^` of truth values.

As in Python and NumPy they evaluate both sides; the core's `and` and `or` evaluate the right one only where it decides.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core
from helve.arguments import variables_of
from helve.script.context import Context
from helve.script.values import comparisons, loads_of

OPERATORS = {"BitAnd": "And", "BitOr": "Or", "BitXor": "Ne"}


def both(context: Context, node: ast.AST, name: str, left: tuple[ast.expr, Any], right: tuple[ast.expr, Any]) -> Any:
    """The truth of two operands, (node, value) pairs; a right one that loads is computed first."""
    span = context.span(node)
    operands = [left[1], right[1]]
    for known, other in (operands, operands[::-1]):
        if name != "BitXor" and not isinstance(known, _core.Expr):
            return other if bool(known) is (name == "BitAnd") else bool(known)
    if name != "BitXor" and any(loads_of(right[1])):
        _warn_of_guard(context, node, name, *operands)
        if not context.lazy and not context.tile_loops:
            operands[1] = context.named("both", right[1], context.span(right[0]))
        elif not any(loads_of(left[1])):
            operands.reverse()
    return _core.apply_operands(OPERATORS[name], operands, span)


def _warn_of_guard(context: Context, node: ast.AST, name: str, left: Any, right: _core.Expr) -> None:
    """Warns where the left side looks like the guard of a load on the right."""
    compared = {variable for each in comparisons(left) for variable in variables_of(each)}
    for load in loads_of(right):
        if compared.intersection(variable for index in load.indices for variable in variables_of(index)):
            operator, word = ("&", "and") if name == "BitAnd" else ("|", "or")
            context.warn(node, "UnguardedLoad", operator=operator, buffer=load.buffer.name, word=word)
            return
