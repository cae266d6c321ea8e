"""The names of the devices that times are of.

A time belongs to the machine that it was measured on, and to the threads that kernels may use there.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

from helve import _core
from helve.arrays import is_array, is_on_cuda


def cpu_name() -> str:
    """The model of this machine's processor."""
    try:
        model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        model = None
    return model[1] if model else platform.machine()


def device_name(target: str, args: tuple) -> str:
    """The device that kernels of a target run on with these arguments: its model, and of a CPU the threads."""
    array = next((each for each in args if is_array(each) and is_on_cuda(each)), None)
    if target != "cuda" or array is None:
        return f"{cpu_name()}, {_core.num_threads()} threads"
    if type(array).__module__.partition(".")[0] == "torch":
        import torch

        return torch.cuda.get_device_name(array.device)
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(array.device.id)["name"].decode()
