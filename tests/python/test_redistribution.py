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


def test_what_is_prepared_runs_often():
    mesh = helve.Mesh((2, 2))
    a = np.arange(35).reshape(7, 5)
    for source, destination in (("i j -> i j", "i j -> j *"), ("i j -> + i", "i j -> max j"),
                                ("i j -> * *", "i j -> i j"), ("i j -> i j", "i j -> i j")):
        tensor = DistTensor.from_global(a, distribution(source, (7, 5), mesh))
        plan = tensor.plan(distribution(destination, (7, 5), mesh))
        again = tensor.redistribute(plan.destination)
        out = DistTensor({device: np.full_like(part, 9) for device, part in again.shards.items()}, plan.destination)
        for run in (tensor.prepare(plan), tensor.prepare(plan, out=out)):
            for factor in (1, 2, 3):
                for part, fresh in zip(tensor.shards.values(),
                                       DistTensor.from_global(a * factor, tensor.distribution).shards.values()):
                    part[...] = fresh
                made = run()
                assert made is run.out
                np.testing.assert_array_equal(made.gather(), a * factor)
        assert made is out


def test_parts_in_any_order_of_memory():
    mesh = helve.Mesh((2, 2))
    a = np.arange(7 * 5 * 3).reshape(7, 5, 3)
    pick = np.random.default_rng(2)

    def stored(part, order):
        return np.ascontiguousarray(part.transpose(order)).transpose(np.argsort(order))[::1]

    for source, destination in (("i j k -> i j", "i j k -> k i"), ("i j k -> + +", "i j k -> j k"),
                                ("i j k -> k i", "i j k -> * *"), ("i j k -> + i", "i j k -> * *")):
        tensor = DistTensor.from_global(a, distribution(source, (7, 5, 3), mesh))
        turned = DistTensor.from_local({device: stored(part, pick.permutation(3))
                                        for device, part in tensor.shards.items()}, tensor.distribution)
        plan = turned.plan(distribution(destination, (7, 5, 3), mesh))
        empty = {device: stored(np.empty_like(part), pick.permutation(3))
                 for device, part in turned.redistribute(plan.destination).shards.items()}
        turned.prepare(plan, out=DistTensor.from_local(empty, plan.destination))()
        np.testing.assert_array_equal(DistTensor(empty, plan.destination).gather(), a)


def test_what_cannot_be_prepared_is_refused():
    mesh = helve.Mesh((2,))
    cut, copies = (distribution(text, (4,), mesh) for text in ("i -> i", "i -> *"))
    tensor = DistTensor.from_global(np.arange(4.0), cut)
    plan = tensor.plan(copies)

    def refused(code, call, *args, **kwargs):
        with pytest.raises(helve.Error) as caught:
            call(*args, **kwargs)
        assert caught.value.code == code

    whole = {(0,): np.zeros(4), (1,): np.zeros(4)}
    other = DistTensor.from_global(np.arange(4.0), copies)
    refused("HV0507", other.prepare, plan)
    refused("HV0507", tensor.prepare, "plan")
    refused("HV0507", tensor.prepare, plan, out=whole)
    refused("HV0507", tensor.prepare, plan, out=tensor)
    single = DistTensor.from_global(np.arange(4, dtype="float32"), copies)
    refused("HV0507", tensor.prepare, plan, out=single)
    refused("HV0416", tensor.prepare, plan, out=DistTensor({(0,): np.zeros(4)}, copies))
    shared = np.zeros(4)
    refused("HV0507", tensor.prepare, plan, out=DistTensor.from_local({(0,): shared, (1,): shared}, copies))
    frozen = DistTensor.from_local(whole, copies)
    run = tensor.prepare(plan, out=frozen)
    whole[1,].flags.writeable = False
    refused("HV0610", run)
    refused("HV0610", tensor.prepare, plan, out=frozen)
    whole[1,].flags.writeable = True
    run()
    whole[0,].resize(100_000, refcheck=False)
    refused("HV0507", run)
    assert pickle.loads(pickle.dumps(tensor)).gather().tolist() == [0, 1, 2, 3]


def test_dtypes_that_helve_does_not_know_are_moved():
    mesh = helve.Mesh((2, 2))
    for dtype in ("complex128", ">f4", "datetime64[s]", "S5", [("a", "i4"), ("b", "f8")]):
        a = np.frombuffer(np.random.default_rng(0).bytes(35 * np.dtype(dtype).itemsize), dtype).reshape(7, 5)
        moved = DistTensor.from_global(a, distribution("i j -> i j", (7, 5), mesh)).redistribute(
            distribution("i j -> j *", (7, 5), mesh))
        assert moved.dtype == a.dtype and moved.gather().tobytes() == a.tobytes()


def test_distributions_print_parse_and_come_from_layouts():
    mesh = helve.Mesh((2, 2, 3), ("x", "y", "z"))
    for each in placements(mesh, (7, 5)):
        again = distribution(str(each).split("; "), (7, 5), mesh)
        assert (again.layout, again.partial) == (each.layout, each.partial)
        assert pickle.loads(pickle.dumps(each)) == again
        if not each.partial:
            assert distribution_of(each.layout, (7, 5), mesh).layout.equivalent(each.layout)


def test_chains_over_three_axes_are_proved_for_any_mesh():
    """Their steps are collectives, whose forms are proved; for 32768 devices as for 8."""
    for extents, shape in (((2, 2, 2), (96, 64, 32)), ((32, 32, 32), (32768, 32768, 32768))):
        mesh = helve.Mesh(extents, ("x", "y", "z"))
        every_axis = [f"i j k -> {axis}:i" for axis in mesh.names]
        for source, destination in (("i j k -> + k j", every_axis), ("i j k -> i + j", "i j k -> k * *")):
            ends = (distribution(text, shape, mesh) for text in (source, destination))
            plan = redistribution(*ends, 4, latency=1.0)  # few messages
            assert 2 <= len(plan.steps) <= 3 and all(step.form != "exchange" for step in plan.steps), str(extents)


@pytest.mark.parametrize("extents", [(32, 32), (256, 256)])
def test_a_plan_for_many_devices_is_short(extents):
    mesh = helve.Mesh(extents, ("x", "y"))
    source, destination = (distribution(text, (8192, 8192), mesh) for text in ("i j -> i j", "i j -> j i"))
    plan = redistribution(source, destination, 4)
    assert [step.form for step in plan.steps] == ["permute"] and len(str(plan)) < 1000
    assert plan.volume() == (8192 * 8192 * 4 // (extents[0] ** 2), 8192 * 8192 * 4 * (extents[0] - 1) // extents[0])
