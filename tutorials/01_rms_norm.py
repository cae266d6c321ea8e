"""RMSNorm on a mesh of cores, from one source.

The rows of A are sharded over the rows of the mesh and its columns over the columns. Each core sums the squares of its
own part of a row; an all-gather over the columns of the mesh collects the partial sums; then each core scales its own
part. The same function runs under the reference interpreter and as machine code, on any mesh and with extents that are
not multiples of the tiles.

Run it: ``python tutorials/01_rms_norm.py`` (add ``--show lowered|llvm|plan|asm`` to print the generated code)
"""

# %% The kernel
import argparse
import time

import numpy as np

import helve
from helve import T


def rms_norm_splitk(M, N, blk_m, blk_k, mesh, dtype="float32"):
    """B = A / sqrt(mean(A * A, axis=1) + 1e-6) for A, B of shape (M, N), tiles of (blk_m, blk_k)."""
    nrows, ncols = mesh.shape

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        T.annotate_mesh_tensor(
            {
                A: {"sharding": {"x": 0, "y": 1}, "tiling": [blk_m, blk_k]},
                B: {"sharding": {"x": 0, "y": 1}, "tiling": [blk_m, blk_k]},
            },
            nrows=nrows,
            ncols=ncols,
        )
        sharded_M, sharded_N = T.get_sharded_shape(A)
        with T.Kernel(nrows, ncols) as (rid, cid):
            A_tile = T.alloc_shared_tiles((blk_m, blk_k), dtype)
            acc = T.alloc_shared_tiles((blk_m, blk_k), dtype)
            part = T.alloc_shared_tiles((blk_m,), dtype)
            parts = T.alloc_shared_tiles((blk_m, ncols), dtype)
            for bx in T.Persistent([T.ceildiv(sharded_M, blk_m)]):
                T.fill(acc, 0.0)
                for bk in T.serial(T.ceildiv(sharded_N, blk_k)):
                    T.mesh_tensor_copy(A, A_tile, coord=[bx, bk])
                    for i, j in T.foreach_tiles(A_tile, parallel=True):
                        acc[i, j] += A_tile[i, j] * A_tile[i, j]
                T.reduce_sum(acc, part, dim=1)
                T.comm.col_allgather(part, parts)  # over the columns of this mesh row
                T.reduce_sum(parts, part, dim=1)
                for i in T.foreach_tiles(part, parallel=True):
                    part[i] = T.rsqrt(part[i] / N + 1e-6)
                for bk in T.serial(T.ceildiv(sharded_N, blk_k)):
                    T.mesh_tensor_copy(A, A_tile, coord=[bx, bk])
                    for i, j in T.foreach_tiles(A_tile, parallel=True):
                        A_tile[i, j] = A_tile[i, j] * part[i]
                    T.mesh_tensor_copy(A_tile, B, coord=[bx, bk])

    return main


# %% The definition, in float64
def reference(a):
    a = a.astype(np.float64)
    return a / np.sqrt((a * a).mean(axis=1, keepdims=True) + 1e-6)


# %% One run: compile, check, measure
def run(target, shape, mesh_shape, blk_m=32, blk_k=256, repeats=7):
    """Returns (milliseconds of the median call, largest absolute error, the kernel)."""
    mesh = helve.Mesh(mesh_shape, ("x", "y"))
    M, N = shape
    kernel = helve.compile(rms_norm_splitk(M, N, blk_m, blk_k, mesh), mesh=mesh, target=target)
    a = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    b = np.full_like(a, np.nan)
    kernel(a, b)
    error = float(np.abs(b - reference(a)).max())
    times = []
    for _ in range(repeats if target == "llvm" else 1):
        start = time.perf_counter()
        kernel(a, b)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3, error, kernel


CASES = [
    ("interp", (64, 96), (1, 1)),
    ("interp", (64, 96), (2, 2)),
    ("interp", (50, 77), (2, 3)),
    ("llvm", (4096, 8192), (1, 1)),
    ("llvm", (4096, 8192), (2, 2)),
    ("llvm", (4096, 8192), (2, 4)),
    ("llvm", (1000, 777), (2, 3)),
]


def main(cases=CASES, show=None):
    print(f"{'target':8}{'shape':>14}{'mesh':>8}{'ms':>12}{'GB/s':>9}{'largest error':>16}")
    for target, shape, mesh_shape in cases:
        ms, error, kernel = run(target, shape, mesh_shape)
        rate = 2 * shape[0] * shape[1] * 4 / (ms * 1e-3) / 1e9  # A read once, B written once
        mesh = "x".join(map(str, mesh_shape))
        print(f"{target:8}{shape[0]:>8} x {shape[1]:<5}{mesh:>6}{ms:>12.3f}{rate:>9.2f}{error:>16.1e}")
        assert error < 1e-5, error
    if show:
        kernel.show(show)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", metavar="STAGE",
                        help="print a stage of the last kernel: script, lowered, host, llvm, asm")
    main(show=parser.parse_args().show)
