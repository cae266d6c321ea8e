"""The two entry points of the parser: the decorator `T.prim_func` and `helve.parse`.

A decorated function is parsed at its definition, with the names around it; a text is parsed alone, and none of it is
executed.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
import warnings
from types import FrameType, FunctionType
from typing import Any

from helve import _core, language, source
from helve.errors import Error, error, warning_from
from helve.language.constructs import FrontEnd
from helve.script.arguments import match
from helve.script.capture import capture
from helve.script.context import BITS_LIMIT, DEPTH_LIMIT, SIZE_LIMIT, Context, check_depth
from helve.script.expressions import Expressions
from helve.script.function import guarded, parse_function
from helve.script.inlinable import Text
from helve.script.operations import HANDLERS
from helve.script.prim_func import PrimFunc
from helve.script.scope import Surroundings, closure_of


def define(function: Any, mesh: Any, frame: FrameType) -> PrimFunc:
    """Parses a decorated Python function. `frame` is that of the definition.

    Raises:
        helve.Error: the source is not available (HV0001), or the first fault of the program.
    """
    if not isinstance(function, FunctionType):
        raise error("BadArgument", source.span_of_frame(frame), function="T.prim_func", value=repr(function),
                    parameter="function", reason="it is not a function", remedy="write '@T.prim_func' above a 'def'")
    found = capture(function)
    if found is None:
        raise _no_source(function)
    filename, first, lines = found
    source.register(filename, first, lines)
    indented = lines[0][:1].isspace()
    text = ("if True:\n" if indented else "") + "".join(lines)
    offset = first - 1 - indented
    context = Context(Text(filename, text.splitlines(), offset), _around(function, frame))
    try:
        tree = ast.parse(text, filename)
    except (SyntaxError, ValueError):
        raise _no_source(function) from None
    node = tree.body[0].body[0] if indented else tree.body[0]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != function.__name__:
        raise _no_source(function)
    parsed = guarded(context, lambda: parse_function(context, node, mesh, _mesh_node(node)))
    _warn(context.warnings, frame)
    out = PrimFunc(parsed, inspect.getdoc(function), tuple(context.outputs))
    out.__module__ = function.__module__
    return out


def _warn(found: list[_core.Diagnostic], frame: FrameType) -> None:
    """Gives the warnings of a function, at the line of its definition in Python's eyes."""
    for diagnostic in found:
        warnings.warn_explicit(warning_from(diagnostic), None, frame.f_code.co_filename, frame.f_lineno,
                               registry=frame.f_globals.setdefault("__warningregistry__", {}))


def _no_source(function: FunctionType) -> Exception:
    line = function.__code__.co_firstlineno
    return error("SourceUnavailable", _core.Span(function.__code__.co_filename, line, 1, line, 1),
                 function=function.__name__)


def _around(function: FunctionType, frame: FrameType) -> Surroundings:
    """The names around a definition: closure, then module, then what the defining frame itself holds."""
    code = function.__code__
    tables = [closure_of(code, function.__closure__), function.__globals__]
    if frame.f_locals is not function.__globals__:
        # Annotations are evaluated in the defining frame, so its names come before the module's.
        tables.insert(1, dict(frame.f_locals))
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    local_names = frozenset(code.co_varnames + code.co_cellvars).difference(arguments)
    return Surroundings(tables, local_names=local_names)


def _mesh_node(node: ast.FunctionDef) -> ast.expr | None:
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else []:
            if keyword.arg == "mesh":
                return keyword.value
    return None


_counter = itertools.count(1)
_EXTENTS = tuple(language.NAMES[name] for name in language.EXTENT_NAMES)


def parse(text: str, filename: str | None = None) -> PrimFunc:
    """Parses the text of one kernel function. None of it is executed.

    The text holds lines `M = T.dyn("M")` and one function under `@T.prim_func`; it knows `T`, literals, arithmetic on
    them and its own names.

    Args:
        text: at most 1,000,000 bytes, nested at most 200 levels deep.
        filename: the name that errors show; "<text 1>", "<text 2>", ... by default.

    Raises:
        helve.Error: the first fault of the text.
    """
    for name, value in (("text", text), ("filename", "" if filename is None else filename)):
        if not isinstance(value, str):
            raise error("BadArgument", source.span_of_call(sys._getframe(1), 0 if name == "text" else name),
                        function="helve.parse", value=f"a value of type '{type(value).__name__}'", parameter=name,
                        reason="it is not a string", remedy="pass the text of a kernel" if name == "text" else
                        "pass the name that errors show")
    function, context = _read(text, filename)
    _warn(context.warnings, sys._getframe(1))
    return PrimFunc(function, None, tuple(context.outputs))


def read(text: str, filename: str | None = None) -> _core.Function:
    """The function of the core that `parse` gives, for those who make no kernel of it.

    Raises:
        helve.Error: the first fault of the text.
    """
    return _read(text, filename)[0]


def _read(text: str, filename: str | None) -> tuple[_core.Function, Context]:
    """The function of a text, and what was found beside it."""
    filename = filename or f"<text {next(_counter)}>"
    lines = text.splitlines()
    context = Context(Text(filename, lines, 0), Surroundings([{"T": language}], text=True))
    start = _core.Span(filename, 1, 1, 1, 1)
    if len(text) > SIZE_LIMIT or len(text.encode(errors="surrogatepass")) > SIZE_LIMIT:
        raise error("TextLimit", start, limit=SIZE_LIMIT, unit="bytes")
    source.replace(filename, lines)
    try:
        return guarded(context, lambda: _parse_module(context, text)), context
    except Error as problem:
        raise problem.with_traceback(None) from None


def _parse_module(context: Context, text: str) -> _core.Function:
    tree = _syntax_tree(context, text)
    check_depth(context, tree)
    expressions = Expressions(context, HANDLERS)
    names = context.scope.surroundings.tables[0]
    for node in tree.body[:-1]:
        if _is_text(node):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(target, ast.Name) or expressions.callee(node.value) not in _EXTENTS:
            raise context.unsupported(node, "this statement before the function",
                                      'write only lines such as M = T.dyn("M") there')
        names[target.id] = expressions.evaluate(node.value)
    function = tree.body[-1] if tree.body else None
    if not isinstance(function, ast.FunctionDef) or len(function.decorator_list) != 1:
        place = context.span(function) if function is not None else _core.Span(context.text.filename, 1, 1, 1, 1)
        raise error("UnsupportedPython", place, construct="a text that does not end with one decorated function",
                    remedy="end it with a function under '@T.prim_func'")
    mesh, mesh_node = _decoration(context, expressions, function.decorator_list[0])
    return parse_function(context, function, mesh, mesh_node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _decoration(context: Context, expressions: Expressions, node: ast.expr) -> tuple[Any, ast.expr | None]:
    """(mesh, its node) of `@T.prim_func` or `@T.prim_func(mesh=...)`."""
    called = isinstance(node, ast.Call)
    if not isinstance(expressions.evaluate(node.func if called else node), FrontEnd):
        raise context.unsupported(node, "this decorator", "write '@T.prim_func'")
    if not called:
        return None, None
    mesh_node = match(context, language.prim_func, node).get("mesh")
    return (None, None) if mesh_node is None else (expressions.evaluate(mesh_node), mesh_node)


def _syntax_tree(context: Context, text: str) -> ast.Module:
    """The tree of the text; what Python's parser refuses is InvalidSyntax or TextLimit."""
    start = _core.Span(context.text.filename, 1, 1, 1, 1)
    try:
        return ast.parse(text, context.text.filename)
    except SyntaxError as problem:
        reason = str(problem.msg)
        line, column = problem.lineno or 1, max(problem.offset or 1, 1)
        place = _core.Span(context.text.filename, line, column, line, column + 1)
        if "integer string conversion" in reason:
            raise error("TextLimit", place, limit=BITS_LIMIT, unit="bits of an integer") from None
        if "too many" in reason:  # Python's own limits on parentheses and indentation are below ours
            raise error("TextLimit", place, limit=DEPTH_LIMIT, unit="nested levels") from None
        raise error("InvalidSyntax", place, reason=reason) from None
    except (MemoryError, RecursionError):
        raise error("TextLimit", start, limit=DEPTH_LIMIT, unit="nested levels") from None
    except ValueError as problem:  # null bytes, lone surrogates
        raise error("InvalidSyntax", start, reason=str(problem)) from None


FrontEnd.define = staticmethod(define)
PrimFunc.read = staticmethod(read)
