"""Redistributions between processes against the collectives of mpi4py that do the same, by turns.

Run it: ``helve launch -n 4 benchmarks/redistribution_mpi.py``, with mpi4py (pip). Both write memory that exists: helve
by moves that are prepared, mpi4py by one collective over blocks that lie as MPI wants them; what either packs is in its
time. float32; the time of a turn is that of the slowest process, the median of many counts. Every result is
compared in the same run. The size is that of the whole tensor. ``--no-check`` leaves out what ranks compare before a
step (as HELVE_COMM_CHECK=0 does).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=15, help="turns of each candidate; the median counts")
parser.add_argument("--largest", type=int, default=256, help="MiB of the largest tensor")
parser.add_argument("--no-check", action="store_true", help="do not compare steps before they are done")
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
if CHOSEN.no_check:
    os.environ["HELVE_COMM_CHECK"] = "0"  # read at the first use
os.environ.setdefault("HELVE_NUM_THREADS", "1")  # read at import

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution  # noqa: E402

WORLD = MPI.COMM_WORLD
EXTENTS = (16, 64, 256, 1024, 4096, 8192)  # 1 KiB to 256 MiB


def all_gather(part, count):
    whole = np.empty((count * part.shape[0], part.shape[1]), part.dtype)
    return lambda: WORLD.Allgather(part, whole), whole


def all_to_all(part, count):
    rows, columns = part.shape[0], part.shape[1] // count
    sent, came = (np.empty((count, rows, columns), part.dtype) for _ in range(2))
    turned = np.empty((count * rows, columns), part.dtype)

    def run():
        np.copyto(sent, part.reshape(rows, count, columns).swapaxes(0, 1))
        WORLD.Alltoall(sent, came)
        np.copyto(turned.reshape(count, rows, columns), came)

    return run, turned


def all_reduce(part, count):
    whole = np.empty_like(part)
    return lambda: WORLD.Allreduce(part, whole), whole


def reduce_scatter(part, count):
    rows = np.empty((part.shape[0] // count, part.shape[1]), part.dtype)
    return lambda: WORLD.Reduce_scatter_block(part, rows), rows


def broadcast(part, count):
    whole = part.copy() if part is not None else np.empty(CURRENT, "float32")
    return lambda: WORLD.Bcast(whole), whole


CASES = (
    ("i j -> i", "i j -> *", all_gather),
    ("i j -> i", "i j -> j", all_to_all),
    ("i j -> +", "i j -> *", all_reduce),
    ("i j -> +", "i j -> i", reduce_scatter),
    ("i j -> 0", "i j -> *", broadcast),
)
CURRENT = (0, 0)


def seconds(call, count: int) -> float:
    """Of one call, on the slowest process."""
    WORLD.Barrier()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return WORLD.allreduce((time.perf_counter() - begin) / count, op=MPI.MAX)


def main() -> None:
    global CURRENT
    rank, count = WORLD.rank, WORLD.size
    mesh = helve.Mesh((count,), device="mpi")
    if rank == 0:
        print(f"{count} processes, steps compared: {not CHOSEN.no_check}")
        print("| step | size | mpi4py us | helve us | mpi4py / helve |\n| --- | --- | --- | --- | --- |")
    for before, after, library in CASES:
        for extent in EXTENTS:
            CURRENT = (extent, extent)
            if extent * extent * 4 > CHOSEN.largest << 20:
                continue
            source, destination = (distribution(text, CURRENT, mesh) for text in (before, after))
            shape = source.local_shape((rank,))
            part = None if shape is None else np.random.default_rng(rank).integers(-99, 99, shape).astype("float32")
            tensor = DistTensor.from_local(part, source)
            run = tensor.prepare(tensor.plan(destination))
            theirs, result = library(part, count)
            calls = {"mpi4py": theirs, "helve": run}
            once = max(seconds(theirs, 1), seconds(run, 1))
            turns = max(1, int(0.01 / once))
            times: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(CHOSEN.rounds):
                for name, call in calls.items():
                    times[name].append(seconds(call, turns))
            assert np.array_equal(run.out.shards[rank,], result)
            if rank == 0:
                ours, other = (statistics.median(times[name]) * 1e6 for name in ("helve", "mpi4py"))
                size = extent * extent * 4
                text = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
                print(f"| {library.__name__} | {text} | {other:.1f} | {ours:.1f} | {other / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
