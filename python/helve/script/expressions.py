"""Expressions: Python syntax to values.

A value is a scalar expression or a buffer of the core, or a Python object known while parsing. Python objects are
folded by Python; as soon as an operand is an expression the core builds a typed tree.
"""

from __future__ import annotations

import ast
import numbers
import operator
import types
from typing import Any
from collections.abc import Callable

from helve import _core, language
from helve.arguments import variables_of
from helve.errors import Error, error, integer_text, shown, suggestion
from helve.language.constructs import Construct, DType, FrontEnd, HostConstruct, Namespace
from helve.language.habits import counterpart, meant
from helve.script.arguments import match
from helve.script.context import BITS_LIMIT, ELEMENTS_LIMIT, Context, quote
from helve.script.prim_func import PrimFunc

_BINARY: dict[type, tuple[str, Callable]] = {
    ast.Add: ("Add", operator.add),
    ast.Sub: ("Sub", operator.sub),
    ast.Mult: ("Mul", operator.mul),
    ast.Div: ("Div", operator.truediv),
    ast.FloorDiv: ("FloorDiv", operator.floordiv),
    ast.Mod: ("FloorMod", operator.mod),
    ast.Pow: ("Pow", operator.pow),
    ast.BitAnd: ("BitAnd", operator.and_),
    ast.BitOr: ("BitOr", operator.or_),
    ast.BitXor: ("BitXor", operator.xor),
    ast.LShift: ("ShiftLeft", operator.lshift),
    ast.RShift: ("ShiftRight", operator.rshift),
}
_COMPARE: dict[type, tuple[str | None, Callable]] = {
    ast.Lt: ("Lt", operator.lt),
    ast.LtE: ("Le", operator.le),
    ast.Gt: ("Gt", operator.gt),
    ast.GtE: ("Ge", operator.ge),
    ast.Eq: ("Eq", operator.eq),
    ast.NotEq: ("Ne", operator.ne),
    ast.Is: (None, operator.is_),
    ast.IsNot: (None, operator.is_not),
    ast.In: (None, lambda a, b: a in b),
    ast.NotIn: (None, lambda a, b: a not in b),
}
_UNARY: dict[type, tuple[str | None, Callable]] = {
    ast.USub: ("Neg", operator.neg),
    ast.UAdd: (None, operator.pos),
    ast.Invert: ("BitNot", operator.invert),
    ast.Not: ("Not", operator.not_),
}
# Python's spelling of operators of the table, with the number of operands that they take at least.
_BUILTIN_OPERATORS = {min: "Min", max: "Max", abs: "Abs"}
_CONVERSIONS = (int, float, bool)
_UNSUPPORTED: dict[type, tuple[str, str]] = {
    ast.Lambda: ("a lambda", "write the expression where it is used"),
    ast.ListComp: ("a comprehension", "write a loop, or build the list outside the kernel"),
    ast.SetComp: ("a comprehension", "write a loop, or build the set outside the kernel"),
    ast.DictComp: ("a comprehension", "write a loop, or build the dict outside the kernel"),
    ast.GeneratorExp: ("a generator expression", "write a loop, or build the sequence outside the kernel"),
    ast.Await: ("'await'", "a kernel has no coroutines"),
    ast.Yield: ("'yield'", "results leave a kernel through its tensor parameters"),
    ast.YieldFrom: ("'yield from'", "results leave a kernel through its tensor parameters"),
    ast.JoinedStr: ("an f-string", "build the text outside the kernel"),
    ast.NamedExpr: ("':='", "assign in a statement of its own"),
    ast.Starred: ("'*' before an expression", "write the elements one by one"),
    ast.Set: ("a set", "write a list or a tuple"),
    ast.Slice: ("a slice here", "slices are allowed in subscripts of operands of tile operations"),
}
Handler = Callable[["Expressions", ast.Call], Any]


# Packages whose names have known counterparts below T.
_LIBRARIES = {"cupy", "jax", "math", "numpy", "scipy", "tilelang", "torch", "triton", "tvm"}


def _is_own(function: Callable) -> bool:
    """Is it Python code of the user's, whose name says nothing about what it computes?"""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return isinstance(function, (types.FunctionType, type)) and package not in _LIBRARIES


class Expressions:
    """Evaluates expressions of one function. `handlers` says what a call of a construct means."""

    def __init__(self, context: Context, handlers: dict[str, Handler]):
        self.context = context
        self.handlers = handlers
        self._collections: dict[int, tuple[Any, int]] = {}  # built here, with the number of their elements

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            return method(node)
        construct, remedy = _UNSUPPORTED.get(type(node), (f"'{type(node).__name__}'", "see docs/language.md"))
        raise self.context.unsupported(node, construct, remedy)

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (complex, bytes)) or node.value is ...:
            kind = {complex: "a complex number", bytes: "a bytes literal"}.get(type(node.value), "'...'")
            raise self.context.unsupported(node, kind, "constants are numbers, True, False, None and strings")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        context = self.context
        value = context.scope.lookup(node.id, context.span(node))
        return value if context.scope.find(node.id) is not None else self._from_outside(node, value)

    def _from_outside(self, node: ast.expr, value: Any) -> Any:
        """A value of Python's; the variables of an expression must be dynamic extents of this function."""
        context = self.context
        if isinstance(value, (tuple, list)):
            for item in value:
                self._from_outside(node, item)
        for variable in variables_of(value) if isinstance(value, _core.Expr) else ():
            if context.declares_dims or variable in context.dims or variable in context.variables:
                continue
            note = _core.Note(f"'{variable.name}' is a dynamic extent that is in no tensor parameter's shape")
            raise error("UnknownName", context.span(node), name=variable.name, notes=[note],
                        fixes=[f"use '{variable.name}' in the shape of a parameter"])
        if isinstance(value, _core.Buffer) and value not in context.params:
            raise context.unsupported(node, "a buffer of another function", "pass it as a parameter")
        return value

    def _tuple(self, node: ast.Tuple) -> tuple:
        return self._bounded(node, tuple([self.evaluate(item) for item in node.elts]))

    def _list(self, node: ast.List) -> list:
        return self._bounded(node, [self.evaluate(item) for item in node.elts])

    def _dict(self, node: ast.Dict) -> dict:
        items = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                raise self.context.unsupported(value, "'**' in a dict", "write the entries one by one")
            items[self.constant(key)] = self.evaluate(value)
        return self._bounded(node, items)

    def _bounded(self, node: ast.AST, collection: Any) -> Any:
        """The new tuple, list or dict, unless it has too many elements, counted as often as they occur: `c = (c, c)`
        doubles them, and whoever compares or prints c walks over each.
        """
        items = collection.values() if isinstance(collection, dict) else collection
        known = self._collections
        size = sum(known[id(item)][1] if id(item) in known else 1 for item in items)
        if size > ELEMENTS_LIMIT:
            raise error("TextLimit", self.context.span(node), limit=ELEMENTS_LIMIT,
                        unit="elements of a tuple, list or dict")
        known[id(collection)] = (collection, size)  # kept, so that its id stays its own
        return collection

    def constant(self, node: ast.expr) -> Any:
        """A hashable compile-time value: a key."""
        value = self.evaluate(node)
        if isinstance(value, (list, dict)):
            raise self.context.unsupported(node, "a list or dict as a key", "write a string or a tuple")
        return value

    def _attribute(self, node: ast.Attribute) -> Any:
        base = self.evaluate(node.value)
        if base is language or isinstance(base, Namespace):
            return self._language_name(base, node)
        if isinstance(base, _core.Buffer):
            return self._buffer_attribute(base, node)
        if isinstance(base, _core.Expr):
            if node.attr == "dtype":
                return DType(base.dtype)
            remedy = counterpart(node.attr, ()) or ["a value has only a dtype"]
            raise self.context.unsupported(node, f"attribute '{node.attr}' of a value", *remedy)
        if self.context.text_mode:
            raise self.context.unsupported(node, "an attribute", "the text knows T, literals and its own names only")
        return self.on_host(node, lambda: getattr(base, node.attr))

    def _language_name(self, base: Any, node: ast.Attribute) -> Any:
        members = language.NAMES if base is language else base.members
        if node.attr in members:
            return members[node.attr]
        if base is language:
            raise error("UnknownOperation", self.context.span(node), name=node.attr, fixes=meant(node.attr, members))
        raise error("UnknownOperation", self.context.span(node), name=f"{base.name}.{node.attr}",
                    fixes=suggestion(node.attr, members, f"T.{base.name}."))

    def _buffer_attribute(self, buffer: _core.Buffer, node: ast.Attribute) -> Any:
        if node.attr == "shape":
            return tuple(plain(extent) for extent in buffer.shape)
        if node.attr == "dtype":
            return DType(buffer.dtype)
        if node.attr == "ndim":
            return buffer.rank
        remedy = counterpart(node.attr, ()) or ["a buffer has shape, dtype and ndim"]
        raise self.context.unsupported(node, f"attribute '{node.attr}' of a buffer", *remedy)

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.evaluate(node.value)
        if isinstance(base, _core.Buffer):
            make = _core.tile_load if self.context.tile_loops else _core.load
            return make(base, self.indices(base, node), self.context.span(node))
        if isinstance(base, _core.Expr):
            raise self.context.unsupported(node, "indexing a scalar", "index a buffer")
        if is_language(base):
            raise self.context.unsupported(node, f"indexing {base!r}", "call it")
        index = self._host_slice(node.slice) if isinstance(node.slice, ast.Slice) else self.evaluate(node.slice)
        if isinstance(index, _core.Expr):
            raise self.context.unsupported(node.slice, "indexing a Python object with a run-time value",
                                           "index it with a constant, or keep the values in a buffer")
        return self.on_host(node, lambda: base[index])

    def _host_slice(self, node: ast.Slice) -> slice:
        return slice(*[None if part is None else self.evaluate(part) for part in (node.lower, node.upper, node.step)])

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        op, fold = _UNARY[type(node.op)]
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not) and is_plain(value):
            return not self.truth(node.operand, value)
        if is_plain(value):
            return self.on_host(node, lambda: fold(value), number(value) is not None)
        if op is None:
            return self.operand(node.operand, value, "+")
        return _core.apply_operands(op, [self.operand(node.operand, value, op)], self.context.span(node))

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.binary(node, node.op, (node.left, left), (node.right, right))

    def binary(self, node: ast.AST, op: ast.operator, left: tuple[ast.expr, Any], right: tuple[ast.expr, Any]) -> Any:
        """`left op right` for two (node, value) pairs; `node` is where the whole stands."""
        a, b = left[1], right[1]
        if type(op) not in _BINARY:
            if is_plain(a) and is_plain(b):  # a stride of a layout, 4@laneid
                return self.on_host(node, lambda: a @ b)
            raise self.context.unsupported(node, "'@'", "use T.gemm")
        name, fold = _BINARY[type(op)]
        if is_plain(a) and is_plain(b):
            self._limit_growth(node, op, a, b)
            both_numbers = number(a) is not None and number(b) is not None
            if both_numbers and b == 0 and isinstance(op, (ast.Div, ast.FloorDiv, ast.Mod)):
                raise error("ZeroDivisor", self.context.span(node))
            return self.on_host(node, lambda: fold(a, b), both_numbers)
        return _core.apply_operands(name, self._pair(name, left, right), self.context.span(node))

    def _pair(self, name: str, left: tuple[ast.expr, Any], right: tuple[ast.expr, Any]) -> list[Any]:
        """The operands of a binary operator; a number takes the type of the other one."""
        types = [value.dtype if isinstance(value, _core.Expr) else "index" for _, value in (right, left)]
        return [self.operand(*item, name, dtype) for item, dtype in zip((left, right), types)]

    def _limit_growth(self, node: ast.AST, op: ast.operator, a: Any, b: Any) -> None:
        if not isinstance(op, (ast.Pow, ast.LShift, ast.Mult)) or not isinstance(a, int) or not isinstance(b, int):
            return
        size = a.bit_length()
        grown = {ast.Pow: size * max(b, 0), ast.LShift: size + max(b, 0), ast.Mult: size + b.bit_length()}[type(op)]
        if grown > BITS_LIMIT:
            raise error("TextLimit", self.context.span(node), limit=BITS_LIMIT, unit="bits of an integer")

    def _compare(self, node: ast.Compare) -> Any:
        items = [(item, self.evaluate(item)) for item in (node.left, *node.comparators)]
        parts = [self._compare_two(node, op, items[i], items[i + 1]) for i, op in enumerate(node.ops)]
        if len(parts) == 1:
            return parts[0]
        kept = [part for part in parts if not is_plain(part)]
        if not all(self.truth(node, part) for part in parts if is_plain(part)):
            return False
        return _core.chain_operands("And", kept, self.context.span(node)) if kept else parts[-1]

    def _compare_two(self, node: ast.Compare, op: ast.cmpop, left: tuple, right: tuple) -> Any:
        name, fold = _COMPARE[type(op)]
        a, b = left[1], right[1]
        if isinstance(op, (ast.Is, ast.IsNot)):
            if isinstance(a, _core.Expr) and b is not None or isinstance(b, _core.Expr) and a is not None:
                text = "is" if isinstance(op, ast.Is) else "is not"
                raise self.context.unsupported(node, f"'{text}' with a run-time value",
                                               f"compare values with '{'==' if text == 'is' else '!='}'")
            return fold(a, b)
        if is_plain(a) and is_plain(b):
            return self.on_host(node, lambda: fold(a, b), True)
        if name is None:
            text = "in" if isinstance(op, ast.In) else "not in"
            raise self.context.unsupported(node, f"'{text}' with a run-time value", "compare with each element")
        return _core.apply_operands(name, self._pair(name, left, right), self.context.span(node))

    def _boolop(self, node: ast.BoolOp) -> Any:
        """`and`, `or`: compile-time operands decide while parsing, from left to right, as in Python.

        Beside run-time values they are of bool, since the result then is.
        """
        decisive = isinstance(node.op, ast.Or)
        op, span = "Or" if decisive else "And", self.context.span(node)
        last: Any = None
        kept: list[Any] = []  # what run time decides, with what stands beside it
        for item in node.values:
            value = self.evaluate(item)
            if is_plain(value) and (not kept or isinstance(number(value), bool)
                                    and not isinstance(item, ast.Constant)):
                if self.truth(item, value) is decisive:
                    return decisive if kept else value
                last = value
            else:
                kept.append(self.operand(item, value, op.lower()))
                if len(kept) > 1:  # refused before the next one is evaluated
                    _core.apply_operands(op, kept[-2:], span)
        return _core.chain_operands(op, kept, span) if kept else last

    def _ifexp(self, node: ast.IfExp) -> Any:
        condition = self.evaluate(node.test)
        if is_plain(condition):
            return self.evaluate(node.body if self.truth(node.test, condition) else node.orelse)
        self.require_condition(node.test, condition)
        operands = [self.operand(n, self.evaluate(n), "if_then_else") for n in (node.body, node.orelse)]
        return _core.apply_operands("Select", [condition, *operands], self.context.span(node))

    def truth(self, node: ast.expr, value: Any) -> bool:
        """Does Python take a value that is known while parsing for true?"""
        return self.on_host(node, lambda: bool(value), True)

    def require_condition(self, node: ast.expr, value: Any) -> None:
        """WrongType unless a value is a truth value."""
        typed = self.typed(node, value)
        if typed.dtype != "bool":
            raise error("WrongType", self.context.span(node), what="a condition", given=typed.dtype, expected="bool",
                        fixes=["compare it, for example with '!= 0'"])

    # -- calls --------------------------------------------------------------------------------------------------------

    def callee(self, node: ast.expr) -> Any:
        """What a call calls, if `node` is a call of a construct or of a kernel function; else None."""
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            function = self._function(node)
            return function if is_language(function) or function is range or isinstance(function, PrimFunc) else None
        return None

    def _function(self, node: ast.Call) -> Any:
        """The value that is called; the name of the function that is being read means itself, as in Python."""
        context, function = self.context, node.func
        if isinstance(function, ast.Name) and function.id == context.function and not context.scope.find(function.id):
            raise error("RecursiveCall", context.span(node), name=function.id)
        return self.evaluate(function)

    def _call(self, node: ast.Call) -> Any:
        function = self._function(node)
        if isinstance(function, DType):
            (argument,) = match(self.context, function, node).nodes.values()
            return self.convert(argument, self.evaluate(argument), function, self.context.span(node))
        if isinstance(function, HostConstruct):
            return self._host_construct(function, node)
        if isinstance(function, Construct):
            if function.name in self.handlers:
                return self.handlers[function.name](self, node)
            raise self.context.unsupported(node, f"{function.text} inside an expression", _remedy_for(function))
        if is_language(function):
            raise self.context.unsupported(node, f"a call of {function!r}", "see docs/language.md")
        if isinstance(function, PrimFunc):
            raise self.context.unsupported(node, f"a call of '{function.name}' inside an expression",
                                           "it gives no value; write the call as a statement of its own")
        return self._python_call(function, node)

    def _host_construct(self, function: HostConstruct, node: ast.Call) -> Any:
        arguments = match(self.context, function, node)
        values = {name: self.evaluate(argument) for name, argument in arguments.nodes.items()}
        if "dtype" in arguments.nodes and values["dtype"] is not None:
            values["dtype"] = self.dtype(arguments["dtype"], values["dtype"])
        if function.name == "ceildiv":
            return self._ceildiv(node, [(arguments[name], values[name]) for name in ("a", "b")])
        try:
            value = self.on_host(node, lambda: function.function(**values), True)
        except Error as fault:  # raised where helve itself calls
            raise error(fault.name, self.context.span(node), **dict(fault.diagnostic.args)) from None
        if function.name == "dyn" and self.context.function and not self.context.declares_dims:
            raise error("DynamicExtentPlace", self.context.span(node), name=value.name)
        return value

    def _ceildiv(self, node: ast.Call, items: list[tuple[ast.expr, Any]]) -> Any:
        (_, a), (_, b) = items
        if isinstance(b, int) and b == 0:
            raise error("ZeroDivisor", self.context.span(node))
        if is_plain(a) and is_plain(b) and isinstance(a, int) and isinstance(b, int):
            return -(-a // b)
        exprs = [self.index(item, value, "an operand of T.ceildiv") for item, value in items]
        return _core.ceil_div(*exprs)

    def _python_call(self, function: Any, node: ast.Call) -> Any:
        """A call of a Python object: run while parsing when all its arguments are known then."""
        context = self.context
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if isinstance(argument, ast.Starred):
                raise context.unsupported(argument, "'*' before an argument", "write the arguments one by one")
        args = [self.evaluate(argument) for argument in node.args]
        keywords = {keyword.arg: self.evaluate(keyword.value) for keyword in node.keywords}
        if not callable(function):
            raise context.unsupported(node, f"a call of {quote(node.func)}, which is no function",
                                      "see docs/language.md")
        values = [*args, *keywords.values()]
        if context.text_mode and (function is range or not all(_is_small(value) for value in values)):
            raise context.unsupported(node, f"a call of {quote(node.func)}",
                                      "the text calls T and min, max, abs, len only")
        if all(is_plain(value) for value in values):
            if None in keywords:
                raise context.unsupported(node, "'**' before an argument", "write the arguments one by one")
            return self.on_host(node, lambda: function(*args, **keywords))
        if not keywords and any(function is known for known in _BUILTIN_OPERATORS):
            return self._builtin_operator(_BUILTIN_OPERATORS[function], node, args)
        if any(function is known for known in _CONVERSIONS):
            raise context.unsupported(node, f"'{function.__name__}' of a run-time value", "use T.cast(x, dtype)")
        remedy = ["call it with constants, or write its expression here: the body of a Python function is not compiled"]
        if not _is_own(function):
            remedy = counterpart(getattr(function, "__name__", None), language.NAMES) or remedy
        raise context.unsupported(node, f"a call of {quote(node.func)} with run-time values", *remedy)

    def _builtin_operator(self, name: str, node: ast.Call, values: list[Any]) -> Any:
        operands = [self.operand(item, value, name.lower()) for item, value in zip(node.args, values)]
        span = self.context.span(node)
        if name == "Abs":
            if len(operands) > 1:
                raise error("TooManyArguments", self.context.span(node.args[1]), function="abs", limit=1,
                            given=len(operands), parameters="x")
            return _core.apply_operands("Abs", operands, span)
        if len(operands) == 1:
            raise self.context.unsupported(node, f"'{name.lower()}' of one value", "give two or more values")
        result = operands[0]
        for operand in operands[1:]:
            result = _core.apply_operands(name, [result, operand], span)
        return result

    def on_host(self, node: ast.AST, action: Callable[[], Any], harmless: bool = False) -> Any:
        """The result of running Python; what it raises becomes HostCallFailed. Text runs only what is harmless."""
        if self.context.text_mode and not harmless and not self._is_literal_access(node):
            raise self.context.unsupported(node, "Python beyond arithmetic",
                                           "the text knows T, literals and its own names only")
        try:
            value = action()
        except Error:
            raise
        except Exception as problem:
            if isinstance(problem, (ZeroDivisionError,)):
                raise error("ZeroDivisor", self.context.span(node)) from None
            reason = f"{type(problem).__name__}: {problem}".partition("\n")[0].rstrip(": ")
            expression = quote(node)[1:-1]
            raise error("HostCallFailed", self.context.span(node), expression=expression, reason=reason) from problem
        return value if harmless else self._from_outside(node, value)

    @staticmethod
    def _is_literal_access(node: ast.AST) -> bool:
        """Subscripts of literals and calls of the known builtins: the only Python that helve.parse runs."""
        return isinstance(node, (ast.Subscript, ast.Call))

    # -- what a place wants -------------------------------------------------------------------------------------------

    def operand(self, node: ast.expr, value: Any, operation: str, dtype: str = "index") -> Any:
        """A value as an operand of `operation` (the name of an operator, or empty): an expression or a plain number.

        `dtype` is the type that an integer will take, as far as it is known.
        """
        if isinstance(value, _core.Expr):
            return value
        if isinstance(value, _core.Buffer):
            indices = ", ".join("ijklmn"[: value.rank]) if value.rank <= 6 else "..."
            raise self.context.unsupported(node, f"the whole buffer '{value.name}' as a value",
                                           f"index it, '{value.name}[{indices}]', inside a loop")
        plain_number = number(value)
        if plain_number is None:
            what = f"an operand of '{_text_of(operation)}'" if operation else "the value"
            raise error("WrongType", self.context.span(node), what=what, given=_kind_of(value), expected="a number",
                        fixes=["scalars are numbers and elements of buffers"])
        return self.in_range(node, plain_number, dtype)

    def in_range(self, node: ast.expr, value: Any, dtype: str = "index") -> Any:
        """An integer that 64 bits hold; WrongType otherwise."""
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        unsigned = dtype == "uint64"
        low, high = (0, 2**64) if unsigned else (-(2**63), 2**63)
        if not low <= value < high:
            fix = (f"uint64 holds 0 to {2**64 - 1}; {integer_text(value)} wraps to {value % 2**64}" if unsigned else
                   "integers have 64 bits at most")
            raise error("WrongType", self.context.span(node), what=quote(node)[1:-1], given="out of range",
                        expected=dtype, fixes=[fix])
        return value - 2**64 if value >= 2**63 else value

    def expression(self, node: ast.expr) -> _core.Expr:
        """A scalar expression; a plain number takes its own type (index, float32 or bool)."""
        return self.typed(node, self.evaluate(node))

    def typed(self, node: ast.expr, value: Any) -> _core.Expr:
        """A value as a scalar expression."""
        operand = self.operand(node, value, "")
        if isinstance(operand, _core.Expr):
            return operand
        dtype = "bool" if isinstance(operand, bool) else "float32" if isinstance(operand, float) else "index"
        return _core.constant_of(operand, dtype, self.context.span(node))

    def index(self, node: ast.expr, value: Any, what: str) -> _core.Expr:
        """A value as an index expression; `what` names the place in the message."""
        plain_number = number(value)
        if plain_number is not None and isinstance(plain_number, int) and not isinstance(plain_number, bool):
            return _core.int_imm(self.in_range(node, plain_number), "index", self.context.span(node))
        if isinstance(value, _core.Expr) and value.dtype == "index":
            return value
        raise error("WrongType", self.context.span(node), what=what, given=_kind_of(value), expected="an index",
                    fixes=["extents and bounds are integers; T.index(x) makes an index of a loaded integer"])

    def index_list(self, node: ast.expr, what: str) -> list[_core.Expr]:
        """A list or tuple of index expressions; a single one stands for a list of one."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self.index(item, self.evaluate(item), what) for item in node.elts]
        value = self.evaluate(node)
        if isinstance(value, (tuple, list)):
            return [self.index(node, item, what) for item in value]
        return [self.index(node, value, what)]

    def indices(self, buffer: _core.Buffer, node: ast.Subscript) -> list[_core.Expr]:
        """The indices of one element (or tile) of a buffer."""
        items = subscripts(node)
        if len(items) != buffer.rank:
            raise error("IndexCount", self.context.span(node), buffer=buffer.name, rank=buffer.rank, given=len(items))
        for item in items:
            if isinstance(item, ast.Slice):
                raise self.context.unsupported(node, "a slice outside a tile operation",
                                               "index one element, or use T.copy or T.fill")
        return [self.subscript_index(buffer, item) for item in items]

    def subscript_index(self, buffer: _core.Buffer, node: ast.expr) -> _core.Expr:
        """One index of a buffer."""
        value = self.evaluate(node)
        span = self.context.span(node)
        if isinstance(value, _core.Expr):
            if value.dtype != "index":
                raise error("IndexType", span, buffer=buffer.name, dtype=value.dtype,
                            fixes=[f"write T.index({quote(node)[1:-1]})"] if "int" in value.dtype else [])
            return value
        plain_number = number(value)
        if not isinstance(plain_number, int) or isinstance(plain_number, bool):
            raise error("IndexType", span, buffer=buffer.name, dtype=_kind_of(value))
        if plain_number < 0:
            raise error("NegativeIndex", span, buffer=buffer.name, index=plain_number)
        return _core.int_imm(self.in_range(node, plain_number), "index", span)

    def convert(self, node: ast.expr, value: Any, dtype: str, span: _core.Span) -> _core.Expr:
        """An explicit conversion, `T.cast(x, dtype)` or `T.float32(x)`."""
        operand = self.operand(node, value, "cast", dtype)
        if isinstance(operand, _core.Expr):
            return _core.cast(operand, dtype, span)
        if isinstance(operand, bool) or dtype == "bool":
            operand = bool(operand) if dtype == "bool" else int(operand)
        if isinstance(operand, float) and not dtype.startswith(("float", "bfloat")):
            low, high = (_core.extreme_imm(dtype, lowest).value for lowest in (True, False))
            if not low <= operand <= (2**64 - 1 if dtype == "uint64" else high):  # the cast saturates
                return _core.cast(_core.float_imm(operand, "float64"), dtype, span)
            operand = self.in_range(node, int(operand), dtype)  # truncates, as the cast does
        return _core.constant_of(operand, dtype, span)

    def stored(self, node: ast.expr, value: Any, dtype: str) -> _core.Expr:
        """A value as it is stored to an element of `dtype`: what a store converts silently, and nothing else."""
        operand = self.operand(node, value, "", dtype)
        span = self.context.span(node)
        if isinstance(operand, _core.Expr):
            return _core.convert_for_store(operand, dtype, span)
        return _core.constant_of(operand, dtype, span)

    def dtype(self, node: ast.expr, value: Any) -> DType:
        """An element type: its name, T's object, or a NumPy or PyTorch dtype."""
        name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None)
        if not isinstance(name, str):
            name = shown(value).rpartition(".")[2]
        # Other libraries call the language's float8_e4m3 float8_e4m3fn; their float8_e4m3 is a type with infinities.
        foreign = name if not isinstance(value, (str, DType)) else ""
        found = _core.parse_dtype("float8_e4m3" if foreign == "float8_e4m3fn" else name)
        if found is None or foreign == "float8_e4m3" or isinstance(value, (_core.Expr, _core.Buffer)):
            names = _core.dtype_names()
            fixes = [f"{fix} dtypes are: {', '.join(names)}" for fix in suggestion(name, names)]
            if foreign == "float8_e4m3":
                name = f"the {foreign} of ml_dtypes"
                fixes = ['"float8_e4m3" has no infinity, as float8_e4m3fn elsewhere; write one of the two']
            raise error("UnknownDType", self.context.span(node), name=name, known=", ".join(names), fixes=fixes)
        return DType(found)

    def literal(self, arguments, name: str, kind: type | tuple, expected: str, remedy: str) -> Any:
        """A compile-time argument of a Python type; the parameter's default when it is not given."""
        node = arguments.get(name)
        if node is None:
            return next(p.default for p in arguments.construct.parameters if p.name == name)
        value = self.evaluate(node)
        plain_number = number(value)
        if kind is int and isinstance(plain_number, int) and not isinstance(plain_number, bool):
            return self.in_range(node, plain_number)
        if kind is bool and isinstance(plain_number, bool):
            return plain_number
        if kind not in (int, bool) and isinstance(value, kind):
            return value
        raise self.context.bad_argument(node, arguments.construct.text, name, f"it is not {expected}", remedy)


def subscripts(node: ast.Subscript) -> list[ast.expr]:
    """The parts between the brackets."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


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


def is_plain(value: Any) -> bool:
    """Is the value known while parsing, down to the elements of tuples, lists and dicts?"""
    if isinstance(value, (tuple, list)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(is_plain(item) for item in value.values())
    return not isinstance(value, (_core.Expr, _core.Buffer))


def _is_small(value: Any) -> bool:
    """May a builtin of helve.parse take the value? Numbers, expressions, and what was written out."""
    if isinstance(value, (tuple, list)):
        return all(_is_small(item) for item in value)
    return isinstance(value, (str, _core.Expr, _core.Buffer)) or number(value) is not None


def is_language(value: Any) -> bool:
    """Is the value a name below T?"""
    return value is language or isinstance(value, (Construct, DType, Namespace, FrontEnd))


def _kind_of(value: Any) -> str:
    if isinstance(value, _core.Expr):
        return value.dtype
    return {str: "a string", float: "a float", bool: "a bool", int: "an integer", type(None): "None"}.get(
        type(value), _core.with_article(type(value).__name__)
    )


def _text_of(operation: str) -> str:
    return next((text.strip() for name, text, _, _ in _core.operator_rows() if name == operation), operation)


_STATEMENTS = ("annotate_mesh_tensor", "annotate_layout", "may_alias", "assume", "update", "store_nontemporal",
               "store_vector", "prefetch")


def _remedy_for(construct: Construct) -> str:
    if construct.name.startswith("alloc_"):
        return f"assign it to a name: x = {construct.text}(...)"
    if construct.name == "Kernel":
        return "write 'with T.Kernel(...) as ...:'"
    if construct.name in _STATEMENTS or hasattr(construct, "op"):
        return "write it as a statement of its own"
    return f"write 'for ... in {construct.text}(...):'"
