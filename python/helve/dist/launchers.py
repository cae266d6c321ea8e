"""How this process was started: by which launcher, as which of how many processes, and where they meet.

Launchers say it in variables of the environment. None is called, and none is asked twice.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from helve.errors import error

ADDRESS = "HELVE_ADDRESS"


@dataclass(frozen=True)
class Start:
    """The place of a process among those that were started together.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
        address: "host:port", where process 0 listens; empty for one process alone.
    """

    rank: int
    size: int
    address: str


def find_start(environment: Mapping[str, str], timeout: float) -> Start | None:
    """What the environment says; None where Open MPI, or a launcher that speaks to it, has started the process.

    Args:
        environment: of the process.
        timeout: seconds that a launcher's store may take.

    Raises:
        helve.Error: a variable that is no number (HV0417), a store that does not answer (HV0426).
    """
    by_torchrun = "TORCHELASTIC_RUN_ID" in environment
    if not by_torchrun and ADDRESS not in environment and _has(environment, "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",
                                                               "PMI_RANK"):
        return None
    if "RANK" in environment and "WORLD_SIZE" in environment:
        rank, size = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
        if size == 1:
            return Start(rank, size, "")
        if ADDRESS in environment:
            return Start(rank, size, environment[ADDRESS])
        if by_torchrun and environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return Start(rank, size, _address_by_store(environment, rank, size, timeout))
        return Start(rank, size, _master(environment))
    if all(name in environment for name in ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST")):
        rank, size = _number(environment, "SLURM_PROCID"), _number(environment, "SLURM_STEP_NUM_TASKS")
        return Start(rank, size, environment.get(ADDRESS) or _slurm_address(environment))
    return Start(0, 1, "")


def free_port(host: str = "") -> int:
    """A port of this machine at which nobody listens now."""
    with contextlib.closing(socket.create_server((host, 0))) as listener:
        return listener.getsockname()[1]


def _has(environment: Mapping[str, str], *names: str) -> bool:
    return any(name in environment for name in names)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise error("ProcessesMissing", reason=f"{name}={text} is no number of processes",
                    remedy="start them by torchrun, srun, mpirun or helve launch, or call helve.dist.init(rank, size, "
                           "address)")
    return int(text)


def _master(environment: Mapping[str, str]) -> str:
    """The address that the variables of PyTorch name."""
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in environment:
            raise error("ProcessesMissing", reason=f"RANK and WORLD_SIZE are set, and {name} is not",
                        remedy=f"set {name}, or {ADDRESS} to host:port where process 0 is to listen")
    host = environment["MASTER_ADDR"]
    return f"{f'[{host}]' if ':' in host else host}:{environment['MASTER_PORT']}"


def _address_by_store(environment: Mapping[str, str], rank: int, size: int, timeout: float) -> str:
    """torchrun itself listens at the master's port: process 0 says by its store where it will."""
    host, port = environment.get("MASTER_ADDR", ""), environment.get("MASTER_PORT", "")
    key = "/".join(["helve", environment["TORCHELASTIC_RUN_ID"], environment.get("TORCHELASTIC_RESTART_COUNT", "0")])
    try:
        distributed = importlib.import_module("torch.distributed")
        store = distributed.TCPStore(host, int(port), is_master=False, wait_for_workers=False,
                                     timeout=datetime.timedelta(seconds=timeout))
        if rank == 0:
            store.set(key, f"{f'[{host}]' if ':' in host else host}:{free_port()}")
        return store.get(key).decode()
    except (ImportError, AttributeError, ValueError, RuntimeError) as fault:
        reason = str(fault).partition("\n")[0]
        raise error("ProcessesUnmet", rank=rank, size=size, address=f"{host}:{port}",
                    reason=f"the store of torchrun does not tell where process 0 listens: {reason}",
                    remedy=f"set {ADDRESS} to host:port of a free port of process 0's machine") from None


def _slurm_address(environment: Mapping[str, str]) -> str:
    """The first machine of the step, and a port that follows from the step's number."""
    number = _number(environment, "SLURM_JOB_ID") if "SLURM_JOB_ID" in environment else 0
    step = environment.get("SLURM_STEP_ID", "0")
    port = 20000 + (number * 64 + (int(step) if step.isdigit() else 0)) % 10000
    return f"{first_machine(environment['SLURM_STEP_NODELIST'])}:{port}"


def first_machine(nodes: str) -> str:
    """The first of a list of Slurm's, such as node[07-09,12],other."""
    head = re.match(r"([^,\[]*)(?:\[([^\]-]*?)(?:[,-][^\]]*)?\]([^,\[]*))?", nodes)
    return "".join(part or "" for part in head.groups())


def environment_of(environment: Mapping[str, str], rank: int, size: int, address: str,
                   master_port: int) -> dict[str, str]:
    """That of a process which is started here: what helve reads, and what PyTorch reads."""
    host = address.rpartition(":")[0]
    return {**environment, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": host, "MASTER_PORT": str(master_port), ADDRESS: address}


def of_this_process(timeout: float) -> Start | None:
    """`find_start` of this process's environment."""
    return find_start(os.environ, timeout)
