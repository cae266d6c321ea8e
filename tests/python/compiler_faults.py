"""Programs that compilers of CUDA C get wrong when they are written down plainly, and what keeping clear of that must
not break.

Each has its arguments and what they are afterwards, by NumPy.
"""

import numpy as np

from helve import T


@T.prim_func
def branches(C: T.Tensor((128,), "int8"), F: T.Tensor((128,), "int8"), G: T.Tensor((128,), "int8")):
    """NVVM makes one load of those of two branches, by the cache of constant memory if one of them allows it."""
    with T.Kernel(1, threads=128):
        for _ in T.serial(4):
            for i in T.Parallel(128):
                C[i] = T.if_then_else(F[i] != T.int8(0), C[i], G[i]) + T.int8(1)


M = T.dyn("M")


@T.prim_func
def narrow(A: T.Tensor((M, 1), "float32"), OUT: T.Tensor((16, 4), "float32")):
    """NVVM before 13.5 gives the stores of all iterations the alignment of the one whose condition it decides."""
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((16, 4), "float32")
        T.copy(A[0:16, 0:4], S)
        T.copy(S, OUT)


@T.prim_func
def changing(N: T.Tensor((32,), "int32"), OUT: T.Tensor((32, 8), "int32")):
    """The number of iterations is read once, though the loop is cut and its first part changes what was read."""
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            n = T.alloc_local((1,), "int32")
            n[0] = N[i]
            for k in T.serial(T.index(n[0])):
                if k < 1:
                    n[0] = 2
                else:
                    OUT[i, k] = T.int32(k)


def of_changing():
    n = (np.arange(32, dtype="int32") % 9).clip(0, 8)
    steps = np.arange(8, dtype="int32")
    return (n, np.zeros((32, 8), "int32")), (n, np.where(steps < n[:, None], steps, 0).astype("int32"))


def of_branches():
    rng = np.random.default_rng(1)
    c, g = rng.integers(-50, 50, (2, 128), "int8")
    f = rng.integers(0, 2, 128, "int8")
    return (c.copy(), f, g), (np.where(f != 0, c + 4, g + 1).astype("int8"), f, g)


def of_narrow():
    a = np.random.default_rng(2).standard_normal((11, 1), "float32")
    out = np.zeros((16, 4), "float32")
    out[:11, :1] = a
    return (a, np.full((16, 4), np.nan, "float32")), (a, out)


PROGRAMS = {"branches": (branches, of_branches), "narrow": (narrow, of_narrow), "changing": (changing, of_changing)}
