"""Times of kernels on a GPU, with a cold cache, all candidates by turns.

Every call of the device stands here. Before each sample a buffer larger than the level 2 cache is overwritten, which
also keeps the device busy while the host enqueues the sample: what is measured is the device's time, not the host's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

DEVICE = "cuda"
FLUSH_BYTES = 256 << 20  # five times the level 2 cache of an H200


def require_device() -> str:
    """The device's name and the versions that matter.

    Raises:
        SystemExit: there is no CUDA device.
    """
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/gpu needs a CUDA device; --dry-run compiles helve's kernels without one")
    properties = torch.cuda.get_device_properties(0)
    try:
        import triton

        others = f"Triton {triton.__version__}"
    except ImportError:
        others = "no Triton"
    device = f"{properties.name}, {properties.multi_processor_count} multiprocessors"
    return f"{device}; PyTorch {torch.__version__}, {others}"


class Clock:
    """Samples of calls between two events on the current stream."""

    def __init__(self):
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=DEVICE)

    def sample(self, call: Callable[[], object]) -> Callable[[], float]:
        """Enqueues one call; the function that it returns tells the milliseconds, after a synchronisation."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flush.zero_()
        start.record()
        call()
        end.record()
        return lambda: start.elapsed_time(end)

    def compare(self, calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
        """Median seconds of each call over `rounds` turns, after two turns that do not count."""
        samples = {name: [] for name in calls}
        for turn in range(rounds + 2):
            for name, call in calls.items():
                told = self.sample(call)
                if turn >= 2:
                    samples[name].append(told)
        torch.cuda.synchronize()
        return {name: statistics.median(told() for told in row) * 1e-3 for name, row in samples.items()}


def warm_up(seconds: float) -> None:
    """Keeps the device busy until its clocks are up."""
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()


def first_call(call: Callable[[], object]) -> float:
    """Seconds of a call with everything that has to be compiled for it."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def host_time(call: Callable[[], object], calls: int = 1000, rounds: int = 15) -> float:
    """Median seconds that the host needs for one call of a short kernel."""
    call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    torch.cuda.synchronize()
    return statistics.median(times)


def random(*shape: int, dtype=torch.bfloat16) -> torch.Tensor:
    """Uniform in [-1, 1]."""
    return torch.empty(*shape, dtype=dtype, device=DEVICE).uniform_(-1, 1)


def labels(rows: int, classes: int) -> torch.Tensor:
    """One column for each row."""
    return torch.randint(0, classes, (rows,), device=DEVICE)


def worst_error(got, wanted) -> float:
    """The largest difference over all outputs, in units of what is allowed: right at 1 or less.

    Allowed is a step of the output's dtype relative to the value, and a little of the tensor's largest value, since
    sums of many terms cancel; what is wanted comes in float32.
    """
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        step = max(torch.finfo(a.dtype).eps, 2e-5)
        scale = b.abs().float()
        allowed = step * scale + (1e-5 if a.dtype == torch.float32 else 2.0**-12) * max(float(scale.max()), 1e-3)
        difference = (a.float() - b.float()).abs() / allowed
        difference = torch.nan_to_num(difference, nan=float("inf"))
        worst = max(worst, float(difference.max()))
    return worst


def release() -> None:
    """Gives memory of the last problem back."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
