"""Products of matrices whose copies fill rings, for several tests."""

import numpy as np
from helve import T

from tile_products import TYPES


def gemm(bm, bn, bk, threads, stages, dtype="bfloat16", out="float32"):
    """C = A @ B^T in tiles, a block each."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (j, i):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bn, bk), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def persistent_gemm(bm, bn, bk, threads, stages, blocks, dtype="bfloat16", out="float32", cluster=1):
    """The same, by blocks that take tiles in turn: copies of the next tile begin before this one is stored. With a
    cluster its blocks have neighbouring rows of the same columns."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(blocks, threads=threads, cluster=cluster) as block:
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bn, bk), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            for i, j in T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)]):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                    T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                    T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                    T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
                T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def gathered_gemm(bm, bn, bk, threads, stages, blocks):
    """Tiles of C from rows of A that begin where memory says; those that begin behind the last are left out. Two names
    have one value."""
    tiles, M, N, K = T.dyn("tiles"), T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), places: T.Tensor((tiles,), "int32"),
             C: T.Tensor((tiles, bm, N), "float32")):
        with T.Kernel(blocks, threads=threads):
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            for i, j in T.Persistent([tiles, T.ceildiv(N, bn)]):
                first = T.index(places[i])
                same = T.index(places[i])
                T.clear(c)
                if same < M:
                    for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                        T.copy(A[first : first + bm, k * bk : k * bk + bk], a)
                        T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                        T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
                T.copy(c, C[i, :, j * bn : j * bn + bn])

    return main


def two_rings(rows, keys, depth, stages):
    """O = (Q @ K^T) @ V with the products of two loops' operands: K and V are used by different statements of one loop,
    so each has a ring of its own."""

    @T.prim_func
    def main(Q: T.Tensor((rows, depth), "float16"), K: T.Tensor((keys * 4, depth), "float16"),
             V: T.Tensor((keys * 4, depth), "float16"), O: T.Tensor((rows, depth), "float32")):
        with T.Kernel(1, threads=128):
            q = T.alloc_shared((rows, depth), "float16")
            k = T.alloc_shared((keys, depth), "float16")
            v = T.alloc_shared((keys, depth), "float16")
            p = T.alloc_shared((rows, keys), "float16")
            s = T.alloc_fragment((rows, keys), "float32")
            o = T.alloc_fragment((rows, depth), "float32")
            T.copy(Q, q)
            T.clear(o)
            for j in T.Pipelined(4, num_stages=stages):
                T.copy(K[j * keys : j * keys + keys, :], k)
                T.copy(V[j * keys : j * keys + keys, :], v)
                T.gemm(q, k, s, transpose_B=True, clear=True, dispatch="wgmma")
                T.copy(s, p)
                T.gemm(p, v, o, dispatch="wgmma")
            T.copy(o, O)

    return main


def gemm_arguments(m, n, k, dtype="bfloat16", out="float32", low=-3, high=4):
    """Small whole numbers, and the product: exact in any order."""
    rng = np.random.default_rng(m + 7 * n + 31 * k)
    a, b = (rng.integers(low, high, shape).astype("float32") for shape in [(m, k), (n, k)])
    kind = TYPES.get(out, np.dtype("float32"))
    return [a.astype(TYPES[dtype]), b.astype(TYPES[dtype]), np.full((m, n), 7, kind)], (a @ b.T).astype(kind)


def product_by_hand(bm, bn, bk, slots, blocks=2, groups=1, registers=(0, 0), out="float32"):
    """C = A @ B^T with the roles written out: warpgroups that multiply, one more whose first thread copies."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), C: T.Tensor((M, N), out)):
        T.assume(K % 8 == 0)
        with T.Kernel(blocks, threads=128 * groups):
            a = T.alloc_shared((bm, bk), "bfloat16", slots=slots)
            b = T.alloc_shared((bn, bk), "bfloat16", slots=slots)
            ring = T.alloc_barrier(slots)
            with T.warpgroup(0, groups, registers=registers[0]):
                c = T.alloc_fragment((bm, bn), "float32")
                for i, j in T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)]):
                    T.clear(c)
                    for k in T.serial(T.ceildiv(K, bk)):
                        T.ring_wait(ring)
                        T.gemm(a, b, c, transpose_B=True, dispatch="tensor_cores")
                        T.ring_release(ring, pending=1)  # the product may run while the next one begins
                    T.ring_release(ring)
                    T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])
            with T.warpgroup(groups, registers=registers[1], elect=True):
                for i, j in T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)]):
                    for k in T.serial(T.ceildiv(K, bk)):
                        T.ring_acquire(ring)
                        T.tma_load(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a, ring)
                        T.tma_load(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b, ring)
                        T.ring_commit(ring)

    return main


def converted_halves(rows, columns, depth, threads, stages):
    """C = W @ X^T, W of int8: threads convert a half of a tile of W to registers while the other one is multiplied. So
    two products of a turn add to the same sums, and threads read one of the rings."""
    N, M, K, half = T.dyn("N"), T.dyn("M"), T.dyn("K"), depth // 2

    @T.prim_func
    def main(W: T.Tensor((N, K), "int8"), X: T.Tensor((M, K), "float16"), C: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, rows), T.ceildiv(M, columns), threads=threads) as (j, i):
            q = T.alloc_shared((rows, depth), "int8")
            x0 = T.alloc_shared((columns, half), "float16")
            x1 = T.alloc_shared((columns, half), "float16")
            w0 = T.alloc_fragment((rows, half), "float16")
            w1 = T.alloc_fragment((rows, half), "float16")
            c = T.alloc_fragment((rows, columns), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=stages):
                T.copy(W[j * rows : j * rows + rows, k * depth : k * depth + depth], q)
                T.copy(X[i * columns : i * columns + columns, k * depth : k * depth + half], x0)
                T.copy(X[i * columns : i * columns + columns, k * depth + half : k * depth + depth], x1)
                for n, d in T.Parallel(rows, half):
                    w0[n, d] = T.cast(q[n, d], "float16")
                T.gemm(w0, x0, c, transpose_B=True, dispatch="wgmma")
                for n, d in T.Parallel(rows, half):
                    w1[n, d] = T.cast(q[n, half + d], "float16")
                T.gemm(w1, x1, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, C[j * rows : j * rows + rows, i * columns : i * columns + columns])

    return main


def halves_arguments(N, M, K, seed=0):
    """W, X and C, and what C has to be: small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    w, x = rng.integers(-3, 4, (N, K)).astype("int8"), rng.integers(-3, 4, (M, K)).astype("float16")
    return [w, x, np.full((N, M), np.nan, "float32")], w.astype("float32") @ x.astype("float32").T
