"""Index notation: tensors defined by what each of their elements is.

`C[i, j] = A[i, k] * B[k, j]` records a statement; `helve.function(C)` makes an ordinary kernel function of all
statements that C needs. What a statement means, which indices are summed where, and how it becomes a loop nest is
decided in the core; here are Python's operators.
"""

from __future__ import annotations

import itertools
import keyword
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from helve import _core, source
from helve.errors import error, shown
from helve.language import NAMES
from helve.language.constructs import DType, Operator
from helve.language.habits import counterpart
from helve.script.prim_func import PrimFunc
from helve.spellings import dtype_meant

_order = itertools.count()  # of statements, in the order in which they are executed by Python


def _place(argument: int | str | None = None) -> _core.Span:
    """The user's operation that is being executed, or one argument of the call."""
    return source.span_of_call(source.outside(sys._getframe(1))[0], argument)


def _bad(function: str, value: Any, parameter: str, reason: str, remedy: str, position: int | str = 0) -> Exception:
    return error(
        "BadArgument",
        _place(position),
        function=function,
        value=shown(value),
        parameter=parameter,
        reason=reason,
        remedy=remedy,
    )


class Expression:
    """An expression of index notation: the value of each element, for all values of its indices.

    Python's operators and the functions below `T` combine expressions, numbers and dynamic extents. `&`, `|` and `~`
    of conditions are "and", "or" and "not".
    """

    __slots__ = ("_core", "_indices", "_tensors")

    def __init__(self, core: _core.IndexExpr, indices: dict, tensors: dict):
        self._core = core
        self._indices = indices  # of the core -> Index, in order of first use
        self._tensors = tensors  # Tensor -> None

    @property
    def dtype(self) -> str:
        """The element type."""
        return self._core.value.dtype

    def __repr__(self) -> str:
        return f"<index notation: {self._core.value}>"

    def __bool__(self):
        raise error("NotationTruth", _place())

    def __helve_call__(self, construct: Any, args: tuple, kwargs: dict) -> Expression:
        """A function below `T` on this expression."""
        if isinstance(construct, DType):
            return _cast(args[0], construct)
        values = construct.__signature__.bind(*args, **kwargs).args
        if isinstance(construct, Operator):
            return _apply(construct.op, values, construct.text)
        if construct.name == "cast":
            return _cast(*values)
        if construct.name == "clamp":
            return _apply("Min", (_apply("Max", values[:2], construct.text), values[2]), construct.text)
        raise error("OutsideKernel", _place(), function=construct.text)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *values: Any, **options: Any) -> Any:
        """NumPy's operators beside its scalars are those of this class; its functions are refused."""
        name = ufunc.__name__
        if method != "__call__":
            raise _later(f"np.{name}.{method}", self, ["an index that the left side lacks is summed; helve.reduce_max "
                                                       "and its like combine otherwise"])
        if name not in _UFUNCS:
            raise _later(f"np.{name}", self, counterpart(name, NAMES))
        for each in values:
            if isinstance(each, np.ndarray) and each.ndim > 0:
                raise _bad(f"np.{name}", each, "x", "it is an array", "pass it to the kernel: make it a helve.tensor "
                           "here, and subscript that", None)
        return _UFUNCS[name](*(each if isinstance(each, Expression) else np.asarray(each).item() for each in values))

    def __float__(self) -> float:
        raise _later("float", self, [])

    __int__ = __float__  # type: ignore[assignment]

    def __invert__(self) -> Expression:
        return _apply("Not" if self.dtype == "bool" else "BitNot", (self,))

    def __neg__(self) -> Expression:
        return _apply("Neg", (self,))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return _apply("Abs", (self,))

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # made below, from the table of operators

        def __add__(self, other: Any) -> Expression: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __add__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__
        __eq__ = __ne__ = __add__  # type: ignore[assignment]


_BINARY = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "truediv": "Div",
    "floordiv": "FloorDiv",
    "mod": "FloorMod",
    "pow": "Pow",
    "and": "BitAnd",
    "or": "BitOr",
    "xor": "BitXor",
    "lshift": "ShiftLeft",
    "rshift": "ShiftRight",
    "lt": "Lt",
    "le": "Le",
    "gt": "Gt",
    "ge": "Ge",
    "eq": "Eq",
    "ne": "Ne",
}
_LOGICAL = {"BitAnd": "And", "BitOr": "Or"}
# What NumPy calls for an operator beside a scalar or an array of its own.
_UFUNCS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def _later(function: str, value: Any, remedy: list[str]) -> Exception:
    """The refusal of a function that wants a number now."""
    return _bad(function, value, "x", "its elements are computed later", *(remedy or ["use what T has, as T.exp(x)"]),
                None)


def _binary(op: str, reflected: bool) -> Callable:
    def method(self, other):
        if not _is_operand(other):
            return NotImplemented
        is_bool = self.dtype == "bool" or isinstance(other, (bool, np.bool_))
        return _apply(_LOGICAL.get(op, op) if is_bool else op, (other, self) if reflected else (self, other))

    return method


for _name, _op in _BINARY.items():
    setattr(Expression, f"__{_name}__", _binary(_op, False))
    if _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Expression, f"__r{_name}__", _binary(_op, True))


def _is_operand(value: Any) -> bool:
    return isinstance(value, (Expression, _core.Expr, int, float, np.generic))


def _operand(value: Any) -> Any:
    """The value as the core takes it."""
    if isinstance(value, Expression):
        return value._core
    return value.item() if isinstance(value, np.generic) else value


def _merged(values: Sequence) -> tuple[dict, dict]:
    """(indices, tensors) of all expressions among the values."""
    indices, tensors = {}, {}
    for value in values:
        if isinstance(value, Expression):
            indices.update(value._indices)
            tensors.update(value._tensors)
    return indices, tensors


def _apply(op: str, values: Sequence, text: str = "") -> Expression:
    for position, value in enumerate(values):
        if not _is_operand(value):
            raise _bad(
                text, value, "x", "it is no number and no expression", "pass A[i, j], a number or an extent", position
            )
    core = _core.IndexExpr.apply(op, [_operand(value) for value in values], _place())
    return Expression(core, *_merged(values))


def _cast(value: Expression, dtype: Any) -> Expression:
    if not isinstance(value, Expression):
        raise _bad("T.cast", value, "x", "it is no expression of index notation", "pass A[i, j]")
    return Expression(value._core.cast(_dtype(dtype, "T.cast"), _place()), value._indices, value._tensors)


def _dtype(dtype: Any, function: str) -> str:
    name = _core.parse_dtype(dtype) if isinstance(dtype, str) else None
    if name is None:
        raise error(
            "UnknownDType",
            _place(),
            name=dtype if isinstance(dtype, str) else shown(dtype),
            known=", ".join(_core.dtype_names()),
            fixes=dtype_meant(dtype),
        )
    return name


class Index(Expression):
    """An index. It runs over the dimensions that it subscripts alone, or over `extent` values from 0 on."""

    __slots__ = ("name",)

    def __init__(self, name: str, extent: int | _core.Expr | None = None):
        span = _place()
        var = _core.make_var(name, "index", span)
        size = None if extent is None else _extent(extent)
        super().__init__(_core.IndexExpr(var), {var: _core.Index(var, size)}, {})
        self.name = name


class Scalar(Expression):
    """A scalar parameter of the function."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: str):
        super().__init__(_core.IndexExpr(_core.make_var(name, dtype, _place())), {}, {})
        self.name = name


class _Access(Expression):
    """An element of a tensor, which `+=` and `*=` update where it is the left side."""

    __slots__ = ("subscripts", "tensor")

    def __init__(self, tensor: Tensor, subscripts: tuple):
        core = _core.IndexExpr.load(tensor._buffer, [_operand(s) for s in subscripts], _place())
        indices, tensors = _merged(subscripts)
        super().__init__(core, indices, {**tensors, tensor: None})
        self.tensor = tensor
        self.subscripts = subscripts

    def __iadd__(self, other):
        return _Update(self, "sum", other, self + other)

    def __isub__(self, other):
        return _Update(self, "sum", -other, self - other)

    def __imul__(self, other):
        return _Update(self, "prod", other, self * other)


class _Update(Expression):
    """The value of `A[i] += x`: a sum, and as the right side of an assignment to `A[i]` an update."""

    __slots__ = ("access", "kind", "operand")

    def __init__(self, access: _Access, kind: str, operand: Any, value: Expression):
        super().__init__(value._core, value._indices, value._tensors)
        self.access = access
        self.kind = kind
        self.operand = operand

    def is_of(self, tensor: Tensor, subscripts: tuple) -> bool:
        """Is it an update of this element?"""
        mine = self.access.subscripts
        return (
            self.access.tensor is tensor
            and len(mine) == len(subscripts)
            and all(a is b or (isinstance(a, int) and isinstance(b, int) and a == b) for a, b in zip(mine, subscripts))
        )


class _Statement:
    """What was assigned, and the tensors that it reads."""

    def __init__(self, core: _core.Assignment, reads: dict):
        self.core = core
        self.reads = reads
        self.order = next(_order)


class Tensor:
    """A tensor of index notation. Subscripts are indices, numbers, extents and arithmetic on them.

    Attributes:
        name: its name.
        shape: its extents.
        dtype: its element type.
    """

    __iter__ = None

    def __init__(self, name: str, shape: Sequence, dtype: str):
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self._buffer = _core.make_buffer(name, dtype, "param", [_extent(x) for x in shape], [], [], _place())
        self._statements: list[_Statement] = []

    def _subscripts(self, key: Any) -> tuple:
        subscripts = key if isinstance(key, tuple) else (key,)
        for each in subscripts:
            is_number = isinstance(each, (int, np.integer)) and not isinstance(each, bool)
            if not (is_number or isinstance(each, (Expression, _core.Expr))):
                value = "a slice" if isinstance(each, slice) else shown(each)
                raise error("TensorSubscript", _place(), tensor=self.name, value=value)
        return subscripts

    def __getitem__(self, key) -> Expression:
        return _Access(self, self._subscripts(key))

    def __setitem__(self, key, value) -> None:
        subscripts = self._subscripts(key)
        kind = None
        if isinstance(value, _Update) and value.is_of(self, subscripts):
            kind, value = value.kind, value.operand
        if not _is_operand(value):
            raise _bad(
                f"{self.name}[...] =",
                value,
                "value",
                "it is no number and no expression",
                "assign an expression such as A[i, j]",
                None,
            )
        core = _operand(value)
        if isinstance(core, _core.Expr):
            core = _core.IndexExpr(core)
        elif not isinstance(core, _core.IndexExpr):
            core = _core.IndexExpr(_core.constant_of(core, self.dtype, _place()))
        indices, tensors = _merged((*subscripts, value))
        assignment = _core.Assignment(
            self._buffer, [_operand(s) for s in subscripts], core, list(indices.values()), kind, _place()
        )
        self._statements.append(_Statement(assignment, tensors))

    def __repr__(self) -> str:
        return f"helve.tensor({self.name!r}, {self.shape}, {self.dtype!r})"


def _check_name(function: str, name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise _bad(function, name, "name", "it is no identifier", 'pass a name in quotes, such as "A"')


def _is_extent(value: Any) -> bool:
    return isinstance(value, (int, np.integer, _core.Expr)) and not isinstance(value, bool)


def _extent(value: int | _core.Expr) -> _core.Expr:
    """An extent as the core takes it."""
    if isinstance(value, _core.Expr):
        return value
    if value < 0:
        raise error("NegativeExtent", _place(), extent=int(value))
    return _core.constant_of(int(value), "index")


def tensor(name: str, shape: Sequence, dtype: str = "float32") -> Tensor:
    """A tensor to read or to define.

    Args:
        name: its name in the function; parameters can be passed by it.
        shape: extents: whole numbers, `T.dyn("M")`, or arithmetic on them. () for a tensor of one element, `A[()]`.
        dtype: the element type.

    Raises:
        helve.Error: a name that is no identifier, an extent that is none, an unknown dtype.
    """
    _check_name("helve.tensor", name)
    if not isinstance(shape, (tuple, list)):
        raise _bad("helve.tensor", shape, "shape", "it is no tuple", "pass one extent a dimension, such as (M, N)", 1)
    for extent in shape:
        if not _is_extent(extent):
            raise _bad(
                "helve.tensor", extent, "shape", "it is no extent", 'an extent is a whole number or T.dyn("M")', 1
            )
    return Tensor(name, shape, _dtype(dtype, "helve.tensor"))


def scalar(name: str, dtype: str = "float32") -> Scalar:
    """A scalar parameter of the function."""
    _check_name("helve.scalar", name)
    return Scalar(name, _dtype(dtype, "helve.scalar"))


def index(name: str, extent: int | _core.Expr | None = None) -> Index:
    """An index; with `extent`, one that runs from 0 over so many values, whatever it subscripts."""
    _check_name("helve.index", name)
    if extent is not None and not _is_extent(extent):
        raise _bad("helve.index", extent, "extent", "it is no extent", 'pass a whole number or T.dyn("M")', 1)
    return Index(name, extent)


def indices(names: str) -> tuple[Index, ...]:
    """Several indices: `i, j, k = helve.indices("i j k")`."""
    found = names.replace(",", " ").split() if isinstance(names, str) else []
    if not found:
        raise _bad("helve.indices", names, "names", "it holds no names", 'pass names in quotes: "i j k"')
    for name in found:
        _check_name("helve.indices", name)
    return tuple(Index(name) for name in found)


def _reduce(kind: str, over: Any, value: Any) -> Expression:
    function = f"helve.reduce_{kind}"
    over = tuple(over) if isinstance(over, (tuple, list)) else (over,)
    if not over or not all(isinstance(each, Index) for each in over):
        raise _bad(
            function,
            over[0] if len(over) == 1 else over,
            "over",
            "it is no index",
            "pass an index, or a tuple of indices",
        )
    if not isinstance(value, Expression):
        raise _bad(
            function, value, "value", "it is no expression of index notation", "pass an expression of A[i, j]", 1
        )
    bound = [each for index in over for each in index._indices.values()]
    core = value._core.reduce(kind, bound, _place())
    rest = {var: each for var, each in value._indices.items() if not any(var in index._indices for index in over)}
    return Expression(core, rest, value._tensors)


def reduce_sum(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """The sum of `value` over all values of the indices `over`, which mean something else outside of it.

    Floats below 32 bits are added in float32; a sum over nothing is 0.
    """
    return _reduce("sum", over, value)


def reduce_prod(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """The product of `value` over all values of the indices `over`; 1 over nothing."""
    return _reduce("prod", over, value)


def reduce_max(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """The greatest `value` over all values of the indices `over`; the least of the type over nothing."""
    return _reduce("max", over, value)


def reduce_min(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """The least `value` over all values of the indices `over`; the greatest of the type over nothing."""
    return _reduce("min", over, value)


def reduce_any(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """Does the condition `value` hold for any values of the indices `over`?"""
    return _reduce("any", over, value)


def reduce_all(over: Index | tuple[Index, ...], value: Expression) -> Expression:
    """Does the condition `value` hold for all values of the indices `over`?"""
    return _reduce("all", over, value)


class NotationFunction(PrimFunc):
    """The kernel function of statements. For a CPU, `helve.compile` gives it an order (`Schedule.auto`) where that
    makes it faster; `helve.compile(helve.Schedule(f))` compiles it as it is printed.

    Attributes:
        nest: the same function as serial loops in one block.
    """

    _functions = ("function", "nest")

    def __init__(self, name: str, listed: list, assignments: list, place: _core.Span):
        super().__init__(_core.notation_function(name, listed, assignments, place))
        self.nest = _core.notation_function(name, listed, assignments, place, nest=True)


def function(*tensors: Tensor | Scalar, name: str = "main") -> NotationFunction:
    """The kernel function that computes tensors, for `helve.compile`.

    Args:
        tensors: those to compute, and any tensors and scalars whose place among the parameters matters. Parameters
            that are not named here come first, in order of their first use; tensors that statements define and that
            are not named here are temporaries.
        name: the function's name.

    Raises:
        helve.Error: the first fault of the statements.
    """
    _check_name("helve.function", name)
    for position, each in enumerate(tensors):
        if not isinstance(each, (Tensor, Scalar)):
            raise _bad("helve.function", each, "tensors", "it is no tensor", "pass the tensors to compute", position)
        if any(each is other for other in tensors[:position]):
            raise _bad("helve.function", each, "tensors", "it is given twice", "give each tensor once", position)
    if not tensors:
        raise _bad("helve.function", tensors, "tensors", "it holds no tensor", "pass the tensors to compute", None)
    wanted = [each for each in tensors if isinstance(each, Tensor)]
    statements: dict[_Statement, None] = {}
    seen = set(wanted)
    while wanted:
        for statement in wanted.pop()._statements:
            statements[statement] = None
            wanted += [each for each in statement.reads if each not in seen]
            seen.update(statement.reads)
    if not any(each._statements for each in tensors if isinstance(each, Tensor)):
        raise error("NothingDefined", _place(), tensor=tensors[0].name)
    listed = [each._buffer if isinstance(each, Tensor) else each._core.value for each in tensors]
    order = sorted(statements, key=lambda statement: statement.order)
    return NotationFunction(name, listed, [statement.core for statement in order], _place())
