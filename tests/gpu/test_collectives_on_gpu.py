"""Collectives inside kernels on a CUDA device: clusters that push or read in place, and grids that meet in global
memory.

Skips itself where PyTorch finds no device. Every collective on every mesh has the interpreter's bits; a long run of the
two kinds of meetings has NumPy's.
"""

import helve
import numpy as np
import pytest
from helve import T
from test_cuda_collectives import programs
from test_rooted_collectives import cases, dynamic, program_of, wanted_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("name", programs())
def test_every_collective(name):
    mesh, function, make = programs()[name]
    wanted, got = make(), make()
    helve.compile(function, target="interp", mesh=helve.Mesh(mesh))(*wanted)
    helve.compile(function, target="cuda", mesh=helve.Mesh(mesh))(*got)
    np.testing.assert_array_equal(got[1].view(np.uint8), wanted[1].view(np.uint8))


@pytest.mark.parametrize("mesh, axes, src, dst, dtype, lines, collective", list(cases()))
@pytest.mark.parametrize("split", [False, True], ids=["one kernel", "a step of the host"])
def test_roots_and_maps(mesh, axes, src, dst, dtype, lines, collective, split):
    """In one kernel, and between kernels, where memory that the host reads decides whether there is a collective."""
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 9, (*mesh, *src)).astype(dtype)
    wanted = wanted_of(a, mesh, axes, dst, dtype, collective)
    if split:
        lines = ["G = T.alloc_shared((1,), \"int32\")", "T.fill(G, 1)", "if G[0] > 0:",
                 *(f"    {line}" for line in lines)]
    b = np.zeros_like(wanted)
    helve.compile(program_of(mesh, src, dst, dtype, lines), target="cuda")(a, b)
    np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize("root", range(3))
def test_roots_of_arguments_and_of_memory(root):
    lines = ["P = T.alloc_shared((1,), \"int32\")", "P[0] = n", "T.comm.broadcast(S, D, n, axis='y')",
             "T.comm.permute(D, S, source=lambda k: k - T.index(P[0]), axis='y')",
             "T.comm.reduce(S, D, root=n, axis='y')"]
    program = dynamic((2, 3), (4,), lines, arguments=", n: T.int32")
    a = np.random.default_rng(1).integers(-9, 9, (2, 3, 4)).astype(np.int32)
    wanted, got = np.zeros_like(a), np.zeros_like(a)
    helve.compile(program, target="interp")(a, wanted, root)
    helve.compile(program, target="cuda")(a, got, root)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("mesh", [(40, 8), (8, 16), (3, 5), (2, 7)])
@pytest.mark.parametrize("length", [1, 300])
def test_many_turns(mesh, length):
    """What a turn reads too early or too late changes all that follow."""
    rows, cols = mesh
    turns = 200

    @T.prim_func(mesh=T.Mesh(mesh))
    def main(A: T.Tensor((rows, cols, length), "int32"), B: T.Tensor((rows, cols, length), "int32")):
        with T.Kernel(rows, cols) as (r, c):
            s = T.alloc_shared((length,), "int32")
            d = T.alloc_shared((length,), "int32")
            T.copy(A[r, c, :], s)
            for t in T.serial(turns):
                T.comm.all_reduce(s, d, axis="y")
                for i in T.Parallel(length):
                    s[i] = d[i] * 3 + s[i] + T.cast(t, "int32")
            T.copy(s, B[r, c, :])

    a = np.random.default_rng(0).integers(-9, 9, (rows, cols, length)).astype(np.int32)
    b = np.zeros_like(a)
    helve.compile(main, target="cuda")(a, b)
    s = a.copy()
    for t in range(turns):
        s = s.sum(1, keepdims=True, dtype=np.int32) * np.int32(3) + s + np.int32(t)
    np.testing.assert_array_equal(b, s)
