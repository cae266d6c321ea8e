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
_POINTER = "a buffer, A, or a part of it, A[lo:hi]: a kernel has no pointers"
_TILE = "A[lo:hi, k] where a tile is wanted: a slice of a tensor is one"
_MEMORY = "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers"
_CORES = 'T.gemm(A, B, C, dispatch="tensor_cores")'
_EARLY = "T.copy(src, dst) in a loop of T.Pipelined(n, num_stages=3), or T.copy_async(src, dst)"
_COMMIT = "nothing: T.wait_async(pending=n) counts each T.copy_async(src, dst)"
_WAIT = "T.wait_async(pending=n), or T.wait_async() for all copies"
_RING = ("a ring, b = T.alloc_barrier(slots): T.ring_acquire(b) and T.ring_commit(b) fill a slot, T.ring_wait(b) and "
         "T.ring_release(b) take one")
_GROUPS = "nothing: T.gemm(A, B, C) is complete where the next statement needs it"
_CLUSTER = "nothing: the compiler inserts T.sync_cluster() where blocks of a cluster meet"
_LANE = "tx % 32 in with T.thread() as tx"
_WARP = "tx // 32 in with T.thread() as tx"
_THREAD = "tx in with T.thread() as tx; loops of T.Parallel are divided among the threads"
_RANK = "b % c in with T.Kernel(n, cluster=c) as b"
_OVER_WARP = "T.reduce_sum(src, dst, dim) of a fragment; in code of threads a loop of T.shfl_xor(value, offset)"
_FOREIGN = "nothing: a kernel has no code of other languages, write it by what T has"
_ATOMICS = "T.atomic_add, T.atomic_max or T.atomic_min, of which return_prev=True gives what stood there before"
_SCAN = "T.cumsum(src, dst) of sums, else a loop of T.serial(n)"
_REPEATED = "A[i] in a loop over i and j: an element is read wherever a subscript names it"
_PARTS = "T.copy(src, dst) of parts, A[lo:hi]"
_TURNED = "B[j, i] = A[i, j] in a loop of T.Parallel(m, n); of a factor transpose_A or transpose_B of T.gemm"
_WRITTEN_OUT = "T.unroll(n)"
_ALIGNED = "T.assume(M % 8 == 0) at the head of the function"
_WHILE_PARSED = "Python's own, around the kernel: it knows all constants of the kernel"
_EXTENT = "T.dyn(name), as M = T.dyn(\"M\") before the function"
_QUOTIENT = "a / b"

HABITS = {
    "Buffer": "T.Tensor(shape, dtype)",
    "GemmWarpPolicy": "no policy: helve divides a product among warps",
    "Ptr": _POINTER,
    "Select": "T.if_then_else(condition, a, b)",
    "Serial": "T.serial(n)",
    "Unroll": "T.unroll(n)",
    "Vectorized": "T.vectorized(n)",
    "absolute": "T.abs(x)",
    "access_ptr": _POINTER,
    "add": "a + b",
    "add_": "T.atomic_add(A[i], x)",
    "address_of": _POINTER,
    "advance": _TILE,
    "all_of": "T.reduce_all(src, dst, dim)",
    "all_sync": _OVER_WARP,
    "alloc": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "alloc_reducer": "T.alloc_fragment(shape, dtype) and T.reduce_sum(src, dst)",
    "alloc_register": "T.alloc_fragment(shape, dtype)",
    "alloc_smem": _MEMORY,
    "alloc_tensor": _MEMORY,
    "alloc_tmem": "T.alloc_fragment(shape, dtype): sums of products are in registers",
    "allocate": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "amax": "T.reduce_max(src, dst, dim)",
    "amin": "T.reduce_min(src, dst, dim)",
    "annotate_consumer_reg_alloc": _REGISTERS,
    "annotate_producer_reg_dealloc": _REGISTERS,
    "any_of": "T.reduce_any(src, dst, dim)",
    "any_sync": _OVER_WARP,
    "arange": _LOOP,
    "arch": "with T.Kernel(m, n) as (i, j) for the place of a block, with T.thread() as tx for that of a thread",
    "argsort": "T.topk(src, values, indices), which gives the indices of the greatest elements in order",
    "associative_scan": _SCAN,
    "async_commit_queue": _COMMIT,
    "async_copy": _EARLY,
    "async_wait_queue": _WAIT,
    "atomicAdd": "T.atomic_add(A[i], x)",
    "atomicCAS": _ATOMICS,
    "atomicExch": _ATOMICS,
    "atomicMax": "T.atomic_max(A[i], x)",
    "atomicMin": "T.atomic_min(A[i], x)",
    "atomic_addx2": "T.atomic_add(A[lo:hi], x)",
    "atomic_addx4": "T.atomic_add(A[lo:hi], x)",
    "atomic_and": _ATOMICS,
    "atomic_cas": _ATOMICS,
    "atomic_or": _ATOMICS,
    "atomic_xchg": _ATOMICS,
    "atomic_xor": _ATOMICS,
    "ballot": _OVER_WARP,
    "ballot_sync": _OVER_WARP,
    "barrier": _BARRIER,
    "barrier_arrive": _RING,
    "barrier_wait": _RING,
    "bf16": "T.bfloat16",
    "bincount": "T.atomic_add(H[X[i]], 1) in a loop of T.Parallel(n)",
    "bitwise_and": "a & b",
    "bitwise_not": "~a",
    "bitwise_or": "a | b",
    "bitwise_xor": "a ^ b",
    "blockDim": "the argument threads of T.Kernel",
    "blockIdx": _BLOCK,
    "block_idx": _BLOCK,
    "block_rank": _RANK,
    "broadcast": _REPEATED,
    "broadcast_to": _REPEATED,
    "call_extern": _FOREIGN,
    "call_intrin": _FOREIGN,
    "cat": _PARTS,
    "cdiv": "T.ceildiv(a, b)",
    "clip": "T.clamp(x, lo, hi)",
    "cluster_arrive": _CLUSTER,
    "cluster_rank": _RANK,
    "cluster_sync": _CLUSTER,
    "cluster_wait": _CLUSTER,
    "concat": _PARTS,
    "concatenate": _PARTS,
    "const": _CONSTANT,
    "constexpr": _CONSTANT,
    "copy_atom": "T.copy(src, dst): helve chooses how",
    "cosh": "0.5 * (T.exp(x) + T.exp(-x))",
    "cp_async_commit_group": _COMMIT,
    "cp_async_wait_all": _WAIT,
    "cp_async_wait_group": _WAIT,
    "create_list_of_mbarrier": _RING,
    "cummax": _SCAN,
    "cummin": _SCAN,
    "cumprod": _SCAN,
    "debug_barrier": _BARRIER,
    "dec_max_nreg": _REGISTERS,
    "decl_buffer": _MEMORY,
    "device_assert": _ASSERTION,
    "device_print": _PRINTING,
    "disable_warp_group_reg_alloc": _REGISTERS,
    "div": "a / b",
    "div_rn": _QUOTIENT,
    "divide": "a / b",
    "dot": _PRODUCT,
    "dot_scaled": "T.cast of the factors and T.e8m0(x) of the scales, then T.gemm(A, B, C)",
    "dp4a": "T.gemm(A, B, C) of int8 with sums of int32",
    "dynamic_shape": _EXTENT,
    "einsum": _PRODUCT,
    "elect": _ELECT,
    "elect_one": _ELECT,
    "elect_one_sync": _ELECT,
    "empty": "T.alloc_shared(shape, dtype), or T.alloc_fragment(shape, dtype) for registers",
    "exp10": "10.0 ** x",
    "expand_dims": _REPEATED,
    "fast_exp": "T.exp(x), with fast_math=True of helve.compile",
    "fdiv": _QUOTIENT,
    "fdividef": _QUOTIENT,
    "finalize_reducer": "T.reduce_sum(src, dst)",
    "flip": "A[n - 1 - i] in a loop of T.Parallel(n)",
    "float_": "T.float64(x)",
    "floor_divide": "a // b",
    "floordiv": "a // b",
    "floormod": "a % b",
    "fmax": "T.max(a, b)",
    "fmin": "T.min(a, b)",
    "fp16": "T.float16",
    "fp32": "T.float32",
    "fp64": "T.float64",
    "fp8": "T.float8_e4m3 or T.float8_e5m2",
    "full": _FULL,
    "full_like": _FULL,
    "gather": "A[I[i]] in a loop of T.Parallel(n)",
    "gelu": "0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))",
    "get_lane_idx": _LANE,
    "get_warp_idx": _WARP,
    "grid": "for i, j in T.Parallel(m, n), or T.serial one inside the other",
    "gridDim": _GRID,
    "handle": _POINTER,
    "histogram": "T.atomic_add(H[X[i]], 1) in a loop of T.Parallel(n)",
    "import_source": _FOREIGN,
    "inc_max_nreg": _REGISTERS,
    "inf": "T.infinity()",
    "inline_asm": _FOREIGN,
    "inline_asm_elementwise": _FOREIGN,
    "lane_id": _LANE,
    "lane_idx": _LANE,
    "load": _LOAD,
    "local_partition": "T.Parallel: loops are divided among the threads",
    "local_tile": _TILE,
    "log10": "T.log(x) * 0.4342944819032518",
    "log_softmax": "T.reduce_max and T.reduce_sum, then x - greatest - T.log(total)",
    "logical_and": "a and b",
    "logical_not": "not a",
    "logical_or": "a or b",
    "loop_break": "break",
    "make_block_ptr": _TILE,
    "make_fragment": "T.alloc_fragment(shape, dtype)",
    "make_layout": "the argument layout of an allocation, from helve.layout",
    "make_tensor": _TILE,
    "make_tensor_descriptor": _TILE,
    "make_tiled_copy": "T.copy(src, dst): helve chooses how",
    "make_tiled_mma": _CORES,
    "match_buffer": "a parameter, A: T.Tensor(shape, dtype)",
    "matmul": _PRODUCT,
    "max_contiguous": _ALIGNED,
    "max_value": "T.infinity(dtype) of a float, the number itself of an integer",
    "maximum": "T.max(a, b)",
    "mbarrier_arrive": _RING,
    "mbarrier_expect_tx": _RING,
    "mbarrier_try_wait": _RING,
    "mbarrier_wait_parity": _RING,
    "mean": "T.reduce_sum(src, dst, dim), and divide by the extent",
    "min_value": "-T.infinity(dtype) of a float, the number itself of an integer",
    "minimum": "T.min(a, b)",
    "mma_sync": _CORES,
    "mod": "a % b",
    "mul": "a * b",
    "multiple_of": _ALIGNED,
    "multiply": "a * b",
    "neg": "-x",
    "negative": "-x",
    "no_set_max_nreg": _REGISTERS,
    "num_programs": _GRID,
    "numel": "A.shape[0] * A.shape[1], of as many dimensions as there are",
    "ones": _FULL,
    "permute": _TURNED,
    "power": "a ** b",
    "prange": _LOOP,
    "prod": "T.reduce_prod(src, dst, dim)",
    "program_id": _BLOCK,
    "ptr": _POINTER,
    "ptx_commit_group": _COMMIT,
    "ptx_mma": _CORES,
    "ptx_wait_group": _WAIT,
    "rand4x": "T.philox(c0, c1, c2, c3, k0, k1)",
    "randint": "T.random_bits(seed, offset)",
    "randn": "T.sqrt(-2.0 * T.log(1.0 - T.rand(seed, i))) * T.cos(6.283185307179586 * T.rand(seed, j))",
    "range_constexpr": _WRITTEN_OUT,
    "rcp": "1.0 / x",
    "reciprocal": "1.0 / x",
    "reduce": "T.reduce_sum(src, dst, dim), T.reduce_max and others",
    "reduce_mean": "T.reduce_sum(src, dst, dim), and divide by the extent",
    "relu": "T.max(x, 0.0)",
    "remainder": "a % b",
    "rng_init": "T.rand(seed, offset) and T.random_bits(seed, offset), which keep no state",
    "rng_rand": "T.random_bits(seed, offset)",
    "rng_rand_float": "T.rand(seed, offset)",
    "scatter": "A[I[i]] = x in a loop of T.Parallel(n), or T.atomic_add(A[I[i]], x)",
    "select": "T.if_then_else(condition, a, b)",
    "set_max_nreg": _REGISTERS,
    "setmaxnreg": _REGISTERS,
    "shift_left": "a << b",
    "shift_right": "a >> b",
    "shuffle_elect": _ELECT,
    "silu": "x * T.sigmoid(x)",
    "sinh": "0.5 * (T.expm1(x) - T.expm1(-x))",
    "size": "A.shape[0]",
    "size_var": _EXTENT,
    "smem": _MEMORY,
    "softmax": "T.reduce_max and T.reduce_sum, then T.exp(x - greatest) / total",
    "sort": "T.topk(src, values, indices), which gives the greatest elements in order",
    "split": _PARTS,
    "sqrt_rn": "T.sqrt(x)",
    "square": "x * x",
    "stack": _PARTS,
    "static_assert": _WHILE_PARSED,
    "static_print": _WHILE_PARSED,
    "static_range": _WRITTEN_OUT,
    "static_unroll": _WRITTEN_OUT,
    "std": "T.sqrt of the variance: T.reduce_sum(src, dst, dim) of squares of x - mean, and divide by the extent",
    "store": _STORE,
    "sub": "a - b",
    "subtract": "a - b",
    "sum": "T.reduce_sum(src, dst, dim)",
    "sync": _BARRIER,
    "sync_warp": "nothing: lanes meet in shuffles; T.sync_threads() is for all threads",
    "syncthreads": _BARRIER,
    "syncwarp": "nothing: lanes meet in shuffles; T.sync_threads() is for all threads",
    "tan": "T.sin(x) / T.cos(x)",
    "tanh_approx": "T.tanh(x), with fast_math=True of helve.compile",
    "tcgen05_gemm": _CORES,
    "threadIdx": "T.Parallel: loops are divided among the threads",
    "thread_binding": "T.Kernel(..., threads=n) and T.Parallel: loops are divided among the threads",
    "thread_idx": _THREAD,
    "tma_copy": _EARLY,
    "tma_store_wait": _WAIT,
    "to": "T.cast(x, dtype)",
    "trans": _TURNED,
    "transpose": _TURNED,
    "true_divide": "a / b",
    "trunc": "T.cast(x, dtype) of an integer type, which rounds toward zero",
    "truncdiv": "a // b, which rounds down",
    "var": "T.reduce_sum(src, dst, dim) of squares of x - mean, and divide by the extent",
    "wait_wgmma": _GROUPS,
    "warp_id": _WARP,
    "warp_idx": _WARP,
    "warp_reduce_max": _OVER_WARP,
    "warp_reduce_min": _OVER_WARP,
    "warp_reduce_sum": _OVER_WARP,
    "warpgroup_arrive": _GROUPS,
    "warpgroup_wait": _GROUPS,
    "wgmma_gemm": _CORES,
    "wgmma_wait_group": _GROUPS,
    "where": "T.if_then_else(condition, a, b)",
    "ws": "with T.warpgroup(first, count=1); T.Pipelined makes such roles by itself",
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


_PAST = "leave it out: a copy reads pad past the end of a tensor, and writes nothing there"
_KEPT = "leave it out: a destination that has extent 1 in that dimension keeps it"
# Keywords of other libraries: the parameter of a construct beside which they mean something, and what is written for
# them.
_KEYWORDS = {
    "axis": ("dim", "in helve: dim"),
    "boundary_check": ("pad", _PAST),
    "keep_dims": ("dim", _KEPT),
    "keepdim": ("dim", _KEPT),
    "keepdims": ("dim", _KEPT),
    "mask": ("pad", _PAST),
    "memory_order": ("value", "leave it out: an atomic update orders no other access"),
    "num_warps": ("threads", "in helve: threads, 32 for each warp"),
    "other": ("pad", "in helve: pad"),
    "padding_option": ("pad", "in helve: pad"),
}


def keyword_meant(keyword: object, parameters: Iterable[str]) -> list[str]:
    """How a construct with these parameters takes what `keyword` says elsewhere, as a list of fixes."""
    beside, offer = _KEYWORDS.get(keyword, ("", "")) if isinstance(keyword, str) else ("", "")
    return [offer] if beside in tuple(parameters) else suggestion(keyword, parameters)
