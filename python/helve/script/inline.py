"""Calls of Python functions inside a kernel: the body takes the place of the call.

Arguments are evaluated once, before the body, as in Python; a function that only computes may stand anywhere in an
expression, one that does something only where nothing else is evaluated beside it.
"""

from __future__ import annotations

import ast
from typing import Any

from helve import _core, language
from helve.errors import error
from helve.language.constructs import DType
from helve.language.library import Refused
from helve.script.arguments import Signature, match
from helve.script.context import INLINED_LIMIT, Context, quote
from helve.script.expressions import Expressions
from helve.script.inlinable import Helper
from helve.script.operations import region
from helve.script.values import is_plain, is_slice
from helve.script.views import Part, View

_COMPUTES = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Pass, ast.Expr, ast.FunctionDef, ast.If)


def only_computes(statements: list[ast.stmt]) -> bool:
    """Do statements only name values and return, as far as their form says?"""
    return all(_computes(statement) for statement in statements)


def _computes(node: ast.stmt) -> bool:
    if not isinstance(node, _COMPUTES):
        return False
    if isinstance(node, ast.If):
        return only_computes(node.body) and only_computes(node.orelse)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    function = getattr(getattr(node, "value", None), "func", None)
    if isinstance(function, ast.Attribute) and function.attr.startswith("alloc"):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return not any(isinstance(part, (ast.Subscript, ast.Starred)) for target in targets if target is not None
                   for part in [target, *getattr(target, "elts", [])])


def returns(node: ast.AST) -> bool:
    """Is there a `return` in a statement, those of functions inside it aside?"""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return False
    return any(returns(child) for child in ast.iter_child_nodes(node))


class Inliner:
    """Inlines helpers into one function. `statement` parses one of their statements."""

    def __init__(self, context: Context, expressions: Expressions, statement: Any):
        self.context = context
        self.expressions = expressions
        self.statement = statement

    def call(self, helper: Helper, node: ast.Call, whole: bool, args: list[Any] | None = None,
             keywords: dict[str, Any] | None = None) -> Any:
        """The value of a call, whose statements are emitted.

        Args:
            helper: what is called.
            node: the call.
            whole: is the call all that its statement evaluates?
            args, keywords: the values of its arguments, where they were evaluated.
        """
        context = self.context
        span = context.span(node)
        self._check_call(helper, node, whole, span)
        arguments = match(context, Signature(helper.name, helper.parameters), node)
        values = {id(item): value for item, value in zip(node.args, args or [])}
        values |= {id(item.value): keywords[item.arg] for item in node.keywords if keywords}
        given = {name: (item, values[id(item)] if id(item) in values else self._evaluated(helper, name, item))
                 for name, item in arguments.nodes.items()}
        if helper.check is not None:
            self._check_values(helper, given)
        context.read.append((helper, span))
        for name, (item, value) in given.items():
            given[name] = (item, self._argument(helper, name, item, value))
        with context.reading(helper, span), context.evaluated_lazily(context.declares_dims):
            self._bind_parameters(helper, given, span)
            return self._value(helper.body, node)

    def _evaluated(self, helper: Helper, name: str, node: ast.expr) -> Any:
        """The value of an argument, which may be a part of a buffer."""
        if not is_slice(node):
            return self.expressions.evaluate(node)
        box = region(self.expressions, node, helper.name, name)
        return Part(box.buffer, box.ranges)

    def _check_call(self, helper: Helper, node: ast.Call, whole: bool, span: _core.Span) -> None:
        context = self.context
        if any(helper.node is active.node for active in context.helpers):
            raise error("RecursiveCall", span, name=helper.name)
        if len(context.read) >= INLINED_LIMIT:
            raise error("TextLimit", span, limit=INLINED_LIMIT, unit="calls of Python functions")
        self._check_parameters(helper, span)
        if only_computes(helper.body):
            return
        if context.lazy or context.declares_dims:
            raise context.unsupported(node, f"a call of '{helper.name}', which does more than compute a value, where "
                                      "it may not be evaluated", "call it in a statement of its own, before this one")
        if not whole:
            raise context.unsupported(node, f"a call of '{helper.name}', which does more than compute a value, inside "
                                      "an expression", f"name its result first: x = {quote(node)[1:-1]}")

    def _check_values(self, helper: Helper, given: dict[str, tuple[ast.expr, Any]]) -> None:
        """Arguments of a function of the language, some of which must be buffers."""
        context = self.context
        for parameter in helper.parameters:
            node, value = given.get(parameter.name, (None, None))
            if helper.buffers and parameter.required and not isinstance(value, (_core.Buffer, View)):
                raise context.bad_argument(node, helper.name, parameter.name, "it is no buffer",
                                           "pass a whole buffer of the block")
        try:
            helper.check(**{**helper.defaults, **{name: value for name, (_, value) in given.items()}})
        except Refused as fault:
            parameter, reason, remedy = fault.args
            raise context.bad_argument(given.get(parameter, given[helper.parameters[0].name])[0], helper.name,
                                       parameter, reason, remedy) from None

    def _check_parameters(self, helper: Helper, span: _core.Span) -> None:
        context, args = self.context, helper.node.args
        wrong = [(args.vararg, "'*args'"), (args.kwarg, "'**kwargs'")]
        wrong += [(each, "a keyword-only or positional-only parameter") for each in args.kwonlyargs + args.posonlyargs]
        for found, kind in wrong:
            if found is not None:
                with context.reading(helper, span):
                    raise context.unsupported(found, kind, "name every parameter")

    def _argument(self, helper: Helper, name: str, node: ast.expr, value: Any) -> Any:
        """What a parameter stands for: a run-time value is computed once, before the body.

        Where nothing can be computed before, and the body changes nothing either, it is written in each place.
        """
        context = self.context
        if isinstance(value, (_core.Var, _core.IntImm, _core.FloatImm)) or not isinstance(value, _core.Expr):
            return value
        computes, uses = only_computes(helper.body), helper.uses(name)
        if computes and uses <= 1:
            return value
        if computes and (context.lazy or context.tile_loops or context.declares_dims):
            context.check_size(value, context.span(node))
            return value
        return context.named(name, value, context.span(node))

    def _bind_parameters(self, helper: Helper, given: dict[str, tuple[ast.expr, Any]], span: _core.Span) -> None:
        context = self.context
        positional, named = helper.given
        values = {**helper.defaults, **dict(zip((each.arg for each in helper.node.args.args), positional)), **named}
        types = {each.arg: each.annotation for each in helper.node.args.args}
        for name, annotation in types.items():
            node, value = given.get(name, (None, values.get(name)))
            dtype = None if annotation is None else self._dtype(annotation)
            if dtype is not None and not isinstance(value, (_core.Buffer, View, Part)):
                value = self.expressions.stored(node or annotation, value, dtype)
            context.scope.bind(name, value, span)

    def _dtype(self, annotation: ast.expr) -> DType | None:
        """The element type that an annotation names; other annotations say nothing to a kernel."""
        names = language.NAMES
        if isinstance(annotation, ast.Attribute) and isinstance(names.get(annotation.attr), DType):
            if self.context.scope.surroundings.find(getattr(annotation.value, "id", "")) is language:
                return names[annotation.attr]
        return None

    def _value(self, nodes: list[ast.stmt], place: ast.AST) -> Any:
        """What statements return, None if they only end; those before the `return` are emitted."""
        context = self.context
        for i, node in enumerate(nodes):
            if isinstance(node, ast.Return):
                return None if node.value is None else self.expressions.whole(node.value)
            if not isinstance(node, ast.If) or not returns(node):
                self.statement(node)
                continue
            condition = self.expressions.evaluate(node.test)
            rest = nodes[i + 1 :]
            if is_plain(condition):
                taken = node.body if self.expressions.truth(node.test, condition) else node.orelse
                return self._value([*taken, *rest], place)
            self.expressions.require_condition(node.test, condition)
            branches = [[*node.body, *rest], [*node.orelse, *rest]]
            if not all(map(only_computes, branches)):
                raise context.unsupported(node, "'return' under a run-time condition in a function that does more than "
                                          "compute a value", "store the result, and return once, at the end")
            return self._choice(node, condition, branches)
        return None

    def _choice(self, node: ast.If, condition: Any, branches: list[list[ast.stmt]]) -> Any:
        context = self.context
        values = []
        for branch in branches:
            with context.evaluated_lazily(), context.scope.block(node.end_lineno):
                values.append(self._value(branch, node))
        for value in values:
            if value is None:
                raise context.unsupported(node, "a function that returns a value under one condition only",
                                          "return a value at its end too")
        return self.expressions.select(node, condition, *((node.test, value) for value in values))
