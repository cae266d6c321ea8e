"""Redistributions within a process against the copies and sums of NumPy that do the same, by turns.

Run it: ``python benchmarks/redistribution.py [--threads N]``. Both sides write parts that exist, by moves and views
that are prepared; float32 over a mesh of 2 x 2. NumPy copies and adds views of the boxes, each box and each sum once,
and copies the sums to whoever else holds them. Every result is compared in the same run. The size is that of the whole
tensor; where it becomes copies, four times as much is written.

``--plans N`` times the planning of N random pairs of distributions over each of some meshes of three axes instead, by
the time of this process.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--threads", type=int, help="threads of helve; all CPUs by default")
parser.add_argument("--rounds", type=int, default=9, help="turns of each candidate; the median counts")
parser.add_argument("--plans", type=int, default=0, help="pairs for each mesh")
parser.add_argument("--largest", type=int, default=256, help="MiB of the largest tensor")
CHOSEN = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
if CHOSEN.threads:
    os.environ["HELVE_NUM_THREADS"] = str(CHOSEN.threads)  # read at import

import numpy as np  # noqa: E402

import helve  # noqa: E402
from helve.dist import DistTensor, distribution, redistribution  # noqa: E402

CASES = (
    ("i j -> i j", "i j -> j i"),  # permute
    ("i j -> i *", "i j -> j *"),  # all_to_all
    ("i j -> i j", "i j -> * *"),  # all_gather
    ("i j -> + i", "i j -> j i"),  # reduce_scatter
    ("i j -> + *", "i j -> * *"),  # all_reduce
)
EXTENTS = (16, 64, 256, 1024, 4096, 8192)  # 1 KiB to 256 MiB


def numpy_moves(source: DistTensor, step, targets: dict) -> list:
    """(target, terms) of what NumPy does: one term is copied, several are added; all are views."""
    out, done = [], {}
    for device in targets:
        begin = step.destination.local_begin(device)
        for first, pieces in itertools.groupby(step.received(device), key=lambda piece: piece[1]):
            terms, senders = [], []
            for sender, _, extents in pieces:
                theirs = step.source.local_begin(sender)
                terms.append(source.shards[sender][box(first, theirs, extents)])
                senders.append(sender)
            target = targets[device][box(first, begin, extents)]
            known = done.setdefault((tuple(senders), first), target)
            out.append((target, terms if known is target or len(terms) == 1 else [known]))
    return out


def box(first, begin, extents) -> tuple[slice, ...]:
    return tuple(slice(f - b, f - b + n) for f, b, n in zip(first, begin, extents, strict=True))


def run_numpy(moves: list) -> None:
    for target, terms in moves:
        if len(terms) == 1:
            np.copyto(target, terms[0])
        else:
            np.add(terms[0], terms[1], out=target)


def seconds(call, least: float = 0.02) -> float:
    """Of one call, of as many as take `least` together."""
    begin = time.perf_counter()
    call()
    count = max(1, int(least / max(1e-7, time.perf_counter() - begin)))
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


MESHES = (
    ((8, 8, 8), (1024, 1024, 512)),
    ((4, 4, 4), (1001, 77, 50)),
    ((2, 3, 4), (96, 1000, 17)),
    ((32, 32, 32), (8192, 8192, 1024)),
)


def every_distribution(mesh: helve.Mesh, shape: tuple[int, ...]) -> list:
    """Each axis cuts a dimension, or has copies, data on coordinate 1 or terms; a cut goes by the order of the axes."""
    out = []
    for choice in itertools.product("ijk*1+", repeat=len(shape)):
        levels: list[list[str]] = [[] for _ in mesh.names]
        for a, (name, entry) in enumerate(zip(mesh.names, choice, strict=True)):
            levels[choice[:a].count(entry) if entry in "ijk" else 0].append(f"{name}:{entry}")
        out.append(distribution([f"i j k -> {' '.join(level)}" for level in levels if level], shape, mesh))
    return out


def time_plans(count: int) -> None:
    generator = np.random.default_rng(0)
    print("| mesh | tensor | median ms | 90 % | largest | longest text |\n| --- | --- | --- | --- | --- | --- |")
    for extents, shape in MESHES:
        every = every_distribution(helve.Mesh(extents, ("x", "y", "z")), shape)
        times, length = [], 0
        for source, destination in generator.integers(0, len(every), (count, 2)):
            begin = time.process_time()
            plan = redistribution(every[source], every[destination], 4)
            times.append((time.process_time() - begin) * 1e3)
            length = max(length, len(plan._core.text()) if np.prod(extents) < 1000 else 0)
        times.sort()
        print(f"| {' x '.join(map(str, extents))} | {shape} | {times[count // 2]:.1f} | {times[count * 9 // 10]:.1f} "
              f"| {times[-1]:.1f} | {length or ''} |", flush=True)


def main() -> None:
    if CHOSEN.plans:
        return time_plans(CHOSEN.plans)
    mesh = helve.Mesh((2, 2))
    print("| step | size | NumPy us | helve us | NumPy / helve |\n| --- | --- | --- | --- | --- |")
    for (before, after), extent in itertools.product(CASES, EXTENTS):
        if extent * extent * 4 > CHOSEN.largest << 20:
            continue
        source, destination = (distribution(text, (extent, extent), mesh) for text in (before, after))
        tensor = DistTensor.from_global(np.random.default_rng(0).random((extent, extent), "float32"), source)
        plan = tensor.plan(destination)
        (step,) = plan.steps
        run = tensor.prepare(plan)
        out = run()
        again = {device: np.zeros_like(part) for device, part in out.shards.items()}
        moves = numpy_moves(tensor, step, again)
        calls = {"numpy": lambda: run_numpy(moves), "helve": run}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(CHOSEN.rounds):
            for name, call in calls.items():
                times[name].append(seconds(call))
        assert all(np.array_equal(out.shards[device], part) for device, part in again.items())
        numpy, ours = (statistics.median(times[name]) * 1e6 for name in calls)
        size = extent * extent * 4
        shown = f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"
        print(f"| {step.form} | {shown} | {numpy:.1f} | {ours:.1f} | {numpy / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
