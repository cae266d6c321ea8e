"""Libraries of NVIDIA, of MPI and of Python that helve loads or works with, and their versions.

They are asked through their own C functions; helve itself may never have needed them.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import shutil
import site
import subprocess
from pathlib import Path


def distribution(name: str) -> str | None:
    """The version of an installed Python package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def shared_library(names: list[str], package: str = "") -> ctypes.CDLL | None:
    """The first of these shared libraries that loads: from the folder `nvidia/<package>/lib` of pip's wheels, or from
    where the system looks."""
    wheels = [str(path) for folder in site.getsitepackages() if package
              for name in names for path in Path(folder).glob(f"nvidia/{package}/lib/{name}")]
    for name in [*wheels, *names]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def loaded_library(stem: str) -> str | None:
    """The path of a shared library that this process has loaded, by the beginning of its name."""
    try:
        text = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found = re.search(rf"(/\S*/{re.escape(stem)}\.so\S*)$", text, re.M)
    return found[1] if found else None


def nvrtc_version() -> str | None:
    """Of the NVRTC that helve has loaded."""
    path = loaded_library("libnvrtc")
    if path is None:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    if ctypes.CDLL(path).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)):
        return None
    return f"{major.value}.{minor.value} at {path}"


def nccl_version() -> str | None:
    """Of the NCCL that a program would load."""
    library = shared_library(["libnccl.so.2"], "nccl")
    number = ctypes.c_int()
    if library is None or library.ncclGetVersion(ctypes.byref(number)):
        return None
    value = number.value
    # 2.8 and older: two digits of the middle number less.
    major, minor, patch = ((value // 10000, value // 100 % 100, value % 100) if value >= 10000 else
                           (value // 1000, value // 100 % 10, value % 100))
    return f"{major}.{minor}.{patch}"


def program_line(program: str | None, pattern: str) -> str | None:
    """The first line of `program --version` that has the pattern, its first line without one; None if it cannot run."""
    path = program and shutil.which(program)
    if not path:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    found = next((line for line in lines if re.search(pattern, line)), lines[0] if lines else "")
    return f"{found} at {path}" if done.returncode == 0 else None


def nvcc_line() -> str | None:
    """The version of the nvcc that helve would run."""
    return program_line(os.environ.get("HELVE_NVCC") or "nvcc", "release")


class Driver:
    """NVIDIA's driver, by its C functions."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library

    def version(self) -> str:
        """The newest CUDA that it runs."""
        number = ctypes.c_int()
        self._library.cuDriverGetVersion(ctypes.byref(number))
        return f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"

    def devices(self) -> list[str]:
        """A line for each GPU."""
        call, count = self._library, ctypes.c_int()
        if call.cuInit(0) or call.cuDeviceGetCount(ctypes.byref(count)):
            return []
        out = []
        for number in range(count.value):
            device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
            call.cuDeviceGet(ctypes.byref(device), number)
            call.cuDeviceGetName(name, len(name), device)
            call.cuDeviceTotalMem_v2(ctypes.byref(size), device)
            major, minor = (self._attribute(key, device) for key in (75, 76))  # of the compute capability
            out.append(f"{name.value.decode(errors='replace')}, sm_{major}{minor}, {size.value / 2**30:.0f} GiB, "
                       f"{self._attribute(16, device)} multiprocessors")
        return out

    def _attribute(self, key: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._library.cuDeviceGetAttribute(ctypes.byref(value), key, device)
        return value.value


def driver() -> Driver | None:
    """The driver of this machine."""
    library = shared_library(["libcuda.so.1"])
    return Driver(library) if library is not None else None
