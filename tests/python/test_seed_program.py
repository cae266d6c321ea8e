"""A program written for another tile language: what is right in it is accepted, what is wrong is named.

Names of tensors as strings, `foreach_tile`, `col_allgather` and `dtype="float"` are that language's spellings. It has
two mistakes that would give wrong results: a loop that accumulates is declared parallel, and the last copy stands
outside its loop.
"""

import numpy as np
import pytest

import helve

PROGRAM = """
@T.prim_func
def main(A: T.Tensor((100, 150), "float"), B: T.Tensor((100, 150), "float")):
    T.annotate_mesh_tensor({
        "A": {"sharding": {"x": 0, "y": 1}, "tiling": [32, 32]},
        "B": {"sharding": {"x": 0, "y": 1}, "tiling": [32, 32]},
    }, nrows=2, ncols=3)
    Sharded_M, Sharded_N = T.get_sharded_shape(A)
    with T.Kernel(2, 3) as (rid, cid):
        A_shared = T.alloc_shared_tiles((32, 32), "float")
        A_accum_shared = T.alloc_shared_tiles((32, 32,), "float")
        A_powsum_local_shared = T.alloc_shared_tiles((32,), "float")
        A_powsum_shared = T.alloc_shared_tiles((32, 3), "float")
        for bx in T.Persistent([T.ceildiv(Sharded_M, 32,)]):
            T.fill(A_accum_shared, 0.0)
            for bk in T.LOOP(T.ceildiv(Sharded_N, 32)):
                T.mesh_tensor_copy(A, A_shared, coord=[bx, bk])
                for i, j in T.foreach_tile(A_shared, parallel=True):
                    A_accum_shared[i, j] += A_shared[i, j] * A_shared[i, j]
            T.reduce_sum(A_accum_shared, A_powsum_local_shared, dim=1)
            T.comm.col_allgather(A_powsum_local_shared, A_powsum_shared)
            T.reduce_sum(A_powsum_shared, A_powsum_local_shared, dim=1)
            for i in T.foreach_tile(A_powsum_local_shared, parallel=True):
                A_powsum_local_shared[i] = T.rsqrt(A_powsum_local_shared[i] / 150) + 1e-12
            for bk in T.LOOP(T.ceildiv(Sharded_N, 32)):
                T.mesh_tensor_copy(A, A_shared, coord=[bx, bk])
                for i, j in T.foreach_tile(A_shared, parallel=True):
                    A_shared[i, j] = A_shared[i, j] * A_powsum_local_shared[i]
INDENTT.mesh_tensor_copy(A_shared, B, coord=[bx, bk])
"""


def program(loop, indent):
    return PROGRAM.replace("LOOP", loop).replace("INDENT", " " * indent)


def test_a_copy_after_its_loop_is_named():
    with pytest.raises(helve.Error) as fault:
        helve.parse(program("serial", 12))
    assert fault.value.code == "HV0101"
    assert fault.value.notes == ["'bk' is the variable of a loop that ended at line 28"]
    assert fault.value.help == "move this into the loop"


def test_an_accumulating_parallel_loop_is_named():
    with pytest.raises(helve.Error) as fault:
        helve.parse(program("Parallel", 16))
    assert fault.value.code == "HV0307"
    assert fault.value.message == "'T.mesh_tensor_copy' cannot be used at iteration scope"
    assert fault.value.help == "make the loop T.serial, or move the operation out of it"


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_with_both_mended_it_runs(target):
    kernel = helve.compile(helve.parse(program("serial", 16)), mesh=helve.Mesh((2, 3)), target=target)
    a = np.random.default_rng(0).standard_normal((100, 150), dtype=np.float32)
    b = np.zeros_like(a)
    kernel(a, b)
    a = a.astype(np.float64)
    np.testing.assert_allclose(b, a * (1 / np.sqrt((a * a).mean(axis=1, keepdims=True)) + 1e-12), rtol=2e-6, atol=1e-6)
