"""Calls of one kernel function by another, in a host body.

Here names are matched with parameters and it is said what can be an argument at all; the core knows which arguments fit
and what the call means.
"""

from __future__ import annotations

import ast
from helve import _core
from helve.errors import Error, error
from helve.language.constructs import Parameter
from helve.script.arguments import Signature, match
from helve.script.expressions import Expressions
from helve.script.values import subscripts
from helve.script.prim_func import PrimFunc


def call(expressions: Expressions, function: PrimFunc, node: ast.Call) -> _core.Stmt:
    """The statements of a call `function(...)`."""
    context = expressions.context
    span = context.span(node)
    if context.kernel_vars is not None:
        raise error("OperationScope", span, operation=f"{function.name}(...)", scope="kernel",
                    remedy="call it in the host body, outside T.Kernel")
    context.calls = True
    if _core.multiprocessors() in function.function.dims:
        context.use_multiprocessors()
    params = function.function.params
    signature = Signature(function.name, tuple(Parameter(p.name) for p in params))
    given = match(context, signature, _without_none(expressions, node, signature))
    values = []
    for param in params:
        argument = given[param.name]
        make = _tensor if isinstance(param, _core.Buffer) else _scalar
        values.append((make(expressions, function.name, param, argument), context.span(argument)))
    return _core.call(function.function, values, context.mesh, context.mesh_tensors, context.may_alias,
                      context.assumptions, span)


def _without_none(expressions: Expressions, node: ast.Call, signature: Signature) -> ast.Call:
    """The call without names that are None for parameters that the function does not have: where an annotation of both
    functions is None, what the caller leaves out is left out of the call.
    """
    known = {parameter.name for parameter in signature.parameters}
    keywords = [each for each in node.keywords if each.arg is None or each.arg in known
                or not isinstance(each.value, ast.Name) or expressions.evaluate(each.value) is not None]
    return ast.copy_location(ast.Call(node.func, node.args, keywords), node)


def _tensor(expressions: Expressions, function: str, param: _core.Buffer, node: ast.expr) -> _core.Buffer:
    """A whole tensor of the caller."""
    context = expressions.context

    def refuse(reason: str, remedy: str) -> Exception:
        return context.bad_argument(node, function, param.name, reason, remedy)

    if _is_part(expressions, node):
        raise refuse("it is a part of a tensor", "pass the whole tensor, and where the part lies as scalar parameters")
    buffer = expressions.evaluate(node)
    if not isinstance(buffer, _core.Buffer):
        raise refuse("it is no tensor", "pass a tensor parameter or a buffer of T.alloc_global")
    if buffer.tile:
        raise refuse("its elements are in tiles", "allocate it without tile_size")
    return buffer


def _is_part(expressions: Expressions, node: ast.expr) -> bool:
    return (isinstance(node, ast.Subscript) and any(isinstance(item, ast.Slice) for item in subscripts(node))
            and isinstance(expressions.evaluate(node.value), _core.Buffer))


def _scalar(expressions: Expressions, function: str, param: _core.Var, node: ast.expr) -> _core.Expr:
    """A value of the parameter's type."""
    value = expressions.evaluate(node)
    if isinstance(value, _core.Buffer):
        raise expressions.context.bad_argument(node, function, param.name, f"it is a tensor, not {param.dtype}",
                                               "pass a number or one element")
    try:
        return expressions.stored(node, value, param.dtype)
    except Error as fault:
        if fault.name != "WrongType" or not isinstance(value, _core.Expr):
            raise
        raise error("WrongType", expressions.context.span(node), what=f"the argument for '{param.name}'",
                    given=value.dtype, expected=param.dtype, fixes=fault.help.split("\n")) from None
