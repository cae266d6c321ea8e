"""Breakpoints: what is in scope where the interpreter stops.

The statement of the core carries scalars and buffers; which these are, and under which names, only the parser knows.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

from helve import _core, language
from helve.script.arguments import match
from helve.script.context import Context, require_elements
from helve.script.expressions import Expressions
from helve.script.scope import Binding, Scope
from helve.script.values import number


def is_breakpoint(expressions: Expressions, call: ast.expr, function: Any) -> bool:
    """Is the call one of T.breakpoint, or of Python's own?"""
    if function is language.breakpoint:
        return True
    return (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "breakpoint"
            and expressions.context.scope.find("breakpoint") is None
            and expressions.evaluate(call.func) is builtins.breakpoint)


def breakpoint(expressions: Expressions, call: ast.Call) -> _core.Stmt:  # noqa: A001
    """The statement; `shown`, which printed programs have, says what is in scope."""
    context = expressions.context
    span = context.span(call.func)
    function = language.breakpoint
    arguments = match(context, function, call)
    require_elements(context, function.text, span, "put it in front of the loop, or in a loop over elements")
    node = arguments.get("shown")
    shown = _in_scope(context) if node is None else _given(expressions, node)
    values = {name: value for name, value in shown.items() if isinstance(value, _core.Expr)}
    buffers = {name: value for name, value in shown.items() if isinstance(value, _core.Buffer)}
    return _core.breakpoint([*values, *buffers], list(values.values()), list(buffers.values()), span)


def _given(expressions: Expressions, node: ast.expr) -> dict[str, Any]:
    context, function = expressions.context, language.breakpoint
    value = expressions.evaluate(node)
    shown = {key: _shown(item) for key, item in value.items()} if isinstance(value, dict) else {None: None}
    if not all(isinstance(key, str) and item is not None for key, item in shown.items()):
        raise context.bad_argument(node, function.text, "shown", "it is not a dict of names and values",
                                   'leave it out for all that is in scope, or write {"x": x, "tile": tile}')
    return shown


def _in_scope(context: Context) -> dict[str, Any]:
    """The names that the statement may use, with scalars and buffers; those of a helper, inside of one."""
    found = {dim.name: dim for dim in context.dims}
    scopes: list[Scope] = []
    scope: Scope | None = context.scope
    while scope is not None:
        scopes.append(scope)
        scope = scope.outer
    for each in reversed(scopes):
        for block in each.blocks:
            for name, binding in block.items():
                value = _shown(_value(binding))
                if name != "_" and value is not None:
                    found.pop(name, None)
                    found[name] = value
    return found


def _value(binding: Binding) -> Any:
    return _core.load(binding.value, [_core.int_imm(0)]) if binding.kind == "variable" else binding.value


def _shown(value: Any) -> _core.Expr | _core.Buffer | None:
    """The value as the core has it, if it is a scalar or a buffer."""
    if isinstance(value, (_core.Expr, _core.Buffer)):
        return value
    plain = number(value)
    if isinstance(plain, bool):
        return _core.bool_imm(plain)
    if isinstance(plain, int):
        return _core.int_imm(plain) if -(2**63) <= plain < 2**63 else None
    return None if plain is None else _core.float_imm(plain, "float64")
