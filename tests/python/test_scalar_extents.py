"""Scalar parameters that no statement of a kernel mentions: its grid or the declaration of a tensor does."""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import check

N = 3
USES = {
    "grid": ("T.Tensor((4, 5), 'int32')", "T.index(n)"),
    "strides": ("T.Tensor((4, 5), 'int32', strides=(T.index(n) + 2, 1))", "3"),
    "shape": ("T.Tensor((4, T.index(n) + 2), 'int32')", "3"),
}
TEXT = """
@T.prim_func
def main(n: T.{dtype}, X: {tensor}):
    with T.Kernel(4, {columns}, threads=32) as (b, c):
        X[b, c] = T.int32(b * 10 + c)
"""
WANTED = np.where(np.arange(5) < N, np.arange(4)[:, None] * 10 + np.arange(5), 0).astype("int32")


def arguments():
    return [N, np.zeros((4, 5), "int32")]

OF_MEMORY = """
@T.prim_func
def main(n: T.{dtype}, X: T.Tensor((4, 5), "int32")):
    G = T.alloc_global((4, T.index(n) + 2), "int32")
    with T.Kernel(4) as b:
        for c in T.Parallel(3):
            G[b, c] = T.int32(b * 10 + c)
    with T.Kernel(4) as b:
        for c in T.Parallel(3):
            X[b, c] = G[b, c]
"""


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int32", "index"])
def test_memory_between_kernels_has_them(dtype):
    function = helve.parse(OF_MEMORY.format(dtype=dtype))
    check(function, arguments(), {1: WANTED})
    for arch in ("sm_80", "sm_90a"):
        helve.testing.check_stages(function, arguments, target="cuda", arch=arch)
        form = helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]
        assert "G[b * (" in helve._core.cuda_source(form, prelude=False)[0]


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int32", "index"])
@pytest.mark.parametrize("use", USES)
def test_every_target_has_them(use, dtype, tmp_path):
    tensor, columns = USES[use]
    function = helve.parse(TEXT.format(dtype=dtype, tensor=tensor, columns=columns))
    check(function, arguments(), {1: WANTED})
    for arch in ("sm_80", "sm_90a"):
        helve.testing.check_stages(function, arguments, target="cuda", arch=arch)
    form = helve.testing.lowering_stages(function, target="cuda")[-1][1]
    x = aligned(arguments()[1])
    HostKernels([form], tmp_path).run("main", WANTED.shape[0] * N, {"X": x}, {"n": N})
    np.testing.assert_array_equal(x, WANTED)
