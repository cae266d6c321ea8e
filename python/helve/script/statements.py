"""Statements: Python syntax to the statements of the core.

One method a syntax node; what has no method has no meaning in a kernel and is refused by name.
"""

from __future__ import annotations

import ast
import math
from typing import Any

from helve import _core, language
from helve.errors import error
from helve.language.constructs import Construct, LibraryFunction, TileOperation
from helve.script import calls, debugging, layouts, loops, operations, reports, roles, threads, views
from helve.script.arguments import match
from helve.script.context import Context, quote
from helve.script.expressions import Expressions
from helve.script.inline import Inliner, only_computes
from helve.script.jumps import Jumps
from helve.script.values import is_plain, subscripts
from helve.script.views import Part, View
from helve.script.prim_func import PrimFunc

_UNSUPPORTED: dict[str, tuple[str, str]] = {
    "Return": ("'return'", "results leave a kernel through its tensor parameters; guard the rest with 'if'"),
    "Break": ("'break' here", "jump out of loops of T.serial, T.unroll, range and 'while'"),
    "Continue": ("'continue' here", "put the rest of the body under an 'if'"),
    "Try": ("'try'", "a kernel raises nothing"),
    "TryStar": ("'try'", "a kernel raises nothing"),
    "Raise": ("'raise'", "a kernel raises nothing"),
    "Assert": ("'assert'", "write T.assert_(condition, message)"),
    "Delete": ("'del'", "a buffer ends with its block"),
    "Global": ("'global'", "keep state in a buffer"),
    "Nonlocal": ("'nonlocal'", "keep state in a buffer"),
    "Import": ("'import'", "import outside the kernel"),
    "ImportFrom": ("'import'", "import outside the kernel"),
    "ClassDef": ("a class", "define it outside the kernel"),
    "AsyncFunctionDef": ("a nested function", "define it outside the kernel"),
    "AsyncFor": ("'async for'", "a kernel has no coroutines"),
    "AsyncWith": ("'async with'", "a kernel has no coroutines"),
    "Match": ("'match'", "use 'if' and 'elif'"),
    "TypeAlias": ("'type'", "define it outside the kernel"),
}


_LIST = "a kernel has no lists; keep values in T.alloc_local((n,), dtype)"
# For calls of Python whose effect is wanted, by name.
_INSTEAD = {"print": 'write T.print("text", value)', "append": _LIST, "extend": _LIST, "insert": _LIST}
_REPORTS = {language.assert_: reports.assertion, language.print: reports.printing, language.fail: reports.fail}


class Statements:
    """Parses the statements of one function into the context's blocks."""

    def __init__(self, context: Context):
        self.context = context
        self.expressions = Expressions(context, operations.HANDLERS)
        self.inliner = Inliner(context, self.expressions, self.statement)
        self.expressions.inline = self.inliner.call
        self.jumps = Jumps(context, self.expressions, self.statement, self.block)

    def body(self, nodes: list[ast.stmt]) -> None:
        """Parses statements into the innermost block."""
        self.jumps.body(nodes)

    def statement(self, node: ast.stmt) -> None:
        """Parses one statement."""
        kind = type(node).__name__
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            construct, remedy = _UNSUPPORTED.get(kind, (f"'{kind}'", "see docs/language.md"))
            if kind == "Return" and self.context.helpers:
                construct, remedy = "'return' inside a loop or a block", "return at the end, or in branches of an 'if'"
            raise self.context.unsupported(node, construct, remedy)
        method(node)

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    # -- calls --------------------------------------------------------------------------------------------------------

    def _expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Constant) and isinstance(call.value, str):
            return
        function = self.expressions.callee(call)
        if debugging.is_breakpoint(self.expressions, call, function):
            self.context.emit(debugging.breakpoint(self.expressions, call))
        elif isinstance(function, TileOperation):
            for statement in operations.tile_operation(self.expressions, function, call):
                self.context.emit(statement)
        elif function is language.annotate_mesh_tensor:
            operations.annotate_mesh_tensor(self.expressions, call)
        elif function is language.annotate_layout:
            layouts.annotate_layout(self.expressions, call)
        elif function is language.use_swizzle:
            layouts.use_swizzle(self.expressions, call)
        elif function is language.update:
            self.context.emit(operations.update(self.expressions, call))
        elif function is language.store_nontemporal:
            self.context.emit(operations.store_nontemporal(self.expressions, call))
        elif function is language.store_vector:
            self.context.emit(operations.store_vector(self.expressions, call))
        elif function is language.prefetch:
            self.context.emit(operations.prefetch(self.expressions, call))
        elif function in _REPORTS:
            for statement in _REPORTS[function](self.expressions, call):
                self.context.emit(statement)
        elif function is language.may_alias:
            operations.may_alias(self.expressions, call)
        elif function is language.assume:
            operations.assume(self.expressions, call)
        elif function in (language.comm.row_allgather, language.comm.col_allgather):
            self.context.emit(operations.gather_sugar(self.expressions, function, call))
        elif isinstance(function, PrimFunc):
            self.context.emit(calls.call(self.expressions, function, call))
        else:
            known = function is not None and not isinstance(function, LibraryFunction)
            helper = None if known else self.expressions.helper(call)
            if helper is not None and not only_computes(helper.body):
                self.inliner.call(helper, call, True)
                return
            if isinstance(call, ast.Call) and function is None and helper is None:
                instead = _INSTEAD.get(getattr(call.func, "attr", getattr(call.func, "id", "")),
                                       "a kernel runs no Python; call it before or after the kernel")
                raise self.context.unsupported(node, f"a call of {quote(call.func)} for its effect", instead)
            self.expressions.evaluate(call)
            raise self.context.unsupported(node, "an expression without effect",
                                           "store or bind its value, or remove it")

    def _functiondef(self, node: ast.FunctionDef) -> None:
        """A function of the kernel's own, which calls inline."""
        for decorator in node.decorator_list:
            if self.expressions.evaluate(decorator) is not language.macro:
                raise self.context.unsupported(decorator, "this decorator", "remove it, or write '@T.macro'")
        self.context.scope.bind(node.name, self.expressions.defined(node), self.context.span(node))

    # -- assignments --------------------------------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            raise self.context.unsupported(node, "an assignment to several targets", "assign one after the other")
        target = node.targets[0]
        function = self.expressions.callee(node.value)
        if operations.is_allocation(function):
            self._allocate(node, target, function)
        elif function is language.peer:
            self._peer(node, target)
        elif isinstance(function, TileOperation) and function.is_atomic and self._is_new_name(target):
            self._fetch(node.value, target)
        elif isinstance(target, ast.Subscript):
            self._store(node, target, node.value, self.expressions.whole(node.value))
        else:
            self._bind_target(node, target, node.value, self.expressions.whole(node.value))

    def _allocate(self, node: ast.Assign, target: ast.expr, function: Construct) -> None:
        if not isinstance(target, ast.Name):
            raise self.context.unsupported(target, "this target of an allocation", "assign the buffer to a name")
        span = self.context.span(node)
        self.context.scope.check_bindable(target.id, self.context.span(target))
        buffer = operations.allocate(self.expressions, function, node.value, target.id, span)
        kind = "variable" if function is language.alloc_var else "name"
        self.context.scope.bind(target.id, buffer, self.context.span(target), kind)
        self.context.emit(_core.alloc(buffer, span))
        if function is language.alloc_var:
            self._initialise(node, buffer, match(self.context, function, node.value).get("init"))

    def _initialise(self, node: ast.Assign, buffer: _core.Buffer, init: ast.expr | None) -> None:
        """The first store to a variable, if it has one."""
        value = None if init is None else self.expressions.evaluate(init)
        if value is not None:
            self._emit_store(node, buffer, [_core.int_imm(0)], self.expressions.stored(init, value, buffer.dtype))

    def _peer(self, node: ast.Assign, target: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            raise self.context.unsupported(target, "this target of T.peer", "assign the buffer to a name")
        span = self.context.span(target)
        self.context.scope.check_bindable(target.id, span)
        statement = operations.peer(self.expressions, node.value, target.id, self.context.span(node))
        self.context.scope.bind(target.id, statement.buffer, span)
        self.context.emit(statement)

    def _is_new_name(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and self._variable(target) is None

    def _fetch(self, call: ast.Call, target: ast.Name) -> None:
        """The update of an element and a name for what stood there before."""
        span = self.context.span(target)
        self.context.scope.check_bindable(target.id, span)
        self.context.scope.bind(target.id, operations.fetch(self.expressions, call, target.id), span)

    def _bind_target(self, node: ast.stmt, target: ast.expr, value_node: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._bind(node, target, value_node, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value) if isinstance(value, (tuple, list)) else [value]
            if len(values) != len(target.elts):
                raise error("TargetCount", self.context.span(target), given=len(values), names=len(target.elts))
            nodes = value_node.elts if isinstance(value_node, (ast.Tuple, ast.List)) else [value_node] * len(values)
            for part, part_node, part_value in zip(target.elts, nodes, values):
                if isinstance(part, ast.Subscript):
                    raise self.context.unsupported(part, "a store in an assignment to several names",
                                                   "store in a statement of its own")
                self._bind_target(node, part, part_node, part_value)
        else:
            raise self.context.unsupported(target, "this target of an assignment", "assign to a name or an element")

    def _bind(self, node: ast.stmt, target: ast.Name, value_node: ast.expr, value: Any) -> None:
        """A run-time value becomes a variable; what is known while parsing stays a constant behind the name.

        Where nothing can be computed before what is being read, the name stands for the expression.
        """
        context, span = self.context, self.context.span(target)
        variable = self._variable(target)
        if variable is not None:
            stored = self.expressions.stored(value_node, value, variable.dtype)
            self._emit_store(node, variable, [_core.int_imm(0)], stored)
            return
        if isinstance(value, _core.Expr):
            context.scope.check_bindable(target.id, span)
            in_tiles = context.tile_loops and context.helpers and only_computes(context.helpers[-1].body)
            if context.lazy or in_tiles:
                context.check_size(value, span)
            else:
                value = context.named(target.id, value, context.span(node))
        context.scope.bind(target.id, value, span)

    def _variable(self, target: ast.Name) -> _core.Buffer | None:
        """The buffer of a variable of T.alloc_var, if the name is one."""
        binding = self.context.scope.find(target.id)
        return binding.value if binding is not None and binding.kind == "variable" else None

    def _store(self, node: ast.stmt, target: ast.Subscript, value_node: ast.expr, value: Any) -> None:
        buffer = self.expressions.evaluate(target.value)
        if not isinstance(buffer, (_core.Buffer, View, Part)):
            raise self.context.unsupported(target, "a store to something that is no buffer", "store to a buffer")
        if any(isinstance(item, ast.Slice) for item in subscripts(target)):
            raise self.context.unsupported(target, "a store to a slice", "use T.fill or T.copy")
        indices = self.expressions.indices(buffer, target)
        self._emit_store(node, buffer, indices, self.expressions.stored(value_node, value, buffer.dtype))

    def _emit_store(self, node: ast.stmt, buffer: _core.Buffer | View | Part, indices: list[_core.Expr],
                    value: _core.Expr) -> None:
        if isinstance(buffer, (View, Part)):
            self.context.emit(views.store(buffer, indices, value, self.context.span(node)))
            return
        make = _core.tile_store if self.context.tile_loops else _core.store
        self.context.emit(make(buffer, indices, value, self.context.span(node)))

    def _augassign(self, node: ast.AugAssign) -> None:
        """`x op= value` is `x = x op value`, with the indices of x evaluated once."""
        target = node.target
        value = self.expressions.evaluate(node.value)
        if isinstance(target, ast.Name):
            old = self.expressions.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            if self._variable(target) is None:
                self.context.scope.check_bindable(target.id, self.context.span(target))
            self._bind(node, target, node, self.expressions.binary(node, node.op, (target, old), (node.value, value)))
            return
        buffer = self.expressions.evaluate(target.value) if isinstance(target, ast.Subscript) else None
        if not isinstance(buffer, (_core.Buffer, View, Part)):
            raise self.context.unsupported(target, "this target of an assignment", "assign to a name or an element")
        indices = self.expressions.indices(buffer, target)
        load = views.load if isinstance(buffer, (View, Part)) else (
            _core.tile_load if self.context.tile_loops else _core.load)
        old = load(buffer, indices, self.context.span(target))
        value = self.expressions.binary(node, node.op, (target, old), (node.value, value))
        self._emit_store(node, buffer, indices, self.expressions.stored(node.value, value, buffer.dtype))

    def _annassign(self, node: ast.AnnAssign) -> None:
        """`x: T.float32 = value` gives the value that type."""
        if node.value is None:
            raise self.context.unsupported(node, "a declaration without a value", "bind the name to a value")
        dtype = self.expressions.dtype(node.annotation, self.expressions.evaluate(node.annotation))
        value = self.expressions.stored(node.value, self.expressions.whole(node.value), dtype)
        self._bind_target(node, node.target, node.value, value)

    # -- control flow -------------------------------------------------------------------------------------------------

    def block(self, nodes: list[ast.stmt], bindings: list[tuple[ast.Name | None, _core.Var, Any]] = ()) -> _core.Stmt:
        """A nested block, in which `bindings` (name, variable, value) are loop variables."""
        outer = self.context.iteration
        named = ((variable.name if name is None else name.id, value) for name, variable, value in bindings)
        self.context.iteration = [*outer, *named]
        with self.context.block(nodes[-1].end_lineno) as stmts:
            for name, _, value in bindings:
                if name is not None:
                    self.context.scope.bind(name.id, value, self.context.span(name), "loop")
            self.body(nodes)
        self.context.iteration = outer
        return _core.seq(stmts)

    def _if(self, node: ast.If) -> None:
        condition = self.expressions.evaluate(node.test)
        if is_plain(condition):  # decided while parsing, so its names belong to the block around it
            self.body(node.body if self.expressions.truth(node.test, condition) else node.orelse)
            return
        self.expressions.require_condition(node.test, condition)
        then_body = self.block(node.body)
        else_body = self.block(node.orelse) if node.orelse else None
        self.context.emit(_core.if_then(condition, then_body, else_body, self.context.span(node.test)))

    def _while(self, node: ast.While) -> None:
        self._no_else(node)
        with self.context.evaluated_lazily():  # before each iteration
            condition = self.expressions.evaluate(node.test)
        if isinstance(condition, bool):
            condition = _core.bool_imm(condition, self.context.span(node.test))
        self.expressions.require_condition(node.test, condition)
        with self.jumps.loop("while", node) as loop:
            body = self.block(node.body)
        condition = self.jumps.condition(loop, condition, node.test)
        self.context.emit(_core.while_loop(condition, body, self.context.span(node.test)))

    def _no_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            first, last = node.body[-1].end_lineno, node.orelse[0].lineno
            lines = self.context.lines[first - 1 : last]
            line = next((n for n, text in enumerate(lines, first) if text.lstrip().startswith("else")), last)
            column = len(self.context.lines[line - 1]) - len(self.context.lines[line - 1].lstrip())
            span = self.context.span_between(line, column, line, column + len("else"))
            raise error("UnsupportedPython", span, construct="'else' of a loop", remedy="write the statements after it")

    def _for(self, node: ast.For) -> None:
        self._no_else(node)
        header = loops.parse_header(self.expressions, node)
        if header.kind == "threads":
            header.bindings = loops.thread_bindings(self.context, node.target, header.extents, header.span)
            with self.jumps.loop(header.kind, node):
                body = self._code_of_thread(header.bindings, node.body)
            return self._emit_threads(header.bindings, header.extents, body, header.span)
        if header.tiles is not None:
            self.context.tile_loops.append(header.span)
            with self.jumps.loop("foreach_tiles", node):
                body = self.block(node.body, header.bindings)
            self.context.tile_loops.pop()
            stmt = _core.for_tiles(header.tiles, header.vars, header.parallel, body, header.span)
        else:
            with self.jumps.loop(header.kind, node) as loop:
                body = self.jumps.running(loop, self.block(node.body, header.bindings), node)
            stmt = _core.for_loop(header.kind, header.vars, header.begins, header.extents, body, header.num_stages,
                                  header.span, header.scheduled)
            if header.rolled:
                stmt = _core.rolled(stmt)
        self.context.emit(stmt)

    def _with(self, node: ast.With) -> None:
        context = self.context
        item = node.items[0]
        function = self.expressions.callee(item.context_expr)
        if len(node.items) == 1 and roles.is_role(function):
            return self._role(node, item)
        if len(node.items) == 1 and function is language.thread:
            return self._thread(node, item)
        if len(node.items) == 1 and function is language.outline:
            return self._outline(node, item)
        if len(node.items) > 1 or function is not language.Kernel:
            remedy = "'with' takes one T.Kernel(...)"
            if function in (language.Kernel, language.thread) and isinstance(node.items[1].context_expr, ast.Name):
                remedy = "names of several values stand in parentheses, as (i, j)"
            raise context.unsupported(item.context_expr, "this 'with'", remedy)
        arguments = match(context, language.Kernel, item.context_expr)
        block_threads = threads.kernel_threads(self.expressions, arguments)
        cluster = self.expressions.literal(
            arguments, "cluster", int, "a compile-time integer", "write for example cluster=2"
        )
        producers, registers = roles.of_kernel(self.expressions, arguments)
        extents = [
            self.expressions.index(extent, self.expressions.evaluate(extent), "a grid extent")
            for extent in arguments.rest
        ]
        bindings = loops.targets(context, item.optional_vars, len(extents), [f"b{c}" for c in "xyzuvw"])
        variables = [variable for _, variable, _ in bindings]
        outer = context.kernel_vars
        context.kernel_vars = variables
        context.threads = block_threads
        with self.jumps.inside("Kernel"):
            body = self.block(node.body, bindings)
        context.kernel_vars = outer
        context.emit(_core.kernel(variables, extents, math.prod(block_threads), body, context.span(item.context_expr),
                                  cluster, producers, registers))

    def _thread(self, node: ast.With, item: ast.withitem) -> None:
        """`with T.thread() as tx:`, which is `for tx in T.threads(n):` with the threads of the kernel."""
        context, call = self.context, item.context_expr
        span = context.span(call)
        match(context, language.thread, call)
        if context.kernel_vars is None or context.thread is not None:
            raise error("OperationScope", span, operation="T.thread", scope="host" if context.kernel_vars is None
                        else "thread", remedy="put it inside T.Kernel, around the code of one thread")
        extents = [_core.int_imm(each, "index", span) for each in context.threads]
        bindings = loops.thread_bindings(context, item.optional_vars, extents, span)
        with self.jumps.inside("thread"):
            body = self._code_of_thread(bindings, node.body)
        self._emit_threads(bindings, extents, body, span)

    def _code_of_thread(self, bindings: list[loops.Binding], nodes: list[ast.stmt]) -> _core.Stmt:
        context = self.context
        around, context.thread = context.thread, bindings[0][1]
        try:
            return self.block(nodes, bindings)
        finally:
            context.thread = around

    def _emit_threads(self, bindings: list[loops.Binding], extents: list[_core.Expr], body: _core.Stmt,
                      span: _core.Span) -> None:
        """The loop over threads, cut where they meet."""
        loop = _core.for_loop("threads", [bindings[0][1]], [_core.int_imm(0)], [threads.count(extents, span)], body, 1,
                              span, False)
        self.context.emit(_core.thread_steps(loop, self.context.meetings))

    def _outline(self, node: ast.With, item: ast.withitem) -> None:
        context, call = self.context, item.context_expr
        if item.optional_vars is not None:
            raise context.unsupported(item.optional_vars, "a name for a function", "write 'with T.outline():'")
        match(context, language.outline, call)
        context.emit(_core.outline(self.block(node.body), context.span(call)))

    def _role(self, node: ast.With, item: ast.withitem) -> None:
        context, call = self.context, item.context_expr
        share = roles.role(self.expressions, item)
        context.emit(_core.role(*share, self.block(node.body), context.span(call)))
