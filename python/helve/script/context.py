"""What all parts of the parser share: the text, its spans, the names, and the statements built so far.

One object instead of many parameters; the parts that read and fill it know nothing of one another.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import Any
from collections.abc import Iterator

from helve import _core
from helve.errors import Error, error
from helve.script.inlinable import Helper, Text
from helve.script.scope import Scope, Surroundings

DEPTH_LIMIT = 200
SIZE_LIMIT = 1_000_000
BITS_LIMIT = 4096  # of an integer that is folded
ELEMENTS_LIMIT = 65536  # of a tuple, list or dict, counted as often as they occur
INLINED_LIMIT = 10_000  # calls of Python functions whose bodies take their places
OPERANDS_LIMIT = 4096  # of a value that is written in several places


class Context:
    """The state of parsing one function, with the bodies of the Python functions that it calls.

    Args:
        text: what is parsed.
        surroundings: the names around the function.

    Attributes:
        text: where the syntax tree stands that is being read, the function's or that of a helper.
        call: the call of the helper that is being read.
        helpers: those that are being read, the outermost first.
        lazy: is what is being read evaluated only where it is needed, or again? Then no statement can stand before it.
        read: the helpers that were read, with their calls.
        warnings: what to say when the function is whole.
    """

    def __init__(self, text: Text, surroundings: Surroundings):
        self.text = text
        self.scope = Scope(surroundings)
        self.call: _core.Span | None = None
        self.helpers: list[Helper] = []
        self.lazy = False
        self.read: list[tuple[Helper, _core.Span]] = []
        self.warnings: list[_core.Diagnostic] = []
        self.stmts: list[list[_core.Stmt]] = [[]]
        self.outputs: list[str] = []  # parameters that calls make and return
        self.dims: list[_core.Var] = []
        self.declares_dims = False  # is an annotation being read, whose variables become dims?
        self.params: list[_core.Buffer | _core.Var] = []
        self.mesh: _core.MeshShape | None = None
        self.mesh_tensors: list[_core.MeshTensor] = []
        self.may_alias: list[_core.MayAlias] = []
        self.assumptions: list[_core.Assumption] = []
        self.placed: dict[_core.Buffer, _core.Buffer] = {}
        self.variables: set[_core.Var] = set()
        self.kernel_vars: list[_core.Var] | None = None
        self.threads: list[int] = []  # of the kernel, by dimensions
        self.thread: _core.Expr | None = None  # the number of the thread whose code is being read
        self.meetings: list[tuple[_core.Span, str]] = []  # where threads exchange values, and what that is called
        self.iteration: list[tuple[str, _core.Expr]] = []  # the kernel's and loops' variables around
        self.tile_loops: list[_core.Span] = []  # around, the outermost first
        self.function = ""
        self.calls = False  # does the function call another one?

    @property
    def text_mode(self) -> bool:
        """Is this helve.parse, where nothing of the text is executed?"""
        return self.scope.surroundings.text

    def knows(self, variable: _core.Var) -> bool:
        """May an expression from outside of the function contain the variable?"""
        if variable == _core.multiprocessors():
            self.use_multiprocessors()
        return self.declares_dims or variable in self.dims or variable in self.variables

    def use_multiprocessors(self) -> None:
        """A call of the function is to bind T.multiprocessors(), which is positive."""
        number = _core.multiprocessors()
        if number in self.dims:
            return
        self.dims.append(number)
        self.assumptions.append(_core.Assumption(_core.apply_operands("Le", [1, number], number.span), number.span))

    @property
    def at_head(self) -> bool:
        """May it still be said what tensors are? Calls rely on it."""
        return len(self.stmts) == 1 and not self.calls

    @property
    def lines(self) -> list[str]:
        """The lines of the text that is being read."""
        return self.text.lines

    @contextmanager
    def reading(self, helper: Helper, call: _core.Span) -> Iterator[None]:
        """While the body of a helper is read, called at `call`: its text, its names, spans that tell of the call."""
        before = self.text, self.scope, self.call
        self.text, self.scope, self.call = helper.text, Scope(helper.surroundings, helper.outer), call
        self.helpers.append(helper)
        try:
            yield
        finally:
            self.text, self.scope, self.call = before
            self.helpers.pop()

    @contextmanager
    def evaluated_lazily(self, lazy: bool = True) -> Iterator[None]:
        """While an operand is read that run time may not evaluate, or more than once."""
        before = self.lazy
        self.lazy = before or lazy
        try:
            yield
        finally:
            self.lazy = before

    def span(self, node: ast.AST) -> _core.Span:
        """The place of a node in the file, columns in characters."""
        return self.span_between(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def span_between(self, line: int, column: int, end_line: int, end_column: int) -> _core.Span:
        """The place between two positions of the tree (columns in bytes, as ast has them)."""
        start = self._characters(line, column)
        end = self._characters(end_line, end_column)
        offset = self.text.offset
        place = _core.Span(self.text.filename, line + offset, start + 1, end_line + offset, end + 1)
        return place if self.call is None else _core.called_from(place, self.call)

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))

    def make_var(self, name: str, dtype: str = "index") -> _core.Var:
        """A new variable of this function."""
        variable = _core.make_var(name, dtype)
        self.variables.add(variable)
        return variable

    def named(self, name: str, value: _core.Expr, span: _core.Span) -> _core.Var:
        """A variable that has a value from here on."""
        variable = self.make_var(name, value.dtype)
        self.emit(_core.bind(variable, value, span))
        return variable

    def check_size(self, value: _core.Expr, span: _core.Span) -> None:
        """Refuses a value that is written in several places, and so would make the program grow without bound."""
        size, stack = 0, [value]
        while stack and size <= OPERANDS_LIMIT:
            node = stack.pop()
            size += 1
            stack += node.args if isinstance(node, _core.Apply) else node.indices if isinstance(
                node, (_core.Load, _core.TileLoad)) else [node.value] if isinstance(node, _core.Cast) else []
        if size > OPERANDS_LIMIT:
            raise error("TextLimit", span, limit=OPERANDS_LIMIT, unit="operands of a value that is used repeatedly",
                        fixes=["name the result of the call in a statement of its own, before this one"])

    def emit(self, stmt: _core.Stmt) -> None:
        """Adds a statement to the innermost block."""
        if self.lazy:
            raise error("UnsupportedPython", stmt.span, construct="a statement where it may not be evaluated",
                        remedy="call the function in a statement of its own")
        self.stmts[-1].append(stmt)

    @contextmanager
    def collected(self) -> Iterator[list[_core.Stmt]]:
        """While statements are collected in the list that is given; names belong to the block around."""
        stmts: list[_core.Stmt] = []
        self.stmts.append(stmts)
        try:
            yield stmts
        finally:
            self.stmts.pop()

    @contextmanager
    def block(self, last_line: int) -> Iterator[list[_core.Stmt]]:
        """A nested block; its statements are collected in the list that is given."""
        with self.collected() as stmts, self.scope.block(last_line + self.text.offset):
            yield stmts

    def warn(self, node: ast.AST, name: str, **args: str) -> None:
        """Keeps a warning, the row `name` of the table; one place is warned of once."""
        found = _core.Diagnostic(name, self.span(node), list(args.items()))
        if not any(each.span == found.span and each.name == name for each in self.warnings):
            self.warnings.append(found)

    def unsupported(self, node: ast.AST, construct: str, remedy: str) -> Error:
        """The error for Python that has no meaning in a kernel."""
        return error("UnsupportedPython", self.span(node), construct=construct, remedy=remedy)

    def bad_argument(self, node: ast.AST, function: str, parameter: str, reason: str, remedy: str) -> Error:
        """The error for an argument that a construct cannot take."""
        return error("BadArgument", self.span(node), function=function, value=quote(node), parameter=parameter,
                     reason=reason, remedy=remedy)

    def mesh_tensor_of(self, buffer: _core.Buffer) -> _core.MeshTensor | None:
        """The annotation of a tensor."""
        return next((t for t in self.mesh_tensors if t.buffer == buffer), None)


def quote(node: ast.AST) -> str:
    """The text of an expression, shortened to fit a message."""
    try:
        text = ast.unparse(node)
    except ValueError:  # an integer that Python refuses to write
        text = "an expression with an integer of thousands of digits"
    return f"'{shortened(text)}'"


def shortened(text: str) -> str:
    """Fit for a message."""
    return text if len(text) <= 40 else f"{text[:37]}..."


def require_elements(context: Context, operation: str, span: _core.Span, remedy: str) -> None:
    """Refuses what looks at elements in a host body, and in a loop over tiles with the remedy."""
    if context.kernel_vars is None:
        raise error("OperationScope", span, operation=operation, scope="host", remedy="put it inside T.Kernel")
    if context.tile_loops:
        raise error("OperationScope", span, operation=operation, scope="tile", remedy=remedy,
                    notes=[_core.Note("inside a tile loop subscripts denote tiles", context.tile_loops[-1])])


def check_depth(context: Context, tree: ast.AST) -> None:
    """Refuses a tree that is nested deeper than DEPTH_LIMIT; the place is that of the first node beyond it.

    Goes down level by level: the walk is a good part of the time of a parse, and this is its cheapest order.
    """
    level: list[tuple[ast.AST, Any]] = [(tree, None)]
    for _ in range(DEPTH_LIMIT + 1):
        below = []
        for node, place in level:
            if hasattr(node, "lineno"):
                place = node
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    below.append((value, place))
                elif isinstance(value, list):
                    below += [(each, place) for each in value if isinstance(each, ast.AST)]
        level = below
    if level:
        node, place = level[0]
        place = node if hasattr(node, "lineno") else place
        span = context.span(place) if place is not None else None
        raise error("TextLimit", span, limit=DEPTH_LIMIT, unit="nested levels")
