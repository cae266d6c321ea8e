"""`helve.bench` itself: what the arguments mean, and the order of the samples.

Candidates alternate within each round, so that what the machine does besides hits all of them alike.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helve.arrays import dtype_name, is_array, is_on_cuda
from helve.bench.clocks import Clock, CudaClock, CupyEvents, HostClock, TorchEvents
from helve.bench.peaks import gpu_peaks, host_peaks
from helve.bench.results import Results, Timing
from helve.caller import at_caller
from helve.dist.processes import are_devices_of
from helve.errors import Error, error, shown
from helve.jit import JitFunction
from helve.script.prim_func import PrimFunc
from helve.target import Kernel

_STATES = {"both": ("cold", "warm"), "cold": ("cold",), "warm": ("warm",)}
_MOST_ROUNDS = 10_000


def bench(candidates: Callable | Sequence[Callable] | Mapping[str, Any], /, *args: Any,
          bytes: float | None = None, flops: float | None = None, dtype: str | None = None,  # noqa: A002
          rounds: int = 15, cache: str = "both", device: str | None = None) -> Results:
    """Measures kernels, or any functions, on the same arguments.

    All candidates are called by turns in this process: first until they are compiled and ready, then `rounds` times
    each for each state of the caches. Before a cold sample a buffer larger than all caches is overwritten; before a
    warm one the candidate itself runs. Warm calls of less than 0.2 ms on the CPU are measured in runs of many. On a GPU
    the time is that between two events on the current stream, after which the device is synchronised.

    Args:
        candidates: a kernel or function, several in a list, or a dictionary that names them. What a call returns is
            dropped; what it writes to its arguments stays.
        args: what each is called with. For calls that differ, give functions without arguments.
        bytes: what a call has to move to and from memory, in bytes; gives GB/s.
        flops: floating-point operations of a call, a multiplication and an addition being two; gives TFLOP/s.
        dtype: of these operations, for the share of the machine's peak; by default that of the first array of floats.
        rounds: samples of each, 1 to 10000.
        cache: "cold", "warm", or "both".
        device: "cpu" or "cuda": whose time counts. By default that of the arrays among `args`. The time of a GPU is
            measured by PyTorch or CuPy, whichever the arrays are of.

    Raises:
        helve.Error: HV0108 for an argument that is none of these, or a kernel of the interpreter, whose time says
            nothing about a kernel; HV0812 for a function that is not compiled.
        Exception: what a candidate raises.
    """
    argument: int | str = 0
    try:
        calls = {name: functools.partial(each, *args) if args else each for name, each in _named(candidates).items()}
        for argument, value in (("bytes", bytes), ("flops", flops)):
            _check_amount(argument, value)
        argument = "dtype"
        operations = _dtype(dtype, args)
        argument = "rounds"
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= _MOST_ROUNDS:
            raise _refused(rounds, "rounds", "it is no number of samples",
                           f"give a whole number from 1 to {_MOST_ROUNDS}")
        argument = "cache"
        if not isinstance(cache, str) or cache not in _STATES:
            raise _refused(cache, "cache", "it is no state of the caches", 'give "cold", "warm" or "both"')
        argument = "device"
        clock, peaks = _clock(device, args, cache != "warm")
    except Error as fault:
        raise at_caller(fault, argument) from None
    return Results(_measured(clock, calls, _STATES[cache], rounds), bytes, flops, operations, peaks)


def _measured(clock: Clock, calls: dict[str, Callable], states: tuple[str, ...], rounds: int) -> tuple[Timing, ...]:
    told: dict[tuple[str, str], list[Callable[[], float]]] = {(name, state): [] for name in calls for state in states}
    runs = {name: clock.begin(call) for name, call in calls.items()}
    for turn in range(rounds + 1):  # the first does not count
        for (name, state), samples in told.items():
            sample = clock.sample(calls[name], state == "cold", runs[name])
            if turn:
                samples.append(sample)
    clock.end()
    return tuple(Timing(name, state, tuple(sample() for sample in samples)) for (name, state), samples in told.items())


def _refused(value: Any, parameter: str, reason: str, remedy: str) -> Error:
    return error("BadArgument", function="helve.bench", value=shown(value), parameter=parameter, reason=reason,
                 remedy=remedy)


def _named(candidates: Any) -> dict[str, Callable]:
    """The candidates by name."""
    remedy = "pass a kernel or a function, a list of them, or a dictionary of them by name"
    if isinstance(candidates, Mapping):
        named = dict(candidates)
    elif isinstance(candidates, (list, tuple)):
        named = {}
        for each in candidates:
            name = _name_of(each)
            if name in named:
                raise _refused(name, "candidates", "several have this name", "pass a dictionary that names each")
            named[name] = each
    else:
        named = {_name_of(candidates): candidates}
    if not named:
        raise _refused(candidates, "candidates", "there is nothing to measure", remedy)
    for name, each in named.items():
        if not isinstance(name, str):
            raise _refused(name, "candidates", "names are strings", remedy)
        if isinstance(each, PrimFunc) and not isinstance(each, JitFunction):
            raise error("NotCompiled", name=each.function.name)
        if not callable(each):
            raise _refused(each, "candidates", "it cannot be called", remedy)
        if _target(each) == "interp":
            raise _refused(each, "candidates", "it runs in the interpreter, whose time says nothing about the kernel",
                           'compile it with target="llvm" or "cuda"')
        if are_devices_of(each.options.mesh if isinstance(each, JitFunction) else getattr(each, "mesh", None)):
            raise _refused(each, "candidates", "how often it is called must be the same on all processes",
                           "time a fixed number of calls, as benchmarks/mesh_mpi.py does")
    return named


def _target(candidate: Any) -> str | None:
    """The target that it is compiled for, if that is known."""
    if isinstance(candidate, JitFunction):
        return candidate.options.target
    return candidate.target if isinstance(candidate, Kernel) else None


def _name_of(candidate: Any) -> str:
    function = getattr(candidate, "function", None) if isinstance(candidate, PrimFunc) else candidate
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else type(candidate).__name__


def _check_amount(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e30 or math.isnan(value):
        raise _refused(value, name, "it is no amount", "give a number above 0")


def _dtype(dtype: Any, args: tuple) -> str | None:
    """What operations are on: as given, or that of the first array of floats."""
    if dtype is not None:
        name = dtype_name(dtype) if isinstance(dtype, str) else None
        if name is None:
            raise _refused(dtype, "dtype", "it is no element type", 'give its name, such as "float32"')
        return name
    names = (dtype_name(value.dtype) for value in args if is_array(value) and hasattr(value, "dtype"))
    return next((name for name in names if name and "float" in name), None)


def _clock(device: Any, args: tuple, cold: bool) -> tuple[Clock, Any]:
    """The clock of the device, and what the device can do."""
    if device not in (None, "cpu", "cuda") or not isinstance(device, (str, type(None))):
        raise _refused(device, "device", "it is no device", 'give "cpu" or "cuda"')
    array = next((value for value in args if _is_on_cuda(value)), None)
    if device == "cpu" or (device is None and array is None):
        return HostClock(cold), host_peaks()
    events = _events(array)
    return CudaClock(events), gpu_peaks(events)


def _is_on_cuda(value: Any) -> bool:
    try:
        return is_on_cuda(value)
    except Exception:  # noqa: BLE001 - an object of the user's, which the call itself will refuse
        return False


def _events(array: Any) -> TorchEvents | CupyEvents:
    """Events of the array's library; without an array, of the one that is there."""
    library = type(array).__module__.partition(".")[0] if array is not None else None
    if library not in (None, "torch", "cupy"):
        raise _refused(array, "device", f"arrays of '{library}' measure no time on a GPU",
                       "pass tensors of PyTorch or arrays of CuPy")
    at = getattr(array, "device", None)
    kinds = {"torch": TorchEvents, "cupy": CupyEvents}
    loaded = [library] if library else sorted(kinds, key=lambda name: (name not in sys.modules, name == "cupy"))
    reasons = []
    for name in loaded:
        try:
            return kinds[name](at)
        except Exception as fault:  # noqa: BLE001 - no library, no driver, no device: each raises its own
            reasons.append(f"{name}: {str(fault).splitlines()[0] if str(fault) else type(fault).__name__}")
    raise _refused("cuda", "device", "; ".join(reasons),
                   "time on a GPU is measured by PyTorch or CuPy: install one of them for the machine's driver")
