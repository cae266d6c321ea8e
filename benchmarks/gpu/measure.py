"""What the benchmarks of a GPU share: the device, times, data, and whether results are right.

Times are those of `helve.bench`; what it does not tell is the host's time of a call, and that of a first call.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

import helve

DEVICE = "cuda"


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


def compare(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each call on the device, by turns, with cold caches."""
    return helve.bench(calls, cache="cold", device=DEVICE, rounds=rounds).seconds()


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
