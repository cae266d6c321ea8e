"""Copies that mbarriers count, in kernels that collectives divide into several, and values that no core has yet."""

import numpy as np
import pytest

import helve
import helve.testing
from helve import T

MESH = helve.Mesh((1, 2))

AROUND = """
@T.prim_func(mesh=T.Mesh((1, 2), ("x", "y")))
def main(A: T.Tensor((2, 64), "float32"), B: T.Tensor((2, 64), "float32")):
    with T.Kernel(1, 2, threads=64) as (r, c):
        arrivals = T.alloc_shared((16,), "uint64")
        x = T.alloc_shared((64,), "float32")
        T.mbarrier_init(arrivals)
{steps}
        for tx in T.threads(64):
            B[c, tx] = x[tx]
"""
COPY = ["T.cp_async_bulk(A[1 - c, :], x, barriers=arrivals)", "T.mbarrier_commit(arrivals)"]
WAIT = ["T.mbarrier_wait(arrivals)", "T.sync_threads()"]
PLACES = {
    "before": [*COPY, *WAIT, "T.comm.barrier()"],
    "around": [*COPY, "T.comm.barrier()", *WAIT],
    "behind": ["T.comm.barrier()", *COPY, *WAIT],
    "both": [*COPY, *WAIT, "T.comm.barrier()", *COPY, *WAIT],
}


def text(place):
    return AROUND.format(steps="\n".join("        " + line for line in PLACES[place]))


@pytest.mark.parametrize("place", PLACES)
def test_each_kernel_counts_its_own_copies(place):
    function = helve.parse(text(place))
    a = np.arange(128, dtype="float32").reshape(2, 64)
    for target in ("interp", "llvm"):
        b = np.zeros_like(a)
        helve.compile(function, mesh=MESH, target=target, verify=True)(a, b)
        np.testing.assert_array_equal(b, a[::-1])
    for target, arch in (("llvm", ""), ("cuda", "sm_90a")):
        helve.testing.check_stages(function, lambda: [a.copy(), np.zeros_like(a)], target=target, arch=arch)


def gathered(axis, mesh):
    @T.prim_func(mesh=mesh)
    def main(B: T.Tensor((6,), "float32")):
        with T.Kernel(2, 3) as (r, c):
            p = T.alloc_shared((8,), "float32")
            x = T.alloc_shared((8, 2 if axis == "x" else 3), "float32")
            T.comm.all_gather(p, x, axis=axis)
            B[r * 3 + c] = 1.0

    return main


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_collective_moves_elements_without_a_value(axis):
    """As a copy does: only their use is a fault."""
    mesh = helve.Mesh((2, 3))
    helve.testing.check_stages(gathered(axis, mesh), lambda: [np.zeros(6, "float32")], mesh=mesh)
