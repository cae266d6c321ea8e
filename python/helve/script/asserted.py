"""What a false condition has read: its loads, each where the guards around it have let it be evaluated.

A load behind `and` may lie outside of its buffer where the left side is false. So a fault is one of several, under the
guards that decide which loads it can repeat.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from helve import _core
from helve.script.context import Context, quote, shortened

Named = list[tuple[str, _core.Expr]]
Guard = tuple[_core.Expr, bool]  # a condition, and what it was

_LOADS = 8  # values of a fault
_GUARDS = 4  # decisions about them: each may double the number of faults


@dataclass(frozen=True)
class _Read:
    """A load, and what was true and what was false where it was evaluated, the outermost first."""

    load: _core.Load
    guards: tuple[Guard, ...] = ()


def bindings(stmts: list[_core.Stmt]) -> dict[_core.Var, _core.Expr]:
    """The values of variables that a condition has computed first, if memory has not changed since."""
    if not all(isinstance(each, _core.Bind) for each in stmts):
        return {}
    return {each.var: each.value for each in stmts}


class _Bound:
    """The values of variables that were computed first; each is looked into once, however often it is used."""

    def __init__(self, values: dict[_core.Var, _core.Expr]):
        self._values = values
        self._seen: set[tuple[_core.Var, bool | None]] = set()

    def take(self, var: _core.Var, known: bool | None) -> _core.Expr | None:
        """The value of the variable, if it has one and is not looked into already."""
        if var not in self._values or (var, known) in self._seen:
            return None
        self._seen.add((var, known))
        return self._values[var]


def _reads(e: _core.Expr, guards: tuple[Guard, ...], known: bool | None, bound: _Bound) -> list[_Read]:
    """The loads of an expression in the order of the text; `known` is its value, if that follows from the fault."""
    if isinstance(e, _core.Var):
        known = None if guards else known
        value = bound.take(e, known)
        return [] if value is None else _reads(value, (), known, bound)  # it was evaluated first
    if isinstance(e, _core.Load):
        return [_Read(e, guards), *(read for index in e.indices for read in _reads(index, guards, None, bound))]
    if isinstance(e, (_core.Cast, _core.Bitcast)):
        return _reads(e.value, guards, None, bound)
    if not isinstance(e, _core.Apply):
        return []
    if e.op == "Not":
        return _reads(e.args[0], guards, None if known is None else not known, bound)
    if e.op in ("And", "Or"):
        going_on = e.op == "And"  # the left value with which the right side is evaluated
        left, right = e.args
        if known is not None and known is going_on:  # then both sides are
            return [*_reads(left, guards, known, bound), *_reads(right, guards, known, bound)]
        return [*_reads(left, guards, None, bound), *_reads(right, (*guards, (left, going_on)), known, bound)]
    if e.op == "Select":
        condition, true, false = e.args
        return [*_reads(condition, guards, None, bound), *_reads(true, (*guards, (condition, True)), known, bound),
                *_reads(false, (*guards, (condition, False)), known, bound)]
    return [read for operand in e.args for read in _reads(operand, guards, None, bound)]


def _is(e: _core.Expr, other: _core.Expr) -> bool:
    return _core.expr_equal(e, other)


def _bounded(reads: list[_Read], shown: Named, room: int) -> list[_Read]:
    """The first of them, without those that a name shows."""
    out: list[_Read] = []
    loads: list[_core.Expr] = [value for _, value in shown]
    guards: list[_core.Expr] = []
    for read in reads:
        more = [guard for guard, _ in read.guards if not any(_is(guard, other) for other in guards)]
        new = not any(_is(read.load, other) for other in loads)
        if len(guards) + len(more) > _GUARDS or new and len(loads) - len(shown) >= min(_LOADS, room):
            continue
        if new:
            loads.append(read.load)
        if new or any(_is(read.load, other.load) for other in out):  # again, behind other guards
            out.append(read)
            guards += more
    return out


def _texts(context: Context, node: ast.expr, reads: list[_Read]) -> Named:
    """Each load with its text: as it stands in the condition, or printed where it stands in a function."""
    written = [(context.span(each), quote(each)[1:-1]) for each in ast.walk(node) if isinstance(each, ast.Subscript)]
    out: Named = []
    for read in reads:
        if any(_is(read.load, load) for _, load in out):
            continue
        texts = [text for span, text in written if span == read.load.span]
        out.append((texts[0] if texts else shortened(str(read.load)), read.load))
    return out


def faults(context: Context, node: ast.expr, condition: _core.Expr, bound: dict[_core.Var, _core.Expr], shown: Named,
           room: int, fault: Callable[[Named], _core.Stmt]) -> _core.Stmt:
    """The statement for a condition that is false.

    Args:
        context: of the text.
        node, condition: what is false.
        bound: the values of variables that the condition has computed first.
        shown: names that the fault has anyway.
        room: the most values that it can take beside them.
        fault: makes it, with some more values.
    """
    reads = _bounded(_reads(condition, (), False, _Bound(bound)), shown, room)
    texts = _texts(context, node, reads)
    span = context.span(node)

    def decided(left: list[_Read]) -> _core.Stmt:
        guard = next((read.guards[0][0] for read in left if read.guards), None)
        if guard is None:
            return fault([(text, load) for text, load in texts if any(_is(read.load, load) for read in left)])
        return _core.if_then(guard, decided(_where(left, guard, True)), decided(_where(left, guard, False)), span)

    return decided(reads)


def _where(reads: list[_Read], guard: _core.Expr, value: bool) -> list[_Read]:
    """Those that can have been evaluated where the guard has the value, without it."""
    out = []
    for read in reads:
        if all(was is value for other, was in read.guards if _is(other, guard)):
            out.append(_Read(read.load, tuple(each for each in read.guards if not _is(each[0], guard))))
    return out
