"""`helve launch`: a program of Python in many processes of this machine.

It finds mpirun and gives it what a laptop or a container needs; without one it starts the processes itself, which then
meet by TCP. On clusters their own launcher serves as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time

from helve.cli.mistakes import Mistake
from helve.dist.launchers import environment_of, free_port

# Open MPI counts cores and refuses root unless told otherwise: names of version 5, then of version 4.
_ENVIRONMENT = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


# Seconds that the other processes have for errors of their own when one has failed.
_GRACE = 5.0


def command(chosen: argparse.Namespace) -> None:
    """Becomes mpirun, or starts the processes and ends as they do."""
    if not chosen.program:
        raise Mistake("there is no program to start", "name a file: helve launch -n 4 program.py")
    sys.stdout.flush()
    path = None if chosen.tcp else find_mpirun()
    if path is not None:
        start = command_line(chosen.processes, chosen.program)
        os.execve(start[0], start, environment())
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    why = "--tcp is given" if chosen.tcp else "there is no mpirun here"
    print(f"helve launch: {why}, so {chosen.processes} processes meet by TCP at {address}", file=sys.stderr, flush=True)
    raise SystemExit(run_by_tcp(chosen.processes, chosen.program, address))


def run_by_tcp(processes: int, program: list[str], address: str) -> int:
    """Runs a program in so many processes that meet at the address; the exit status of the first one that fails.

    When one fails, the others have some seconds to come to errors of their own before they are ended.
    """
    port = free_port("127.0.0.1")
    started = [subprocess.Popen([sys.executable, *program],
                                env=environment_of(os.environ, rank, processes, address, port))
               for rank in range(processes)]
    status, end = 0, float("inf")
    handler = signal.signal(signal.SIGINT, lambda *_: None)  # the processes get it as well
    try:
        while any(each.poll() is None for each in started):
            status = status or next((each.returncode for each in started if each.returncode), 0)
            end = min(end, time.monotonic() + _GRACE) if status else end
            if time.monotonic() > end:
                for each in started:
                    each.terminate()
            time.sleep(0.02)
    finally:
        for each in started:
            each.kill()
            each.wait()
        signal.signal(signal.SIGINT, handler)
    status = status or next((each.returncode for each in started if each.returncode), 0)
    return 128 - status if status < 0 else status


REMEDY = "pip install 'helve[mpi]', or install Open MPI 4.1 or later"


def find_mpirun() -> str | None:
    """The path of the mpirun that belongs to the Python environment, else of the first one on the path."""
    beside = os.path.join(sysconfig.get_path("scripts"), "mpirun")
    return beside if os.access(beside, os.X_OK) else shutil.which("mpirun")


def command_line(processes: int, program: list[str]) -> list[str]:
    """What starts a program of Python, with its arguments, in so many processes.

    Raises:
        Mistake: there is no mpirun.
    """
    path = find_mpirun()
    if path is None:
        raise Mistake("there is no mpirun here", REMEDY)
    return [path, "-n", str(processes), sys.executable, *program]


def environment() -> dict[str, str]:
    """That of this process, with what lets Open MPI start more processes than cores, and as root."""
    return {**_ENVIRONMENT, **os.environ}
