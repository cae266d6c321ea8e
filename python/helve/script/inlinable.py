"""Python functions that a kernel calls with its values: what they are, and where their text stands.

Such a function is never run: its body takes the place of the call. Here a value that Python would call becomes a syntax
tree with the names around it.
"""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from helve import source
from helve.language import library
from helve.language.constructs import LibraryFunction, Macro, Parameter
from helve.script.capture import capture
from helve.script.scope import Scope, Surroundings, closure_of

Definition = ast.FunctionDef | ast.Lambda
# Packages whose names have known counterparts below T.
LIBRARIES = {"cupy", "jax", "math", "numpy", "scipy", "tilelang", "torch", "triton", "tvm"}


@dataclass(frozen=True, eq=False)
class Text:
    """A text that is parsed: where it stands, and what is added to a line of its tree to get that of the file."""

    filename: str
    lines: list[str]
    offset: int


@dataclass(frozen=True, eq=False)
class Helper:
    """A function whose body replaces its calls.

    Attributes:
        name: as messages call it.
        node: its tree.
        text: where that stands.
        surroundings: the names around it.
        outer: the scope of the kernel that it is defined in, None for a function from around the kernel.
        defaults: of parameters, by name.
        given: arguments that the value holds already (of a method, of functools.partial), positional ones first.
        always: is it inlined even where all arguments are constants?
        check: raises library.Refused for arguments that it cannot take.
        buffers: are arguments without a default buffers?
    """

    name: str
    node: Definition
    text: Text
    surroundings: Surroundings
    outer: Scope | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    given: tuple[tuple, dict] = ((), {})
    always: bool = True
    check: Callable | None = None
    buffers: bool = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those that a call gives."""
        positional, keywords = self.given
        names = [each.arg for each in self.node.args.args][len(positional) :]
        return tuple(Parameter(name, name not in self.defaults, self.defaults.get(name))
                     for name in names if name not in keywords)

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; those of a lambda are one `return`."""
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body

    def uses(self, name: str) -> int:
        """How often its text reads a name."""
        return sum(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
                   for statement in self.body for node in ast.walk(statement))


def is_own(function: Any) -> bool:
    """Is it Python code of the user's, whose name says nothing about what it computes?"""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return isinstance(function, (types.FunctionType, type)) and package not in LIBRARIES


def helper_of(value: Any) -> Helper | None:
    """The helper that a value is, if its text can be had: a function of the user's, a method, a partial, a macro."""
    if isinstance(value, Helper):
        return value
    if isinstance(value, functools.partial):
        inner = helper_of(value.func)
        return inner and _holding(inner, value.args, value.keywords)
    if isinstance(value, types.MethodType):
        inner = helper_of(value.__func__)
        return inner and _holding(inner, (value.__self__,), {})
    if isinstance(value, Macro):
        inner = _of_function(value.function, value.names)
        return inner and _replaced(inner, always=True)
    if isinstance(value, LibraryFunction):
        inner = _of_function(value.function, {})
        return inner and _replaced(inner, name=value.text, check=value.check, buffers=value.buffers)
    if isinstance(value, types.FunctionType) and is_own(value):
        return _of_function(value, {})
    return None


def _holding(inner: Helper, args: tuple, keywords: dict) -> Helper:
    positional, named = inner.given
    return _replaced(inner, given=(positional + tuple(args), {**named, **keywords}))


def _replaced(inner: Helper, **changes: Any) -> Helper:
    return Helper(**{**inner.__dict__, **changes})


def _of_function(function: types.FunctionType, frame_names: dict[str, Any]) -> Helper | None:
    code = function.__code__
    found = _lambda(function) if function.__name__ == "<lambda>" else _definition(function)
    if found is None:
        return None
    node, text = found
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    local_names = frozenset(code.co_varnames + code.co_cellvars).difference(arguments)
    tables = [closure_of(code, function.__closure__), *([frame_names] if frame_names else []), function.__globals__]
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values))
    name = "lambda" if isinstance(node, ast.Lambda) else function.__name__
    return Helper(name, node, text, Surroundings(tables, local_names=local_names), defaults=defaults,
                  always=function.__module__ == library.__name__)


@functools.lru_cache(maxsize=64)
def _tree(text: str, filename: str) -> ast.Module | None:
    """The tree of a text; the same one again for the same text, so that a function is known by its node."""
    try:
        return ast.parse(text, filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _definition(function: types.FunctionType) -> tuple[Definition, Text] | None:
    found = capture(function)
    if found is None:
        return None
    filename, first, lines = found
    indented = lines[0][:1].isspace()
    text = ("if True:\n" if indented else "") + "".join(lines)
    tree = _tree(text, filename)
    if tree is None:
        return None
    node = tree.body[0].body[0] if indented else tree.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
        return None
    source.register(filename, first, lines)
    return node, Text(filename, text.splitlines(), first - 1 - indented)


def _lambda(function: types.FunctionType) -> tuple[Definition, Text] | None:
    """The lambda that begins on the function's line and has its code; its text is the whole file."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree = _tree("".join(lines), code.co_filename)
    if tree is None:
        return None
    near = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    same = [node for node in near if _same_code(node, code)]
    if not same or any(ast.dump(node) != ast.dump(same[0]) for node in same):
        return None
    source.register(code.co_filename, 1, lines)
    return same[0], Text(code.co_filename, [line.rstrip("\r\n") for line in lines], 0)


def _same_code(node: ast.Lambda, code: types.CodeType) -> bool:
    """Does a lambda compile to `code`? Names that are closed over are compared as names."""
    compiled = compile(ast.Expression(node), code.co_filename, "eval").co_consts
    inner = next(each for each in compiled if isinstance(each, types.CodeType))

    def names(each: types.CodeType) -> tuple:
        return (each.co_varnames, sorted(each.co_names + each.co_freevars),
                [c for c in each.co_consts if not isinstance(c, types.CodeType)])

    return names(inner) == names(code)


def nested(node: Definition, text: Text, surroundings: Surroundings, outer: Scope, defaults: dict[str, Any]) -> Helper:
    """The helper of a `def` or `lambda` inside a kernel or another helper."""
    arguments = {each.arg for each in node.args.args}
    inside = node.body if isinstance(node, ast.FunctionDef) else []
    bound = {each for statement in inside for each in _bound_names(statement)}
    around = Surroundings(surroundings.tables, surroundings.text, frozenset(bound - arguments))
    name = node.name if isinstance(node, ast.FunctionDef) else "lambda"
    return Helper(name, node, text, around, outer, defaults)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, those of functions inside it aside."""
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
        return
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield child.name
            elif not isinstance(child, ast.Lambda):
                stack.append(child)


# What a call of a helper does: (helper, call, is it all that its statement evaluates?, values of arguments).
Inline = Callable[..., Any]
