"""`break` and `continue`: the statements behind them move under conditions.

The core's loops have no jumps, so what a jump leaves out is under a condition that says that none was taken: most often
the condition of the jump itself, else a truth value in private memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from helve import _core
from helve.script.context import Context
from helve.script.expressions import Expressions
from helve.script.values import is_plain

_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.Lambda)
_ORDERED = ("serial", "unroll")
_BLOCKS = {"Kernel": "a kernel", "thread": "the code of a thread"}


@dataclass
class _Loop:
    """A loop that is being read: the flag that ends it, and those of the conditions around what is being read."""

    kind: str
    stop: _core.Buffer | None = None
    gone: list[_core.Buffer] = field(default_factory=list)


def jumps(nodes: list[ast.stmt], kinds: tuple[type, ...] = (ast.Break, ast.Continue)) -> bool:
    """Is there a jump of the loop around `nodes` in them?"""
    return any(isinstance(node, kinds) or not isinstance(node, _LOOPS) and jumps(_inside(node), kinds)
               for node in nodes)


def _inside(node: ast.AST) -> list[Any]:
    """The statements of a statement, and of its cases; expressions hold no jump."""
    lists = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases"))
    return [each for part in lists for each in part]


def _falls(nodes: list[ast.stmt]) -> bool:
    """May what follows `nodes` run after them, as far as their form says?"""
    last = nodes[-1] if nodes else None
    if isinstance(last, ast.If):
        return _falls(last.body) or _falls(last.orelse)
    return not isinstance(last, (ast.Break, ast.Continue))


class Jumps:
    """The jumps of one function's loops. `statement` parses a statement, `block` a list of them."""

    def __init__(self, context: Context, expressions: Expressions, statement: Callable, block: Callable):
        self.context = context
        self.expressions = expressions
        self.statement = statement
        self.block = block
        self._loops: list[_Loop] = []

    @contextmanager
    def loop(self, kind: str, node: ast.For | ast.While) -> Iterator[_Loop]:
        """While the body of a loop is read; the flag of its `break` is made before it."""
        loop = _Loop(kind)
        if kind in (*_ORDERED, "while") and jumps(node.body, (ast.Break,)) and self.context.kernel_vars is not None:
            loop.stop = self._flag("stop", node)
        self._loops.append(loop)
        try:
            yield loop
        finally:
            self._loops.pop()

    @contextmanager
    def inside(self, kind: str) -> Iterator[None]:
        """While the body of a T.Kernel or T.thread is read, which no jump leaves."""
        self._loops.append(_Loop(kind))
        try:
            yield
        finally:
            self._loops.pop()

    def running(self, loop: _Loop, body: _core.Stmt, node: ast.AST) -> _core.Stmt:
        """The body of a `for`, for as long as no `break` was reached."""
        return body if loop.stop is None else _core.if_then(self._unset(loop.stop, node), body, None,
                                                            self.context.span(node))

    def condition(self, loop: _Loop, condition: _core.Expr, node: ast.expr) -> _core.Expr:
        """The condition of a `while`, which is not evaluated once a `break` was reached."""
        if loop.stop is None:
            return condition
        if isinstance(condition, _core.IntImm) and condition.value:
            return self._unset(loop.stop, node)
        return _core.chain_operands("And", [self._unset(loop.stop, node), condition], self.context.span(node))

    def body(self, nodes: list[ast.stmt]) -> None:
        """Parses the statements of a loop's body, or of a branch in it."""
        for i, node in enumerate(nodes):
            rest = nodes[i + 1 :]
            if isinstance(node, (ast.Break, ast.Continue)):
                self._jump(node)
                return
            if not self._loops or not isinstance(node, ast.If) or not jumps([node]):
                self.statement(node)
                continue
            condition = self.expressions.evaluate(node.test)
            if is_plain(condition):
                self.body([*(node.body if self.expressions.truth(node.test, condition) else node.orelse), *rest])
                return
            self.expressions.require_condition(node.test, condition)
            self._branches(node, condition, rest)
            return

    def _branches(self, node: ast.If, condition: _core.Expr, rest: list[ast.stmt]) -> None:
        """A condition with jumps under it, and what follows it."""
        context, span = self.context, self.context.span(node.test)
        if not (_falls(node.body) and _falls(node.orelse)):
            then, other = node.body, node.orelse
            then, other = ([*then, *rest], other) if _falls(then) else (then, [*other, *rest])
            with context.collected() as stmts:
                self.body(then)
            with context.collected() as others:
                self.body(other)
            if others and not stmts:  # a `continue` alone
                condition, stmts, others = _core.apply_operands("Not", [condition], span), others, []
            context.emit(_core.if_then(condition, _core.seq(stmts), _core.seq(others) if others else None, span))
            return
        gone = self._flag("gone", node)
        self._loops[-1].gone.append(gone)
        then_body = self.block(node.body)
        other_body = self.block(node.orelse) if node.orelse else None
        self._loops[-1].gone.pop()
        context.emit(_core.if_then(condition, then_body, other_body, span))
        if rest:
            unset = self._unset(gone, node.test)
            context.emit(_core.if_then(unset, self._collected(rest), None, span))

    def _collected(self, nodes: list[ast.stmt]) -> _core.Stmt:
        """Statements of this level of names, as a statement of their own."""
        with self.context.collected() as stmts:
            self.body(nodes)
        return _core.seq(stmts)

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        context, loop = self.context, self._loops[-1] if self._loops else _Loop("")
        breaks = isinstance(node, ast.Break)
        if loop.kind in _BLOCKS:
            raise context.unsupported(node, f"'{'break' if breaks else 'continue'}' out of {_BLOCKS[loop.kind]}",
                                      f"put the condition around the T.{loop.kind}")
        if breaks and loop.kind not in (*_ORDERED, "while"):
            raise context.unsupported(node, f"'break' in a loop of T.{loop.kind}" if loop.kind else "'break' here",
                                      "only loops of T.serial, T.unroll, range and 'while' end early")
        if breaks and loop.stop is None:
            raise context.unsupported(node, "'break' in the host body", "put the condition into a 'while'")
        for flag in [*loop.gone, *([loop.stop] if breaks else [])]:
            context.emit(_core.store(flag, [_core.int_imm(0)], _core.bool_imm(True), context.span(node)))

    def _flag(self, name: str, node: ast.AST) -> _core.Buffer:
        """A truth value in private memory, False so far."""
        context, span = self.context, self.context.span(node)
        if context.kernel_vars is None:
            raise context.unsupported(node, "a jump out of several conditions in the host body",
                                      "put what follows under an 'else'")
        flag = _core.make_buffer(name, "bool", "local", [_core.int_imm(1)], [], [], span)
        context.emit(_core.alloc(flag, span))
        context.emit(_core.store(flag, [_core.int_imm(0)], _core.bool_imm(False), span))
        return flag

    def _unset(self, flag: _core.Buffer, node: ast.AST) -> Any:
        span = self.context.span(node)
        return _core.apply_operands("Not", [_core.load(flag, [_core.int_imm(0)], span)], span)
