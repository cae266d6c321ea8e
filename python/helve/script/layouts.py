"""Layouts that a kernel gives to its buffers and operations.

A layout is a value from around the kernel, or its text; the core decides what a buffer, or an operation, can have.
"""

from __future__ import annotations

import ast

from helve import _core, language
from helve.errors import Error
from helve.script.arguments import match
from helve.script.expressions import Expressions


def placed(
    expressions: Expressions, function: str, parameter: str, node: ast.expr | None, buffer: _core.Buffer
) -> _core.Buffer:
    """The buffer with the layout that `node` gives; without a node, or with None, as it is."""
    value = None if node is None else expressions.evaluate(node)
    if value is None:
        return buffer
    return _core.with_layout(buffer, layout(expressions, function, parameter, node, value),
                             expressions.context.span(node))


def layout(expressions: Expressions, function: str, parameter: str, node: ast.expr, value: object) -> _core.Layout:
    """The layout that an argument is, or spells."""
    context = expressions.context
    if isinstance(value, str):
        try:
            return _core.Layout.parse(value)
        except Error as fault:
            raise context.bad_argument(node, function, parameter, fault.message, fault.help) from None
    if not isinstance(value, _core.Layout):
        raise context.bad_argument(node, function, parameter, "it is no layout",
                                   "pass a helve.Layout, or its text as str(layout) writes it")
    return value


def annotate_layout(expressions: Expressions, call: ast.Call) -> None:
    """`T.annotate_layout({buffer: layout})`: what the allocations would say by `layout=`."""
    context = expressions.context
    function = language.annotate_layout
    node = match(context, function, call)["layouts"]
    if not isinstance(node, ast.Dict) or None in node.keys:
        raise context.bad_argument(node, function.text, "layouts", "it is not a dict written out",
                                   "write {buffer: layout}")
    for key, value in zip(node.keys, node.values):
        buffer = expressions.evaluate(key)
        if not isinstance(buffer, _core.Buffer):
            raise context.bad_argument(key, function.text, "layouts", "it is not a buffer", "write {buffer: layout}")
        if buffer.layout is not None or buffer in context.placed:
            raise context.bad_argument(key, function.text, "layouts", "it has a layout", "give a buffer one layout")
        context.placed[buffer] = placed(expressions, function.text, "layouts", value, buffer)
