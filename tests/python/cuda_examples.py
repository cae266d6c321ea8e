"""Kernels in thread form whose CUDA C is kept in tests/golden/cuda.

Each shows one thing: a reduction by shuffles, a guard, a fallback from vectors, names that C forbids.
"""

import test_threads

import helve

TEXTS = {}

TEXTS["scaled_rows"] = """
@T.prim_func
def scaled_rows(A: T.Tensor((48, 96), "float32", strides=(104, 1)), s: T.float32, B: T.Tensor((48, 96), "float16")):
    with T.Kernel(4, 3, threads=96) as (by, bx):
        for tx in T.threads(96):
            for r in T.serial(4):
                for v in T.vectorized(8):
                    B[by * 12 + r * 3 + tx // 32, bx * 32 + tx % 4 * 8 + v] = (
                        A[by * 12 + r * 3 + tx // 32, bx * 32 + tx % 4 * 8 + v] * s
                    )
"""

# Whole rows under a guard: the guard stays a branch, the row is moved in vectors.
TEXTS["guarded_rows"] = """
M = T.dyn("M")

@T.prim_func
def guarded_rows(A: T.Tensor((M, 256), "bfloat16"), B: T.Tensor((M, 256), "bfloat16", strides=(512, 1)),
                 C: T.Tensor((M, 256), "bfloat16")):
    with T.Kernel(T.ceildiv(M, 4), threads=128) as b:
        for tx in T.threads(128):
            if b * 4 + tx // 32 < M:
                for v in T.vectorized(8):
                    C[b * 4 + tx // 32, tx % 32 * 8 + v] = (
                        A[b * 4 + tx // 32, tx % 32 * 8 + v] + B[b * 4 + tx // 32, tx % 32 * 8 + v]
                    )
"""

# A guard that differs from lane to lane, and rows of any length: element by element.
TEXTS["ragged_rows"] = """
M = T.dyn("M")
N = T.dyn("N")

@T.prim_func
def ragged_rows(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32"), s: T.bfloat16, n: T.int32):
    with T.Kernel(M, T.ceildiv(N, 512), threads=128) as (b, c):
        for tx in T.threads(128):
            for v in T.vectorized(4):
                if c * 512 + tx * 4 + v < N:
                    C[b, c * 512 + tx * 4 + v] = (
                        A[b, c * 512 + tx * 4 + v] * T.cast(s, "float32") + T.cast(n, "float32")
                    )
"""

TEXTS["transpose"] = """
@T.prim_func
def transpose(A: T.Tensor((64, 96), "uint16"), B: T.Tensor((96, 64), "uint16")):
    with T.Kernel(2, 3, threads=128) as (by, bx):
        S = T.alloc_shared((32, 33), "uint16")
        for tx in T.threads(128):
            for v in T.vectorized(8):
                S[tx // 4, tx % 4 * 8 + v] = A[by * 32 + tx // 4, bx * 32 + tx % 4 * 8 + v]
        T.sync_threads()
        for tx in T.threads(128):
            for v in T.vectorized(8):
                B[bx * 32 + tx // 4, by * 32 + tx % 4 * 8 + v] = S[tx % 4 * 8 + v, tx // 4]
"""

# Data integers wrap, index does not; quotients are rounded down.
TEXTS["integers"] = """
@T.prim_func
def integers(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int8"), C: T.Tensor((64,), "uint64"),
             D: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for tx in T.threads(64):
            a = A[tx]
            C[(tx * 5 - 70) % 64] = T.cast(a, "uint64") * 3 >> 2
            B[tx] = -B[tx] + 1
            D[63 - tx] = T.max(a * a + 7, a // 3) << 1
            if (tx - 40) // 7 == -2:
                D[63 - tx] = ~a
"""

# Values that only some threads need, a loop of unknown length.
TEXTS["collatz"] = """
@T.prim_func
def collatz(A: T.Tensor((256,), "int64"), B: T.Tensor((256,), "int32")):
    with T.Kernel(4, threads=64) as b:
        for tx in T.threads(64):
            x = T.alloc_local((2,), "int64")
            x[0] = A[b * 64 + tx]
            x[1] = T.cast(0, "int64")
            while x[0] > 1:
                x[0] = T.if_then_else(x[0] % 2 == 0, x[0] // 2, x[0] * 3 + 1)
                x[1] = x[1] + 1
            B[b * 64 + tx] = T.cast(x[1], "int32")
"""

TEXTS["shifted"] = """
@T.prim_func
def shifted(A: T.Tensor((1026,), "float32"), B: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32")):
    with T.Kernel(1, threads=128):
        for tx in T.threads(128):
            for v in T.vectorized(8):
                B[tx * 8 + v] = A[tx * 8 + v + 2]
            for v in T.vectorized(8):
                C[tx * 8 + v] = A[tx * 8 + v + 1]
"""

TEXTS["copy"] = """
@T.prim_func
def copy(A: T.Tensor((4, 2048), "float8_e4m3"), B: T.Tensor((4, 2048), "float8_e4m3"),
         C: T.Tensor((4, 2048), "float8_e5m2")):
    with T.Kernel(4, threads=128) as b:
        x = T.alloc_fragment((128, 16), "float8_e4m3")
        for tx in T.threads(128):
            for v in T.vectorized(16):
                x[tx, v] = A[b, tx * 16 + v]
            for v in T.vectorized(16):
                B[b, tx * 16 + v] = x[tx, v]
            for v in T.vectorized(16):
                C[b, tx * 16 + v] = T.cast(x[tx, v], "float8_e5m2")
"""

# A maximum over each row, kept in registers by all threads of a warp; NaN and infinity.
TEXTS["row_maxima"] = """
@T.prim_func
def row_maxima(A: T.Tensor((8, 128), "float16"), B: T.Tensor((8,), "float64"), C: T.Tensor((8, 32), "bool")):
    with T.Kernel(4, threads=64) as b:
        m = T.alloc_fragment((64, 1), "float16")
        t = T.alloc_fragment((64, 1), "float16")
        f = T.alloc_fragment((64, 2), "bool")
        for tx in T.threads(64):
            m[tx, 0] = -T.infinity("float16")
            for r in T.serial(4):
                m[tx, 0] = T.max(m[tx, 0], A[b * 2 + tx // 32, tx % 32 + r * 32])
        for k in T.unroll(5):
            for tx in T.threads(64):
                t[tx, 0] = m[tx ^ (16 >> k), 0]
            for tx in T.threads(64):
                m[tx, 0] = T.max(m[tx, 0], t[tx, 0])
        for tx in T.threads(64):
            f[tx, 0] = m[tx, 0] > 1.0
        for tx in T.threads(64):
            f[tx, 1] = f[tx ^ 1, 0]
        for tx in T.threads(64):
            C[b * 2 + tx // 32, tx % 32] = f[tx, 0] and not f[tx, 1]
            if tx % 32 == 0:
                B[b * 2 + tx // 32] = T.cast(m[tx, 0], "float64") / 3.0
"""

# Names that are something else in C, CUDA or the prelude, and one name twice.
TEXTS["names"] = """
@T.prim_func
def names(double: T.Tensor((32,), "float32"), helve_load: T.Tensor((32,), "float32"), blockIdx: T.index):
    with T.Kernel(1, threads=32):
        tx = blockIdx + 1
        a__b = T.alloc_fragment((32, 1), "float32")
        for thread in T.threads(32):
            while_ = double[thread] * 2.0
            a__b[thread, 0] = while_ + T.cast(tx, "float32")
        for union in T.threads(32):
            while_ = a__b[union, 0] + 1.0
            helve_load[union] = while_
"""

# The blocks of a mesh function are its cores, each with its own instance of a global buffer.
TEXTS["cores"] = """
@T.prim_func(mesh=T.Mesh((2, 3), ("x", "y")))
def cores(A: T.Tensor((6, 64), "int32")):
    G = T.alloc_global((64,), "int32")
    with T.Kernel(2, 3, threads=64) as (x, y):
        for tx in T.threads(64):
            G[tx] = A[x * 3 + y, tx] + T.cast(x * 10 + y, "int32")
    with T.Kernel(2, 3, threads=64) as (x, y):
        for tx in T.threads(64):
            A[x * 3 + y, tx] = G[63 - tx]
"""

# Rows that data names.
TEXTS["gather"] = """
@T.prim_func
def gather(A: T.Tensor((64, 128), "float32"), I: T.Tensor((32,), "int32"), J: T.Tensor((32,), "int64"),
           B: T.Tensor((32, 128), "float32")):
    with T.Kernel(32, threads=32) as b:
        row = T.index(I[b])
        for tx in T.threads(32):
            for v in T.vectorized(4):
                B[b, tx * 4 + v] = A[row, tx * 4 + v] + A[T.index(J[b]), tx * 4 + v]
"""

FUNCTIONS = {name: helve.parse(text) for name, text in TEXTS.items()}
FUNCTIONS["row_sums"] = test_threads.row_sums
