"""`helve doctor`: what this machine has of what helve can use, and how to get what is missing.

Compilers are asked to compile, not only looked for: what is reported to work did work.
"""

from __future__ import annotations

import argparse
import os
import platform
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import helve
from helve import _core
from helve.bench.devices import cpu_name
from helve.cli import cache, launch, libraries
from helve.cli.mistakes import Mistake

_CHECK = """
@T.prim_func
def check(A: T.Tensor((4,), "float32")):
    with T.Kernel(4) as i:
        A[i] = 1.0
"""
# Packages: the names under which they are installed, and the remedy.
_PACKAGES = {
    "numpy": (["numpy"], "helve needs it: pip install numpy"),
    "ml_dtypes": (["ml_dtypes"], "helve needs it: pip install ml_dtypes"),
    "torch": (["torch"], "for tensors of PyTorch, and times on a GPU: pip install torch"),
    "cupy": (["cupy-cuda13x", "cupy-cuda12x", "cupy"],
             "for arrays of CuPy, and times on a GPU: pip install cupy-cuda13x"),
    "jax": (["jax"], "for arrays of JAX: pip install jax"),
    "rich": (["rich"], 'for the progress of helve.autotune: pip install "helve[tune]"'),
    "matplotlib": (["matplotlib"], 'for plots, and pictures as PNG and PDF: pip install "helve[plot]"'),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        name: what.
        text: what was found, or why it cannot be used.
        remedy: how to get it; empty where it is there.
    """

    name: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        lines = [f"{'missing' if self.remedy else 'ok':8} {self.name:11} {self.text}"]
        if self.remedy:
            lines += textwrap.wrap(f"help: {self.remedy}", 120, initial_indent=" " * 21, subsequent_indent=" " * 27,
                                   break_on_hyphens=False)
        return "\n".join(lines)


def findings() -> Iterator[Finding]:
    """Everything that is looked for, in the order in which it is told."""
    yield Finding("helve", f"{helve.__version__} at {Path(helve.__file__).parent}, Python {platform.python_version()}")
    yield Finding("CPU", _cpu())
    complaints: list[helve.Warning] = []
    yield _compiler("LLVM", "llvm", "", complaints)
    yield from _gpus()
    yield _compiler("NVRTC", "cuda", "sm_80", complaints)
    yield _found("nvcc", libraries.nvcc_line(), "helve compiles by NVRTC and does without; to have it, install a CUDA "
                 "toolkit, or name it by HELVE_NVCC")
    yield _found("NCCL", libraries.nccl_version(), "for meshes of GPUs over processes: pip install nvidia-nccl-cu13")
    yield _found("MPI", libraries.program_line(launch.find_mpirun(), r"\d"), "for meshes over processes that mpirun "
                 f"starts: {launch.REMEDY}")
    for package, (names, remedy) in _PACKAGES.items():
        yield _found(package, next(filter(None, map(libraries.distribution, names)), None), remedy)
    yield _cache(complaints)


def command(chosen: argparse.Namespace) -> None:
    """Prints a line for each thing, and a remedy below what is missing."""
    for each in findings():
        print(each, flush=True)


def _found(name: str, text: str | None, remedy: str) -> Finding:
    return Finding(name, "not found", remedy) if text is None else Finding(name, text)


def _cpu() -> str:
    machine = _core.host_machine()
    caches = [cache.size_text(size) for size in (machine.first_cache, machine.second_cache, machine.last_cache) if size]
    return (f"{cpu_name()}, {machine.processors} cores, {helve.num_threads()} threads, "
            f"vectors of {machine.vector_bytes} bytes, caches of {', '.join(caches) or 'unknown size'}")


def _compiler(name: str, target: str, arch: str, complaints: list[helve.Warning]) -> Finding:
    """Compiles a kernel for the target; adds its warnings, of the cache, to the complaints."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            helve.compile(helve.parse(_CHECK), target=target, **({"arch": arch} if arch else {}))
    except helve.Error as fault:
        return Finding(name, fault.message, fault.help.replace("\n", "; "))
    complaints += [each.message for each in caught if isinstance(each.message, helve.Warning)]
    version = libraries.nvrtc_version() if target == "cuda" else None
    return Finding(name, f'{version + ", " if version else ""}target="{target}" compiles')


def _gpus() -> Iterator[Finding]:
    driver = libraries.driver()
    if driver is None:
        yield Finding("driver", "not found", 'for a GPU of NVIDIA, install its driver; without one, target="cuda" '
                      'compiles with arch=, and target="llvm" runs')
        return
    yield Finding("driver", driver.version())
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = driver.devices()
    for number, line in enumerate(devices):
        yield Finding(f"GPU {number}", line)
    if not devices:
        remedy = f"CUDA_VISIBLE_DEVICES is '{hidden}': unset it" if hidden is not None else \
            "see whether nvidia-smi lists one, and whether this user or container may use it"
        yield Finding("GPU", "not found", remedy)


def _cache(complaints: list[helve.Warning]) -> Finding:
    folder = cache.folder()
    if complaints:  # what the compiler says of it
        return Finding("cache", complaints[0].message, complaints[0].help.replace("\n", "; "))
    try:
        text = f"{folder}: {cache.summary()}"
    except (OSError, Mistake) as fault:
        reason = str(fault).removeprefix("error: ").partition("\n")[0]
        return Finding("cache", f"{folder}: {reason}", "set HELVE_CACHE_DIR to a folder that this user may read and "
                       "write, and HELVE_CACHE_LIMIT to a number of MiB")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        return Finding("cache", f"{folder}: it cannot be written", "set HELVE_CACHE_DIR to a folder that this user may "
                       "write, or HELVE_CACHE_LIMIT=0 to go without")
    return Finding("cache", text)
