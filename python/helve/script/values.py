"""What a value is: known while parsing or computed by the program, a number, a truth value, an index.

Values are scalar expressions and buffers of the core, and Python objects; all of the parser asks these questions.
"""

from __future__ import annotations

import ast
import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

from helve import _core, language
from helve.errors import Error, from_diagnostic
from helve.language.constructs import Construct, DType, FrontEnd, Namespace
from helve.script.views import Part, View

_LONG = 40  # of a text in a remedy


@dataclass(frozen=True)
class Method:
    """A method of a value of the program, before its call."""

    value: _core.Expr
    construct: Construct


def subscripts(node: ast.Subscript) -> list[ast.expr]:
    """The parts between the brackets."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def is_slice(node: ast.expr) -> bool:
    """Is it a subscript with slices?"""
    return isinstance(node, ast.Subscript) and any(isinstance(item, ast.Slice) for item in subscripts(node))


def is_path(node: ast.expr) -> bool:
    """Is it a name, or an attribute of one, so that it can be evaluated again?"""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def number(value: Any) -> bool | int | float | None:
    """A plain number (NumPy's scalars too) as Python's own, or None."""
    if isinstance(value, (bool, int, float)):
        return value
    try:
        if type(value).__name__ in ("bool_", "bool"):
            return bool(value)
        if isinstance(value, numbers.Integral):
            return int(value)
        return float(value) if isinstance(value, numbers.Real) else None
    except (ArithmeticError, TypeError, ValueError):  # a fraction beyond float64, or a type that breaks its word
        return None


def plain(value: _core.Expr) -> Any:
    """A constant index as a Python int, any other expression as it is."""
    return value.value if isinstance(value, _core.IntImm) and value.dtype == "index" else value


_INDEX_ARITHMETIC = {"Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Neg", "Min", "Max", "Abs"}


def as_index(value: _core.Expr) -> _core.Expr:
    """An integer as an index: data is converted where it is loaded or named, and the arithmetic on it is of indices."""
    if value.dtype == "index":
        return value
    if isinstance(value, _core.IntImm):
        return _core.int_imm(value.value, "index", value.span)
    if isinstance(value, _core.Cast) and value.value.dtype == "index":  # it was converted to stand beside data
        return value.value
    if isinstance(value, _core.Apply) and value.op in _INDEX_ARITHMETIC:
        return _core.apply_operands(value.op, [as_index(operand) for operand in value.args], value.span)
    if isinstance(value, _core.Apply) and value.op == "Select":
        condition, *chosen = value.args
        return _core.apply_operands("Select", [condition, *map(as_index, chosen)], value.span)
    return _core.cast(value, "index", value.span)


def is_plain(value: Any) -> bool:
    """Is the value known while parsing, down to the elements of tuples, lists and dicts?"""
    if isinstance(value, (tuple, list)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(is_plain(item) for item in value.values())
    return not isinstance(value, (_core.Expr, _core.Buffer, View, Part))


def loads_of(value: Any) -> Iterator[_core.Load | _core.TileLoad]:
    """The loads in a value, those in subscripts aside."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (_core.Load, _core.TileLoad)):
            yield node
        elif isinstance(node, (_core.Cast, _core.Bitcast)):
            stack.append(node.value)
        elif isinstance(node, _core.Apply):
            stack += node.args


def comparisons(value: Any) -> Iterator[_core.Expr]:
    """The comparisons by order of indices that conditions are made of."""
    if isinstance(value, _core.Apply):
        if value.op in ("Lt", "Le", "Gt", "Ge") and value.args[0].dtype == "index":
            yield value
        elif value.op in ("And", "Or", "Not"):
            for operand in value.args:
                yield from comparisons(operand)


def is_bool(value: Any) -> bool:
    return value.dtype == "bool" if isinstance(value, _core.Expr) else isinstance(number(value), bool)


def is_small(value: Any) -> bool:
    """May a builtin of helve.parse take the value? Numbers, expressions, and what was written out."""
    if isinstance(value, (tuple, list)):
        return all(is_small(item) for item in value)
    return isinstance(value, (str, _core.Expr, _core.Buffer)) or number(value) is not None


def is_language(value: Any) -> bool:
    """Is the value a name below T?"""
    return value is language or isinstance(value, (Construct, DType, Namespace, FrontEnd))


def index_remedy(node: ast.expr, value: Any) -> list[str]:
    """What to write where a float or None is an index; nothing for other values."""
    plain = number(value)
    if value is None:
        return ["leave it out: T.copy takes no notice of dimensions of extent 1, and T.reshape makes one"]
    if isinstance(plain, float) and plain.is_integer():
        return [f"write {int(plain)}"]
    if not isinstance(value, _core.Expr) or "float" not in value.dtype:
        return []
    return [f'write T.cast({ast.unparse(node)}, "int32"), which rounds toward zero']


def in_subscript(evaluate: Callable[[ast.expr], Any], node: ast.expr) -> Any:
    """The value of a subscript; where a float beside an index is refused, with what a subscript takes."""
    try:
        return evaluate(node)
    except Error as fault:
        data = fault.diagnostic
        sides = dict(data.args)
        if data.name != "MixedTypes" or "index" not in (sides["left"], sides["right"]):
            raise
        fixes = ["subscripts are whole numbers: divide by //, which rounds down"]
        raise from_diagnostic(_core.Diagnostic(data.name, data.span, data.args, data.notes, fixes)) from None


def converted(node: ast.expr, value: _core.Expr, dtype: str, span: _core.Span) -> _core.Expr:
    """A value as a store converts it. A remedy names what the program has there, not what a function computes."""
    try:
        return _core.convert_for_store(value, dtype, span)
    except Error as fault:
        data, text = fault.diagnostic, ast.unparse(node)
        if not isinstance(node, ast.Call) or not data.help.startswith("write T.cast("):
            raise
        short = f'write T.cast({text}, "{dtype}") in place of {text}'
        fixes = [short if len(text) <= _LONG else f'convert it: T.cast(x, "{dtype}")']
        raise from_diagnostic(_core.Diagnostic(data.name, data.span, data.args, data.notes, fixes)) from None


def scalar_remedy(value: Any) -> list[str]:
    """What to write where a value is no scalar."""
    if isinstance(value, Construct):
        return [f"call it: {value!r}({', '.join(p.name for p in value.parameters if p.required)})"]
    return ["scalars are numbers and elements of buffers"]


def over_elements(function: Any, given: list[ast.expr]) -> list[str]:
    """What T has for a call of Python's `sum(A[b, :])`, as a list of fixes; nothing for other calls."""
    name = {sum: "reduce_sum", max: "reduce_max", min: "reduce_min", any: "reduce_any", all: "reduce_all"}.get(
        function if isinstance(function, BuiltinFunctionType) else None)
    many = len(given) == 1 and (is_slice(given[0]) or isinstance(given[0], ast.GeneratorExp))
    return [f"in helve: T.{name}(src, dst, dim)"] if name and many else []


def kind_of(value: Any) -> str:
    if isinstance(value, _core.Expr):
        return value.dtype
    if isinstance(value, Construct):
        return repr(value)
    return {str: "a string", float: "a float", bool: "a bool", int: "an integer", type(None): "None"}.get(
        type(value), _core.with_article(type(value).__name__)
    )
