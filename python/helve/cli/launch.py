"""`helve launch`: a program of Python in many processes, by the launcher that is there.

It only finds mpirun and gives it what a laptop or a container needs; on clusters its own launcher serves as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig

from helve.cli.mistakes import Mistake

# Open MPI counts cores and refuses root unless told otherwise: names of version 5, then of version 4.
_ENVIRONMENT = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def command(chosen: argparse.Namespace) -> None:
    """Becomes mpirun."""
    start = command_line(chosen.processes, chosen.program)
    if not chosen.program:
        raise Mistake("there is no program to start", "name a file: helve launch -n 4 program.py")
    sys.stdout.flush()
    os.execve(start[0], start, environment())


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
