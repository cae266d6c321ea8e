"""T.print, T.assert_ and T.fail: what a program says while it runs.

The statements of the core carry the values to say; which these are is decided here, where the source is at hand.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core, language
from helve.errors import Error, error
from helve.script import asserted, operations
from helve.script.arguments import Arguments, match
from helve.script.context import quote, require_elements
from helve.script.expressions import Expressions
from helve.script.values import number

_LINE = 16  # elements of a tile in a line
_DIMS = "ijklmnpqr"
_TEXT = "write one line of printable text"
_ELEMENTS = "put it in a loop over elements, T.Parallel or T.serial"


def assertion(expressions: Expressions, call: ast.Call) -> list[_core.Stmt]:
    """A fault under the negated condition, with the values of the names that the condition uses and of what it read."""
    context, function = expressions.context, language.assert_
    arguments = match(context, function, call)
    node = arguments["condition"]
    before = len(context.stmts[-1])
    condition = expressions.evaluate(node)
    if condition is True:
        return []
    expressions.require_condition(node, condition)
    text = _text(expressions, arguments, "message", quote(node)[1:-1])
    span = context.span(node)
    require_elements(context, function.text, span, _ELEMENTS)
    values = [*context.iteration, *_names(expressions, node)]

    def fault(more: asserted.Named) -> _core.Stmt:
        shown = [*values, *more]
        return _made(function, text, [name for name, _ in shown], [value for _, value in shown],
                     len(context.iteration), span)

    if condition is False:
        return [fault([])]
    bound = asserted.bindings(context.stmts[-1][before:])
    found = asserted.faults(context, node, condition, bound, values, _core.MOST_REPORTED - len(values), fault)
    return [_core.if_then(_core.apply_operands("Not", [condition], span), found, None, span)]


def fail(expressions: Expressions, call: ast.Call) -> list[_core.Stmt]:
    """A fault."""
    context = expressions.context
    arguments = match(context, language.fail, call)
    require_elements(context, language.fail.text, context.span(call.func), _ELEMENTS)
    if not arguments.rest:
        raise _missing(expressions, arguments, "values")
    text = _literal(expressions, language.fail, "values", arguments.rest[0])
    return [_report(expressions, arguments, text, arguments.rest[1:])]


def printing(expressions: Expressions, call: ast.Call) -> list[_core.Stmt]:
    """A line with the values, or lines with the elements of a tile."""
    context, function = expressions.context, language.print
    arguments = match(context, function, call)
    require_elements(context, function.text, context.span(call.func), _ELEMENTS)
    nodes, text = arguments.rest, ""
    if nodes and isinstance(expressions.evaluate(nodes[0]) if isinstance(nodes[0], ast.Constant) else None, str):
        text, nodes = _literal(expressions, function, "values", nodes[0]), nodes[1:]
    tiles = [node for node in nodes if operations.is_region(expressions, node)]
    if not tiles:
        return [_report(expressions, arguments, text, nodes)]
    if len(nodes) > 1:
        raise context.bad_argument(tiles[0], function.text, "values", "it is a tile, and there are other values",
                                   "print a tile by a call of its own")
    return [_tile(expressions, arguments, text or quote(tiles[0])[1:-1], tiles[0])]


def _made(function: Any, text: str, names: list[str], values: list[_core.Expr], around: int,
          span: _core.Span) -> _core.Stmt:
    """The statement."""
    if len(values) > _core.MOST_REPORTED:
        raise error("BadArgument", span, function=function.text, parameter="values", value=f"{len(values)} values",
                    reason=f"it takes {_core.MOST_REPORTED}, with those of the loops around it",
                    remedy="give fewer" + (", or print by several calls" if function is language.print else ""))
    return _core.report(function is not language.print, text, names, values, around, span)


def _missing(expressions: Expressions, arguments: Arguments, parameter: str) -> Error:
    construct = arguments.construct
    return error("MissingArgument", expressions.context.span(arguments.call), function=construct.text,
                 parameter=parameter, parameters=construct.parameter_text)


def _literal(expressions: Expressions, function: Any, parameter: str, node: ast.expr) -> str:
    value = expressions.evaluate(node)
    if not isinstance(value, str) or not value.isprintable():
        reason = "it is not one line of text" if isinstance(value, str) else "it is not a string constant"
        raise expressions.context.bad_argument(node, function.text, parameter, reason, _TEXT)
    return value


def _text(expressions: Expressions, arguments: Arguments, parameter: str, fallback: str) -> str:
    node = arguments.get(parameter)
    return fallback if node is None else _literal(expressions, arguments.construct, parameter, node)


def _names(expressions: Expressions, node: ast.expr) -> list[tuple[str, _core.Expr]]:
    """The names of values that an expression uses, the variables of loops and of the kernel aside."""
    found: dict[str, _core.Expr] = {}
    known = [value for _, value in expressions.context.iteration]
    for each in ast.walk(node):
        if not isinstance(each, ast.Name) or each.id in found:
            continue
        try:
            value = expressions.evaluate(each)
        except Error:  # the parameter of a lambda, say
            continue
        if isinstance(value, _core.Expr) and not any(_core.expr_equal(value, other) for other in known):
            found[each.id] = value
    return list(found.items())


def _value(expressions: Expressions, function: Any, node: ast.expr) -> _core.Expr:
    context = expressions.context
    value = expressions.evaluate(node)
    if isinstance(value, _core.Expr):
        return value
    plain = number(value)
    if plain is None:
        raise context.bad_argument(node, function.text, "values", "it is not a number",
                                   "give numbers, after a text if there is one, or one tile")
    if isinstance(plain, bool):
        return _core.bool_imm(plain)
    if isinstance(plain, int):
        return _core.int_imm(expressions.in_range(node, plain))
    return _core.float_imm(plain, "float64")


def _report(expressions: Expressions, arguments: Arguments, text: str, nodes: list[ast.expr]) -> _core.Stmt:
    """The statement; `names` and `at`, which printed programs have, say what else the source does."""
    context, function = expressions.context, arguments.construct
    around = context.iteration
    if (node := arguments.get("at")) is not None:
        if not isinstance(node, ast.Dict):
            raise context.bad_argument(node, function.text, "at", "it is not a dict",
                                       'write names and values, at={"i": i}')
        around = [(_literal(expressions, function, "at", key), _value(expressions, function, value))
                  for key, value in zip(node.keys, node.values)]
    names = [quote(each)[1:-1] for each in nodes]
    if (node := arguments.get("names")) is not None:
        if not isinstance(node, ast.List) or len(node.elts) != len(nodes):
            raise context.bad_argument(node, function.text, "names", f"there are {len(nodes)} values",
                                       "give a list with a name for each value")
        names = [_literal(expressions, function, "names", each) for each in node.elts]
    values = [_value(expressions, function, each) for each in nodes]
    return _made(function, text, [*[name for name, _ in around], *names], [*[value for _, value in around], *values],
                 len(around), context.span(arguments.call.func))


def _tile(expressions: Expressions, arguments: Arguments, text: str, node: ast.expr) -> _core.Stmt:
    """Loops over the rows of a tile, which print a row in lines of several elements."""
    context, function = expressions.context, arguments.construct
    region = operations.region(expressions, node, function.text, "values")
    dims = [d for d, each in enumerate(region.ranges) if not each.point]
    if not all(isinstance(region.ranges[d].extent, _core.IntImm) for d in dims):
        raise context.bad_argument(node, function.text, "values", "its extents are not constant",
                                   "print a part of constant shape, or elements in a loop")
    if arguments.nodes:
        raise context.bad_argument(node, function.text, "values", "it is a tile, which has no names",
                                   "leave out 'names' and 'at'")
    span = context.span(arguments.call.func)
    used = {name for name, _ in context.iteration}
    letters = [letter for letter in [*_DIMS, *(f"d{d}" for d in dims)] if letter not in used]
    variables = [(letter, context.make_var(letter)) for letter in letters[: len(dims)]]
    at = [each.begin for each in region.ranges]

    def element(offsets: list[_core.Expr]) -> _core.Expr:
        place = list(at)
        for d, offset in zip(dims, offsets):
            place[d] = _core.apply_operands("Add", [place[d], offset], span)
        return _core.load(region.buffer, place, span)

    def line(first: _core.Expr | None, count: int) -> _core.Stmt:
        """A part of a row, from its element `first` on."""
        around = [*context.iteration, *variables[:-1]]
        offsets = [variable for _, variable in variables[:-1]]
        if first is None:
            values = [element([])]
        else:
            around.append((variables[-1][0], first))
            values = [element([*offsets, _core.apply_operands("Add", [first, _core.int_imm(k)], span)])
                      for k in range(count)]
        return _made(function, text, [*[name for name, _ in around], *[""] * len(values)],
                     [*[value for _, value in around], *values], len(around), span)

    if not dims:
        return line(None, 1)
    whole, rest = divmod(region.ranges[dims[-1]].extent.value, _LINE)
    variable = variables[-1][1]
    body = []
    if whole:
        first = _core.apply_operands("Mul", [variable, _core.int_imm(_LINE)], span)
        body.append(_core.for_loop("serial", [variable], [_core.int_imm(0)], [_core.int_imm(whole)],
                                   line(first, _LINE), 1, span))
    if rest:
        body.append(line(_core.int_imm(whole * _LINE), rest))
    statement = _core.seq(body)
    for d, (_, outer) in reversed(list(zip(dims[:-1], variables[:-1]))):
        statement = _core.for_loop("serial", [outer], [_core.int_imm(0)], [region.ranges[d].extent], statement, 1, span)
    return statement
