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


def use_swizzle(expressions: Expressions, call: ast.Call) -> None:
    """`T.use_swizzle(panel_size)`: the order of blocks is not a program's to say."""
    match(expressions.context, language.use_swizzle, call)
    expressions.context.warn(call, "HintWithoutEffect", hint="T.use_swizzle",
                             reason="helve chooses the order of blocks")


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
        if expressions.callee(value) is language.make_swizzled_layout:
            match(context, language.make_swizzled_layout, value)
            context.warn(value, "HintWithoutEffect", hint="T.make_swizzled_layout",
                         reason="helve chooses the layouts of buffers that have none")
            continue
        if buffer.layout is not None or buffer in context.placed:
            raise context.bad_argument(key, function.text, "layouts", "it has a layout", "give a buffer one layout")
        context.placed[buffer] = placed(expressions, function.text, "layouts", value, buffer)
