"""Products of tiles by an instruction of tensor cores, and arguments whose results are exact, for several tests."""

import ml_dtypes
import numpy as np
from helve import T

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# Types of which one instruction takes another depth; float32 is TensorFloat-32.
OTHER_TYPES = {"float32": np.float32, "float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
               "int8": np.int8, "uint8": np.uint8}


def sums_of(dtype):
    """The type that products of this type are added in."""
    return "int32" if "int" in dtype else "float32"


def product(dispatch, m, n, k, threads, dtype="float16", transpose_a=False, transpose_b=False, clear=False, steps=1,
            registers=False):
    """`steps` tiles of K, added to C or to what the loop over them began with. `registers`: A is a fragment."""
    rows = (k * steps, m) if transpose_a else (m, k * steps)
    columns = (n, k * steps) if transpose_b else (k * steps, n)
    sums = sums_of(dtype)

    @T.prim_func
    def main(A: T.Tensor(rows, dtype), B: T.Tensor(columns, dtype), C: T.Tensor((m, n), sums)):
        with T.Kernel(1, threads=threads):
            if registers:
                a = T.alloc_fragment((m, k), dtype)
            else:
                a = T.alloc_shared((k, m) if transpose_a else (m, k), dtype)
            b = T.alloc_shared((n, k) if transpose_b else (k, n), dtype)
            c = T.alloc_fragment((m, n), sums)
            T.copy(C, c)
            for s in T.serial(steps):
                if transpose_a:
                    T.copy(A[s * k : s * k + k, :], a)
                else:
                    T.copy(A[:, s * k : s * k + k], a)
                if transpose_b:
                    T.copy(B[:, s * k : s * k + k], b)
                else:
                    T.copy(B[s * k : s * k + k, :], b)
                T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, clear=clear, dispatch=dispatch)
            for i, j in T.Parallel(m, n):
                C[i, j] = c[i, j] * 2

    return main


def arguments(m, n, k, dtype, transpose_a, transpose_b, steps):
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(3)
    draw = lambda *shape: rng.integers(0 if dtype == "uint8" else -4, 5, shape)  # noqa: E731
    a, b, c = draw(m, k * steps), draw(k * steps, n), draw(m, n)
    kind = {**TYPES, **OTHER_TYPES}[dtype]
    given = [(a.T if transpose_a else a).astype("float32").astype(kind),
             (b.T if transpose_b else b).astype("float32").astype(kind), c.astype(sums_of(dtype))]
    return [np.ascontiguousarray(each) for each in given], (2 * (c + a @ b)).astype(sums_of(dtype))
