"""Clocks: seconds of one call on the CPU or on a GPU, with caches cold or warm.

A clock knows its device and nothing of kernels; what is measured and how often stands in `measure`.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from helve import _core
from helve import language as T
from helve.target import Kernel, compile

_RUN = 2e-4  # seconds that a warm sample takes at least, so that the resolution of the clock does not matter
_MOST_CALLS = 10_000
_UNKNOWN_CACHE = 64 << 20
_LEAST_GPU_BUFFER = 256 << 20
_BLOCK = 8192  # elements of 8 bytes


class Clock(Protocol):
    """What measures: `begin` runs a candidate until it is ready, `sample` measures it once."""

    def begin(self, call: Callable[[], Any]) -> int:
        """Calls it until everything is compiled; returns the calls that one warm sample makes."""

    def sample(self, call: Callable[[], Any], cold: bool, calls: int) -> Callable[[], float]:
        """Measures; the function that it returns tells the seconds of one call, after `end`."""

    def end(self) -> None:
        """Waits for what was measured."""


@functools.cache
def _overwrite() -> Kernel:
    """Adds to each element: reads and writes, so that nothing goes around the caches; blocks are shared by threads."""
    n = T.dyn("n")

    @T.prim_func
    def overwrite(A: T.Tensor((n,), "int64")):
        T.assume(n % _BLOCK == 0)
        with T.Kernel(n // _BLOCK) as block:
            for i in T.Parallel(_BLOCK):
                A[block * _BLOCK + i] = A[block * _BLOCK + i] + 1

    return compile(overwrite)


class HostClock:
    """Wall time of calls on the CPU. Cold: all threads of kernels have written a buffer larger than all caches."""

    def __init__(self, cold: bool):
        self._buffer = None
        if cold:
            machine = _core.host_machine()
            caches = (machine.last_cache or _UNKNOWN_CACHE) + machine.processors * machine.second_cache
            self._buffer = np.zeros(math.ceil(1.25 * caches / 8 / _BLOCK) * _BLOCK, "int64")

    def begin(self, call: Callable[[], Any]) -> int:
        call()
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        return max(1, min(_MOST_CALLS, math.ceil(_RUN / max(seconds, 1e-9))))

    def sample(self, call: Callable[[], Any], cold: bool, calls: int) -> Callable[[], float]:
        if cold:
            calls = 1
            _overwrite()(self._buffer)
        else:
            call()
        turns = range(calls)
        start = time.perf_counter()
        for _ in turns:
            call()
        seconds = (time.perf_counter() - start) / calls
        return lambda: seconds

    def end(self) -> None:
        pass


class TorchEvents:
    """PyTorch's events, and memory that it overwrites on the current stream."""

    def __init__(self, device: Any):
        import torch

        self._cuda = torch.cuda
        try:
            self.device = torch.device(device or "cuda")
        except RuntimeError:
            raise ValueError(f"{device!r} is no device of PyTorch") from None
        properties = torch.cuda.get_device_properties(self.device)
        self.arch = f"sm_{properties.major}{properties.minor}"
        rate, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
        self.bandwidth = 2e3 * rate * width / 8  # two transfers a clock, which is in kHz
        self._empty = functools.partial(torch.empty, dtype=torch.uint8, device=self.device)

    def buffer(self, size: int) -> Callable[[], Any]:
        """What overwrites so many bytes."""
        return self._empty(size).zero_

    def within(self) -> Any:
        return self._cuda.device(self.device)

    def record(self) -> Any:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float:
        """Milliseconds."""
        return start.elapsed_time(end)

    def synchronize(self) -> None:
        self._cuda.synchronize(self.device)


class CupyEvents:
    """CuPy's events, and memory that it overwrites on the current stream."""

    def __init__(self, device: Any):
        import cupy

        self._cupy = cupy
        self.device = cupy.cuda.Device() if device is None else device
        self.arch = f"sm_{self.device.compute_capability}"
        attributes = self.device.attributes
        rate, width = (attributes.get(name, 0) for name in ("MemoryClockRate", "GlobalMemoryBusWidth"))
        self.bandwidth = 2e3 * rate * width / 8

    def buffer(self, size: int) -> Callable[[], Any]:
        """What overwrites so many bytes."""
        return functools.partial(self._cupy.empty(size, dtype="uint8").fill, 0)

    def within(self) -> Any:
        return self.device

    def record(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float:
        """Milliseconds."""
        return self._cupy.cuda.get_elapsed_time(start, end)

    def synchronize(self) -> None:
        self.device.synchronize()


class CudaClock:
    """Time on a GPU between two events on the current stream.

    A buffer larger than the level 2 cache is overwritten before each sample, which also keeps the device busy while the
    host enqueues the sample: what is measured is the device's time, not the host's. Where the caches are to be warm,
    the candidate itself runs between.
    """

    def __init__(self, events: TorchEvents | CupyEvents):
        self._events = events
        machine = _core.gpu_machine(events.arch)
        with events.within():
            self._overwrite = events.buffer(max(_LEAST_GPU_BUFFER, 4 * machine.last_cache if machine else 0))

    def begin(self, call: Callable[[], Any]) -> int:
        with self._events.within():
            call()
            call()
            self._events.synchronize()
        return 1

    def sample(self, call: Callable[[], Any], cold: bool, calls: int) -> Callable[[], float]:
        events = self._events
        with events.within():
            self._overwrite()
            if not cold:
                call()
            start = events.record()
            for _ in range(calls):
                call()
            end = events.record()
        return lambda: events.between(start, end) * 1e-3 / calls

    def end(self) -> None:
        self._events.synchronize()
