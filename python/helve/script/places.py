"""Where in the text a fault lies that the core found.

The core reports the call that it cannot do; which of its arguments is at fault has a place only in the text.
"""

from __future__ import annotations

import ast

from helve import _core, language
from helve.errors import Error, from_diagnostic
from helve.language.constructs import Construct
from helve.script.arguments import match
from helve.script.context import Context


def at_argument(context: Context, function: ast.AST, fault: Error) -> Error:
    """A BadArgument of a call in `function`, or in a helper of it, at that argument; any other fault as it is."""
    if fault.diagnostic.name != "BadArgument":
        return fault
    found = _in(context, function, fault)
    for helper, span in context.read:
        with context.reading(helper, span):
            found = found or _in(context, helper.node, fault)
    return found or fault


def _in(context: Context, function: ast.AST, fault: Error) -> Error | None:
    data = fault.diagnostic
    parameter = dict(data.args)["parameter"]
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        construct, span = language.NAMES.get(call.func.attr), context.span(call)
        ends_alike = (span.file, span.end_line, span.end_column, span.caller) == (
            data.span.file, data.span.end_line, data.span.end_column, data.span.caller)
        node = match(context, construct, call).get(parameter) if (
            ends_alike and isinstance(construct, Construct)) else None
        if node is not None:
            fixes = data.help.split("\n") if data.help else []
            notes, caller = data.notes, data.span.caller
            while caller is not None:  # the notes of calls, which come with the place
                notes, caller = notes[:-1], caller.caller
            return from_diagnostic(_core.Diagnostic(data.name, context.span(node), data.args, notes, fixes))
    return None
