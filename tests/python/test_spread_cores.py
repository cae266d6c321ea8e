"""Mesh kernels whose cores are GPUs: split at collectives, and spread over the blocks of each core.

Every stage of every mesh program of the suite is interpreted (`check_stages`, `test_every_program.py`); here stands
what the passes make of some.
"""

import math
import re

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from test_rms_norm import rms

SIZES = [(2, 2), (1, 4), (3, 1)]


def stages(function, mesh, chunk=None):
    lowered = helve.testing.lowering_stages(function, mesh, chunk, "cuda", "sm_90a", "devices")
    return {name: helve._core.print(stage) for name, stage in lowered}


def grids(text):
    return re.findall(r"with T.Kernel\((.*)\) as", text)


@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_one_collective_serves_all_iterations(shape):
    mesh = helve.Mesh(shape)
    function = rms.rms_norm_splitk(100, 77, 16, 32, mesh)
    iterations = math.ceil(math.ceil(100 / shape[0]) / 16)
    made = stages(function, mesh)
    assert made["split_mesh_kernels"].count("T.comm.") == 1
    assert f"T.alloc_global(({iterations}, 16)" in made["split_mesh_kernels"]
    grid = ", ".join(map(str, (*shape, iterations)))
    assert grids(made["spread_cores"]) == [grid, grid]
    a = np.random.default_rng(0).standard_normal((100, 77)).astype("float32")
    for chunk in (None, 1, 2):
        helve.testing.check_stages(function, lambda: [a, np.zeros_like(a)], mesh, target="cuda", arch="sm_90a",
                                   cores="devices", persistent_chunk=chunk)


def test_a_domain_of_two_dimensions_is_one_chunk():
    mesh = helve.Mesh((2, 1))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 3, 5), "int32")):
        with T.Kernel(2, 1) as (r, c):
            part = T.alloc_shared((4,), "int32")
            total = T.alloc_shared((4,), "int32")
            for i, j in T.Persistent([3, 5]):
                T.fill(part, i * 10 + j + r)
                T.comm.all_reduce(part, total, axis="x")
                A[r, i, j] = total[3]

    made = stages(main, mesh)
    assert made["split_mesh_kernels"].count("T.comm.") == 1 and grids(made["spread_cores"]) == ["2, 1, 15"] * 2
    helve.testing.check_stages(main, lambda: [np.zeros((2, 3, 5), "int32")], mesh)


def test_what_memory_decides_stays_a_loop_of_the_host():
    mesh = helve.Mesh((1, 2))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((2, 4), "int32")):
        with T.Kernel(1, 2) as (r, c):
            part = T.alloc_shared((8,), "int32")
            for i in T.Persistent([4]):
                T.fill(part, i + c)
                for _ in T.serial(T.cast(A[i], "index")):
                    T.comm.all_reduce(part, part, axis="y")
                B[c, i] = part[0]

    made = stages(main, mesh)
    assert "T.Persistent" not in made["split_mesh_kernels"]
    assert set(grids(made["spread_cores"])) == {"1, 2"}
    helve.testing.check_stages(main, lambda: [np.array([0, 2, 1, 3], "int32"), np.zeros((2, 4), "int32")], mesh)


def spread(body):
    """The grids of the kernel that `body` makes, without a collective."""
    mesh = helve.Mesh((2, 1))
    function = body(mesh)
    helve.testing.check_stages(function, lambda: [np.arange(64, dtype="float32").reshape(2, 32),
                                                  np.ones((2, 32), "float32")], mesh)
    helve.testing.check_stages(function, lambda: [np.arange(64, dtype="float32").reshape(2, 32),
                                                  np.ones((2, 32), "float32")], mesh, target="cuda", arch="sm_90a",
                               cores="devices")
    return grids(stages(function, mesh)["spread_cores"])


def test_a_kernel_without_collectives_is_spread():
    def loop(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                row = T.alloc_shared((4,), "float32")
                for i in T.Persistent([8]):
                    T.copy(A[r, i * 4 : i * 4 + 4], row)
                    T.copy(row, B[r, i * 4 : i * 4 + 4])

        return main

    assert spread(loop) == ["2, 1, 8"]


def test_bounds_that_the_core_decides_take_a_number_of_blocks():
    def loop(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                for i in T.Persistent([20 + 12 * r]):
                    B[r, i] = A[r, i] * 2.0

        return main

    assert spread(loop) == [f"2, 1, {8 * 132}"]


def test_loops_and_what_stands_beside_them_are_kernels_of_their_own():
    """Two loops of one kernel would have to wait for each other, and a store beside a loop would be made by every
    block."""

    def beside(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                B[r, 0] = B[r, 0] + 1.0
                for i in T.Persistent([16]):
                    B[r, i + 1] = A[r, i]

        return main

    def two(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                row = T.alloc_shared((4,), "float32")
                half = r * 16
                T.fill(row, 3.0)
                for i in T.Persistent([8]):
                    T.copy(A[r, i * 4 : i * 4 + 4], row)
                    T.copy(row, B[r, i * 4 : i * 4 + 4])
                for i in T.Persistent([16]):
                    B[r, i] = B[r, i] + B[r, 31 - i] + T.cast(half, "float32")

        return main

    def three(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                total = T.alloc_local((1,), "float32")
                for i in T.Persistent([32]):
                    B[r, i] = A[r, i] + 1.0
                total[0] = 0.0
                for i in T.serial(32):
                    total[0] += B[r, i]
                B[r, 0] = total[0]
                for i in T.Persistent([16]):
                    B[r, i + 16] = B[r, i + 16] - B[r, i]

        return main

    assert spread(beside) == ["2, 1", "2, 1, 16"]
    assert spread(two) == ["2, 1, 8", "2, 1, 16"]
    assert spread(three) == ["2, 1, 32", "2, 1", "2, 1, 16"]


def test_what_private_memory_carries_keeps_a_kernel_whole():
    def carried(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                first = T.alloc_local((1,), "float32")
                first[0] = B[r, 0] + A[r, 0]
                for i in T.Persistent([c]):  # no iteration, after which nothing would be there
                    B[r, i] = A[r, i]
                B[r, 0] = first[0]

        return main

    def loaded(mesh):
        @T.prim_func(mesh=mesh)
        def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
            with T.Kernel(2, 1) as (r, c):
                first = B[r, 0] + A[r, 0]
                for i in T.Persistent([31]):
                    B[r, i] = A[r, i] + first

        return main

    assert spread(carried) == ["2, 1"] and spread(loaded) == ["2, 1"]


def test_the_loops_between_two_collectives_are_spread():
    """What a segment restores and saves stands beside its loops."""
    mesh = helve.Mesh((2, 2))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 2, 32), "int32"), S: T.Tensor((2, 2, 4), "int32")):
        with T.Kernel(2, 2) as (r, c):
            part = T.alloc_shared((4,), "int32")
            whole = T.alloc_shared((4,), "int32")
            for i in T.Persistent([32]):
                A[r, c, i] = A[r, c, i] + i
            for i in T.Persistent([16]):
                A[r, c, i] = A[r, c, i] + A[r, c, 31 - i]
            for k in T.Parallel(4):
                part[k] = A[r, c, k]
            T.comm.all_reduce(part, whole, axis="y")
            for k in T.Parallel(4):
                S[r, c, k] = whole[k]
            for i in T.Persistent([8]):
                A[r, c, i] = A[r, c, i] * 2
            for k in T.Parallel(4):
                S[r, c, k] = S[r, c, k] + A[r, c, k]

    made = stages(main, mesh)
    assert grids(made["split_mesh_kernels"]) == ["2, 2"] * 2
    assert grids(made["spread_cores"]) == ["2, 2, 32", "2, 2, 16", "2, 2", "2, 2", "2, 2, 8", "2, 2"]
    helve.testing.check_stages(main, lambda: [np.arange(128, dtype="int32").reshape(2, 2, 32),
                                              np.zeros((2, 2, 4), "int32")], mesh)


LOWERED = """
@T.prim_func(mesh=T.Mesh((2, 1)))
def main(B: T.Tensor((2, 8), "float32")):
    with T.Kernel(2, 1, 4) as (r, c, block):
        for i in T.Persistent([8]):
            B[r, i] = 1.0
"""


def test_blocks_of_a_core_are_of_lowered_programs():
    function = helve.parse(LOWERED)
    b = np.zeros((2, 8), "float32")
    helve.testing.interpret(function, b, check="all")
    assert (b == 1).all()
    for target in ("llvm", "cuda"):
        with pytest.raises(helve.Error) as caught:
            helve.compile(function, target, helve.Mesh((2, 1)), **({"arch": "sm_90a"} if target == "cuda" else {}))
        assert caught.value.code == "HV0801" and "T.Kernel with blocks of a core" in caught.value.message
        assert caught.value.help == "give the grid of the mesh, and loop over the rest by T.Persistent"


def test_blocks_of_a_core_that_meet_are_races():
    function = helve.parse(LOWERED.replace("for i in T.Persistent([8]):", "for i in T.serial(8):"))
    with pytest.raises(helve.Error, match="HV0706"):
        helve.testing.interpret(function, np.zeros((2, 8), "float32"), check="all")


def test_no_collective_waits_for_blocks_of_a_core():
    with pytest.raises(helve.Error) as caught:
        helve.parse(LOWERED.replace("            B[r, i] = 1.0\n", "            T.comm.barrier()\n"))
    assert caught.value.code == "HV0401"
    assert caught.value.help == "write T.Kernel(2, 1), one block for each core of the mesh"
