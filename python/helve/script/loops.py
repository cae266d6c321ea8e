"""Headers of loops: variables, bounds, kind.

The core's loops run from a begin over an extent; Python's steps are normalised here, so that no later room meets one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from helve import _core, language
from helve.errors import error
from helve.language.constructs import Construct
from helve.script import threads
from helve.script.arguments import Arguments, match
from helve.script.context import Context
from helve.script.expressions import Expressions
from helve.script.values import number
from helve.script.operations import extent_between

_KINDS = {
    "serial": "serial",
    "range": "serial",
    "unroll": "unroll",
    "vectorized": "vectorized",
    "Pipelined": "Pipelined",
    "Parallel": "Parallel",
    "Persistent": "Persistent",
}
Binding = tuple[ast.Name | None, _core.Var, Any]


@dataclass
class Header:
    """A parsed loop header; `tiles` is the buffer of a tile loop and None for every other kind."""

    span: _core.Span
    kind: str = ""
    begins: list[_core.Expr] = field(default_factory=list)
    extents: list[_core.Expr] = field(default_factory=list)
    num_stages: int = 1
    scheduled: bool = False
    rolled: bool = False
    tiles: _core.Buffer | None = None
    parallel: bool = False
    bindings: list[Binding] = field(default_factory=list)

    @property
    def vars(self) -> list[_core.Var]:
        """The variables of the loop, of which several names may be parts."""
        return list(dict.fromkeys(variable for _, variable, _ in self.bindings))


def parse_header(expressions: Expressions, node: ast.For) -> Header:
    """The header of `for targets in T.something(...)`, or over Python's range."""
    context = expressions.context
    function = expressions.callee(node.iter)
    if function is range:
        function = language.range
    header = Header(context.span(node.iter))
    name = function.name if isinstance(function, Construct) else None
    if name in ("foreach_tiles", "foreach_tile"):
        _tile_loop(expressions, header, match(context, function, node.iter), node)
    elif name in ("Parallel", "Persistent"):
        arguments = match(context, function, node.iter)
        header.scheduled = _flag(expressions, arguments, "scheduled")
        header.rolled = name == "Parallel" and _flag(expressions, arguments, "rolled")
        _parallel_loop(expressions, header, arguments)
    elif name == "threads":
        arguments = match(context, function, node.iter)
        given = [each for each in ("count", "y", "z") if arguments.get(each) is not None]
        header.extents = [expressions.index(arguments[each], expressions.evaluate(arguments[each]), "a loop bound")
                          for each in given]
        header.kind = name
        return header
    elif name in _KINDS:
        return _counted_loop(expressions, header, match(context, function, node.iter), node)
    else:
        raise context.unsupported(node.iter, "this 'for'",
                                  "loop over T.serial, T.Parallel, T.foreach_tiles, ... or range")
    count = header.tiles.rank if header.tiles is not None else len(header.extents)
    header.kind = _KINDS.get(name, "")
    header.bindings = targets(context, node.target, count, [])
    return header


def targets(context: Context, node: ast.expr | None, count: int, hints: list[str]) -> list[Binding]:
    """New index variables for the names of a loop or a kernel; without names they take hints."""
    if node is None:
        return [(None, variable, variable) for variable in map(context.make_var, hints[:count])]
    names = list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]
    for name in names:
        if not isinstance(name, ast.Name):
            raise context.unsupported(name, "this loop variable", "loop variables are names")
    if len(names) != count:
        raise error("TargetCount", context.span(node), given=count, names=len(names))
    return [(name, variable, variable) for name, variable in ((n, context.make_var(n.id)) for n in names)]


def thread_bindings(context: Context, target: ast.expr | None, extents: list[_core.Expr],
                    span: _core.Span) -> list[Binding]:
    """The names of a loop over threads: all stand for parts of one variable, the thread's number in its block."""
    names = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if target is None or (len(extents) == 1 and len(names) == 1):
        found = targets(context, target, 1, ["tx"])
    else:
        found = targets(context, target, len(extents), [])
    variable = found[0][1] if len(extents) == 1 else context.make_var("thread")
    return [(name, variable, value) for (name, _, _), value in zip(found, threads.coordinates(variable, extents, span))]


def _tile_loop(expressions: Expressions, header: Header, arguments: Arguments, node: ast.For) -> None:
    context, text = expressions.context, arguments.construct.text
    buffer = expressions.evaluate(arguments["buffer"])
    if not isinstance(buffer, _core.Buffer):
        raise context.bad_argument(arguments["buffer"], text, "buffer", "it is not a buffer",
                                   "pass a buffer of T.alloc_shared_tiles")
    header.tiles = buffer
    header.parallel = expressions.literal(arguments, "parallel", bool, "True or False", "write True or False")


def _parallel_loop(expressions: Expressions, header: Header, arguments: Arguments) -> None:
    """Extents, or (begin, end) pairs; T.Persistent takes them in a list."""
    context, text = expressions.context, arguments.construct.text
    items: list[tuple[ast.expr, Any]]
    if arguments.construct.name == "Parallel":
        items = [(node, expressions.evaluate(node)) for node in arguments.rest]
        parameter = "extents"
    else:
        node = arguments["domain"]
        parameter = "domain"
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [(item, expressions.evaluate(item)) for item in node.elts]
        else:
            value = expressions.evaluate(node)
            items = [(node, item) for item in (value if isinstance(value, (list, tuple)) else [value])]
    if not items:
        raise error("MissingArgument", context.span(arguments.call), function=text, parameter=parameter,
                    parameters=arguments.construct.parameter_text)
    for node, value in items:
        if isinstance(value, (tuple, list)):
            if len(value) != 2:
                raise context.bad_argument(node, text, parameter, "a pair is (begin, end)", "write (begin, end)")
            nodes = node.elts if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2 else (node, node)
            begin, end = (expressions.index(n, v, "a loop bound") for n, v in zip(nodes, value))
            header.begins.append(begin)
            header.extents.append(extent_between(begin, end, context.span(node)))
        else:
            header.begins.append(_core.int_imm(0))
            header.extents.append(expressions.index(node, value, "a loop bound"))


def _counted_loop(expressions: Expressions, header: Header, arguments: Arguments, node: ast.For) -> Header:
    """One variable with start, stop and, where the kind has it, a constant step."""
    context, name = expressions.context, arguments.construct.name
    header.kind = _KINDS[name]
    first = expressions.index(arguments["start"], expressions.evaluate(arguments["start"]), "a loop bound")
    begin, end = _core.int_imm(0), first
    stop = arguments.get("stop")
    stop_value = None if stop is None else expressions.evaluate(stop)
    if stop_value is not None:
        begin, end = first, expressions.index(stop, stop_value, "a loop bound")
    step = 1
    header.scheduled = _flag(expressions, arguments, "scheduled")
    if name in ("serial", "range"):
        header.rolled = _flag(expressions, arguments, "rolled")
    if name == "Pipelined":
        header.num_stages = _stages(expressions, arguments)
    else:
        step = expressions.literal(arguments, "step", int, "a compile-time integer", "write a constant step")
        if step == 0:
            raise context.bad_argument(arguments["step"], arguments.construct.text, "step", "it is 0",
                                       "write a step that is not 0")
    extent = extent_between(begin, end, header.span)
    if name == "Pipelined" and isinstance(extent, _core.IntImm) and extent.value < 0:
        start, end_text = (ast.unparse(arguments[each]) for each in ("start", "stop"))
        raise error("NegativeExtent", header.span, extent=extent.value,
                    fixes=[f"it is the loop from {start} to {end_text}; a number of stages has its name: "
                           f"T.Pipelined({start}, num_stages={end_text})"])
    if step == 1:
        header.begins, header.extents = [begin], [extent]
        header.bindings = targets(context, node.target, 1, [])
        return header
    distance = extent if step > 0 else extent_between(end, begin, header.span)
    header.begins, header.extents = [_core.int_imm(0)], [_steps(distance, abs(step), header.span)]
    ((target, variable, _),) = targets(context, node.target, 1, [])
    scaled = _core.apply_operands("Mul", [variable, step], header.span)
    zero = isinstance(begin, _core.IntImm) and begin.value == 0
    value = scaled if zero else _core.apply_operands("Add", [begin, scaled], header.span)
    header.bindings = [(target, variable, value)]
    return header


def _flag(expressions: Expressions, arguments: Arguments, name: str) -> bool:
    return expressions.literal(arguments, name, bool, "True or False", "write True or False")


def _steps(distance: _core.Expr, step: int, span: _core.Span) -> _core.Expr:
    """How many steps reach over a distance."""
    if isinstance(distance, _core.IntImm):
        return _core.int_imm(max(0, -(-distance.value // step)), "index", span)
    return _core.ceil_div(distance, _core.int_imm(step))


def _stages(expressions: Expressions, arguments: Arguments) -> int:
    stages = expressions.literal(arguments, "num_stages", int, "a compile-time integer", "write a constant from 0 on")
    if not 0 <= stages < 2**31:
        raise error("StageCount", expressions.context.span(arguments["num_stages"]), stages=stages)
    return number(stages)
