"""Expressions: Python syntax to values.

A value is a scalar expression or a buffer of the core, or a Python object known while parsing. Python objects are
folded by Python; as soon as an operand is an expression the core builds a typed tree.
"""

from __future__ import annotations

import ast
import operator
from typing import Any
from collections.abc import Callable

from helve import _core, language
from helve.arguments import variables_of
from helve.errors import Error, error, integer_text, suggestion
from helve.language.constructs import Construct, DType, HostConstruct, LibraryFunction, Namespace
from helve.language.habits import counterpart, meant
from helve.script import truths, views
from helve.script.arguments import match
from helve.script.context import BITS_LIMIT, ELEMENTS_LIMIT, Context, quote
from helve.script.dtypes import dtype_of
from helve.script.inlinable import Helper, Inline, helper_of, is_own, nested
from helve.script.prim_func import PrimFunc
from helve.script.values import (
    Method,
    as_index,
    converted,
    in_subscript,
    index_remedy,
    is_bool,
    is_language,
    is_path,
    is_plain,
    is_slice,
    is_small,
    kind_of,
    number,
    over_elements,
    plain,
    scalar_remedy,
    subscripts,
)
from helve.script.views import Part, View

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
    ast.ListComp: ("a comprehension", "write a loop, or build the list outside the kernel"),
    ast.SetComp: ("a comprehension", "write a loop, or build the set outside the kernel"),
    ast.DictComp: ("a comprehension", "write a loop, or build the dict outside the kernel"),
    ast.GeneratorExp: ("a generator expression", "write a loop, or build the sequence outside the kernel"),
    ast.Await: ("'await'", "a kernel has no coroutines"),
    ast.Yield: ("'yield'", "results leave a kernel through its tensor parameters"),
    ast.YieldFrom: ("'yield from'", "results leave a kernel through its tensor parameters"),
    ast.JoinedStr: ("an f-string", "write T.print(\"text\", value), or build the text outside the kernel"),
    ast.NamedExpr: ("':='", "assign in a statement of its own"),
    ast.Starred: ("'*' before an expression", "write the elements one by one"),
    ast.Set: ("a set", "write a list or a tuple"),
    ast.Slice: ("a slice here", "slices are allowed in subscripts of operands of tile operations"),
}
Handler = Callable[["Expressions", ast.Call], Any]


class Expressions:
    """Evaluates expressions of one function.

    `handlers` says what a call of a construct means, `inline` what one of a helper does, where there are statements.
    """

    def __init__(self, context: Context, handlers: dict[str, Handler], inline: Inline | None = None):
        self.context = context
        self.handlers = handlers
        self.inline = inline
        self._collections: dict[int, tuple[Any, int]] = {}  # built here, with the number of their elements

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        if isinstance(node, ast.Lambda):
            return self.defined(node)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            return method(node)
        construct, remedy = _UNSUPPORTED.get(type(node), (f"'{type(node).__name__}'", "see docs/language.md"))
        raise self.context.unsupported(node, construct, remedy)

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is ...:
            remedy = "in a subscript write ':' for each dimension that it stands for"
            raise self.context.unsupported(node, "'...'", remedy)
        if isinstance(node.value, (complex, bytes)):
            kind = "a complex number" if isinstance(node.value, complex) else "a bytes literal"
            raise self.context.unsupported(node, kind, "constants are numbers, True, False, None and strings")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        context = self.context
        value = context.scope.lookup(node.id, context.span(node))
        binding = context.scope.find(node.id)
        if binding is None:
            return self._from_outside(node, value)
        if binding.kind == "variable":
            return _core.load(value, [_core.int_imm(0)], context.span(node))
        return value

    def _from_outside(self, node: ast.expr, value: Any) -> Any:
        """A value of Python's; the variables of an expression must be dynamic extents of this function."""
        context = self.context
        if isinstance(value, (tuple, list)):
            for item in value:
                self._from_outside(node, item)
        for variable in variables_of(value) if isinstance(value, _core.Expr) else ():
            if context.knows(variable):
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
        if isinstance(base, (_core.Buffer, View, Part)):
            return self._buffer_attribute(base, node)
        if isinstance(base, _core.Expr):
            if node.attr == "dtype":
                return DType(base.dtype)
            if node.attr == "astype":
                return Method(base, language.ASTYPE)
            remedy = counterpart(node.attr, ()) or ["a value has a dtype, and astype(dtype)"]
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

    def _buffer_attribute(self, buffer: _core.Buffer | View | Part, node: ast.Attribute) -> Any:
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
        if isinstance(base, (View, Part)):
            return views.load(base, self.indices(base, node), self.context.span(node))
        if isinstance(base, _core.Buffer):
            make = _core.tile_load if self.context.tile_loops else _core.load
            return make(base, self.indices(base, node), self.context.span(node))
        if isinstance(base, _core.Expr):
            raise self.context.unsupported(node, "indexing a scalar", "index a buffer")
        if base is language.Tensor:
            return self._tensor_type(node)
        if is_language(base):
            raise self.context.unsupported(node, f"indexing {base!r}", "call it")
        index = self._host_slice(node.slice) if isinstance(node.slice, ast.Slice) else self.evaluate(node.slice)
        if isinstance(index, _core.Expr):
            raise self.context.unsupported(node.slice, "indexing a Python object with a run-time value",
                                           "index it with a constant, or keep the values in a buffer")
        return self.on_host(node, lambda: base[index])

    def _tensor_type(self, node: ast.Subscript) -> Any:
        """`T.Tensor[(M, N), dtype]`, which is T.Tensor((M, N), dtype)."""
        item = node.slice
        value = tuple(map(self.evaluate, item.elts)) if isinstance(item, ast.Tuple) else self.evaluate(item)
        return self.on_host(node, lambda: language.Tensor[value], True)

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
        if op == "BitNot" and is_bool(value):
            op = "Not"
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
        if all(is_plain(value) and not isinstance(value, Construct) for value in (a, b)):
            self._limit_growth(node, op, a, b)
            both_numbers = number(a) is not None and number(b) is not None
            if both_numbers and b == 0 and isinstance(op, (ast.Div, ast.FloorDiv, ast.Mod)):
                raise error("ZeroDivisor", self.context.span(node))
            return self.on_host(node, lambda: fold(a, b), both_numbers)
        if name in truths.OPERATORS and is_bool(a) and is_bool(b):
            operands = [(item, self.operand(item, value, name, "bool")) for item, value in (left, right)]
            return truths.both(self.context, node, name, *operands)
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
        items = []
        for i, item in enumerate((node.left, *node.comparators)):
            with self.context.evaluated_lazily(i > 1):
                items.append((item, self.evaluate(item)))
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
            with self.context.evaluated_lazily(bool(kept)):
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
        with self.context.evaluated_lazily():
            values = [(branch, self.evaluate(branch)) for branch in (node.body, node.orelse)]
        return self.select(node, condition, *values)

    def select(self, node: ast.AST, condition: Any, left: tuple[ast.expr, Any], right: tuple[ast.expr, Any]) -> Any:
        """One of two values, by a condition of run time; of two tuples, element by element."""
        a, b = left[1], right[1]
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
            return tuple([self.select(node, condition, (left[0], x), (right[0], y)) for x, y in zip(a, b)])
        operands = [self.operand(n, value, "if_then_else") for n, value in (left, right)]
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
        if isinstance(node, ast.Call) and is_path(node.func):
            function = self._function(node)
            return function if is_language(function) or function is range or isinstance(function, PrimFunc) else None
        return None

    def helper(self, node: ast.expr) -> Helper | None:
        """The helper that is called, if `node` is a call of one, which then is inlined."""
        return helper_of(self._function(node)) if isinstance(node, ast.Call) and is_path(node.func) else None

    def whole(self, node: ast.expr) -> Any:
        """The value of an expression that is all of what its statement evaluates: a helper called there may store."""
        return self._call(node, True) if isinstance(node, ast.Call) else self.evaluate(node)

    def _function(self, node: ast.Call) -> Any:
        """The value that is called; the name of the function that is being read means itself, as in Python."""
        context, function = self.context, node.func
        itself = isinstance(function, ast.Name) and function.id == context.function and not context.helpers
        if itself and not context.scope.find(function.id):
            raise error("RecursiveCall", context.span(node), name=function.id)
        return self.evaluate(function)

    def _call(self, node: ast.Call, whole: bool = False) -> Any:
        function = self._function(node)
        if isinstance(function, Method):
            return self._method_call(function, node)
        if isinstance(function, DType):
            (argument,) = match(self.context, function, node).nodes.values()
            return self.convert(argument, self.evaluate(argument), function, self.context.span(node))
        if isinstance(function, LibraryFunction):
            if self.inline is None:
                raise self.context.unsupported(node, f"{function.text} before the function", "call it in the function")
            return self.inline(helper_of(function), node, whole)
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
        return self._python_call(function, node, whole)

    def _method_call(self, method: Method, node: ast.Call) -> Any:
        """`x.astype(dtype)`."""
        dtype = match(self.context, method.construct, node)["dtype"]
        return self.convert(node.func.value, method.value, self.dtype(dtype, self.evaluate(dtype)),
                            self.context.span(node))

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
        if isinstance(value, _core.Var) and value == _core.multiprocessors():
            self.context.use_multiprocessors()
        if function.name in language.EXTENT_NAMES and self.context.function and not self.context.declares_dims:
            raise error("DynamicExtentPlace", self.context.span(node), name=next(iter(values.values())))
        return value

    def _ceildiv(self, node: ast.Call, items: list[tuple[ast.expr, Any]]) -> Any:
        (_, a), (_, b) = items
        if isinstance(b, int) and b == 0:
            raise error("ZeroDivisor", self.context.span(node))
        if is_plain(a) and is_plain(b) and isinstance(a, int) and isinstance(b, int):
            return -(-a // b)
        exprs = [self.index(item, value, "an operand of T.ceildiv") for item, value in items]
        return _core.ceil_div(*exprs)

    def _python_call(self, function: Any, node: ast.Call, whole: bool) -> Any:
        """A call of a Python object: run while parsing when all its arguments are known then, else inlined."""
        context = self.context
        helper = helper_of(function) if self.inline is not None else None
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if helper is not None and (helper.always or any(map(is_slice, given))):
            return self.inline(helper, node, whole)
        if remedy := over_elements(function, given):
            raise context.unsupported(node, f"a call of {quote(node.func)} with elements of a buffer", *remedy)
        for argument in given:
            if isinstance(argument, ast.Starred):
                raise context.unsupported(argument, "'*' before an argument", "write the arguments one by one")
        args = [self.evaluate(argument) for argument in node.args]
        keywords = {keyword.arg: self.evaluate(keyword.value) for keyword in node.keywords}
        if not callable(function):
            raise context.unsupported(node, f"a call of {quote(node.func)}, which is no function",
                                      "see docs/language.md")
        values = [*args, *keywords.values()]
        if context.text_mode and (function is range or not all(is_small(value) for value in values)):
            raise context.unsupported(node, f"a call of {quote(node.func)}",
                                      "the text calls T and min, max, abs, len only")
        if all(is_plain(value) for value in values):
            if None in keywords:
                raise context.unsupported(node, "'**' before an argument", "write the arguments one by one")
            try:
                return self.on_host(node, lambda: function(*args, **keywords))
            except Error as fault:
                if helper is None or fault.name != "OutsideKernel":  # it computes with T: a part of the program
                    raise
        if helper is not None:
            return self.inline(helper, node, whole, args, keywords)
        if not keywords and any(function is known for known in _BUILTIN_OPERATORS):
            return self._builtin_operator(_BUILTIN_OPERATORS[function], node, args)
        if any(function is known for known in _CONVERSIONS):
            raise context.unsupported(node, f"'{function.__name__}' of a run-time value", "use T.cast(x, dtype)")
        remedy = ["call it with constants, or write its expression here: only Python functions whose source can be "
                  "read are compiled"]
        if function is len:
            remedy = ["A.shape[0] is the extent of a tensor's first dimension"]
        elif not is_own(function):
            remedy = counterpart(getattr(function, "__name__", None), language.NAMES) or remedy
        raise context.unsupported(node, f"a call of {quote(node.func)} with run-time values", *remedy)

    def defined(self, node: ast.FunctionDef | ast.Lambda) -> Helper:
        """The helper of a definition inside the kernel; defaults are evaluated here, as in Python."""
        names = [each.arg for each in node.args.args]
        values = [self.evaluate(value) for value in node.args.defaults]
        scope = self.context.scope
        return nested(node, self.context.text, scope.surroundings, scope,
                      dict(zip(names[len(names) - len(values) :], values)))

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
        if isinstance(value, (_core.Buffer, View, Part)):
            indices = ", ".join("ijklmn"[: value.rank]) if value.rank <= 6 else "..."
            raise self.context.unsupported(node, f"the whole buffer '{value.name}' as a value",
                                           f"index it, '{value.name}[{indices}]', inside a loop")
        plain_number = number(value)
        if plain_number is None:
            what = f"an operand of '{_text_of(operation)}'" if operation else "the value"
            raise error("WrongType", self.context.span(node), what=what, given=kind_of(value), expected="a number",
                        fixes=scalar_remedy(value))
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

    def typed(self, node: ast.expr, value: Any) -> _core.Expr:
        """A value as a scalar expression; a plain number takes its own type (index, float32 or bool)."""
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
        if isinstance(value, _core.Expr) and "int" in value.dtype:
            return as_index(value)
        if isinstance(value, _core.Expr) and value.dtype == "index":
            return value
        raise error("WrongType", self.context.span(node), what=what, given=kind_of(value), expected="an index",
                    fixes=["extents and bounds are integers"])

    def index_list(self, node: ast.expr, what: str) -> list[_core.Expr]:
        """A list or tuple of index expressions; a single one stands for a list of one."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self.index(item, self.evaluate(item), what) for item in node.elts]
        value = self.evaluate(node)
        if isinstance(value, (tuple, list)):
            return [self.index(node, item, what) for item in value]
        return [self.index(node, value, what)]

    def indices(self, buffer: _core.Buffer | View | Part, node: ast.Subscript) -> list[_core.Expr]:
        """The indices of one element (or tile) of a buffer or a view."""
        items = subscripts(node)
        if isinstance(buffer, (View, Part)) and self.context.tile_loops:
            raise self.context.unsupported(node, "a view in a loop over tiles", "loop over elements by T.Parallel")
        if len(items) != buffer.rank:
            raise error("IndexCount", self.context.span(node), buffer=buffer.name, rank=buffer.rank, given=len(items))
        for item in items:
            if isinstance(item, ast.Slice):
                raise self.context.unsupported(node, "a slice outside a tile operation",
                                               "index one element, or use T.copy or T.fill")
        return [self.subscript_index(buffer, item) for item in items]

    def subscript_index(self, buffer: _core.Buffer | View | Part, node: ast.expr) -> _core.Expr:
        """One index of a buffer."""
        value, span = in_subscript(self.evaluate, node), self.context.span(node)
        if isinstance(value, _core.Expr) and (value.dtype == "index" or "int" in value.dtype):
            return as_index(value)
        plain_number = number(value)
        if not isinstance(plain_number, int) or isinstance(plain_number, bool):
            raise error("IndexType", span, buffer=buffer.name, dtype=kind_of(value), fixes=index_remedy(node, value))
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
            return converted(node, operand, dtype, span)
        return _core.constant_of(operand, dtype, span)

    def dtype(self, node: ast.expr, value: Any) -> DType:
        """An element type: its name, T's object, or a NumPy or PyTorch dtype."""
        return dtype_of(self.context, node, value)

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


def _text_of(operation: str) -> str:
    return next((text.strip() for name, text, _, _ in _core.operator_rows() if name == operation), operation)


_STATEMENTS = ("annotate_mesh_tensor", "annotate_layout", "use_swizzle", "may_alias", "assume", "update",
               "store_nontemporal", "store_vector", "prefetch", "assert_", "print", "fail", "breakpoint")


def _remedy_for(construct: Construct) -> str:
    if construct.name.startswith("alloc_"):
        return f"assign it to a name: x = {construct.text}(...)"
    if construct.name == "Kernel":
        return "write 'with T.Kernel(...) as ...:'"
    if construct.name in ("role", "warpgroup", "warp", "outline"):
        return f"write 'with {construct.text}({'...' if construct.parameters else ''}):'"
    if construct.name in _STATEMENTS or hasattr(construct, "op"):
        return "write it as a statement of its own"
    return f"write 'for ... in {construct.text}(...):'"
