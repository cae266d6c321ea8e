"""Random mesh programs on processes, against the same in one process: equal bit for bit.

Between CPUs by MPI and by TCP, between GPUs by NCCL, and where there is none of those by its fake. HELVE_MULTI_PROGRAMS
is the number of programs for each case.
"""

import functools
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from mesh_programs import program
from on_ranks import on_ranks
from test_kernels_by_nccl import on_fakes, on_gpu, on_gpus, on_host, run_on_host
from test_redistribution_by_nccl import require_gpus

import helve
from helve.dist import DistTensor, distribution

COUNT = int(os.environ.get("HELVE_MULTI_PROGRAMS", 0))


@functools.cache
def in_one_process(shape):
    """A folder for the results of programs on a mesh in one process, which every other process would compute too."""
    return tempfile.TemporaryDirectory()


def results_of(shape, seeds):
    folder = in_one_process(shape).name
    for seed in seeds:
        file = Path(folder, f"{seed}.npy")
        if not file.exists():
            text, tensors = program(seed, shape)
            helve.compile(helve.parse(text), mesh=helve.Mesh(shape))(*tensors)
            np.save(file, tensors[1])
    return folder


def differences(shape, seeds, device, results):
    """The programs whose results on this process are others than in one process."""
    there = helve.Mesh(tuple(shape), device=device)
    place = tuple(int(c) for c in np.unravel_index(helve.dist.rank(), shape))
    found, programs = [], [program(seed, shape) for seed in seeds]
    kernels = [helve.compile(helve.parse(text), mesh=there, persistent_chunk=[None, 1, 2][seed % 3])
               for seed, (text, _) in zip(seeds, programs, strict=True)]
    ready = run_on_host(kernels) if device == "cuda" else [lambda: None for _ in kernels]
    for seed, (text, tensors), kernel, begin_with in zip(seeds, programs, kernels, ready, strict=True):
        wanted = np.load(Path(results, f"{seed}.npy"))
        begin_with()
        to = distribution("i j -> i j", tensors[0].shape, there)
        own = [DistTensor.from_global(on_gpu(each) if device == "cuda" else each, to) for each in tensors]
        kernel(*own)
        part, begin = own[1].shards[place], to.local_begin(place)
        part = on_host(part) if device == "cuda" else part
        box = tuple(slice(b, b + e) for b, e in zip(begin or (0, 0), part.shape, strict=True))
        if part.tobytes() != wanted[box].tobytes():
            found.append(f"seed {seed} on {place}:\n{text}")
    return found


@pytest.mark.parametrize("by", ["mpi", "tcp"])
@pytest.mark.parametrize("shape", [(2, 4), (2, 2), (1, 5), (7, 1)], ids=str)
def test_programs_between_cpus(shape, by):
    count = int(np.prod(shape))
    seeds = list(range(COUNT or 4))
    results = results_of(shape, seeds)
    assert on_ranks(count, __name__, "differences", shape, seeds, "mpi", results, by=by, timeout=600) == [[]] * count


@pytest.mark.parametrize("where", [on_fakes, on_gpus], ids=["fakes", "gpus"])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 2), (1, 4)], ids=str)
def test_programs_between_gpus(shape, where):
    count = int(np.prod(shape))
    seeds = list(range(COUNT or (6 if where is on_fakes else 40)))
    if where is on_gpus:
        require_gpus(count)
    results = results_of(shape, seeds)
    assert where(count, "differences", shape, seeds, "cuda", results, file=__name__) == [[]] * count
