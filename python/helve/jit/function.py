"""`helve.jit`, and a kernel function that compiles itself when it is called.

It stays a kernel function: other functions call it in their host bodies, schedules and `helve.compile` take it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType, FunctionType
from typing import Any

from helve import _core, source
from helve.arrays import is_on_cuda
from helve.caller import at_caller
from helve.errors import Error, error, shown
from helve.jit.builder import JitBuilder
from helve.jit.options import JitOptions
from helve.jit.store import KernelStore
from helve.language.constructs import TensorType
from helve.mesh import Mesh
from helve.schedule import Schedule
from helve.script.prim_func import PrimFunc
from helve.signature import call_text, signature
from helve.target import Kernel, outputs_of
from helve.untraced import untraced


class JitFunction(PrimFunc):
    """A kernel function whose call compiles it and runs the kernel, which is kept. Several threads may call it.

    Attributes:
        options: what it is compiled with.
        returns: the parameters that a call makes and returns, by name, in order.
    """

    def __init__(self, func: PrimFunc, options: JitOptions):
        super().__init__(func.function, func.__doc__, func.outputs)
        self._func = func
        self.options = options
        self._store = KernelStore()
        named = func.outputs or None if options.out is None else options.out
        outputs = outputs_of(func.function, named, options.target)
        self.returns: tuple[str, ...] = outputs.names if outputs is not None else ()
        self.__signature__ = signature(func.function, self.returns)
        self._text = call_text(func.function, self.returns)
        self.__module__ = func.__module__
        # Where the argument is that tells the target: the place among all parameters, among inputs, and the name.
        self._place: tuple[int, int, str] | None = None
        places = outputs.inputs if outputs is not None else range(len(func.function.params))
        for among, position in enumerate(places):
            param = func.function.params[position]
            if isinstance(param, _core.Buffer):
                self._place = position, among, param.name
                break
        self._whole = len(func.function.params)

    @untraced
    def __call__(self, /, *args, **named) -> Any:
        """Runs the kernel, compiled if it is not kept yet. Arguments and results are those of `helve.Kernel`.

        Raises:
            helve.Error: the function cannot be compiled, or as a call of the kernel does.
        """
        target = self.options.target or self._target_of(args, named)
        kernel = self._store.find(target)
        if kernel is None:
            kernel = self._store.find_or_make(target, lambda: self.options.compile(self._func, target))
        return kernel(*args, **named)

    def kernel(self, target: str | None = None) -> Kernel:
        """The kernel that calls on arrays of the CPU run, or on `target`; compiled if it is not kept yet."""
        target = self.options.target or target or "llvm"
        return self._store.find_or_make(target, lambda: self.options.compile(self._func, target))

    def kernels(self) -> list[Kernel]:
        """The kernels that are kept."""
        return self._store.kernels()

    def clear(self) -> None:
        """Forgets the kernels."""
        self._store.clear()

    def _target_of(self, args: tuple, named: dict) -> str:
        """The target of the device that the first tensor among the inputs is on."""
        if self._place is None:
            return "llvm"
        position, among, name = self._place
        at = position if len(args) == self._whole else among
        value = args[at] if at < len(args) else named.get(name)
        return "cuda" if is_on_cuda(value) else "llvm"

    def __reduce__(self) -> tuple:
        return JitFunction, (self._func, self.options)

    def __repr__(self) -> str:
        return f"<helve.jit {self._text}, {len(self._store.kernels())} kernels>"


def jit(function: Callable | PrimFunc | Schedule | None = None, /, *, target: str | None = None,
        mesh: Mesh | None = None, out: str | int | Sequence[str | int] | None = None, **options) -> Any:
    """Compiles at the call, and keeps the kernels: a decorator, with options or without.

    Above `@T.prim_func`, or on a schedule: the result is called with what the kernel is called with. Above a builder, a
    Python function that returns a kernel function: a call with constants gives the kernel for them; a call with arrays
    among its arguments runs that kernel on the arrays, in their order. The builder is called once for each combination
    of constants, and of shapes and dtypes of arrays, which it gets as `TensorSpec`s.

    Args:
        function: a kernel function, a schedule, or a builder.
        target: as `helve.compile` takes it; by default that of the device of the arrays, "llvm" without any.
        mesh, out, options: as `helve.compile` takes them.

    Raises:
        helve.Error: an option is wrong, or `function` is nothing to compile.
    """
    if function is None:
        checked = _checked(target, mesh, out, options)
        return lambda function: _decorated(function, checked, sys._getframe(1))
    return _decorated(function, _checked(target, mesh, out, options), sys._getframe(1))


def _checked(target: Any, mesh: Any, out: Any, options: dict) -> JitOptions:
    try:
        return JitOptions(target, mesh, out, options)
    except Error as fault:
        argument = dict(fault.diagnostic.args).get("option") or {"UnknownTarget": "target"}.get(fault.name, "mesh")
        raise at_caller(fault, argument, depth=3) from None


def _decorated(function: Any, options: JitOptions, frame: FrameType) -> JitFunction | JitBuilder:
    if isinstance(function, Schedule):
        function = function.function
    if isinstance(function, PrimFunc):
        try:
            return JitFunction(function, options)
        except Error as fault:
            raise at_caller(fault, "out", depth=3) from None
    reason = remedy = None
    if isinstance(function, Kernel):
        reason, remedy = "it is compiled already", "call it, or pass the function that it was compiled from"
    elif not callable(function) or isinstance(function, type):
        reason, remedy = "it is no function", "write '@helve.jit' above '@T.prim_func', or above a function that " \
                                              "returns a kernel function"
    elif any(isinstance(each, TensorType) for each in getattr(function, "__annotations__", {}).values()):
        reason, remedy = "its parameters are those of a kernel function, which it is not yet", \
                         "write '@T.prim_func' between '@helve.jit' and 'def'"
    if reason is not None:
        value = f"'{function.__name__}'" if isinstance(function, FunctionType) else shown(function)
        raise error("BadArgument", source.span_of_frame(source.outside(frame)[0]), function="helve.jit",
                    value=value, parameter="function", reason=reason, remedy=remedy)
    return JitBuilder(function, options)
