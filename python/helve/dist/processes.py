"""The processes that a mesh of device "mpi" or "cuda" lies on: one for each device, which were started together.

They are connected at the first use. The core sends their messages by Open MPI, which it loads then, where that has
started them, and else by TCP.
"""

from __future__ import annotations

import atexit
import functools
import os
import site
import sysconfig
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from helve import _core
from helve.caller import at_caller
from helve.dist.launchers import Start, of_this_process
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
def init(rank: int | None = None, size: int | None = None, address: str | None = None) -> None:
    """Connects this process with those that were started with it.

    Every process calls it, or it happens at the first use of a mesh of processes. Without arguments the launcher says
    which process this is: mpirun, whose processes are connected by Open MPI; torchrun, srun, `helve launch`, or the
    variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, whose processes meet by TCP. A process that no launcher has
    started is one alone.

    `HELVE_COMM_TIMEOUT` is the number of seconds after which processes give up to meet, and without a message after
    which a wait ends with an error, 60 by default; with `HELVE_COMM_CHECK=0`, processes do not compare steps before
    they do them.

    Args:
        rank: the number of this process, from 0, where no launcher says it: on Ray or Dask, for example.
        size: how many processes there are.
        address: "host:port", at which process 0 listens; one for all.

    Raises:
        helve.Error: no Open MPI, or processes that were started by another one; arguments where processes are connected
            already, or only some of them (HV0417). Processes that do not meet (HV0426).
    """
    given = (rank, size, address)
    if given == (None, None, None):
        _group()
        return
    if None in given or not all(isinstance(each, int) for each in given[:2]) or not isinstance(address, str):
        raise error("ProcessesMissing", reason=f"init was given rank {rank}, size {size} and address {address}",
                    remedy='give all of them, init(0, 4, "10.0.0.1:29500"), or none')
    with _lock:
        if _connected is not None:
            raise error("ProcessesMissing", reason="this process is connected with others already",
                        remedy="call helve.dist.init before the first use of a mesh of processes, once")
        _connect(Start(rank, size, address))


@at_the_call
def rank() -> int:
    """The number of this process among `size()`, from 0. Raises as `init`."""
    return _group().rank


@at_the_call
def size() -> int:
    """The number of processes that were started together. Raises as `init`."""
    return _group().size


def are_devices_of(mesh: object) -> bool:
    """Are the devices of the mesh processes, or the GPUs of processes?"""
    return isinstance(mesh, Mesh) and mesh.device in ("mpi", "cuda")


_lock = threading.Lock()
_connected: _core.ProcessGroup | None = None
_owner = 0  # the process that connected: a child of it has the state of MPI, and no place among the processes
_world: _core.NcclWorld | None = None


def _group() -> _core.ProcessGroup:
    with _lock:
        if _connected is None:
            _connect(of_this_process(_timeout()))
        if os.getpid() != _owner:
            raise error("ProcessesMissing", reason="this process is a copy, by fork, of one that was connected",
                        remedy="start processes by 'spawn' beside meshes of processes")
        return _connected


def _connect(start: Start | None) -> None:
    """By Open MPI where that has started the process (None), else by TCP."""
    global _connected, _owner
    timeout, check = _timeout(), os.environ.get(CHECK, "1") != "0"
    if start is None:
        paths = [os.path.join(sysconfig.get_path("data"), "lib", "libmpi.so.40")]
        _connected = _core.ProcessGroup.mpi(paths, timeout, check)
    else:
        _connected = _core.ProcessGroup.tcp(start.rank, start.size, start.address, timeout, check)
    _owner = os.getpid()
    atexit.register(_end, start is None)


def _end(by_mpi: bool) -> None:
    if os.getpid() != _owner:
        return
    if _world is not None:
        _world.end()
    _connected.finalize(by_mpi)


@at_the_call
def world_of(array: Any) -> _core.NcclWorld:
    """The GPUs of the processes; that of this process is where its first array was.

    Raises:
        helve.Error: the array is on another GPU (HV0429); those of `init`.
    """
    world = _gpus()
    world.take(int(array.__dlpack_device__()[1]))
    return world


def _gpus() -> _core.NcclWorld:
    global _world
    group = _group()
    with _lock:
        if _world is None:
            folders = site.getsitepackages()
            paths = [os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2") for folder in folders]
            _world = _core.NcclWorld(group, paths, _timeout())
    return _world


def gpus_of(mesh: Mesh) -> _core.NcclWorld:
    """The GPUs of the processes of a mesh. Raises as `group_of`."""
    group_of(mesh)
    return _gpus()


def compares_on_gpus() -> bool:
    """Do processes compare steps on GPUs before they do them? Only where it is asked for: they would wait for it."""
    return os.environ.get(CHECK) == "1"


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
