"""What helve calls that which other libraries call otherwise.

People come with the names of NumPy, PyTorch, Triton, TileLang and CUDA in their fingers, which are spelled too
differently for a guess by spelling; this table is the answer to such names, wherever one is not found.
"""

from __future__ import annotations

from collections.abc import Iterable

from helve.errors import suggestion

_BLOCK = "with T.Kernel(m, n) as (i, j): the names are the block's place in the grid"
_GRID = "the extents that T.Kernel is given"
_LOAD = "A[i] for an element, or T.copy(A[lo:hi], tile)"
_STORE = "A[i] = x for an element, or T.copy(tile, A[lo:hi])"
_PRODUCT = "T.gemm(A, B, C), which adds A @ B to C"
_FULL = "T.alloc_fragment(shape, dtype) or T.alloc_shared(shape, dtype), then T.clear(x) or T.fill(x, value)"
_LOOP = "for i in T.Parallel(n)"
_ASSERTION = "T.assert_(condition, message)"
_CONSTANT = "a name from around the function: Python's numbers are constants of a kernel"
_PRINTING = "T.print(text, x, A[i])"
_ELECT = "with T.warp(8, elect=True), and as the argument of T.role and T.warpgroup"
_REGISTERS = "the argument registers of T.warpgroup and T.role"
_BARRIER = "T.sync_threads() in code of threads; in that of blocks nothing, a statement sees what those before it did"

HABITS = {
    "Buffer": "T.Tensor(shape, dtype)",
    "GemmWarpPolicy": "no policy: helve divides a product among warps",
    "Serial": "T.serial(n)",
    "Unroll": "T.unroll(n)",
    "Vectorized": "T.vectorized(n)",
    "absolute": "T.abs(x)",
    "add_": "T.atomic_add(A[i], x)",
    "alloc": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "alloc_reducer": "T.alloc_fragment(shape, dtype) and T.reduce_sum(src, dst)",
    "alloc_register": "T.alloc_fragment(shape, dtype)",
    "allocate": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "amax": "T.reduce_max(src, dst, dim)",
    "amin": "T.reduce_min(src, dst, dim)",
    "arange": _LOOP,
    "atomicAdd": "T.atomic_add(A[i], x)",
    "atomicMax": "T.atomic_max(A[i], x)",
    "atomicMin": "T.atomic_min(A[i], x)",
    "barrier": _BARRIER,
    "blockDim": "the argument threads of T.Kernel",
    "blockIdx": _BLOCK,
    "block_idx": _BLOCK,
    "cdiv": "T.ceildiv(a, b)",
    "clip": "T.clamp(x, lo, hi)",
    "const": _CONSTANT,
    "constexpr": _CONSTANT,
    "debug_barrier": _BARRIER,
    "device_assert": _ASSERTION,
    "device_print": _PRINTING,
    "divide": "a / b",
    "dot": _PRODUCT,
    "einsum": _PRODUCT,
    "elect": _ELECT,
    "elect_one_sync": _ELECT,
    "empty": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "float_": "T.float64(x)",
    "floor_divide": "a // b",
    "floordiv": "a // b",
    "floormod": "a % b",
    "fmax": "T.max(a, b)",
    "fmin": "T.min(a, b)",
    "full": _FULL,
    "full_like": _FULL,
    "gelu": "0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))",
    "grid": "for i, j in T.Parallel(m, n), or T.serial one inside the other",
    "gridDim": _GRID,
    "inf": "T.infinity()",
    "load": _LOAD,
    "log_softmax": "T.reduce_max and T.reduce_sum, then x - greatest - T.log(total)",
    "logical_and": "a and b",
    "logical_not": "not a",
    "logical_or": "a or b",
    "match_buffer": "a parameter, A: T.Tensor(shape, dtype)",
    "matmul": _PRODUCT,
    "maximum": "T.max(a, b)",
    "mean": "T.reduce_sum(src, dst, dim), and divide by the extent",
    "minimum": "T.min(a, b)",
    "mod": "a % b",
    "multiply": "a * b",
    "negative": "-x",
    "num_programs": _GRID,
    "ones": _FULL,
    "power": "a ** b",
    "prange": _LOOP,
    "prod": "T.reduce_prod(src, dst, dim)",
    "program_id": _BLOCK,
    "rand4x": "T.philox(c0, c1, c2, c3, k0, k1)",
    "randint": "T.random_bits(seed, offset)",
    "rcp": "1.0 / x",
    "reciprocal": "1.0 / x",
    "reduce_mean": "T.reduce_sum(src, dst, dim), and divide by the extent",
    "relu": "T.max(x, 0.0)",
    "remainder": "a % b",
    "rng_init": "T.rand(seed, offset) and T.random_bits(seed, offset), which keep no state",
    "rng_rand": "T.random_bits(seed, offset)",
    "rng_rand_float": "T.rand(seed, offset)",
    "select": "T.if_then_else(condition, a, b)",
    "set_max_nreg": _REGISTERS,
    "setmaxnreg": _REGISTERS,
    "silu": "x * T.sigmoid(x)",
    "softmax": "T.reduce_max and T.reduce_sum, then T.exp(x - greatest) / total",
    "sort": "T.topk(src, values, indices), which gives the greatest elements in order",
    "square": "x * x",
    "store": _STORE,
    "subtract": "a - b",
    "sum": "T.reduce_sum(src, dst, dim)",
    "sync": _BARRIER,
    "syncthreads": _BARRIER,
    "threadIdx": "T.Parallel: loops are divided among the threads",
    "thread_binding": "T.Kernel(..., threads=n) and T.Parallel: loops are divided among the threads",
    "to": "T.cast(x, dtype)",
    "true_divide": "a / b",
    "truncdiv": "a // b, which rounds down",
    "var": "T.reduce_sum(src, dst, dim) of squares of x - mean, and divide by the extent",
    "where": "T.if_then_else(condition, a, b)",
    "zeros": _FULL,
    "zeros_like": _FULL,
}


def meant(name: object, known: Iterable[str], prefix: str = "T.") -> list[str]:
    """How helve writes what `name` is elsewhere, else the name below `prefix` that is nearest; as a list of fixes."""
    if isinstance(name, str) and name in HABITS:
        return [f"in helve: {HABITS[name]}"]
    return suggestion(name, known, prefix)


def counterpart(name: object, known: Iterable[str]) -> list[str]:
    """How helve writes what another library has under `name`, or the very same name of T; as a list of fixes."""
    if isinstance(name, str) and name in known and name not in HABITS:
        return [f"in helve: T.{name}"]
    return meant(name, ())
