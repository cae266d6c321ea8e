"""Code of single threads: their numbers, and values that lanes of a warp exchange.

A shuffle is what it is in the core: each thread stores to its row of a fragment, all of them meet, and each reads the
row of another lane. `_core.thread_steps` makes a loop over the threads of what stands between two such meetings.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core, language
from helve.errors import error
from helve.language.constructs import Construct
from helve.script.arguments import Arguments, match
from helve.script.context import Context
from helve.script.expressions import Expressions
from helve.script.values import number

_WARP = 32
_IN_THREAD = "put it into code of a thread, with T.thread() as tx:"


def kernel_threads(expressions: Expressions, arguments: Arguments) -> list[int]:
    """The threads of T.Kernel in each of one to three dimensions, the first fastest."""
    node = arguments.get("threads")
    value = None if node is None else expressions.evaluate(node)
    if isinstance(value, (tuple, list)):
        numbers = [number(each) for each in value]
        if 1 <= len(numbers) <= 3 and all(type(each) is int and 1 <= each <= 1024 for each in numbers):
            return numbers
        raise expressions.context.bad_argument(node, arguments.construct.text, "threads",
                                               "it is not one to three numbers from 1 to 1024",
                                               "write for example threads=(32, 4)")
    return [expressions.literal(arguments, "threads", int, "a compile-time integer", "write a multiple of 32")]


def coordinates(thread: _core.Expr, extents: list[_core.Expr], span: _core.Span) -> list[_core.Expr]:
    """The place of a thread in a block of these extents, the first fastest."""
    values, rest = [], thread
    for extent in extents[:-1]:
        values.append(_core.apply_operands("FloorMod", [rest, extent], span))
        rest = _core.apply_operands("FloorDiv", [rest, extent], span)
    return [*values, rest]


def count(extents: list[_core.Expr], span: _core.Span) -> _core.Expr:
    """The threads of a block of these extents."""
    if all(isinstance(each, _core.IntImm) for each in extents):
        whole = 1
        for each in extents:
            whole *= each.value
        return _core.int_imm(whole, "index", span)
    out = extents[0]
    for each in extents[1:]:
        out = _core.apply_operands("Mul", [out, each], span)
    return out


def _require_thread(context: Context, function: Construct, span: _core.Span) -> _core.Expr:
    """The number of the thread whose code is being read."""
    if context.thread is None:
        raise error("OperationScope", span, operation=function.text,
                    scope="block" if context.kernel_vars is not None else "host", remedy=_IN_THREAD)
    return context.thread


def _dimension(expressions: Expressions, arguments: Arguments, dimensions: int, of: str) -> int:
    dim = expressions.literal(arguments, "dim", int, "a compile-time integer", "write 0, 1 or 2")
    if 0 <= dim < dimensions:
        return dim
    node = arguments.get("dim") or arguments.call
    raise expressions.context.bad_argument(node, arguments.construct.text, "dim",
                                           f"the {of} {dimensions} dimension{'s' if dimensions > 1 else ''}",
                                           "count dimensions from 0")


def thread_binding(expressions: Expressions, call: ast.Call) -> _core.Expr:
    """`T.get_thread_binding(dim)`."""
    context, function = expressions.context, language.get_thread_binding
    arguments = match(context, function, call)
    span = context.span(call)
    thread = _require_thread(context, function, context.span(call.func))
    dim = _dimension(expressions, arguments, len(context.threads), "block of threads has")
    return coordinates(thread, [_core.int_imm(each) for each in context.threads], span)[dim]


def block_binding(expressions: Expressions, call: ast.Call) -> _core.Expr:
    """`T.get_block_binding(dim)`."""
    context, function = expressions.context, language.get_block_binding
    arguments = match(context, function, call)
    if context.kernel_vars is None:
        raise error("OperationScope", context.span(call.func), operation=function.text, scope="host",
                    remedy="put it inside T.Kernel")
    return context.kernel_vars[_dimension(expressions, arguments, len(context.kernel_vars), "grid has")]


def shuffle(expressions: Expressions, call: ast.Call) -> Any:
    """The value that another lane of the warp gives: T.shfl_sync, T.shfl_xor, T.shfl_up, T.shfl_down."""
    context = expressions.context
    function = expressions.evaluate(call.func)
    arguments = match(context, function, call)
    span = context.span(call.func)
    thread = _require_thread(context, function, span)
    which = next(name for name in ("lane", "offset") if name in arguments.nodes)
    node = arguments[which]
    by = expressions.index(node, expressions.evaluate(node), f"the {which} of {function.text}")
    if isinstance(by, _core.IntImm) and not 0 <= by.value < _WARP:
        raise context.bad_argument(node, function.text, which, f"a warp has {_WARP} lanes",
                                   "give a number from 0 to 31")
    given = expressions.typed(arguments["value"], expressions.evaluate(arguments["value"]))
    kept = _core.cast(given, "int64", span) if given.dtype == "index" else given
    row = _core.make_buffer("lanes", kept.dtype, "fragment",
                            [_core.int_imm(_threads_around(context)), _core.int_imm(1)], [], [], span)
    zero = _core.int_imm(0)
    context.emit(_core.alloc(row, span))
    context.emit(_core.store(row, [thread, zero], kept, span))
    context.emit(_core.tile_op("SyncThreads", [], span))
    context.meetings.append((span, function.text))
    received = context.named("received", _core.load(row, [_source(function.name, thread, by, span), zero], span), span)
    return _core.cast(received, "index", span) if given.dtype == "index" else received


def _threads_around(context: Context) -> int:
    whole = 1
    for each in context.threads:
        whole *= each
    return whole


def _source(name: str, thread: _core.Expr, by: _core.Expr, span: _core.Span) -> _core.Expr:
    """The thread whose value is read: of the same warp, whatever `by` is."""

    def apply(op: str, *operands: Any) -> _core.Expr:
        return _core.apply_operands(op, list(operands), span)

    constant = isinstance(by, _core.IntImm)
    if name == "shfl_xor" and constant:
        return apply("BitXor", thread, by)
    warp = _core.int_imm(_WARP)
    lane = apply("FloorMod", thread, warp)
    if name == "shfl_sync":
        source = by if constant else apply("FloorMod", by, warp)
    elif name == "shfl_xor":
        source = apply("FloorMod", apply("BitXor", lane, by), warp)
    elif name == "shfl_up":
        inside = apply("Ge", lane, by)
        source = apply("FloorMod", apply("Select", inside, apply("Sub", lane, by), lane), warp)
    else:
        further = apply("Add", lane, by)
        source = apply("FloorMod", apply("Select", apply("Lt", further, warp), further, lane), warp)
    return apply("Add", apply("Mul", apply("FloorDiv", thread, warp), warp), source)
