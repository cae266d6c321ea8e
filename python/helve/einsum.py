"""Einstein's notation on arrays: a contraction compiled at its first call.

`helve.einsum` is index notation in one line of text; kernels are kept for each signature, so that later calls only run.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from helve import _core, source
from helve.arrays import NoArrays, dtype_name, empty
from helve.errors import error, shown
from helve.schedule import Schedule, default_order
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, compile  # noqa: A004 - helve's

_LIMIT = 256  # kernels; those that were not called for longest go first
_lock = threading.Lock()
# (specification, target, signatures) -> (kernel, shape and dtype of the result)
_kernels: OrderedDict[tuple, tuple[Kernel, tuple[int, ...], str]] = OrderedDict()

_CUDA = 2  # DLPack's kDLCUDA


def einsum(spec: str, *operands: Any, out: Any = None, target: str | None = None,
           schedule: str | Callable[[Schedule], None] | None = "auto") -> Any:
    """Sums of products of the operands' elements, by NumPy's notation: `einsum("ij,jk->ik", a, b)`.

    A letter names a dimension; letters that the result lacks are summed. "..." stands for dimensions that are aligned
    from the last, "ii" for a diagonal. Without "->" the result has the letters that occur once, sorted. Dtypes combine
    as in a kernel; floats below 32 bits are added in float32. Results carry no gradient.

    Args:
        spec: the specification.
        operands: arrays with DLPack, all on one device: NumPy's, PyTorch's or CuPy's.
        out: the array to write the result to; a new one of the operands' library by default.
        target: "llvm", "cuda" or "interp"; by default that of the operands' device.
        schedule: "auto": products, sums and transposes get the order of `Schedule.auto`; on a CPU, products and sums
            are then contracted to fused multiply-adds, as in other libraries; None: each element is computed by
            itself, as the interpreter does it; a function: it takes the steps of the `helve.Schedule` that it is
            called with, of the loops as they are written, and is called once for each signature.

    Returns:
        The result.

    Raises:
        helve.Error: the specification does not fit the operands, or an operand is no array.
    """
    frame = sys._getframe(1)

    def place() -> _core.Span:  # of the call; found for errors and new kernels only, since it takes longer than a call
        return source.span_of_call(source.outside(frame)[0])

    if not isinstance(spec, str):
        raise error(
            "BadArgument",
            place(),
            function="helve.einsum",
            value=shown(spec),
            parameter="spec",
            reason="it is not a string",
            remedy='pass a specification such as "ij,jk->ik"',
        )
    if schedule is not None and schedule != "auto" and not callable(schedule):
        raise error(
            "BadArgument",
            place(),
            function="helve.einsum",
            value=shown(schedule),
            parameter="schedule",
            reason="it is no schedule",
            remedy='pass "auto", None or a function that takes a helve.Schedule',
        )
    signature = [_signature_of(n, operand, place) for n, operand in enumerate(operands)]
    if target is None:
        target = "cuda" if any(each[3] == _CUDA for each in signature) else "llvm"
    key = (spec, target, schedule, *signature)
    with _lock:
        found = _kernels.get(key)
        if found is not None:
            _kernels.move_to_end(key)
    if found is None:
        dtypes = [_dtype_of(each[0], place) for each in signature]
        shapes, strides = ([each[part] for each in signature] for part in (1, 2))
        function, shape, dtype = _core.einsum(spec, dtypes, shapes, strides, place())
        nest = None if schedule is None else _core.einsum(spec, dtypes, shapes, strides, place(), nest=True)[0]
        found = _kernel(function, nest, target, schedule), tuple(shape), dtype
        with _lock:
            _kernels[key] = found
            while len(_kernels) > _LIMIT:
                _kernels.popitem(last=False)
    kernel, shape, dtype = found
    if out is None:
        out = _empty(shape, dtype, operands[0], place)
    kernel(*operands, out)
    return out


def _kernel(function: _core.Function, nest: _core.Function | None, target: str, schedule: Any) -> Kernel:
    """The kernel of a contraction, whose plain loops are `nest`."""
    if callable(schedule):
        s = Schedule(nest)
        schedule(s)
        return compile(s, target)
    ordered = default_order(nest, target) if schedule == "auto" else None
    if ordered is None:
        return compile(PrimFunc(function), target)
    return compile(PrimFunc(ordered), target, fast_math=target == "llvm")


def _signature_of(n: int, operand: Any, place: Callable[[], _core.Span]) -> tuple:
    """(dtype of its library, shape, strides in elements or (), kind of device) of an operand."""
    try:
        dtype, shape = operand.dtype, tuple(operand.shape)
        device, _ = operand.__dlpack_device__()
        hash((dtype, shape))
    except Exception as problem:  # noqa: BLE001 - an object of the user's, whatever it does
        raise error(
            "NotAnArray", place(), parameter=f"operand {n}", given=shown(operand), reason=str(problem), dtype="numbers"
        ) from None
    return dtype, shape, _strides(operand, shape), int(device)


def _dtype_of(dtype: Any, place: Callable[[], _core.Span]) -> str:
    """The dtype as helve spells it."""
    known = dtype_name(dtype)
    if known is None:
        name = str(dtype).rpartition(".")[2]
        raise error("UnknownDType", place(), name=name, known=", ".join(_core.dtype_names()))
    return known


def _strides(operand: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides in elements; () where the elements are compact and row-major."""
    if callable(getattr(operand, "stride", None)):  # PyTorch's
        strides = tuple(operand.stride())
    elif hasattr(operand, "strides") and hasattr(operand, "itemsize"):  # NumPy's and CuPy's, in bytes
        strides = tuple(stride // operand.itemsize for stride in operand.strides)
    else:
        return ()
    compact, step = True, 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        compact &= extent == 1 or stride == step
        step *= extent
    return () if compact or math.prod(shape) == 0 else strides


def _empty(shape: tuple[int, ...], dtype: str, like: Any, place: Callable[[], _core.Span]) -> Any:
    """A new array of the library and the device of `like`."""
    try:
        return empty(shape, dtype, like)
    except NoArrays as problem:
        raise error(
            "BadArgument",
            place(),
            function="helve.einsum",
            value="None",
            parameter="out",
            reason=str(problem),
            remedy="pass an array for the result",
        ) from None
