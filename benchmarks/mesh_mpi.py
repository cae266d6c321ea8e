"""RMSNorm on a mesh whose cores are processes, and on one of this process.

``helve launch -n 4 benchmarks/mesh_mpi.py --mesh 2x2`` runs it on processes with a thread each, ``python
benchmarks/mesh_mpi.py --here --mesh 2x2`` on as many threads of one process. A call's time is that of the slowest
process; the median of many. Rows cut over N x 1 cores need no values of others; columns cut over 1 x N, and both over
2 x N/2, exchange a sum for each row.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--mesh", default="2x1", help="rows x columns of cores")
parser.add_argument("--here", action="store_true", help="a mesh of this process; by default it is one of processes")
parser.add_argument("--chunk", type=int, help="iterations that share one collective; by default each has its own")
parser.add_argument("--rounds", type=int, default=31)
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
CORES = tuple(int(extent) for extent in CHOSEN.mesh.split("x"))
os.environ["HELVE_NUM_THREADS"] = str(math.prod(CORES) if CHOSEN.here else 1)  # read at import

import numpy as np  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution  # noqa: E402

SHAPES = ((64, 1024), (1024, 4096), (4096, 8192), (1000, 777))


def tutorial():
    spec = importlib.util.spec_from_file_location("rms_norm", Path(__file__).parents[1] / "tutorials/01_rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slowest(value: float) -> float:
    """The largest of all processes."""
    mesh = helve.Mesh((helve.dist.size(),), device="mpi")
    mine = DistTensor.from_local(np.full(1, value), distribution("i -> max", (1,), mesh))
    return float(mine.redistribute(distribution("i -> *", (1,), mesh)).shards[helve.dist.rank(),][0])


def main() -> None:
    device = "host" if CHOSEN.here else "mpi"
    mesh, rank = helve.Mesh(CORES, device=device), 0 if CHOSEN.here else helve.dist.rank()
    for rows, columns in SHAPES:
        kernel = helve.compile(tutorial().rms_norm_splitk(rows, columns, 32, 256, mesh), mesh=mesh,
                               persistent_chunk=CHOSEN.chunk)
        a = np.random.default_rng(0).standard_normal((rows, columns)).astype("float32")
        tensors = [a, np.zeros_like(a)]
        if device == "mpi":
            blocks = distribution("i j -> i j", a.shape, mesh)
            tensors = [DistTensor.from_global(each, blocks) for each in tensors]
        kernel(*tensors)
        times = []
        for _ in range(CHOSEN.rounds):
            begin = time.perf_counter()
            kernel(*tensors)
            times.append(time.perf_counter() - begin)
        median = statistics.median(times)
        if device == "mpi":
            median = slowest(median)
        if rank == 0:
            print(f"{rows} x {columns}, {CHOSEN.mesh} cores of device '{device}': {median * 1e6:.0f} us",
                  flush=True)


if __name__ == "__main__":
    main()
