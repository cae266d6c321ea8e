"""Tensors over meshes in one process: every pair of distributions, every plan, bit for bit."""

import itertools
import pickle

import helve
import numpy as np
import pytest
from helve.dist import DistTensor, distribution, distribution_of, redistribution

SHAPES = [(17, 5), (10, 5), (1, 3), (0, 4)]
MESHES = [(2,), (4,), (2, 2)]
SLOW = [(4, 2), (2, 2, 2)]


def placements(mesh, shape, entries=("i", "j", "*", "1", "+")):
    """Distributions with every entry on every axis; a dimension that two axes cut has two levels."""
    out = []
    for choice in itertools.product(entries, repeat=len(mesh.shape)):
        levels, left = [], list(zip(mesh.names, choice, strict=True))
        while left:
            seen, level, rest = set(), [], []
            for name, entry in left:
                if entry in seen and entry in "ij":
                    rest.append((name, entry))
                else:
                    level.append(f"{name}:{entry}")
                    seen.add(entry)
            levels.append("i j -> " + " ".join(level))
            left = rest
        out.append(distribution(levels, shape, mesh))
    return out


def filled(shape, dist, seed=0):
    """A tensor of whole numbers, and what it is."""
    generator = np.random.default_rng(seed)
    shards = {}
    for device in itertools.product(*map(range, dist.mesh.shape)):
        extents = dist.local_shape(device)
        if extents is not None:
            shards[device] = generator.integers(-9, 9, extents)
    whole = np.zeros(shape, "int64")
    copies = {a for a, name in enumerate(dist.mesh.names) if all(axis.name != name for axis in dist.partial)}
    groups = {}
    for device in shards:
        begin, extents = dist.local_begin(device), dist.local_shape(device)
        box = tuple(slice(b, b + e) for b, e in zip(begin, extents, strict=True))
        key = (tuple(begin), tuple(device[a] for a in range(len(device)) if a not in copies))
        shards[device] = groups.setdefault(key, shards[device])  # copies are equal
        groups[key, "box"] = box
    for key, shard in list(groups.items()):
        if isinstance(key[1], tuple):
            whole[groups[key, "box"]] += shard
    return DistTensor.from_local(shards, dist), whole


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("extents", MESHES)
def test_every_pair_keeps_the_tensor(extents, shape):
    mesh = helve.Mesh(extents, ("x", "y", "z")[: len(extents)])
    every = placements(mesh, shape)
    for k, (source, destination) in enumerate(itertools.product(every, every)):
        if k % 3 and len(extents) > 1:
            continue  # a third of the pairs
        tensor, whole = filled(shape, source)
        moved = tensor.redistribute(destination)
        np.testing.assert_array_equal(moved.gather(), whole, err_msg=f"{source} to {destination}")
        for device, shard in moved.shards.items():
            assert shard.shape == destination.local_shape(device)


@pytest.mark.parametrize("extents", SLOW)
def test_larger_meshes(extents):
    mesh = helve.Mesh(extents, ("x", "y", "z")[: len(extents)])
    every = placements(mesh, (7, 5))
    pick = np.random.default_rng(1)
    for _ in range(40):
        source, destination = (every[k] for k in pick.integers(0, len(every), 2))
        tensor, whole = filled((7, 5), source)
        np.testing.assert_array_equal(tensor.redistribute(destination).gather(), whole)


def test_what_is_received_is_what_is_counted():
    mesh = helve.Mesh((2, 3))
    every = placements(mesh, (7, 5))
    for source, destination in itertools.product(every[::3], every[::2]):
        plan = redistribution(source, destination, 4)
        for step in plan.steps:
            if step.form in ("local", "all_reduce"):
                continue
            moved = {device: sum(int(np.prod(extents)) for sender, _, extents in step.received(device)
                                 if sender != device) for device in itertools.product(range(2), range(3))}
            assert step._core.volume(4) == (4 * max(moved.values()), 4 * sum(moved.values()))
            got = sorted((sender, device, first, extents) for device in moved
                         for sender, first, extents in step.received(device))
            assert got == sorted((device, receiver, first, extents) for device in moved
                                 for receiver, first, extents in step.sent(device))


@pytest.mark.parametrize(("op", "ufunc"), [("max", np.maximum), ("min", np.minimum), ("prod", np.multiply)])
def test_terms_of_other_operators(op, ufunc):
    mesh = helve.Mesh((3,), ("x",))
    shards = {(k,): np.random.default_rng(k).normal(size=(5,)) for k in range(3)}
    tensor = DistTensor.from_local(shards, distribution(f"i -> {op}", (5,), mesh))
    whole = ufunc(ufunc(shards[0,], shards[1,]), shards[2,])
    np.testing.assert_array_equal(tensor.gather(), whole)
    again = tensor.redistribute(distribution("i -> i", (5,), mesh)).redistribute(tensor.distribution)
    np.testing.assert_array_equal(again.gather(), whole)


@pytest.mark.parametrize("ops", list(itertools.permutations(["+", "prod", "max", "min"], 2)))
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64"])
def test_terms_of_two_operators_are_reduced_in_either_order(ops, dtype):
    mesh = helve.Mesh((2, 3))
    a = np.array([3, 0, 7, 250], dtype) if dtype == "uint8" else np.array([-3, 0, 7, -250], dtype)
    tensor = DistTensor.from_global(a, distribution(f"i -> {' '.join(ops)}", (4,), mesh))
    for first in (f"i -> * {ops[1]}", f"i -> {ops[0]} *"):
        np.testing.assert_array_equal(tensor.redistribute(distribution(first, (4,), mesh)).gather(), a, err_msg=first)


def test_distributions_print_parse_and_come_from_layouts():
    mesh = helve.Mesh((2, 2, 3), ("x", "y", "z"))
    for each in placements(mesh, (7, 5)):
        again = distribution(str(each).split("; "), (7, 5), mesh)
        assert (again.layout, again.partial) == (each.layout, each.partial)
        assert pickle.loads(pickle.dumps(each)) == again
        if not each.partial:
            assert distribution_of(each.layout, (7, 5), mesh).layout.equivalent(each.layout)


@pytest.mark.parametrize("extents", [(32, 32), (256, 256)])
def test_a_plan_for_many_devices_is_short(extents):
    mesh = helve.Mesh(extents, ("x", "y"))
    source, destination = (distribution(text, (8192, 8192), mesh) for text in ("i j -> i j", "i j -> j i"))
    plan = redistribution(source, destination, 4)
    assert [step.form for step in plan.steps] == ["permute"] and len(str(plan)) < 1000
    assert plan.volume() == (8192 * 8192 * 4 // (extents[0] ** 2), 8192 * 8192 * 4 * (extents[0] - 1) // extents[0])
