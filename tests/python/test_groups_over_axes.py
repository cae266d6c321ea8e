"""Collectives over several axes of a mesh of three: members of a group count in the order of the mesh.

Each set of axes, neighbouring or not, on the interpreter and its stages, on the CPU and in kernels of GPUs; NumPy says
what each core gets.
"""

import itertools

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import check, dtype_of, sample
from group_programs import NAMES, members_of, program_of, wanted_of

from helve import T, _core

MESHES = [(2, 3, 2), (2, 1, 3), (1, 2, 2)]
SETS = [("x", "z"), ("x", "y"), ("y", "z"), ("x", "y", "z"), ("y",)]


def statements(k, axes):
    """(name, source shape, destination shape, dtype, statement, what a group of blocks becomes)."""
    a = f"axis={axes!r}"
    return [
        ("all_gather", (3, 2), (3, 2, k), "int32", f"all_gather(S, D, {a})", lambda xs: [np.stack(xs, -1)] * k),
        ("concatenate", (3, 2), (3 * k, 2), "float32", f"all_gather(S, D, {a}, dim=0)",
         lambda xs: [np.concatenate(xs)] * k),
        ("all_reduce", (7,), (7,), "int32", f"all_reduce(S, D, {a})", lambda xs: [np.sum(xs, 0, dtype=np.int32)] * k),
        ("reduce_scatter", (2 * k, 3), (2, 3), "int64", f"reduce_scatter(S, D, {a}, dim=0)",
         lambda xs: np.split(np.sum(xs, 0), k)),
        ("all_to_all", (3 * k, 2), (3 * k, 2), "int16", f"all_to_all(S, D, {a})",
         lambda xs: [np.concatenate([np.split(x, k)[me] for x in xs]) for me in range(k)]),
        ("broadcast", (3, 5), (3, 5), "uint8", f"broadcast(S, D, {k - 1}, {a})", lambda xs: [xs[k - 1]] * k),
        ("permute", (3, 5), (3, 5), "float64", f"permute(S, D, shift=-1, {a})",
         lambda xs: [xs[(i + 1) % k] for i in range(k)]),
    ]


def cases():
    for mesh, axes in itertools.product(MESHES, SETS):
        for name, *rest in statements(members_of(mesh, axes), axes):
            yield pytest.param(mesh, axes, *rest, id=f"{name}_{''.join(axes)}_{'x'.join(map(str, mesh))}")


@pytest.mark.parametrize("mesh, axes, src, dst, dtype, statement, collective", list(cases()))
def test_every_way(mesh, axes, src, dst, dtype, statement, collective):
    a = sample((*mesh, *src), dtype)
    wanted = wanted_of(a, mesh, axes, dst, dtype, collective)
    check(program_of(mesh, src, dst, dtype, [f"T.comm.{statement}"]), [a, np.zeros_like(wanted)], {1: wanted})


@pytest.mark.parametrize("arch, cluster", [("sm_90a", 16), ("sm_80", 1)])
def test_in_kernels_of_gpus(arch, cluster, tmp_path):
    chosen = [case for case in cases() if case.values[0] == (2, 3, 2)]
    forms = [helve.testing.lowering_stages(program_of(mesh, src, dst, dtype, [f"T.comm.{statement}"]), target="cuda",
                                           arch=arch)[-1][1]
             for mesh, _, src, dst, dtype, statement, _ in (case.values for case in chosen)]
    kernels = HostKernels(forms, tmp_path, names=[case.id for case in chosen], cluster_blocks=cluster)
    for case in chosen:
        mesh, axes, src, dst, dtype, _, collective = case.values
        a = aligned(sample((*mesh, *src), dtype))
        b = aligned(np.zeros((*mesh, *dst), dtype_of(dtype)))
        kernels.run(case.id, 12, {"A": a, "B": b})
        np.testing.assert_array_equal(b, wanted_of(a, mesh, axes, dst, dtype, collective), case.id)


def test_groups_of_two_kinds_meet_at_words_of_their_own():
    @T.prim_func(mesh=T.Mesh((2, 3, 2), NAMES))
    def main(A: T.Tensor((2, 3, 2, 4), "int32")):
        with T.Kernel(2, 3, 2) as (i, j, k):
            S = T.alloc_shared((4,), "int32")
            T.copy(A[i, j, k, :], S)
            T.comm.all_reduce(S, S, axis=("x", "z"))
            T.comm.all_reduce(S, S, axis="y")
            T.comm.all_reduce(S, S)
            T.copy(S, A[i, j, k, :])

    form = helve.testing.lowering_stages(main, target="cuda", arch="sm_80")[-1][1]
    text, (kernel,) = _core.cuda_source(form, cluster_blocks=1)
    calls = {line.strip() for line in text.splitlines() if line.strip().startswith("helve_group_barrier")}
    assert calls == {"helve_group_barrier(words + (j), arrived_x_z += 4);",
                     "helve_group_barrier(words + (i * 2 + k + 3), arrived_y += 3);",
                     "helve_group_barrier(words + (7), arrived_all += 12);"}
    assert kernel["barrier_words"] == 8


def test_a_set_of_axes_is_printed_as_a_tuple():
    case = next(cases())
    mesh, _, src, dst, dtype, statement, _ = case.values
    program = program_of(mesh, src, dst, dtype, [f"T.comm.{statement}"])
    text = program.script()
    assert 'axis=("x", "z")' in text
    assert helve.parse(text).script() == text
