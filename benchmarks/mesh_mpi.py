"""RMSNorm on a mesh whose cores are processes, and on one of this process.

``helve launch -n 2 benchmarks/mesh_mpi.py`` runs it on processes with a thread each, ``python benchmarks/mesh_mpi.py
--cores 2`` on as many threads of one process. A call's time is that of the slowest process; the median of many.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--cores", type=int, help="of a mesh of this process; by default the mesh is one of processes")
parser.add_argument("--rounds", type=int, default=31)
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
os.environ["HELVE_NUM_THREADS"] = str(CHOSEN.cores or 1)  # read at import

import numpy as np  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution  # noqa: E402

SHAPES = ((64, 1024), (1024, 4096), (4096, 8192), (1000, 777))


def tutorial():
    spec = importlib.util.spec_from_file_location("rms_norm", Path(__file__).parents[1] / "tutorials/01_rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    count, device = (CHOSEN.cores, "host") if CHOSEN.cores else (helve.dist.size(), "mpi")
    mesh, rank = helve.Mesh((count, 1), device=device), 0 if CHOSEN.cores else helve.dist.rank()
    for rows, columns in SHAPES:
        kernel = helve.compile(tutorial().rms_norm_splitk(rows, columns, 32, 256, mesh), mesh=mesh)
        a = np.random.default_rng(0).standard_normal((rows, columns)).astype("float32")
        tensors = [a, np.zeros_like(a)]
        if device == "mpi":
            blocks = distribution("i j -> i j", a.shape, mesh)
            tensors = [DistTensor.from_global(each, blocks) for each in tensors]
        kernel(*tensors)
        times = []
        for _ in range(CHOSEN.rounds):
            begin = time.perf_counter()
            kernel(*tensors)  # a collective keeps the processes together
            times.append(time.perf_counter() - begin)
        if rank == 0:
            print(f"{rows} x {columns}, {count} cores of device '{device}': {statistics.median(times) * 1e6:.0f} us",
                  flush=True)


if __name__ == "__main__":
    main()
