"""Loops, tiles and grids as whole programs.

Every kind of loop and of grid, tile loops over one to three dimensions, branches and while, on extents that divide
nothing.
"""

import helve
import numpy as np
import pytest
from differential import check, sample
from helve import T


@pytest.mark.parametrize("tile", [(1, 8), (8, 1), (32, 32), (4, 16), (5, 7)])
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("shape", [(13, 37), (1, 1), (8, 32)])
def test_tiles_of_two_dimensions(shape, tile, parallel):
    m, n = shape

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), V: T.Tensor((m,), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1) as bx:
            X = T.alloc_shared_tiles((m, n), "float32", tile_size=tile)
            Y = T.alloc_shared_tiles((m, n), "float32", tile_size=tile)
            T.copy(A, X)
            T.fill(Y, 1.0)
            for i, j in T.foreach_tiles(X, parallel=parallel):
                Y[i, j] = X[i, j] * 2.0 + Y[i, j]
                X[i, j] = T.max(Y[i, j], 0.0) + T.cast(i * 100 + j, "float32")
            T.copy(X, B)

    a = sample(shape)
    ti = np.arange(m)[:, None] // tile[0]
    tj = np.arange(n)[None, :] // tile[1]
    check(main, [a, np.zeros(m, np.float32), np.zeros_like(a)], {2: np.maximum(a * 2 + 1, 0) + ti * 100 + tj})


@pytest.mark.parametrize("tile", [(8, 16), (4, 4), (32, 1)])
def test_vectors_along_columns(tile):
    m, n = 21, 19

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), V: T.Tensor((m,), "float32"), B: T.Tensor((m, n), "float32"),
             W: T.Tensor((m,), "float32")):
        with T.Kernel(1) as bx:
            X = T.alloc_shared_tiles((m, n), "float32", tile_size=tile)
            v = T.alloc_shared_tiles((m,), "float32", tile_size=tile[0])
            w = T.alloc_shared_tiles((m,), "float32", tile_size=(tile[0], 1))
            T.copy(A, X)
            T.copy(V, v)
            T.copy(V, w)
            for i in T.foreach_tiles(v, parallel=True):
                w[i] = w[i] * v[i] + 1.0
            for i, j in T.foreach_tiles(X, parallel=True):
                X[i, j] = X[i, j] * v[i] - w[i]
            T.copy(X, B)
            T.copy(w, W)

    a, v = sample((m, n)), sample((m,), seed=1)
    w = v * v + 1
    check(main, [a, v, np.zeros_like(a), np.zeros_like(v)], {2: a * v[:, None] - w[:, None], 3: w})


@pytest.mark.parametrize("shape", [(3, 13, 9), (1, 1, 1), (2, 8, 40)])
@pytest.mark.parametrize("tile", [(8, 4), (2, 8, 4)])
def test_tiles_of_three_dimensions(shape, tile):
    @T.prim_func
    def main(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1) as bx:
            X = T.alloc_shared_tiles(shape, "float32", tile_size=tile)
            T.copy(A, X)
            for b, i, j in T.foreach_tiles(X, parallel=True):
                X[b, i, j] = X[b, i, j] + T.cast(b * 10000 + i * 100 + j, "float32")
            T.copy(X, B)

    a = sample(shape)
    t = (1, *tile) if len(tile) == 2 else tile
    b, i, j = np.meshgrid(*[np.arange(n) // k for n, k in zip(shape, t)], indexing="ij")
    check(main, [a, np.zeros_like(a)], {1: a + (b * 10000 + i * 100 + j)})


@pytest.mark.parametrize("dtype", ["bfloat16", "int32", "float64"])
def test_tiles_of_other_dtypes(dtype):
    @T.prim_func
    def main(A: T.Tensor((50,), dtype), B: T.Tensor((50,), dtype)):
        with T.Kernel(1) as bx:
            X = T.alloc_shared_tiles((50,), dtype)
            Y = T.alloc_fragment((50,), dtype, tile_size=(32,))
            T.copy(A, X)
            for i in T.foreach_tiles(X, parallel=True):
                Y[i] = X[i] * X[i] + 3
                X[i] = T.if_then_else(Y[i] > 5, Y[i], -X[i])
            T.copy(X, B)

    a = sample((50,), dtype)
    y = (a.astype(np.float64) ** 2 + 3).astype(a.dtype)
    check(main, [a, np.zeros_like(a)], {1: np.where(y > 5, y, -a)})


def test_tiles_that_read_their_neighbours():
    @T.prim_func
    def main(A: T.Tensor((24, 40), "float32"), B: T.Tensor((24, 40), "float32"), V: T.Tensor((27,), "float32"),
             W: T.Tensor((27,), "float32")):
        with T.Kernel(1) as bx:
            X = T.alloc_shared_tiles((24, 40), "float32", tile_size=(8, 8))
            Y = T.alloc_shared_tiles((24, 48), "float32", tile_size=(8, 8))
            v = T.alloc_shared_tiles((27,), "float32", tile_size=8)
            T.fill(Y, 3.0)
            T.copy(A, X)
            T.copy(A, Y[:, 8:48])
            for i, j in T.foreach_tiles(X, parallel=True):
                X[i, j] = X[i, j] + Y[i, j + 1] * 2.0 + Y[i, j]
            T.copy(X, B)
            T.copy(V, v)
            for i in T.foreach_tiles(v):
                if i > 0:
                    v[i] = v[i] + v[i - 1]
            T.copy(v, W)

    a, v = sample((24, 40)), sample((27,), seed=1)
    w = v.copy()
    for i in range(8, 27):
        w[i] += w[i - 8]
    left = np.concatenate([np.full((24, 8), 3, np.float32), a[:, :32]], 1)
    check(main, [a, np.zeros_like(a), v, np.zeros_like(v)], {1: a + 2 * a + left, 3: w})


def test_tiled_buffers_between_kernels():
    @T.prim_func
    def main(A: T.Tensor((25, 41), "float32"), B: T.Tensor((25, 41), "float32")):
        G = T.alloc_global((25, 41), "float32", tile_size=(8, 16))
        with T.Kernel(4) as bx:
            T.copy(A[bx * 8 : bx * 8 + 8, :], G[bx * 8 : bx * 8 + 8, :])
        with T.Kernel(1) as bx:
            for i, j in T.foreach_tiles(G, parallel=True):
                G[i, j] = G[i, j] * 2.0
        with T.Kernel(4) as bx:
            T.copy(G[bx * 8 : bx * 8 + 8, :], B[bx * 8 : bx * 8 + 8, :])

    a = sample((25, 41))
    check(main, [a, np.zeros_like(a)], {1: a * 2})


@pytest.mark.parametrize("extents", [(37,), (5, 9), (3, 1, 11), (0, 4), (1, 1)])
def test_parallel_loops(extents):
    names = ["i", "j", "k"][: len(extents)]
    at = ", ".join(names)
    program = helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor({extents}, "float32"), B: T.Tensor({extents}, "float32")):\n'
        f'    with T.Kernel(2) as bx:\n'
        f"        for {at} in T.Parallel({', '.join(map(str, extents))}):\n"
        f"            if bx == 1:\n                x = A[{at}] + 1.0\n"
        f"                B[{at}] = x * x + T.cast({names[0]}, 'float32')\n"
    )
    a = sample(extents)
    first = np.arange(extents[0]).reshape(-1, *[1] * (len(extents) - 1))
    check(program, [a, np.zeros_like(a)], {1: (a + 1) ** 2 + first})


def test_parallel_loops_that_do_not_begin_at_zero():
    @T.prim_func
    def main(A: T.Tensor((20, 30), "float32"), B: T.Tensor((20, 30), "float32"), lo: T.index, hi: T.index):
        with T.Kernel(1) as bx:
            for i, j in T.Parallel((lo, hi), (3, 29)):
                B[i, j] = A[i, j - 3] * 2.0

    a, b = sample((20, 30)), np.zeros((20, 30), np.float32)
    for lo, hi in ((2, 19), (5, 5), (0, 1)):
        wanted = b.copy()
        wanted[lo:hi, 3:29] = a[lo:hi, :26] * 2
        check(main, [a, b, lo, hi], {1: wanted})


def test_accesses_that_no_vector_can_take():
    @T.prim_func
    def main(A: T.Tensor((40, 40), "float32"), B: T.Tensor((40, 40), "float32"), C: T.Tensor((40,), "float32"),
             D: T.Tensor((79,), "float32")):
        with T.Kernel(1) as bx:
            for i, j in T.Parallel(40, 40):
                B[i, j] = A[j, i]
            for i in T.Parallel(40):
                C[39 - i] = A[i, i] + A[3, 39 - i]
            for i in T.Parallel(40):
                D[2 * i] = A[i // 2, i % 7]

    a = sample((40, 40))
    d = np.zeros(79, np.float32)
    d[::2] = a[np.arange(40) // 2, np.arange(40) % 7]
    c = np.diag(a)[::-1] + a[3]
    check(main, [a, np.zeros_like(a), np.zeros(40, np.float32), np.zeros(79, np.float32)], {1: a.T, 2: c, 3: d})


def test_serial_loops_of_every_kind():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((7,), "int32"), n: T.index):
        with T.Kernel(1) as bx:
            for i in T.serial(n):
                B[0] = B[0] * 3 + A[i]
            for i in T.serial(3, n):
                B[1] = B[1] * 3 + A[i]
            for i in T.serial(2, n, 5):
                B[2] = B[2] * 3 + A[i]
            for i in range(n, 1, -4):
                B[3] = B[3] * 3 + A[i]
            for i in T.unroll(3, 9):
                B[4] = B[4] * 3 + A[i]
            for i in T.Pipelined(n, num_stages=3):
                B[5] = B[5] * 3 + A[i]
            for i in T.Pipelined(4, n, num_stages=2):
                for j in T.serial(i):
                    if j % 2 == 0:
                        B[6] = B[6] + A[j] * 2
                    elif j % 3 == 0:
                        B[6] = B[6] - A[j]
                    else:
                        B[6] = B[6] ^ 5

    a = sample((64,), "int32")

    def fold(steps):
        out = 0
        for i in steps:
            out = out * 3 + int(a[i])
        return int(np.asarray(out % 2**32).astype(np.uint32).astype(np.int32))

    for n in (0, 1, 5, 17, 63):
        b = [fold(range(n)), fold(range(3, n)), fold(range(2, n, 5)), fold(range(n, 1, -4)), fold(range(3, 9)),
             fold(range(n)), 0]
        for i in range(4, n):
            for j in range(i):
                b[6] = b[6] + int(a[j]) * 2 if j % 2 == 0 else b[6] - int(a[j]) if j % 3 == 0 else b[6] ^ 5
        check(main, [a, np.zeros(7, np.int32), n], {1: np.asarray(b, np.int64).astype(np.int32)})


def test_vectorized_loops():
    @T.prim_func
    def main(A: T.Tensor((4, 16), "float32"), B: T.Tensor((4, 16), "float32"), C: T.Tensor((4,), "int8")):
        with T.Kernel(4) as bx:
            for i in T.vectorized(16):
                B[bx, i] = T.exp(A[bx, i]) * 2.0
            for i in T.vectorized(4):
                C[i] = 7

    a = sample((4, 16))
    check(main, [a, np.zeros_like(a), np.zeros(4, np.int8)], {1: np.exp(a) * 2, 2: np.full(4, 7, np.int8)})


def test_while_and_locals():
    """The greatest common divisor by subtraction, and a count of Collatz steps, for each block."""

    @T.prim_func
    def main(A: T.Tensor((9, 2), "int64"), B: T.Tensor((9,), "int64"), C: T.Tensor((9,), "int32")):
        with T.Kernel(9) as bx:
            p = T.alloc_local((2,), "int64")
            steps = T.alloc_local((1,), "int32")
            p[0] = A[bx, 0]
            p[1] = A[bx, 1]
            while p[0] != p[1]:
                if p[0] > p[1]:
                    p[0] = p[0] - p[1]
                else:
                    p[1] -= p[0]
            B[bx] = p[0]
            steps[0] = 0
            p[0] = A[bx, 0]
            while p[0] != 1 and steps[0] < 50:
                p[0] = T.if_then_else(p[0] % 2 == 0, p[0] // 2, p[0] * 3 + 1)
                steps[0] += 1
            C[bx] = steps[0]

    a = np.random.default_rng(0).integers(1, 60, (9, 2))

    def collatz(x):
        steps = 0
        while x != 1 and steps < 50:
            x = x // 2 if x % 2 == 0 else x * 3 + 1
            steps += 1
        return steps

    c = np.asarray([collatz(int(x)) for x in a[:, 0]], np.int32)
    check(main, [a, np.zeros(9, np.int64), np.zeros(9, np.int32)], {1: np.gcd(a[:, 0], a[:, 1]), 2: c})


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 2), (2, 1, 4), (0,), (2, 0)])
def test_grids(grid):
    at = ["bx", "by", "bz"][: len(grid)]
    names = ", ".join(at)
    program = helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor({grid}, "int64")):\n'
        f'    with T.Kernel({", ".join(map(str, grid))}) as {names if len(at) == 1 else f"({names})"}:\n'
        f"        A[{names}] = A[{names}] * 10 + {' * 7 + '.join(at)}\n"
    )
    a = np.ones(grid, np.int64)
    where = np.meshgrid(*[np.arange(n) for n in grid], indexing="ij")
    text = " * 7 + ".join(f"w{i}" for i in range(len(grid)))
    check(program, [a], {0: a * 10 + eval(text, {f"w{i}": w for i, w in enumerate(where)})})


@pytest.mark.parametrize("grid", [(1,), (3,), (5, 4)])
@pytest.mark.parametrize("domain", [(7,), (0,), (4, 5), (3, 0), (2, 3, 4)])
def test_persistent_loops_without_a_mesh(grid, domain):
    at = ["i", "j", "k"][: len(domain)]
    program = helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor({domain}, "int64"), B: T.Tensor(({int(np.prod(grid))},), "int64")):\n'
        f"    with T.Kernel({', '.join(map(str, grid))}) as {'(bx, by)' if len(grid) == 2 else 'bx'}:\n"
        f"        for {', '.join(at)} in T.Persistent({list(domain)}):\n"
        f"            A[{', '.join(at)}] = A[{', '.join(at)}] + {' + 10 * '.join(at)} + 1\n"
        f"            B[{'bx * %d + by' % grid[1] if len(grid) == 2 else 'bx'}] += 1\n"
    )
    a = np.full(domain, 5, np.int64)
    where = np.meshgrid(*[np.arange(n) for n in domain], indexing="ij")
    places = int(np.prod(grid))
    dealt = np.bincount(np.arange(a.size) % places, minlength=places)
    a_wanted = a + eval(" + 10 * ".join(f"w{i}" for i in range(len(domain))),
                        {f"w{i}": w for i, w in enumerate(where)}) + 1
    check(program, [a, np.zeros(places, np.int64)], {0: a_wanted, 1: dealt})


def test_a_persistent_domain_that_does_not_begin_at_zero():
    @T.prim_func
    def main(A: T.Tensor((12, 9), "int32"), n: T.index):
        with T.Kernel(4) as bx:
            for i, j in T.Persistent([(2, n), (1, 9)]):
                A[i, j] = A[i, j] + 1

    a = np.zeros((12, 9), np.int32)
    for n in (2, 3, 12):
        wanted = a.copy()
        wanted[2:n, 1:] += 1
        check(main, [a, n], {0: wanted})


def test_names_bound_in_loops_that_become_vectors():
    @T.prim_func
    def main(A: T.Tensor((5, 37), "float32"), B: T.Tensor((5, 37), "float32"), S: T.Tensor((5,), "float32")):
        with T.Kernel(5) as bx:
            scale = S[bx] * 2.0
            for j in T.Parallel(37):
                x = A[bx, j] * scale
                y = T.exp(x) - x
                B[bx, j] = y * x

    a, s = sample((5, 37)), sample((5,), seed=1)
    x = a * (s * 2)[:, None]
    check(main, [a, np.zeros_like(a), s], {1: (np.exp(x) - x) * x}, rtol=1e-4)


def test_what_llvm_has_to_say_of_a_loop_is_not_printed(capfd):
    """LLVM cannot unroll this loop as asked, and tells its context so."""
    text = """
@T.prim_func
def main(A: T.Tensor((3, 7), "float32")):
    with T.Kernel(2) as b:
        V = T.alloc_shared((3,), "float32")
        X = T.alloc_shared_tiles((3, 7), "float32", tile_size=(4, 2))
        for i in T.serial(3):
            V[i] = 1.0
        for i, j in T.Parallel(3, 7):
            X[i, j] = 1.0
        for k in T.unroll(b):
            for i in T.serial(3):
                for j in T.serial(7):
                    X[i, j] = T.max(T.min(((V[0] * X[i, j]) + (V[0] + X[i, j])) * (X[i, j] * V[b]), 8.0), -8.0)
        if b == 1:
            T.copy(X, A)
"""
    a = np.zeros((3, 7), "float32")
    helve.compile(helve.parse(text))(a)
    assert np.array_equal(a, np.full((3, 7), 3, "float32"))
    assert capfd.readouterr().err == ""
