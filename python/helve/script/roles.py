"""Shares of a kernel's threads: T.role, T.warpgroup, T.warp, and what T.Kernel says of them."""

from __future__ import annotations

import ast
import math

from helve import language
from helve.script.arguments import Arguments, match
from helve.script.expressions import Expressions
from helve.script.values import number

# Threads of what each construct counts.
_UNITS = {"role": 1, "warp": 32, "warpgroup": 128}
_MOST_THREADS = 1024


def is_role(function: object) -> bool:
    """Is it T.role or a T.role of warps or warpgroups?"""
    return function in (language.role, language.warpgroup, language.warp)


def of_kernel(expressions: Expressions, arguments: Arguments) -> tuple[int, list[int]]:
    """`producers` and `registers` of T.Kernel."""
    producers = expressions.literal(arguments, "producers", int, "a compile-time integer", "write for example 128")
    node = arguments.get("registers")
    value = () if node is None else expressions.evaluate(node)
    numbers = [number(each) for each in value] if isinstance(value, (tuple, list)) else [None]
    if not all(type(each) is int for each in numbers):
        raise expressions.context.bad_argument(node, arguments.construct.text, "registers", "it is not two numbers",
                                               "write for example registers=[232, 40]")
    return producers, [expressions.in_range(node, each) for each in numbers]


def role(expressions: Expressions, item: ast.withitem) -> tuple[int, int, int, bool]:
    """The first thread, the number of threads, the registers of each, and whether one is elected."""
    context = expressions.context
    construct = expressions.callee(item.context_expr)
    if item.optional_vars is not None:
        raise context.unsupported(item.optional_vars, "a name for a role", f"write 'with {construct.text}(...):'")
    arguments = match(context, construct, item.context_expr)

    def integer(name: str) -> int:
        return expressions.literal(arguments, name, int, "a compile-time integer",
                                   f"write for example {construct.text}(0, 2)")

    unit = _UNITS[construct.name]
    counted = "threads" if construct is language.role else "count"
    first, count = integer("first"), integer(counted)
    for name, value in (("first", first), (counted, count)):
        if not 0 <= value * unit <= _MOST_THREADS:
            raise context.bad_argument(arguments.get(name) or item.context_expr, construct.text, name,
                                       f"a block has at most {_MOST_THREADS} threads", "use fewer, such as 1 or 2")
    block = math.prod(context.threads or ())
    if first == 0 and count * unit != block and construct is not language.role and context.kernel_vars is not None:
        whole = f"give {block // unit}" if block % unit == 0 else f"write T.role(0, {block})"
        raise context.bad_argument(arguments.get("count") or item.context_expr, construct.text, "count",
                                   f"the block has {block} threads, and the first role all of them", whole)
    registers = 0 if construct is language.warp else integer("registers")
    elect = expressions.literal(arguments, "elect", bool, "True or False", "write elect=True")
    return first * unit, count * unit, registers, elect
