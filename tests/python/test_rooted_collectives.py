"""Collectives with a root and permutations by maps: what arrives where, and what keeps its values.

Over sets of axes of meshes of one, two and three dimensions, on the interpreter and its stages, on the CPU and in
kernels of GPUs; NumPy says what each core gets. Every destination holds something before.
"""

import itertools
import math

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import check, dtype_of, sample
from group_programs import BEFORE, NAMES, groups_over, members_of, program_of, wanted_of

from helve import T, _core

MESHES = [(3,), (1,), (2, 3), (3, 1), (2, 1, 3), (2, 2, 2)]


def sets_of_axes(mesh):
    names = NAMES[: len(mesh)]
    return [axes for count in range(1, len(mesh) + 1) for axes in itertools.combinations(names, count)]


def at_root(root, value):
    """What a group becomes of which the root alone gets something."""
    return lambda xs: [value(xs) if me == root else None for me in range(len(xs))]


def permuted(source):
    return lambda xs: [xs[source(me)] if 0 <= source(me) < len(xs) else None for me in range(len(xs))]


def total(op, dtype):
    """Of blocks in member order, in the dtype."""
    return lambda xs: op.reduce(np.stack(xs), 0, dtype=dtype)


def statements(k, a):
    """(name, source shape, destination shape, dtype, statements, what a group of blocks becomes; None: keeps it)."""
    last = k - 1
    return [
        ("gather", (3, 2), (3, 2, k), "int32", [f"T.comm.gather(S, D, {last}, {a})"],
         at_root(last, lambda xs: np.stack(xs, -1))),
        ("gather_first", (3, 2), (k, 3, 2), "int8", [f"T.comm.gather(S, D, root=0, {a}, dim=0)"], at_root(0, np.stack)),
        ("concatenate", (3, 50), (3, 50 * k), "float64", [f"T.comm.gather(S, D, {k // 2}, {a}, dim=1)"],
         at_root(k // 2, lambda xs: np.concatenate(xs, 1))),
        ("scatter", (2 * k, 3), (2, 3), "float32", [f"T.comm.scatter(S, D, {last}, {a}, dim=0)"],
         lambda xs: np.split(xs[last], k)),
        ("scatter_own", (2, 3, k), (2, 3), "int16", [f"T.comm.scatter(S, D, 0, {a})"],
         lambda xs: [xs[0][..., me] for me in range(k)]),
        ("reduce", (7,), (7,), "int32", [f"T.comm.reduce(S, D, {a})"], at_root(0, total(np.add, np.int32))),
        ("reduce_max", (200,), (1, 200), "float32", [f'T.comm.reduce(S, D, op="max", root={last}, {a})'],
         at_root(last, lambda xs: total(np.maximum, np.float32)(xs)[None])),
        ("reduce_in_place", (5,), (5,), "int64", [f'T.comm.reduce(S, S, op="prod", root={last}, {a})', "T.copy(S, D)"],
         lambda xs: [*xs[:last], total(np.multiply, np.int64)(xs)]),
        ("gather_in_place", (k, 2), (k, 2), "int32", [f"T.comm.gather(S[{last}, :], S, {last}, {a}, dim=0)",
                                                      "T.copy(S, D)"],
         lambda xs: [*xs[:last], np.stack([x[last] for x in xs])]),
        ("before", (3, 5), (3, 5), "uint8", [f"T.comm.permute(S, D, {a}, source=lambda k: k - 1)"],
         permuted(lambda k: k - 1)),
        ("behind", (3, 5), (3, 5), "float32", [f"T.comm.permute(S, D, source=lambda k: k + 1, {a})"],
         permuted(lambda k: k + 1)),
        ("reversed", (4,), (4,), "int32", [f"T.comm.permute(S, S, {a}, source=lambda me: {last} - me)", "T.copy(S, D)"],
         permuted(lambda k: last - k)),
        ("from_one", (4,), (4,), "float16", [f"T.comm.permute(S, D, {a}, source=lambda k: 0)"], permuted(lambda k: 0)),
        ("even", (4,), (4,), "int32",
         [f"T.comm.permute(S, D, {a}, source=lambda k: T.if_then_else(k % 2 == 0, (k + 2) % {k}, -1))"],
         permuted(lambda me: (me + 2) % k if me % 2 == 0 else -1)),
        ("broadcast_in_turn", (3, 2), (3, 2), "int32",
         ["E = T.alloc_shared((3, 2), \"int32\")", f"for t in T.serial({k}):", f"    T.comm.broadcast(S, E, t, {a})",
          "    for i, j in T.Parallel(3, 2):", "        D[i, j] = D[i, j] * 3 + E[i, j]"],
         lambda xs: [_horner(xs)] * k),
        ("shifted_in_turn", (4,), (4,), "int32",
         [f"for t in T.serial({k + 1}):", f"    T.comm.permute(S, S, shift=t, {a})", "T.copy(S, D)"],
         permuted(lambda me: (me - k * (k + 1) // 2) % k)),
        ("reduced_in_turn", (4,), (4,), "int32", [f"for t in T.serial({k}):", f"    T.comm.reduce(S, D, root=t, {a})"],
         lambda xs: [total(np.add, np.int32)(xs)] * k),
    ]


def _horner(xs):
    out = np.full_like(xs[0], BEFORE)
    for x in xs:
        out = out * 3 + x
    return out


def cases(meshes=MESHES):
    for mesh in meshes:
        for axes in sets_of_axes(mesh):
            for name, *rest in statements(members_of(mesh, axes), f"axis={axes!r}"):
                yield pytest.param(mesh, axes, *rest, id=f"{name}_{''.join(axes)}_{'x'.join(map(str, mesh))}")


@pytest.mark.parametrize("mesh, axes, src, dst, dtype, lines, collective", list(cases()))
def test_every_way(mesh, axes, src, dst, dtype, lines, collective):
    a = sample((*mesh, *src), dtype)
    wanted = wanted_of(a, mesh, axes, dst, dtype, collective)
    check(program_of(mesh, src, dst, dtype, lines), [a, np.zeros_like(wanted)], {1: wanted})


@pytest.mark.parametrize("arch, cluster", [("sm_90a", 16), ("sm_80", 1)])
def test_in_kernels_of_gpus(arch, cluster, tmp_path):
    chosen = list(cases([(3,), (1,), (2, 3), (2, 1, 3)]))
    forms = [helve.testing.lowering_stages(program_of(mesh, src, dst, dtype, lines), target="cuda", arch=arch)[-1][1]
             for mesh, _, src, dst, dtype, lines, _ in (case.values for case in chosen)]
    kernels = HostKernels(forms, tmp_path, names=[case.id for case in chosen], cluster_blocks=cluster)
    for case in chosen:
        mesh, axes, src, dst, dtype, _, collective = case.values
        a = aligned(sample((*mesh, *src), dtype))
        b = aligned(np.zeros((*mesh, *dst), dtype_of(dtype)))
        kernels.run(case.id, math.prod(mesh), {"A": a, "B": b})
        np.testing.assert_array_equal(b, wanted_of(a, mesh, axes, dst, dtype, collective), case.id)


def test_empty_tensors_arrive_nowhere():
    for statement in ["gather(S, D, 1, axis='y', dim=1)", "scatter(D, S, 1, axis='y', dim=1)"]:
        program = program_of((2, 3), (0, 2), (0, 6), "float32", [f"T.comm.{statement}"])
        check(program, [np.zeros((2, 3, 0, 2), "float32"), np.zeros((2, 3, 0, 6), "float32")], {})
    for statement in ["reduce(S, D, root=2, axis='y')", "permute(S, D, source=lambda k: k - 1)"]:
        program = program_of((2, 3), (3, 0), (3, 0), "float32", [f"T.comm.{statement}"])
        check(program, [np.zeros((2, 3, 3, 0), "float32")] * 2, {})


# -- roots, shifts and maps that are known when the program runs ------------------------------------------------------


def dynamic(mesh, dst, lines, head="", arguments=""):
    return program_of(mesh, (4,), dst, "int32", lines, head, arguments)


@pytest.mark.parametrize("root", range(3))
@pytest.mark.parametrize("name", ["broadcast(S, D, n", "reduce(S, D, root=n", "permute(S, D, shift=n - 1",
                                  "permute(S, D, source=lambda k: k - n"])
def test_an_integer_parameter(name, root):
    program = dynamic((2, 3), (4,), [f"T.comm.{name}, axis='y')"], arguments=", n: T.int32")
    a = sample((2, 3, 4), "int32")
    collective = {"b": lambda xs: [xs[root]] * 3, "r": at_root(root, total(np.add, np.int32)),
                  "p": permuted(lambda k: (k - root + 1) % 3 if "shift" in name else k - root)}[name[0]]
    wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", collective)
    check(program, [a, np.zeros_like(wanted), root], {1: wanted})


FAR = [-2**63, -2**63 + 1, -4, 2**63 - 1]


@pytest.mark.parametrize("shift", FAR)
def test_a_shift_is_any_index(shift):
    a = sample((2, 3, 4), "int32")
    wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k: (k - shift) % 3))
    program = dynamic((2, 3), (4,), ["T.comm.permute(S, D, shift=T.index(n), axis='y')"], arguments=", n: T.int64")
    check(program, [a, np.zeros_like(a), shift], {1: wanted})
    check(dynamic((2, 3), (4,), [f"T.comm.permute(S, D, shift={shift}, axis='y')"]), [a, np.zeros_like(a)], {1: wanted})


@pytest.mark.parametrize("arch, cluster", [("sm_90a", 16), ("sm_80", 1)])
def test_a_shift_is_any_index_in_kernels_of_gpus(arch, cluster, tmp_path):
    program = dynamic((2, 3), (4,), ["T.comm.permute(S, D, shift=T.index(n), axis='y')"], arguments=", n: T.int64")
    form = helve.testing.lowering_stages(program, target="cuda", arch=arch)[-1][1]
    kernels = HostKernels([form], tmp_path, names=["shifted"], cluster_blocks=cluster)
    a = sample((2, 3, 4), "int32")
    for shift in FAR:
        b = aligned(np.zeros_like(a))
        kernels.run("shifted", 6, {"A": aligned(a), "B": b}, {"n": shift})
        np.testing.assert_array_equal(
            b, wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k, by=shift: (k - by) % 3)))


def test_coordinates_of_other_axes():
    """Groups have different roots; those of one group the same."""
    a = sample((3, 2, 4), "int32")
    for statement, collective in [
        ("broadcast(S, D, c0 % 2, axis='y')", lambda row: lambda xs: [xs[row % 2]] * 2),
        ("gather(S, D, T.min(c0, 1), axis='y', dim=0)",
         lambda row: at_root(min(row, 1), np.concatenate)),
        ("permute(S, D, shift=c0, axis='y')", lambda row: permuted(lambda k: (k - row) % 2)),
        ("permute(S, D, source=lambda k: k - c0, axis='y')", lambda row: permuted(lambda k: k - row)),
    ]:
        dst = (8,) if "gather" in statement else (4,)
        wanted = np.full((3, 2, *dst), BEFORE, np.int32)
        for row in range(3):
            for column, value in enumerate(collective(row)([a[row, 0], a[row, 1]])):
                if value is not None:
                    wanted[row, column] = value
        check(dynamic((3, 2), dst, [f"T.comm.{statement}"]), [a, np.zeros_like(wanted)], {1: wanted})


def test_values_from_memory():
    """What a collective has made equal says where the next one takes its values from."""
    lines = ["P = T.alloc_shared((1,), \"int32\")", "Q = T.alloc_shared((1,), \"int32\")",
             "P[0] = c1 + c0", "T.comm.all_reduce(P, Q, op=\"max\", axis=\"y\")",
             "T.comm.broadcast(S, D, T.index(Q[0]) % 3, axis=\"y\")",
             "T.comm.permute(S, D, source=lambda k: k + T.index(Q[0]) - 3, axis=\"y\")"]
    a = sample((2, 3, 4), "int32")
    wanted = np.empty((2, 3, 4), np.int32)
    for row in range(2):
        most = 2 + row
        for column in range(3):
            source = column + most - 3
            wanted[row, column] = a[row, source if 0 <= source < 3 else most % 3]
    check(dynamic((2, 3), (4,), lines), [a, np.zeros_like(wanted)], {1: wanted})


def test_a_root_in_what_a_broadcast_overwrites():
    lines = ["for i in T.Parallel(4):", "    D[i] = 1", "T.comm.broadcast(S, D, T.index(D[3]), axis=\"y\")"]
    a = sample((2, 3, 4), "int32")
    check(dynamic((2, 3), (4,), lines), [a, np.zeros_like(a)], {1: np.repeat(a[:, 1:2], 3, 1)})


def test_a_source_in_what_a_permutation_overwrites():
    """All sources are known before the first destination is written."""
    a = sample((2, 3, 4), "int32")
    wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k: k - 1))
    wanted[:, 0] = 1
    for lines in ["D[3] = 1", "T.comm.permute(S, D, source=lambda k: k - T.index(D[3]), axis=\"y\")"], [
            "S[3] = 1", "T.comm.permute(S, S, source=lambda k: k - T.index(S[3]), axis=\"y\")", "T.copy(S, D)"]:
        program = dynamic((2, 3), (4,), ["for i in T.Parallel(4):", "    D[i] = 1", *lines])
        expected = wanted.copy()
        if "S[3]" in lines[0]:
            expected = wanted_of(np.concatenate([a[..., :3], np.ones_like(a[..., 3:])], -1), (2, 3), ("y",), (4,),
                                 "int32", permuted(lambda k: max(k - 1, 0)))
        check(program, [a, np.zeros_like(a)], {1: expected})


PLACES = {
    "shared": ["P = T.alloc_shared((1,), \"int32\")", "P[0] = 1"],
    "shared_loop": ["P = T.alloc_shared((4,), \"int32\")", "for i in T.Parallel(4):", "    P[i] = 1"],
    "fragment": ["P = T.alloc_fragment((1,), \"int32\")", "P[0] = 1"],
    "fragment_loop": ["P = T.alloc_fragment((4,), \"int32\")", "for i in T.Parallel(4):", "    P[i] = 1"],
    "local": ["P = T.alloc_local((1,), \"int32\")", "P[0] = 1"],
}
READERS = {
    "root": ("T.comm.broadcast(S, D, T.index(P[0]), axis='y')", lambda xs: [xs[1]] * 3),
    "shift": ("T.comm.permute(S, D, shift=T.index(P[0]), axis='y')", permuted(lambda k: (k - 1) % 3)),
    "source": ("T.comm.permute(S, D, source=lambda k: k - T.index(P[0]), axis='y')", permuted(lambda k: k - 1)),
    "condition": ("T.comm.permute(S, D, source=lambda k: T.if_then_else(P[0] > 0, k - 1, k + 1), axis='y')",
                  permuted(lambda k: k - 1)),
    "guarded": ("T.comm.permute(S, D, source=lambda k: T.if_then_else(k > 0, k - T.index(P[0]), k), axis='y')",
                permuted(lambda k: max(k - 1, 0))),
    "cores": ("T.comm.put(S, D, src_core=[0, T.index(P[0])], dst_core=[T.index(P[0]), 2])", None),
}


def reading_memory():
    """(name, program, arguments, what B becomes) of operands that read memory of which nothing else is known."""
    a = sample((2, 3, 4), "int32")
    for (place, lines), (reader, (statement, collective)) in itertools.product(PLACES.items(), READERS.items()):
        if collective:
            wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", collective)
        else:
            wanted = np.full_like(a, BEFORE)
            wanted[1, 2] = a[0, 1]
        yield f"{reader}_{place}", dynamic((2, 3), (4,), [*lines, statement]), a, wanted


@pytest.mark.parametrize("name, program, a, wanted", [pytest.param(*case, id=case[0]) for case in reading_memory()])
def test_operands_that_read_memory(name, program, a, wanted):
    check(program, [a, np.zeros_like(a)], {1: wanted})


@pytest.mark.parametrize("arch, cluster", [("sm_90a", 16), ("sm_80", 1)])
def test_operands_that_read_memory_in_kernels_of_gpus(arch, cluster, tmp_path):
    chosen = list(reading_memory())
    forms = [helve.testing.lowering_stages(program, target="cuda", arch=arch)[-1][1] for _, program, _, _ in chosen]
    kernels = HostKernels(forms, tmp_path, names=[name for name, *_ in chosen], cluster_blocks=cluster)
    for name, _, a, wanted in chosen:
        b = aligned(np.zeros_like(wanted))
        kernels.run(name, 6, {"A": aligned(a), "B": b})
        np.testing.assert_array_equal(b, wanted, name)


# What a map evaluates only under conditions has no value where they do not hold.
GUARDED = [
    ("T.if_then_else(n < 4, k - T.index(P[n]), k)", lambda n: lambda k: k - 1 if n < 4 else k),
    ("T.if_then_else(n >= 4, k, k - T.index(P[n]))", lambda n: lambda k: k - 1 if n < 4 else k),
    ("T.if_then_else(n < 4 and P[n] > 0, k - 1, k)", lambda n: lambda k: k - 1 if n < 4 else k),
    ("T.if_then_else(n >= 4 or P[n] < 1 or k < 1, k, k - 1)",
     lambda n: lambda k: k - 1 if n < 4 and k >= 1 else k),
    ("T.if_then_else(n < 4, T.if_then_else(P[n] > 0, k - T.index(P[n]), k + 5), k)",
     lambda n: lambda k: k - 1 if n < 4 else k),
    ("T.if_then_else(n != 50000000, k - 4 // (n - 50000000), k)",
     lambda n: lambda k: k if n == 50000000 else k - 4 // (n - 50000000)),
    ("T.if_then_else(k > 1, k - 4 // (n - 2), k)", lambda n: lambda k: k - 4 // (n - 2) if k > 1 else k),
    ("T.if_then_else(c0 > 0, k - 1 // c0, k)", None),
    ("T.if_then_else(c0 > 0 and k > 0, k - 1 // c0, k)", None),
]


def guarded_programs():
    a = sample((2, 3, 4), "int32")
    for source, collective in GUARDED:
        lines = ["P = T.alloc_shared((4,), \"int32\")", "for i in T.Parallel(4):", "    P[i] = 1",
                 f"T.comm.permute(S, D, source=lambda k: {source}, axis='y')"]
        for n in (3, 50_000_000):
            if collective:
                wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(collective(n)))
            else:
                wanted = a.copy()
                wanted[1] = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k: k - 1))[1]
                if "k > 0" in source:
                    wanted[1, 0] = a[1, 0]
            yield lines, a, n, wanted


def test_what_a_source_evaluates_under_conditions():
    for lines, a, n, wanted in guarded_programs():
        check(dynamic((2, 3), (4,), lines, arguments=", n: T.int32"), [a, np.zeros_like(a), n], {1: wanted})


@pytest.mark.parametrize("arch, cluster", [("sm_90a", 16), ("sm_80", 1)])
def test_what_a_source_evaluates_under_conditions_in_kernels_of_gpus(arch, cluster, tmp_path):
    chosen = [(f"case{i}", *case) for i, case in enumerate(guarded_programs())]
    programs = [dynamic((2, 3), (4,), lines, arguments=", n: T.int32") for _, lines, *_ in chosen]
    forms = [helve.testing.lowering_stages(program, target="cuda", arch=arch)[-1][1] for program in programs]
    kernels = HostKernels(forms, tmp_path, names=[name for name, *_ in chosen], cluster_blocks=cluster)
    for name, lines, a, n, wanted in chosen:
        b = aligned(np.zeros_like(wanted))
        kernels.run(name, 6, {"A": aligned(a), "B": b}, {"n": n})
        np.testing.assert_array_equal(b, wanted, f"{lines[-1]} {n}")


def test_a_condition_of_a_source_on_a_value_that_was_read():
    lines = ["P = T.alloc_shared((1,), \"int32\")", "P[0] = 1", "v = P[0]",
             "T.comm.permute(S, D, source=lambda k: T.if_then_else(v > 0, k - 1, k + 1), axis=\"y\")"]
    a = sample((2, 3, 4), "int32")
    wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k: k - 1))
    check(dynamic((2, 3), (4,), lines), [a, np.zeros_like(a)], {1: wanted})


STATEMENTS = ["broadcast(S, D, {}, axis='y')", "scatter(E, D, {}, axis='y', dim=0)",
              "gather(D, E, {}, axis='y', dim=0)", "reduce(S, D, root={}, axis='y')"]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_root_outside_of_its_group(statement):
    """A call that names it is refused; memory that does ends the call where the collective stands."""
    lines = ["E = T.alloc_shared((12,), \"int32\")", "P = T.alloc_shared((1,), \"int32\")", "T.fill(E, 0)", "P[0] = n"]
    name = statement.partition("(")[0]
    a = sample((2, 3, 4), "int32")
    for root, message, code in [
        ("n", "'main' needs n >= 0 and n <= 2, this call has n={}", "HV0616"),
        ("T.index(P[0])", f"'T.comm.{name}' cannot take {{}} for 'root': the group has 3 cores", "HV0108"),
    ]:
        program = dynamic((2, 3), (4,), [*lines, f"T.comm.{statement.format(root)}"], arguments=", n: T.int32")
        for target, number in itertools.product(["interp", "llvm"], [-1, 3]):
            with pytest.raises(helve.Error) as caught:
                helve.compile(program, target=target)(a, np.zeros_like(a), number)
            assert caught.value.code == code
            assert message.format(number) in str(caught.value)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_root_that_is_certainly_outside(statement):
    lines = ["E = T.alloc_shared((12,), \"int32\")", "T.fill(E, 0)", "for t in T.serial(4):",
             f"    T.comm.{statement.format('t')}"]
    with pytest.raises(helve.Error, match="cannot take 3 for 'root': the group has 3 cores") as caught:
        helve.compile(dynamic((2, 3), (4,), lines), target="llvm")
    assert caught.value.code == "HV0108" and "when t=3" in str(caught.value)


def test_cores_of_a_put_that_are_known_when_it_runs():
    program = dynamic((2, 3), (4,), ["T.comm.put(S, D, src_core=[n, 1], dst_core=[1, n + 1])"],
                      arguments=", n: T.int32")
    a = sample((2, 3, 4), "int32")
    for n in (0, 1):
        wanted = np.full_like(a, BEFORE)
        wanted[1, n + 1] = a[n, 1]
        check(program, [a, np.zeros_like(a), n], {1: wanted})
    for target in ("interp", "llvm"):
        with pytest.raises(helve.Error, match="'main' needs n >= 0 and n <= 1, this call has n=2") as caught:
            helve.compile(program, target=target)(a, np.zeros_like(a), 2)
        assert caught.value.code == "HV0616"


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_memory_that_differs_in_a_group(target):
    lines = ["P = T.alloc_shared((1,), \"int32\")", "P[0] = c1", "T.comm.broadcast(S, D, T.index(P[0]), axis=\"y\")"]
    a = sample((2, 3, 4), "int32")
    with pytest.raises(helve.Error) as caught:
        helve.compile(dynamic((2, 3), (4,), lines), target=target)(a, np.zeros_like(a))
    assert caught.value.code == "HV0432"
    assert "it is 0 on core (0, 0) and 1 on core (0, 1)" in str(caught.value)


# -- forms ------------------------------------------------------------------------------------------------------------


def test_forms_are_printed_and_read_back():
    lines = ["E = T.alloc_shared((12,), \"int32\")", "T.comm.gather(S, E, c0, axis='y', dim=0)",
             "T.comm.scatter(E, D, root=1, axis='y', dim=0)", "T.comm.reduce(S, D, root=c0 + 1, axis='y')",
             "for t in T.serial(3):", "    T.comm.permute(S, D, source=lambda k: (k + t) % 3 - c0, axis='y')",
             "    T.comm.permute(S, D, shift=t, axis='y')"]
    text = dynamic((2, 3), (4,), lines).script()
    for line in ["T.comm.gather(S, E, c0, axis=\"y\", dim=0)", "T.comm.scatter(E, D, 1, axis=\"y\", dim=0)",
                 "T.comm.reduce(S, D, root=c0 + 1, axis=\"y\")",
                 "T.comm.permute(S, D, axis=\"y\", source=lambda k: (k + t) % 3 - c0)",
                 "T.comm.permute(S, D, shift=t, axis=\"y\")"]:
        assert line in text
    assert helve.parse(text).script() == text


def test_maps_are_equal_whatever_their_variable_is_called():
    def of(source):
        return dynamic((2, 3), (4,), [f"T.comm.permute(S, D, source=lambda {source}, axis='y')"])

    one, same, other = of("k: k - 1"), of("me: me - 1"), of("k: k - 2")
    assert _core.structural_equal(one.function, same.function)[0]
    assert _core.structural_hash(one.function) == _core.structural_hash(same.function)
    assert not _core.structural_equal(one.function, other.function)[0]
    assert _core.structural_hash(one.function) != _core.structural_hash(other.function)


def test_a_source_is_any_function_of_one_index():
    def before(k):
        return k - 1

    @T.prim_func(mesh=helve.Mesh((3,), ("x",)))
    def main(A: T.Tensor((3,), "int32")):
        with T.Kernel(3) as c:
            S = T.alloc_shared((1,), "int32")
            S[0] = c
            T.comm.permute(S, S, source=before)
            A[c] = S[0]

    a = np.zeros(3, np.int32)
    helve.compile(main)(a)
    assert a.tolist() == [0, 0, 1]


@pytest.mark.parametrize("source", ["lambda k, s=1: k - s", "lambda k=2, s=n: k - s"])
def test_a_source_may_have_more_parameters_with_defaults(source):
    program = dynamic((2, 3), (4,), [f"T.comm.permute(S, D, source={source}, axis='y')"], arguments=", n: T.int32")
    a = sample((2, 3, 4), "int32")
    wanted = wanted_of(a, (2, 3), ("y",), (4,), "int32", permuted(lambda k: k - 1))
    check(program, [a, np.zeros_like(a), 1], {1: wanted})


def test_a_plan_names_no_ranks():
    program = dynamic((2, 3), (4,), ["T.comm.permute(S, D, source=lambda k: k - 1, axis='y')",
                                     "T.comm.put(S, D, src_core=[0, 1], dst_core=[1, 2])"])
    text = helve.compile(program, target="llvm").source("plan")
    assert "permute over (y) from k -> k - 1 int32" in text
    assert "permute over (x, y) from k -> " in text and "[" not in text.split("from k -> ")[2].split(" int32")[0]


def test_proofs_tell_of_roots():
    lines = ["for t in T.serial(3):", "    T.comm.broadcast(S, D, t, axis='y')",
             "P = T.alloc_shared((1,), \"int32\")", "P[0] = 1", "T.comm.reduce(S, D, root=T.index(P[0]), axis='y')",
             "T.comm.reduce(S, D, root=n, axis='y')"]
    kernel = helve.compile(dynamic((2, 3), (4,), lines, arguments=", n: T.int32"), target="llvm")
    found = {p.question: p.verdict for p in kernel.proofs() if "'root'" in p.question}
    assert found == {"'root' of T.comm.broadcast, t, is one of 3 cores": "proved",
                     "'root' of T.comm.reduce, T.cast(P[0], \"index\"), is one of 3 cores": "unknown",
                     "'root' of T.comm.reduce, T.cast(n, \"index\"), is one of 3 cores": "checked"}


def test_a_function_that_is_called_brings_its_maps():
    mesh = helve.Mesh((3,), ("x",))

    @T.prim_func(mesh=mesh)
    def moved(A: T.Tensor((3, 4), "int32"), s: T.int32):
        with T.Kernel(3) as c:
            S = T.alloc_shared((4,), "int32")
            T.copy(A[c, :], S)
            T.comm.permute(S, S, source=lambda k: k - s)
            T.comm.broadcast(S[0:1], S[1:2], root=s)
            T.copy(S, A[c, :])

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((3, 4), "int32"), B: T.Tensor((3, 4), "int32"), n: T.int32):
        moved(A, n)
        moved(B, 2)

    a = np.arange(12, dtype="int32").reshape(3, 4)
    wanted = []
    for by in (1, 2):
        wanted.append(np.concatenate([a[:by], a[: 3 - by]]))
        wanted[-1][:, 1] = wanted[-1][by, 0]
    check(main, [a, a.copy(), 1], dict(enumerate(wanted)))


# -- products of matrices whose blocks are on a square mesh ------------------------------------------------------------


def summa(q, b):
    """Each step has the blocks of one column of A, and of one row of B, on all cores of their rows and columns."""
    @T.prim_func(mesh=helve.Mesh((q, q)))
    def main(A: T.Tensor((q, q, b, b), "float32"), B: T.Tensor((q, q, b, b), "float32"),
             C: T.Tensor((q, q, b, b), "float32")):
        with T.Kernel(q, q) as (r, c):
            mine = T.alloc_shared((b, b), "float32")
            yours = T.alloc_shared((b, b), "float32")
            left = T.alloc_shared((b, b), "float32")
            right = T.alloc_shared((b, b), "float32")
            total = T.alloc_fragment((b, b), "float32")
            T.copy(A[r, c, :, :], mine)
            T.copy(B[r, c, :, :], yours)
            T.clear(total)
            for t in T.serial(q):
                T.comm.broadcast(mine, left, root=t, axis="y")
                T.comm.broadcast(yours, right, root=t, axis="x")
                T.gemm(left, right, total)
            T.copy(total, C[r, c, :, :])

    return main


def cannon(q, b):
    """Blocks are skewed by their row and column, and then move one place at each step."""
    @T.prim_func(mesh=helve.Mesh((q, q)))
    def main(A: T.Tensor((q, q, b, b), "float32"), B: T.Tensor((q, q, b, b), "float32"),
             C: T.Tensor((q, q, b, b), "float32")):
        with T.Kernel(q, q) as (r, c):
            left = T.alloc_shared((b, b), "float32")
            right = T.alloc_shared((b, b), "float32")
            total = T.alloc_fragment((b, b), "float32")
            T.copy(A[r, c, :, :], left)
            T.copy(B[r, c, :, :], right)
            T.clear(total)
            T.comm.permute(left, left, shift=-r, axis="y")
            T.comm.permute(right, right, shift=-c, axis="x")
            for _ in T.serial(q):
                T.gemm(left, right, total)
                T.comm.permute(left, left, shift=-1, axis="y")
                T.comm.permute(right, right, source=lambda k: (k + 1) % q, axis="x")
            T.copy(total, C[r, c, :, :])

    return main


@pytest.mark.parametrize("product", [summa, cannon])
@pytest.mark.parametrize("q, b", [(1, 3), (2, 4), (3, 5)])
def test_products_of_blocks(product, q, b):
    rng = np.random.default_rng(0)
    a, other = (rng.integers(-4, 4, (q * b, q * b)).astype("float32") for _ in range(2))
    blocks = lambda m: np.ascontiguousarray(m.reshape(q, b, q, b).swapaxes(1, 2))  # noqa: E731
    wanted = blocks(a @ other)
    check(product(q, b), [blocks(a), blocks(other), np.zeros_like(wanted)], {2: wanted})
