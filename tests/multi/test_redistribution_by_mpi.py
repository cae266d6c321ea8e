"""Redistributions between processes, against the same in one process: equal bit for bit.

Every process makes all parts from one seed, redistributes them in its own memory, and compares what came to it.
"""

import itertools
import os

import numpy as np
import pytest
from on_ranks import on_ranks

import helve
from helve.dist import DistTensor, distribution

SHAPES = [(17, 5), (10, 5), (1, 3), (0, 4)]
LONG = bool(os.environ.get("HELVE_TEST_LONG"))
# Of so many pairs of each mesh one is tried; of the 62,500 of eight processes that is one in the long run, too.
SHARE = {(2,): 1, (4,): 1, (2, 2): 11, (4, 2): 31, (2, 2, 2): 1009}
if LONG:
    SHARE = dict.fromkeys(SHARE, 1) | {(2, 2, 2): 31}


def placements(mesh):
    """The right sides of all distributions of a matrix: cuts, copies, one coordinate, terms."""
    return [" ".join(each) for each in itertools.product("ij*1+", repeat=len(mesh))]


def placed(placement, shape, mesh):
    """The distribution; a dimension that several axes cut is cut in so many levels."""
    entries = placement.split()
    levels = [[] for _ in entries]
    for a, (name, entry) in enumerate(zip(mesh.names, entries, strict=True)):
        levels[entries[:a].count(entry) if entry in "ij" else 0].append(f"{name}:{entry}")
    return distribution([f"i j -> {' '.join(level)}" for level in levels if level], shape, mesh)


def parts_of(placement, shape, mesh, dtype, seed):
    """Random parts on a mesh of this process; what several devices hold alike is alike."""
    rng = np.random.default_rng(seed)
    held = placed(placement, shape, mesh)
    whole = (rng.standard_normal(shape) * 1000).astype(dtype)
    tensor = DistTensor.from_global(whole, held)
    entries = placement.split()
    for device, part in tensor.shards.items():
        of_terms = sum(c * 31**a for a, (c, entry) in enumerate(zip(device, entries, strict=True)) if entry == "+")
        if "+" in entries:
            part += (np.random.default_rng([seed, of_terms]).standard_normal(shape) * 100).astype(dtype)[
                tuple(slice(b, b + e) for b, e in zip(held.local_begin(device), part.shape, strict=True))]
    return tensor


def differences(mesh_shape, share, shapes, dtypes):
    """The redistributions whose part on this process is another than in one process; and how many were tried."""
    names = ("x", "y", "z")[: len(mesh_shape)]
    here = helve.Mesh(tuple(mesh_shape), names)
    there = helve.Mesh(tuple(mesh_shape), names, device="mpi")
    rank = helve.dist.rank()
    device = tuple(int(c) for c in np.unravel_index(rank, mesh_shape))
    found, tried = [], 0
    cases = itertools.product(shapes, itertools.product(placements(mesh_shape), repeat=2), dtypes)
    for number, (shape, (old, new), dtype) in enumerate(cases):
        if number % share:
            continue
        tried += 1
        shape = tuple(shape)
        source = parts_of(old, shape, here, dtype, number)
        wanted = source.redistribute(placed(new, shape, here)).shards.get(device)
        tensor = DistTensor.from_local(source.shards.get(device), placed(old, shape, there))
        moved = tensor.redistribute(placed(new, shape, there))
        given = moved.shards.get(device)
        same = (given is None) == (wanted is None)
        if same and given is not None:
            same = given.dtype == wanted.dtype and given.tobytes() == wanted.tobytes()
        if not same or moved.dtype != np.dtype(dtype):
            found.append(f"{shape} {dtype}: {old} to {new} on {device}")
    return {"found": found, "tried": tried}


@pytest.mark.parametrize("mesh", SHARE, ids=str)
def test_parts_are_those_of_one_process(mesh):
    answers = on_ranks(int(np.prod(mesh)), __name__, "differences", mesh, SHARE[mesh], SHAPES, ["float32"],
                       timeout=280)
    assert all(each.get("tried", 0) > 20 for each in answers), answers[0]
    assert [each["found"] for each in answers] == [[]] * len(answers)


def test_large_parts_and_other_dtypes():
    """What all members of a group get is cut into parts from 64 KiB on."""
    answers = on_ranks(4, __name__, "differences", (4,), 3, [(300, 70), (70001, 1)], ["float32", "float16", "int64"])
    assert [each["found"] for each in answers] == [[]] * 4


def ways_of_use():
    """The methods of a tensor over processes, each against NumPy."""
    mesh, rank = helve.Mesh((4,), device="mpi"), helve.dist.rank()
    a = np.arange(60.0).reshape(12, 5)
    rows, columns = (distribution(f"i j -> {to}", a.shape, mesh) for to in "ij")
    tensor = DistTensor.from_global(a, rows)
    assert set(tensor.shards) == {(rank,)} and np.array_equal(tensor.shards[rank,], a[3 * rank : 3 * rank + 3])
    assert np.array_equal(tensor.gather(), a)
    moved = tensor.redistribute(columns)
    assert np.array_equal(moved.shards[rank,], a[:, 2 * rank : 2 * rank + 2])
    run = tensor.prepare(tensor.plan(columns), out=moved)
    tensor.shards[rank,][...] += 1000
    assert run() is moved and np.array_equal(run().shards[rank,], a[:, 2 * rank : 2 * rank + 2] + 1000)
    same = tensor.prepare(tensor.plan(rows), out=DistTensor.from_global(a, rows))()
    assert np.array_equal(same.shards[rank,], tensor.shards[rank,])
    face = tensor.redistribute(distribution("i j -> 2", a.shape, mesh))
    assert (rank,) in face.shards if rank == 2 else not face.shards
    assert face.dtype == a.dtype and np.array_equal(face.gather(), a + 1000)
    begun = DistTensor.from_global(a, distribution("i j -> max", a.shape, mesh))
    assert np.array_equal(begun.shards[rank,], a if rank == 0 else np.full_like(a, -np.inf))
    return "done"


def test_every_method_of_a_tensor():
    assert on_ranks(4, __name__, "ways_of_use") == ["done"] * 4


def with_pytorch():
    """Parts are tensors of PyTorch, also where a process held none."""
    import torch

    mesh, rank = helve.Mesh((2,), device="mpi"), helve.dist.rank()
    a = torch.arange(40, dtype=torch.bfloat16).reshape(8, 5)
    face = DistTensor.from_local(a.clone() if rank == 1 else None, distribution("i j -> 1", (8, 5), mesh))
    rows = face.redistribute(distribution("i j -> i", (8, 5), mesh))
    part = rows.shards[rank,]
    assert isinstance(part, torch.Tensor) and torch.equal(part, a[4 * rank : 4 * rank + 4])
    version = part._version
    back = face.redistribute(distribution("i j -> i", (8, 5), mesh))
    back.prepare(back.plan(back.distribution), out=rows)()
    assert part._version > version
    return "done"


def test_parts_of_pytorch():
    pytest.importorskip("torch")
    assert on_ranks(2, __name__, "with_pytorch") == ["done"] * 2


def tutorial():
    import contextlib
    import importlib.util
    import io
    from pathlib import Path

    path = Path(__file__).parents[2] / "tutorials" / "04_processes.py"
    spec = importlib.util.spec_from_file_location("tutorial", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        module.main(m=10, n=7, k=50)
    return out.getvalue()


def test_the_tutorial():
    first, *others = on_ranks(3, __name__, "tutorial")
    assert "1. reduce_scatter over x, sum, to " in first
    assert "10 x 7 x 50 over 3 processes: largest error " in first
    assert float(first.rsplit(" ", 1)[1]) < 1e-4 and others == ["", ""]
