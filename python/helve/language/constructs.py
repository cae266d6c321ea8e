"""The kinds of names below `T`.

Each name is an object that knows its parameters; the parser recognises it by identity, so an alias works, and calling
it outside a kernel is refused with the caller's line.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, ClassVar
from collections.abc import Callable

from helve import _core, source
from helve.errors import Error, UnknownNameError, error, shown, suggestion


@dataclass(frozen=True)
class Parameter:
    """One parameter of a construct; `kind` is that of the table for tile operations, empty otherwise."""

    name: str
    required: bool = True
    default: Any = None
    kind: str = ""

    def __str__(self) -> str:
        return self.name if self.required else f"{self.name}={self.default!r}"


_CHOSEN = "helve chooses how a copy is made"
_DIVIDED = "helve divides the loop among threads"
SPELLINGS = {"gemm": {"clear_accum": "clear"}}
# Keywords of other libraries that say how, not what: they are accepted, and a warning says what decides here.
HINTS = {
    "gemm": {
        "policy": "helve divides the product among warps",
        "k_pack": "helve chooses the instruction",
        "wg_wait": "T.gemm is complete when the next statement needs it",
    },
    "copy": {"coalesced_width": _CHOSEN, "disable_tma": _CHOSEN, "eviction_policy": _CHOSEN},
    "Parallel": {"coalesced_width": _DIVIDED, "loop_layout": _DIVIDED, "prefer_async": _DIVIDED},
}


class Construct:
    """A name below `T` that denotes a part of the language.

    Args:
        name: the name below `T`, for example "comm.all_gather".
        parameters: in order; a parameter without default is required.
        documentation: one sentence or more.
        variadic: the name under which further positional arguments go, if there may be any.
    """

    # What other libraries call parameters: their names to the parameter that is meant, or to why none is needed.
    spellings: dict[str, str] = {}
    hints: dict[str, str] = {}

    def __init__(self, name: str, parameters: tuple[Parameter, ...], documentation: str, variadic: str | None = None):
        self.name = name
        self.spellings = SPELLINGS.get(name, {})
        self.hints = HINTS.get(name, {})
        self.parameters = parameters
        self.variadic = variadic
        self.documentation = documentation
        self.__name__ = name.rpartition(".")[2]
        # What help() and editors show of an object that is no function.
        self.__signature__ = self._signature()
        self.__doc__ = f"{self.text}{self.__signature__}\n\n{documentation}"

    @property
    def text(self) -> str:
        """The name as users write it."""
        return f"T.{self.name}"

    @property
    def parameter_text(self) -> str:
        """The parameters as in diagnostics."""
        lead = [f"*{self.variadic}"] if self.variadic else []
        return ", ".join(lead + [str(parameter) for parameter in self.parameters]) or "none"

    def _signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        kind = kinds.KEYWORD_ONLY if self.variadic else kinds.POSITIONAL_OR_KEYWORD
        rest = [kinds(self.variadic, kinds.VAR_POSITIONAL)] if self.variadic else []
        named = [kinds(each.name, kind, default=kinds.empty if each.required else each.default)
                 for each in self.parameters]
        return inspect.Signature(rest + named)

    def __call__(self, /, *args, **kwargs):
        for value in (*args, *kwargs.values()):
            if hasattr(type(value), "__helve_call__"):  # an expression of index notation
                return value.__helve_call__(self, args, kwargs)
        raise error("OutsideKernel", source.span_of_frame(sys._getframe(1)), function=self.text)

    def __repr__(self) -> str:
        return self.text


class LibraryFunction(Construct):
    """A name below `T` that is written in the language: `function`, whose body takes the place of a call.

    `check`, called with the arguments first, raises library.Refused. With `buffers`, those without a default are
    buffers, and the function returns nothing.
    """

    def __init__(self, function: Callable, check: Callable | None, buffers: bool):
        parameters = tuple(
            Parameter(each.name, each.default is each.empty, None if each.default is each.empty else each.default)
            for each in inspect.signature(function).parameters.values())
        super().__init__(function.__name__, parameters, " ".join(function.__doc__.split()))
        self.function = function
        self.check = check
        self.buffers = buffers

    def __call__(self, /, *args, **kwargs):
        if any(hasattr(type(value), "__helve_call__") for value in (*args, *kwargs.values())):
            return self.function(*args, **kwargs)  # expressions of index notation are made by running Python
        return super().__call__(*args, **kwargs)


class Macro:
    """A Python function whose body takes the place of each call in a kernel; what `T.macro` makes.

    Attributes:
        function: the function.
        names: those of the frame that defined it, as they were then.
    """

    def __init__(self, function: Callable, names: dict[str, Any]):
        self.function = function
        self.names = names
        functools.update_wrapper(self, function)

    def __call__(self, /, *args, **kwargs):
        raise error("OutsideKernel", source.span_of_frame(sys._getframe(1)), function=self.__name__)

    def __repr__(self) -> str:
        return f"<helve macro {self.__name__}>"


class MacroMaker:
    """The decorator `T.macro`: marks a Python function as part of the kernels that call it.

    A kernel inlines other Python functions too; a macro always, also where all its arguments are constants.
    """

    name = "macro"
    text = "T.macro"
    documentation = "A decorator: marks a Python function as a part of the kernels that call it."
    parameters = (Parameter("function"),)
    parameter_text = "function"
    variadic = None
    spellings: ClassVar[dict[str, str]] = {}
    hints: ClassVar[dict[str, str]] = {}

    def __call__(self, function: Callable | None = None, /, **unknown) -> Macro | MacroMaker:
        frame = sys._getframe(1)
        for keyword in unknown:
            raise error("UnknownKeyword", source.span_of_call(frame, keyword), function=self.text, keyword=keyword,
                        parameters=self.parameter_text)
        if function is None:  # written as '@T.macro()'
            return self
        if not isinstance(function, FunctionType):
            raise error("BadArgument", source.span_of_frame(frame), function=self.text, value=shown(function),
                        parameter="function", reason="it is not a function", remedy="write '@T.macro' above a 'def'")
        names = {} if frame.f_locals is function.__globals__ else dict(frame.f_locals)
        return Macro(function, names)

    def __repr__(self) -> str:
        return self.text


class TileOperation(Construct):
    """A row of the table of tile operations.

    Attributes:
        operands: the parameters of the row. An atomic update has one more, `return_prev`, which makes it an expression.
    """

    def __init__(self, row: tuple):
        self.op, python, self.is_collective, params, documentation = row
        self.operands = tuple(Parameter(name, required, default, kind) for kind, name, required, default in params)
        self.is_atomic = self.op.startswith("Atomic")
        more = (Parameter("return_prev", False, False, "Flag"),) if self.is_atomic else ()
        super().__init__(python, (*self.operands, *more), documentation)


class Operator(Construct):
    """A row of the operator table that is written as a call."""

    _NAMES = {1: ("x",), 2: ("a", "b"), 3: ("a", "b", "c")}

    def __init__(self, row: tuple):
        self.op, text, arity, _ = row
        names = ("condition", "a", "b") if self.op == "Select" else self._NAMES[arity]
        super().__init__(text, tuple(Parameter(name) for name in names), f"The scalar operator {self.op}.")


class HostConstruct(Construct):
    """A name that plain Python may call as well: types, constants, arithmetic on extents."""

    def __init__(self, name: str, parameters: tuple[Parameter, ...], function: Callable):
        super().__init__(name, parameters, function.__doc__)
        self.function = function

    def __call__(self, /, *args, **kwargs):
        return host_call(self.text, self.function, args, kwargs)


class TensorConstruct(HostConstruct):
    """T.Tensor, which may be written with brackets too: T.Tensor[(M, N), dtype]."""

    def __getitem__(self, item: Any) -> TensorType:
        """The type of a subscript: the shape, in parentheses or not, then the element type, float32 without one."""
        parts = item if isinstance(item, tuple) else (item,)
        typed = len(parts) > 1 and not isinstance(parts[-1], (tuple, list, _core.Expr, numbers.Integral))
        shape = parts[:-1] if typed else parts
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return host_call(self.text, self.function, (shape, parts[-1]) if typed else (shape,), {})


def host_call(text: str, function: Callable, args: tuple, kwargs: dict) -> Any:
    """A call of a name below `T` by plain Python; what fails is HostCallFailed at the line that called."""
    try:
        return function(*args, **kwargs)
    except Exception as problem:
        fault = problem
    reason = getattr(fault, "message", None) or f"{type(fault).__name__}: {fault}".partition("\n")[0]
    given = ", ".join([shown(x) for x in args] + [f"{key}={shown(value)}" for key, value in kwargs.items()])
    raise error("HostCallFailed", source.span_of_call(sys._getframe(2)), expression=f"{text}({given})",
                reason=reason.replace(f"{function.__qualname__}()", f"{text}()"),
                fixes=["see docs/language.md for what it takes"])


class DType(str):
    """An element type: a string that also converts a value, `T.float32(x)`, and annotates scalar parameters."""

    __slots__ = ()

    def __new__(cls, name: str) -> DType:
        return super().__new__(cls, name)

    @property
    def text(self) -> str:
        """The name as users write it."""
        return f"T.{self}"

    parameters = (Parameter("x"),)
    parameter_text = "x"
    variadic = None
    spellings: ClassVar[dict[str, str]] = {}
    hints: ClassVar[dict[str, str]] = {}

    def __call__(self, /, *args: int | float | bool | _core.Expr, **kwargs) -> Any:
        """The one argument, `x`, as a value of this type."""
        if args and hasattr(type(args[0]), "__helve_call__"):
            return args[0].__helve_call__(self, args, kwargs)

        def convert(x):
            return _constant(x, self)

        return host_call(self.text, convert, args, kwargs)

    def __repr__(self) -> str:
        return self.text


def _constant(x: Any, dtype: str) -> _core.Expr:
    if isinstance(x, _core.Expr):
        return _core.cast(x, dtype)
    if not isinstance(x, (bool, int, float)):
        raise TypeError(f"{shown(x)} is not a number")
    if isinstance(x, int) and not -(2**63) <= x < 2**63:
        raise TypeError(f"{shown(x)} has more than 64 bits")
    return _core.constant_of(x, dtype)


def unknown_name(name: str, fixes: list[str]) -> UnknownNameError:
    """The error for a name below `T` that Python looked up, at the line of the caller's caller."""
    place = source.span_of_call(sys._getframe(2))
    return UnknownNameError(_core.Diagnostic("UnknownOperation", place, [("name", name)], [], fixes))


class Namespace:
    """A group of names below `T`."""

    def __init__(self, name: str, members: dict[str, Construct]):
        self.name = name
        self.members = members
        self.__dict__.update(members)

    def __getattr__(self, name: str):
        """Called by Python for a name that is not there: UnknownNameError, as for T itself."""
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no name '{name}'")
        raise unknown_name(f"{self.__dict__['name']}.{name}", suggestion(name, self.members, f"{self!r}."))

    def __repr__(self) -> str:
        return f"T.{self.name}"


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor parameter, as `T.Tensor` declares it: extents, element type and, if not compact, strides.

    `out`: do calls make and return it? `sorted`: do its elements not decrease?
    """

    shape: tuple
    dtype: str
    strides: tuple | None = None
    out: bool = False
    sorted: bool = False


class FrontEnd:
    """The decorator `T.prim_func`: turns a Python function into a kernel function.

    Used plain or with `mesh=`, the mesh of a function that annotates no tensor. The parser stands above this package
    and gives its entry through `define`.
    """

    name = "prim_func"
    text = "T.prim_func"
    parameters = (Parameter("mesh", required=False, default=None),)
    parameter_text = "mesh=None"
    variadic = None
    spellings: ClassVar[dict[str, str]] = {}
    hints: ClassVar[dict[str, str]] = {}
    define: Callable | None = None

    def __call__(self, function: Callable | None = None, /, *, mesh: Any = None, **unknown):
        frame = sys._getframe(1)
        for keyword in unknown:
            raise error("UnknownKeyword", source.span_of_call(frame, keyword), function=self.text, keyword=keyword,
                        parameters=self.parameter_text, fixes=suggestion(keyword, ["mesh"]))
        if function is None:
            return lambda function: self._parse(function, mesh, frame)
        return self._parse(function, mesh, frame)

    def _parse(self, function: Callable, mesh: Any, frame: FrameType):
        try:
            return self.define(function, mesh, frame)
        except Error as problem:
            raise problem.with_traceback(None) from problem.__cause__  # the parser's own frames tell a user nothing

    def __repr__(self) -> str:
        return self.text
