"""The processes that a mesh of device "mpi" lies on: one for each device, which a launcher started together.

They are connected at the first use. The core sends their messages by Open MPI, which it loads then.
"""

from __future__ import annotations

import atexit
import functools
import os
import sysconfig
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from helve import _core
from helve.caller import at_caller
from helve.errors import Error, error
from helve.mesh import Mesh

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

TIMEOUT = "HELVE_COMM_TIMEOUT"
CHECK = "HELVE_COMM_CHECK"


def at_the_call(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, whose errors without a place get that of the call by the user."""

    @functools.wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except Error as fault:
            raise at_caller(fault) from None

    return called


@at_the_call
def init() -> None:
    """Connects this process with those that were started with it, by mpirun, srun or `helve launch`.

    Every process calls it, or it happens at the first use of a mesh of device "mpi". `HELVE_COMM_TIMEOUT` is the number
    of seconds without a message after which a wait ends with an error, 60 by default; with `HELVE_COMM_CHECK=0`,
    processes do not compare steps before they do them.

    Raises:
        helve.Error: no Open MPI, or processes that were started by another one (HV0417).
    """
    _group()


@at_the_call
def rank() -> int:
    """The number of this process among `size()`, from 0. Raises as `init`."""
    return _group().rank


@at_the_call
def size() -> int:
    """The number of processes that were started together. Raises as `init`."""
    return _group().size


def are_devices_of(mesh: object) -> bool:
    """Are the devices of the mesh processes?"""
    return isinstance(mesh, Mesh) and mesh.device == "mpi"


_lock = threading.Lock()
_connected: _core.ProcessGroup | None = None
_owner = 0  # the process that connected: a child of it has the state of MPI, and no place among the processes


def _group() -> _core.ProcessGroup:
    global _connected, _owner
    with _lock:
        if _connected is None:
            paths = [os.path.join(sysconfig.get_path("data"), "lib", "libmpi.so.40")]
            _connected = _core.ProcessGroup.mpi(paths, _timeout(), os.environ.get(CHECK, "1") != "0")
            _owner = os.getpid()
            atexit.register(_end)
        if os.getpid() != _owner:
            raise error("ProcessesMissing", reason="this process is a copy, by fork, of one that was connected",
                        remedy="start processes by 'spawn' beside meshes of device \"mpi\"")
        return _connected


def _end() -> None:
    if os.getpid() == _owner:
        _connected.finalize()


def _timeout() -> float:
    text = os.environ.get(TIMEOUT, "60")
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < 1e9:
        raise error("ProcessesMissing", reason=f"{TIMEOUT}={text} is no number of seconds",
                    remedy=f"set {TIMEOUT} to a number such as 60")
    return value


@at_the_call
def group_of(mesh: Mesh) -> _core.ProcessGroup:
    """The processes of a mesh.

    Raises:
        helve.Error: HV0417; HV0418 for more or fewer processes than devices.
    """
    group = _group()
    group.require_size(mesh.size)
    return group


def device_of(mesh: Mesh) -> tuple[int, ...]:
    """The device of the mesh that this process is. Raises as `group_of`."""
    number, out = group_of(mesh).rank, []
    for extent in reversed(mesh.shape):
        out.append(number % extent)
        number //= extent
    return tuple(reversed(out))
