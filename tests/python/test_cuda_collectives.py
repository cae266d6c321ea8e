"""Collectives inside CUDA kernels: blocks of a cluster read each other's memory, larger groups meet in global memory.

Each program is lowered for both, its stages are interpreted, and its text runs on the CPU with all blocks that wait for
each other as fibers.
"""

import functools

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import dtype_of, sample
from nvrtc import assert_compiles, needs_nvrtc
from test_programs_mesh import AXES, group_of, program_of

from helve import _core

MESHES = [(1, 1), (2, 3), (3, 2), (1, 4), (2, 8)]
ARCHITECTURES = {"cluster": "sm_90a", "grid": "sm_80"}
CLUSTER_BLOCKS = {"cluster": 16, "small cluster": 8, "grid": 1}
TURNS = 3


def statements(k, axis):
    """(name, source shape, destination shape, dtype, statements) of every collective over groups of k."""
    a = f'axis="{axis}"'
    return [
        ("all_gather", (3, 2), (3, 2, k), "float32", [f"T.comm.all_gather(S, D, {a})"]),
        ("all_gather_first", (3, 2), (k, 3, 2), "int8", [f"T.comm.all_gather(S, D, {a}, dim=0)"]),
        ("concatenate", (3, 50), (3, 50 * k), "float64", [f"T.comm.all_gather(S, D, {a}, dim=1)"]),
        ("all_reduce", (7,), (7,), "bfloat16", [f"T.comm.all_reduce(S, D, {a})"]),
        ("all_reduce_max", (200,), (200,), "float32", [f'T.comm.all_reduce(S, D, op="max", {a})']),
        ("all_reduce_prod", (5, 1), (5,), "int16", [f'T.comm.all_reduce(S, D, op="prod", {a})']),
        ("reduce_scatter", (2 * k, 3), (2, 3), "float32", [f"T.comm.reduce_scatter(S, D, {a}, dim=0)"]),
        ("reduce_scatter_own", (2, 3, k), (2, 3), "int64", [f'T.comm.reduce_scatter(S, D, op="min", {a})']),
        ("all_to_all", (3 * k, 2), (3 * k, 2), "float16", [f"T.comm.all_to_all(S, D, {a})"]),
        ("all_to_all_last", (3, 2 * k), (3, 2 * k), "int32", [f"T.comm.all_to_all(S, D, {a}, dim=-1)"]),
        ("broadcast", (3, 5), (3, 5), "int64", [f"T.comm.broadcast(S, D, {k - 1}, {a})"]),
        ("permute", (3, 5), (3, 5), "uint8", [f"T.comm.permute(S, D, shift=-1, {a})"]),
        ("permute_far", (3, 5), (3, 5), "float32", [f"T.comm.permute(S, D, shift={2 * k + 1}, {a})"]),
        ("in_place", (4,), (4,), "int32", [f"T.comm.all_reduce(S, S, {a})", "T.comm.broadcast(S[1:3], S[2:4], 0)",
                                           f"T.comm.permute(S, S, {a})", "T.copy(S, D)"]),
    ]


def others(mesh):
    rows, cols = mesh
    barriers = [f"T.comm.barrier({axis})" for axis in ("", 'axis="x"', 'axis="y"')]
    yield ("put", (4,), (4,), "float32",
           [*barriers, "T.fill(D, 0.5)", f"T.comm.put(S, D, {[rows - 1, 0]}, {[0, cols - 1]})"])
    yield ("two_axes", (4,), (4,), "float32",
           ['T.comm.all_reduce(S, D, axis="x")', 'T.comm.all_reduce(D, S, axis="y")', "T.copy(S, D)"])
    yield ("meanwhile", (4,), (4,), "float32",
           ['E = T.alloc_shared((4,), "float32")', 'T.comm.all_reduce(S, D, axis="y")', "for i in T.Parallel(4):",
            "    E[i] = S[i] * 2.0", "for i in T.Parallel(4):", "    D[i] = D[i] + E[i]"])
    yield ("source_again", (4,), (4,), "float32",
           ['T.comm.all_reduce(S, D, axis="y")', "T.fill(S, 0.25)", 'T.comm.all_reduce(S, S, axis="y")',
            "for i in T.Parallel(4):", "    D[i] = D[i] + S[i]"])


@functools.cache
def programs():
    """Name -> (mesh, function, argument makers), for every mesh and axis."""
    out = {}
    for mesh in MESHES:
        cases = [(f"{name}_{axis}", *rest) for axis in AXES for name, *rest in statements(group_of(mesh, axis), axis)]
        for name, src, dst, dtype, body in [*cases, *others(mesh)]:
            function = program_of(mesh, src, dst, body, dtype, "pass", TURNS)

            def make(src=src, dst=dst, dtype=dtype, mesh=mesh):
                return [sample((*mesh, TURNS, *src), dtype), np.zeros((*mesh, TURNS, *dst), dtype_of(dtype))]

            out[f"{name}_{mesh[0]}x{mesh[1]}"] = (mesh, function, make)
    return out


def thread_form(name, way, arch=""):
    mesh, function, _ = programs()[name]
    arch = arch or ARCHITECTURES[way]
    return helve.testing.lowering_stages(function, helve.Mesh(mesh), target="cuda", arch=arch)[-1][1]


def kernels_of(form, way):
    return _core.cuda_source(form, cluster_blocks=CLUSTER_BLOCKS[way])[1]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def compiled(request, tmp_path_factory):
    forms = [thread_form(name, request.param) for name in programs()]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=list(programs()),
                       cluster_blocks=CLUSTER_BLOCKS[request.param])


@pytest.mark.parametrize("name", programs())
def test_every_target_agrees(compiled, name):
    mesh, function, make = programs()[name]
    wanted, got = make(), [aligned(array) for array in make()]
    helve.compile(function, target="interp", mesh=helve.Mesh(mesh))(*wanted)
    compiled.run(name, mesh[0] * mesh[1], {"A": got[0], "B": got[1]})
    np.testing.assert_array_equal(got[1].view(np.uint8), wanted[1].view(np.uint8))


@pytest.mark.parametrize("way", ARCHITECTURES)
@pytest.mark.parametrize("name", ["all_gather_x_2x3", "reduce_scatter_own_all_3x2", "in_place_y_2x3", "put_3x2",
                                  "two_axes_2x8"])
def test_every_stage_means_the_same(way, name):
    mesh, function, make = programs()[name]
    helve.testing.check_stages(function, make, mesh=helve.Mesh(mesh), target="cuda", arch=ARCHITECTURES[way])


@pytest.mark.parametrize(("name", "way", "cluster", "cooperative"), [
    ("all_reduce_y_2x3", "cluster", 3, False),   # the cores of a mesh row
    ("all_reduce_x_2x3", "cluster", 6, False),   # columns are not side by side: the whole mesh
    ("all_reduce_y_2x8", "cluster", 8, False),
    ("all_reduce_x_2x8", "cluster", 16, False),
    ("all_reduce_y_2x8", "small cluster", 8, False),
    ("all_reduce_x_2x8", "small cluster", 1, True),  # 16 cores are no cluster
    ("all_reduce_y_2x3", "grid", 1, True),
    ("all_reduce_x_1x1", "cluster", 1, False),
])  # fmt: skip
def test_how_cores_synchronize(name, way, cluster, cooperative):
    (kernel,) = kernels_of(thread_form(name, way, "sm_120a" if way == "small cluster" else ""), way)
    assert (kernel["cluster"], kernel["cooperative"]) == (cluster, cooperative)


@pytest.mark.parametrize(("name", "statement", "meanwhile"), [
    ("meanwhile_2x3", "helve_store<16>(E + 0", True),
    ("meanwhile_2x3", "helve_store<16>(D + 0", False),      # what arrives is added to
    ("source_again_2x3", "helve_store<16>(S + 0", False),   # what is sent is overwritten
])  # fmt: skip
def test_statements_that_do_not_need_the_result_run_during_a_push(name, statement, meanwhile):
    text, _ = _core.cuda_source(thread_form(name, "cluster"), prelude=False, cluster_blocks=CLUSTER_BLOCKS["cluster"])
    push = text.index("helve_push(")
    assert (text.index(statement, push) < text.index("helve_wait_pushed(", push)) == meanwhile


def test_control_flow_that_memory_decides_stays_with_the_host():
    """Cores that disagree are found there; in a kernel they would wait for each other forever."""
    body = ["T.comm.all_reduce(S, D)", "while D[0] > 8.0:", "    T.comm.all_reduce(S, D)", "    D[0] = D[0] * 0.5"]
    function = program_of((2, 3), (4,), (4,), body, "float32", "pass", TURNS)
    form = helve.testing.lowering_stages(function, helve.Mesh((2, 3)), target="cuda")[-1][1]
    kernels = kernels_of(form, "cluster")
    assert len(kernels) > 1 and not any(k["cooperative"] or k["cluster"] > 1 for k in kernels)


@needs_nvrtc
@pytest.mark.parametrize("way", ARCHITECTURES)
@pytest.mark.parametrize("name", ["all_gather_x_2x3", "all_reduce_y_3x2", "all_to_all_all_2x3", "two_axes_2x8"])
def test_the_text_compiles(way, name):
    form = thread_form(name, way)
    text, _ = _core.cuda_source(form, cluster_blocks=CLUSTER_BLOCKS[way])
    assert_compiles(text, architectures=("sm_90a",) if way == "cluster" else ("sm_80", "sm_90a"))
