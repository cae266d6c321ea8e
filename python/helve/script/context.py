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
from helve.script.scope import Scope, Surroundings

DEPTH_LIMIT = 200
SIZE_LIMIT = 1_000_000
BITS_LIMIT = 4096  # of an integer that is folded
ELEMENTS_LIMIT = 65536  # of a tuple, list or dict, counted as often as they occur


class Context:
    """The state of parsing one function.

    Args:
        filename: where the text stands.
        lines: the text that was given to Python's parser.
        offset: what must be added to a line number of the tree to get that of the file.
        surroundings: the names around the function.
    """

    def __init__(self, filename: str, lines: list[str], offset: int, surroundings: Surroundings):
        self.filename = filename
        self.lines = lines
        self.offset = offset
        self.scope = Scope(surroundings)
        self.stmts: list[list[_core.Stmt]] = [[]]
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
        self.tile_loops = 0
        self.function = ""
        self.calls = False  # does the function call another one?

    @property
    def text_mode(self) -> bool:
        """Is this helve.parse, where nothing of the text is executed?"""
        return self.scope.surroundings.text

    @property
    def at_head(self) -> bool:
        """May it still be said what tensors are? Calls rely on it."""
        return len(self.stmts) == 1 and not self.calls

    def span(self, node: ast.AST) -> _core.Span:
        """The place of a node in the file, columns in characters."""
        return self.span_between(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def span_between(self, line: int, column: int, end_line: int, end_column: int) -> _core.Span:
        """The place between two positions of the tree (columns in bytes, as ast has them)."""
        start = self._characters(line, column)
        end = self._characters(end_line, end_column)
        return _core.Span(self.filename, line + self.offset, start + 1, end_line + self.offset, end + 1)

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))

    def make_var(self, name: str, dtype: str = "index") -> _core.Var:
        """A new variable of this function."""
        variable = _core.make_var(name, dtype)
        self.variables.add(variable)
        return variable

    def emit(self, stmt: _core.Stmt) -> None:
        """Adds a statement to the innermost block."""
        self.stmts[-1].append(stmt)

    @contextmanager
    def block(self, last_line: int) -> Iterator[list[_core.Stmt]]:
        """A nested block; its statements are collected in the list that is given."""
        stmts: list[_core.Stmt] = []
        self.stmts.append(stmts)
        try:
            with self.scope.block(last_line + self.offset):
                yield stmts
        finally:
            self.stmts.pop()

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
    return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"


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
