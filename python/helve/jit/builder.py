"""Builders under `helve.jit`: Python functions that return a kernel function, called once for each specialisation.

A builder's constants, and the shapes and dtypes of arrays that it is called with, tell its kernels apart.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from helve import _core, source
from helve.arrays import dtype_name, is_array, is_on_cuda
from helve.errors import Error, error, shown
from helve.jit.options import JitOptions
from helve.jit.store import KernelStore
from helve.target import Kernel
from helve.untraced import untraced

_SPELLINGS = 1024
_PLAIN = frozenset((int, str, bool, type(None)))
_REMEDIES = {
    list: "pass a tuple",
    dict: "pass a tuple of pairs, or arguments of their own",
    set: "pass a frozenset",
    np.ndarray: "pass the array as an argument of its own",
}


@dataclass(frozen=True)
class TensorSpec:
    """What a builder sees of an array that it is called with.

    Attributes:
        shape: its extents.
        dtype: its element type, as helve calls it.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


class JitBuilder:
    """A builder whose kernels are kept. Several threads may call it.

    Attributes:
        options: what kernels are compiled with.
    """

    def __init__(self, builder: Callable, options: JitOptions):
        functools.update_wrapper(self, builder)
        self.__signature__ = inspect.signature(builder)
        self.options = options
        self._builder = builder
        self._name = getattr(builder, "__name__", type(builder).__name__)
        self._store = KernelStore()  # by the builder's arguments
        self._spellings: dict[Hashable, Hashable] = {}  # from the arguments of a call to the builder's

    @untraced
    def __call__(self, /, *args, **named) -> Any:
        """The kernel for the arguments, built and compiled if it is not kept yet.

        Returns:
            The kernel; with arrays among the arguments, what the kernel returns for them.

        Raises:
            helve.Error: arguments that are none of the builder's (HV0115) or no constants (HV0817), or what is built
                cannot be compiled, or as a call of the kernel does.
        """
        arrays: list = []
        try:
            key = tuple([self._key(value, arrays, n) for n, value in enumerate(args)])
            if named:
                key += tuple([(name, self._key(value, arrays, name)) for name, value in named.items()])
            kernel = self._store.find(self._spellings.get(key))
            if kernel is None or named and arrays:
                kernel, arrays = self._specialised(key, args, named)
        except _NoKey as fault:
            raise self._refused(fault, source.outside(sys._getframe(1))) from None
        return kernel(*arrays) if arrays else kernel

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, the instance is the first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def kernels(self) -> list[Kernel]:
        """The kernels that are kept, the one that was asked for last at the end."""
        return self._store.kernels()

    def clear(self) -> None:
        """Forgets the kernels: the builder is called again."""
        self._store.clear()
        self._spellings = {}

    def _specialised(self, call: Hashable, args: tuple, named: dict) -> tuple[Kernel, list]:
        """(kernel, arrays in the order of the builder's parameters) for the arguments of a call."""
        try:
            bound = self.__signature__.bind(*args, **named)
        except TypeError as problem:
            reason = str(problem)
        else:
            return self._bound(call, bound)
        given = ", ".join([shown(x) for x in args] + [f"{key}={shown(value)}" for key, value in named.items()])
        raise error("HostCallFailed", source.span_of_call(source.outside(sys._getframe(2))[0]),
                    expression=f"{self._name}({given})", reason=reason,
                    fixes=[f"its parameters are: {', '.join(map(str, self.__signature__.parameters.values()))}"])

    def _bound(self, call: Hashable, bound: inspect.BoundArguments) -> tuple[Kernel, list]:
        bound.apply_defaults()
        arrays: list = []
        key = []
        for name, value in bound.arguments.items():
            kind = self.__signature__.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                key.append((name, tuple(self._key(each, arrays, name) for each in value)))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                key.append((name, tuple((each, self._key(value[each], arrays, each)) for each in sorted(value))))
            else:
                key.append((name, self._key(value, arrays, name)))
        on_cuda = any(is_on_cuda(each) for each in arrays)
        target = self.options.target or ("cuda" if on_cuda else "llvm")

        def make() -> Kernel:
            built = self._builder(*map(spec_of, bound.args), **{k: spec_of(v) for k, v in bound.kwargs.items()})
            return self.options.compile(built, target)

        kernel = self._store.find_or_make(tuple(key), make)
        if len(self._spellings) >= _SPELLINGS:
            self._spellings = {}
        self._spellings[call] = tuple(key)
        return kernel, arrays

    def _key(self, value: Any, arrays: list, argument: int | str) -> Hashable:
        """What tells an argument from others; arrays are collected."""
        if type(value) in _PLAIN:
            return type(value), value
        if is_array(value):
            arrays.append(value)
            return type(value), value.dtype, tuple(value.shape), is_on_cuda(value)
        try:
            return _constant_key(value)
        except _NoKey as fault:
            fault.argument = argument
            raise

    def _refused(self, fault: _NoKey, place: tuple) -> Error:
        """The error for a value that kernels cannot be told apart by."""
        frame, inside = place
        names = list(self.__signature__.parameters)
        argument = fault.argument
        name = argument if isinstance(argument, str) else names[argument] if argument < len(names) else str(argument)
        remedy = next((text for kind, text in _REMEDIES.items() if isinstance(fault.value, kind)),
                      "pass a value with a hash: a number, a string, a tuple, a frozen dataclass")
        if is_array(fault.value):
            remedy = _REMEDIES[np.ndarray]
        is_method = names[:1] == ["self"]  # whose arguments stand at other places
        place = source.span_of_call(frame, None if inside or is_method else argument)
        return error("NotASpecialisation", place, function=self._name, value=_described(fault.value), parameter=name,
                     reason=fault.reason, remedy=remedy)

    def __reduce__(self) -> str:
        return self.__qualname__  # by reference, as Python pickles its functions

    def __copy__(self) -> JitBuilder:
        return self

    def __deepcopy__(self, memo: dict) -> JitBuilder:
        return self

    def __repr__(self) -> str:
        return f"<helve.jit {self._name}{self.__signature__}, {len(self._store.kernels())} kernels>"


class _NoKey(TypeError):
    """A value that cannot be a key, and why."""

    def __init__(self, value: Any, reason: str):
        self.value = value
        self.reason = reason
        self.argument: int | str = 0


def _described(value: Any) -> str:
    return f"a value of type '{type(value).__name__}'"


def _constant_key(value: Any) -> Hashable:
    """What tells a constant from others: its type as well, and of numbers the sign of zero."""
    kind = type(value)
    if isinstance(value, (float, complex, np.generic)):
        return kind, repr(value)
    if isinstance(value, tuple):
        return kind, tuple(map(_constant_key, value))
    if is_array(value):
        raise _NoKey(value, "arrays inside of other values are no arguments of a kernel")
    try:
        hash(value)
    except TypeError:
        reason = "it has no hash"
    else:
        return kind, value
    raise _NoKey(value, reason)


def spec_of(value: Any) -> Any:
    """An array as a builder sees it; every other value itself.

    Raises:
        helve.Error: HV0107 for an array of a dtype that helve does not have.
    """
    if not is_array(value):
        return value
    name = dtype_name(value.dtype)
    if name is None:
        raise error("UnknownDType", source.span_of_frame(source.outside(sys._getframe(1))[0]), name=str(value.dtype),
                    known=", ".join(_core.dtype_names()))
    return TensorSpec(tuple(int(extent) for extent in value.shape), name)
