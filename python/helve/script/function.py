"""From a function's syntax tree to the function of the core.

Parameters and their types come first, then the body; the verifier has the last word.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from helve import _core
from helve.arguments import variables_of
from helve.errors import ASK_FOR_REPORT, Error, InternalError, error
from helve.language.constructs import DType, TensorType
from helve.mesh import Mesh
from helve.script.context import DEPTH_LIMIT, SIZE_LIMIT, Context, check_depth
from helve.script.places import at_argument
from helve.script.statements import Statements


def parse_function(context: Context, node: ast.FunctionDef, mesh: Any, mesh_node: ast.expr | None) -> _core.Function:
    """Parses a decorated function. `mesh` is what `prim_func(mesh=...)` was given, None without."""
    check_depth(context, node)
    context.function = node.name
    statements = Statements(context)
    if mesh is not None:
        if not isinstance(mesh, Mesh):
            raise context.bad_argument(mesh_node or node, "T.prim_func", "mesh", "it is not a mesh",
                                       "pass a helve.Mesh")
        context.mesh = _core.MeshShape(list(mesh.shape), list(mesh.names))
    for parameter in _parameters(context, node.args):
        _declare(statements, parameter)
    if not isinstance(node, ast.FunctionDef):
        raise context.unsupported(node, "'async def'", "write 'def'")
    statements.body(node.body)
    end_column = node.col_offset + len(f"def {node.name}".encode())
    head = context.span_between(node.lineno, node.col_offset, node.lineno, end_column)
    body = _core.redeclare_buffers(_core.seq(context.stmts[0], head), list(context.placed.items()))
    _multiprocessors_last(context)
    function = _core.make_function(node.name, context.dims, context.params, context.mesh, context.mesh_tensors, body,
                                   context.may_alias, context.assumptions, head)
    try:
        _core.verify(function)
    except Error as fault:
        raise at_argument(context, node, fault) from None
    if context.calls or context.read:
        _check_limits(context, function, head)
    return function


def _multiprocessors_last(context: Context) -> None:
    """T.multiprocessors() is the last extent of a function that uses it, and is said to be positive once."""
    number = _core.multiprocessors()
    if number not in context.dims:
        return
    context.dims = [*(dim for dim in context.dims if dim != number), number]
    first = {str(each.condition): each for each in reversed(context.assumptions)}
    context.assumptions = [each for each in context.assumptions if each is first[str(each.condition)]]


def _check_limits(context: Context, function: _core.Function, head: _core.Span) -> None:
    """With what it calls in place of the calls, a function keeps the limits of a text; so callees never run away."""
    text = _core.print(function)
    if len(text) > SIZE_LIMIT:
        raise error("TextLimit", head, limit=SIZE_LIMIT, unit="bytes")
    try:
        check_depth(context, ast.parse(text))
    except (Error, SyntaxError, MemoryError, RecursionError):
        raise error("TextLimit", head, limit=DEPTH_LIMIT, unit="nested levels") from None


def _parameters(context: Context, args: ast.arguments) -> list[ast.arg]:
    """The plain positional parameters; everything else that Python allows is refused."""
    for kind, found in (("'*args'", args.vararg), ("'**kwargs'", args.kwarg)):
        if found is not None:
            raise context.unsupported(found, kind, "name every parameter")
    for found in args.kwonlyargs + args.posonlyargs:
        raise context.unsupported(found, "a keyword-only or positional-only parameter", "remove the '*' or '/'")
    for found in args.defaults:
        raise context.unsupported(found, "a default value of a parameter", "pass the value at the call")
    return args.args


def _declare(statements: Statements, parameter: ast.arg) -> None:
    """Makes a parameter of its annotation, `T.Tensor(...)` or an element type; None leaves it out."""
    context, expressions = statements.context, statements.expressions
    name, span = parameter.arg, context.span(parameter)
    node = parameter.annotation
    if node is None:
        raise context.unsupported(parameter, f"parameter '{name}' without a type",
                                  "annotate it, for example with T.Tensor((M, N), \"float32\") or T.int32")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = _unquoted(context, node)
    with _extents_become_dims(context):
        declared = expressions.evaluate(node)
    if isinstance(declared, TensorType):
        _add_dims(context, declared)
        buffer = _tensor(statements, name, node, declared, span)
        context.params.append(buffer)
        if declared.out:
            context.outputs.append(name)
        context.scope.bind(name, buffer, span, "parameter")
    elif isinstance(declared, DType):
        variable = context.make_var(name, str(declared))
        context.params.append(variable)
        context.scope.bind(name, variable, span, "parameter")
    elif declared is None:
        context.scope.bind(name, None, span, "parameter")
    else:
        raise context.unsupported(node, f"this type of parameter '{name}'",
                                  "annotate it with T.Tensor(shape, dtype) or an element type such as T.int32")


@contextmanager
def _extents_become_dims(context: Context) -> Iterator[None]:
    """While an annotation is read, every variable from around the function may stand in it."""
    context.declares_dims = True
    try:
        yield
    finally:
        context.declares_dims = False


def _unquoted(context: Context, node: ast.Constant) -> ast.expr:
    """The expression of a quoted annotation; all its parts stand where the string stands."""
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except (SyntaxError, ValueError) as problem:
        reason = getattr(problem, "msg", str(problem))
        raise error("InvalidSyntax", context.span(node), reason=reason) from None
    for part in ast.walk(inner):
        ast.copy_location(part, node)
    return inner


def _add_dims(context: Context, declared: TensorType) -> None:
    """The free variables of the shape are dynamic extents, in order of first use; scalar parameters are none."""
    for value in [*_items(declared.shape), *_items(declared.strides)]:
        for variable in variables_of(value) if isinstance(value, _core.Expr) else ():
            if variable not in context.dims and variable not in context.params:
                context.dims.append(variable)


def _items(value: Any) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [] if value is None else [value]


def _tensor(statements: Statements, name: str, node: ast.expr, declared: TensorType, span: _core.Span) -> _core.Buffer:
    """The buffer of a tensor parameter; element faults point at the elements where they are written out."""
    expressions = statements.expressions
    parts = dict(zip(("shape", "dtype", "strides"), node.args)) if isinstance(node, ast.Call) else {}
    parts.update({k.arg: k.value for k in node.keywords if k.arg} if isinstance(node, ast.Call) else {})

    def indices(part: str, value: Any, what: str) -> list[_core.Expr]:
        values, place = _items(value), parts.get(part, node)
        written_out = isinstance(place, (ast.Tuple, ast.List)) and len(place.elts) == len(values)
        nodes = place.elts if written_out else [place] * len(values)
        return [expressions.index(n, v, what) for n, v in zip(nodes, values)]

    shape = indices("shape", declared.shape, f"an extent of '{name}'")
    strides = indices("strides", declared.strides, f"a stride of '{name}'")
    dtype = expressions.dtype(parts.get("dtype", node), declared.dtype)
    buffer = _core.make_buffer(name, dtype, "param", shape, [], strides, span)
    return _core.as_sorted(buffer) if declared.sorted else buffer


def guarded(context: Context, parse) -> Any:
    """Runs a parse; exhausting Python's stack is a limit of the text, never a crash.

    Raises:
        helve.InternalError: a fault of helve; its text asks for a report and holds the function's.
    """
    try:
        return parse()
    except InternalError as fault:
        text = textwrap.dedent("\n".join(line for line in context.lines if line != "if True:"))
        raise InternalError(f"{fault}\n{ASK_FOR_REPORT}\n\n# helve {_core.__version__}\n{text}\n") from None
    except RecursionError:
        line = 1 + context.text.offset
        span = _core.Span(context.text.filename, line, 1, line, 1)
        raise error("TextLimit", span, limit=DEPTH_LIMIT, unit="nested levels") from None
