"""What `T` is: the names that kernels are written with."""

import builtins as _b
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import overload as _overload

from helve._core import Expr as _Expr
from helve._core import Var as _Var
from helve.language.constructs import DType as _DType
from helve.language.constructs import Macro as _Macro
from helve.language.constructs import TensorType as _TensorType
from helve.mesh import Mesh as _Mesh
from helve.notation import Expression as _Expression
from helve.script.prim_func import PrimFunc as _PrimFunc

_Scalar = _Expr | _Expression | _b.int | _b.float | _b.bool
_Extent = _Expr | _b.int
_Shape = _Sequence[_Extent]
_Region = _Any

NAMES: dict[str, _Any]

def Cast(dtype: _Any, x: _Scalar) -> _Any:
    """The same as T.cast, with the type first."""

def Kernel(*grid: _Any, threads: _b.int | _Sequence[_b.int] = 128, cluster: _b.int = 1, producers: _b.int = 0, registers: _Any = ()) -> _Any:
    """A launch: `with T.Kernel(*grid) as (bx, by)`. In a mesh function the grid is the mesh. `cluster`
    neighbouring blocks along the last dimension of the grid run at the same time, so that GPUs can copy for
    them together. `producers` threads more fill rings, where the target has such; `registers`, two numbers, are
    the budgets of each thread that takes from rings and of each that fills them. By default the compiler
    chooses."""

def Mesh(shape: _Shape, names: _Sequence[_b.str] = ('x', 'y'), device: _b.str = 'host') -> _Mesh:
    """A mesh; see helve.Mesh."""

def Parallel(*extents: _Any, scheduled: _b.bool = False, rolled: _b.bool = False) -> _Any:
    """A loop over elements whose iterations are independent."""

def Persistent(domain: _Sequence[_Any] | _Extent, scheduled: _b.bool = False) -> _Any:
    """A loop over work items, independent and in any order; domain is a list of extents."""

def Pipelined(start: _Extent, stop: _Extent | None = None, num_stages: _b.int = 1, scheduled: _b.bool = False) -> _Any:
    """A serial loop whose iterations may overlap over num_stages stages."""

def Tensor(shape: _Shape, dtype: _Any = 'float32', strides: _Shape | None = None, out: _Any = False, sorted: _Any = False) -> _TensorType:
    """The type of a tensor parameter: extents (ints, T.dyn, arithmetic on them), element type, strides in
    elements."""

def abs(x: _Scalar) -> _Any:
    """The scalar operator Abs."""

def alloc_barrier(slots: _Any) -> _Any:
    """The mbarriers of a ring of `slots` slots, initialized: two for each, for its data and for its room."""

def alloc_fragment(shape: _Shape, dtype: _Any, tile_size: _Sequence[_b.int] | None = None, layout: _Any | None = None, place: _Any | None = None) -> _Any:
    """A buffer distributed over the registers of the block; `layout`, on tx and reg, gives each element's place.
    `place` says in a lowered program where a thread keeps its part, "packed" in registers or in "memory", or
    that a CPU keeps all of it on the "stack"."""

def alloc_global(shape: _Shape, dtype: _Any, tile_size: _Sequence[_b.int] | None = None) -> _Any:
    """A buffer in global memory; in a mesh function one instance per core."""

def alloc_local(shape: _Shape, dtype: _Any, tile_size: _Sequence[_b.int] | None = None, layout: _Any | None = None, place: _Any | None = None) -> _Any:
    """A buffer private to a thread; `layout` as for shared memory. Registers of a GPU have none. `place` as for
    T.alloc_fragment."""

def alloc_shared(shape: _Shape, dtype: _Any, scope: _b.str = 'shared.dyn', layout: _Any | None = None, offset: _Any | None = None, slots: _Any | None = None, place: _Any | None = None) -> _Any:
    """A buffer in the block's shared memory; `layout`, on the memory axis, gives the address of each element.
    `offset` is its first byte, in a lowered program. With `slots` there are so many instances of it, which a
    ring hands over. `place` is "stack" in a lowered program where a CPU keeps it there."""

def alloc_shared_tiles(shape: _Shape, dtype: _Any, tile_size: _Sequence[_b.int] | None = None, scope: _b.str = 'shared.dyn', layout: _Any | None = None) -> _Any:
    """A buffer in shared memory that T.foreach_tiles iterates over; tiles of (32, 32), or (32,) for one dimension."""

def alloc_var(dtype: _Any, init: _Any | None = None) -> _Any:
    """A variable, private to a thread: its name is its value, and assigning to the name stores. `init` is stored
    first."""

def annotate_layout(layouts: _Any) -> _Any:
    """Gives layouts to buffers of the block: {buffer: layout}, like the argument `layout` of their allocations."""

def annotate_mesh_tensor(annotations: dict[_Any, _Any], nrows: _b.int | None = None, ncols: _b.int | None = None) -> _Any:
    """Places tensors on the mesh: {tensor: {"sharding": {axis: dimension}, "tiling": [...]}}."""

def argmax(src: _Any, dst: _Any, dim: _b.int = -1) -> None:
    """The index of the greatest element of src along dimension dim into dst; of several the first. NaN is the
    greatest. src is a buffer of the block, dst one of integers with the shape of a reduction."""

def argmin(src: _Any, dst: _Any, dim: _b.int = -1) -> None:
    """The index of the least element of src along dimension dim into dst; of several the first. NaN is the least.
    src is a buffer of the block, dst one of integers with the shape of a reduction."""

def assert_(condition: _Any, message: _Any | None = None) -> _Any:
    """Ends the call with an error (HV0724) where the condition is false; `message`, a string, is by default the
    text of the condition. The error has the values of the names in the condition and of what it loaded, of the
    loops around it and of the block."""

def assume(condition: _Any) -> _Any:
    """States a condition on extents and integer parameters, at the head of a function: each call is checked."""

def atomic_add(dst: _Region, value: _Region | _Scalar, return_prev: _b.bool = False) -> _Any:
    """Adds value, a scalar or a region of the shape of dst, to each element of dst atomically, so that blocks and
    iterations may update the same element. If dst is one element, T.atomic_add(A[i], x), it is allowed in
    parallel loops. dst is global or shared, of 32 or 64 bits, float16 or bfloat16. The order of updates is
    unspecified: sums of floats may differ from call to call."""

def atomic_max(dst: _Region, value: _Region | _Scalar, return_prev: _b.bool = False) -> _Any:
    """As T.atomic_add; dst becomes the maximum of itself and value, NaN if one of them is."""

def atomic_min(dst: _Region, value: _Region | _Scalar, return_prev: _b.bool = False) -> _Any:
    """As T.atomic_add; dst becomes the minimum of itself and value, NaN if one of them is."""

bfloat16: _DType

def bitcast(x: _Scalar, dtype: _Any) -> _Any:
    """The same as T.reinterpret."""

bool: _DType

def breakpoint(shown: dict[_b.str, _Any] | None = None) -> _Any:
    """Stops a run of the interpreter in sys.breakpointhook, by default pdb, where the locals are the scalars and
    buffers in scope; the same as Python's own breakpoint(). Other targets leave it out, with a warning. `shown`
    is a dict of them, in a printed program."""

def cast(x: _Scalar, dtype: _Any) -> _Any:
    """x converted to dtype."""

def ceil(x: _Scalar) -> _Any:
    """The scalar operator Ceil."""

def ceildiv(a: _Scalar, b: _Scalar) -> _Any:
    """The quotient rounded up: an int for ints, else the expression (a + b - 1) // b."""

def clamp(x: _Scalar, lo: _Scalar, hi: _Scalar) -> _Any:
    """min(max(x, lo), hi)."""

def clear(dst: _Region) -> None:
    """Stores zero to every element of dst."""

class comm:
    @staticmethod
    def broadcast(src: _Region, dst: _Region, root: _Extent, axis: _b.str | _Sequence[_b.str] = 'all') -> None:
        """dst of every core of the group becomes src of the core with index root in it. Groups are the cores that
        differ only on `axis`: an axis of the mesh, several of them in a tuple, or "all". Index expressions of a
        collective are the same on all cores of a group."""

    @staticmethod
    def put(src: _Region, dst: _Region, src_core: _Sequence[_Extent], dst_core: _Sequence[_Extent]) -> None:
        """Copies src of the core src_core to dst of the core dst_core; other cores keep their dst."""

    @staticmethod
    def scatter(src: _Region, dst: _Region, root: _Extent, axis: _b.str | _Sequence[_b.str] = 'all', dim: _b.int = -1) -> None:
        """dst of core k of the group becomes the k-th part along `dim` of src of the core with index root: src has
        one dimension more than dst, of extent K, or K times the extent."""

    @staticmethod
    def gather(src: _Region, dst: _Region, root: _Extent, axis: _b.str | _Sequence[_b.str] = 'all', dim: _b.int = -1) -> None:
        """The core with index root in its group receives src of all its K cores, other cores keep their dst. With
        one dimension more than src, dst has K at `dim`; with as many dimensions, dst is the concatenation along
        `dim`."""

    @staticmethod
    def all_gather(src: _Region, dst: _Region, axis: _b.str | _Sequence[_b.str] = 'all', dim: _b.int = -1) -> None:
        """Every core receives src of all K cores of its group. With one dimension more than src, dst has K at
        `dim`; with as many dimensions, dst is the concatenation along `dim`."""

    @staticmethod
    def reduce(src: _Region, dst: _Region, op: _b.str = 'sum', root: _Extent = 0, axis: _b.str | _Sequence[_b.str] = 'all') -> None:
        """dst of the core with index root becomes the elementwise combination of src of its group by op (sum,
        prod, max, min), in order of the core's index; other cores keep their dst."""

    @staticmethod
    def reduce_scatter(src: _Region, dst: _Region, op: _b.str = 'sum', axis: _b.str | _Sequence[_b.str] = 'all', dim: _b.int = -1) -> None:
        """Combines src of the group elementwise by op (sum, prod, max, min) and leaves on core k its k-th part
        along `dim`: src has one dimension more than dst, of extent K, or K times the extent."""

    @staticmethod
    def all_reduce(src: _Region, dst: _Region, op: _b.str = 'sum', axis: _b.str | _Sequence[_b.str] = 'all') -> None:
        """dst of every core becomes the elementwise combination of src of its group by op (sum, prod, max, min),
        in order of the core's index."""

    @staticmethod
    def all_to_all(src: _Region, dst: _Region, axis: _b.str | _Sequence[_b.str] = 'all', dim: _b.int = 0) -> None:
        """Core k sends the j-th of K equal parts of src along `dim` to part k of dst on core j."""

    @staticmethod
    def permute(src: _Region, dst: _Region, shift: _Extent = 1, axis: _b.str | _Sequence[_b.str] = 'all', source: _Callable[[_Any], _Any] | None = None) -> None:
        """dst of core k of the group becomes src of core source(k), and keeps its values where source(k) is not in
        [0, K): with `source=lambda k: k - 1`, on the first core. Without source it is a ring shift, source(k) =
        (k - shift) mod K."""

    @staticmethod
    def barrier(axis: _b.str | _Sequence[_b.str] = 'all') -> None:
        """All cores of the group arrive before any continues."""

    @staticmethod
    def wait_bytes(barriers: _Region, bytes: _b.int, axis: _b.str | _Sequence[_b.str] = 'all') -> None:
        """Waits until the cores of the group have stored so many bytes to this core by T.st_async with these
        `barriers` since the last such wait; the cores do this equally often. What a thread of such a core did
        before the core's last T.sync_threads before its stores is then visible as well."""

    @staticmethod
    def row_allgather(send: _Region, recv: _Region) -> _Any:
        """T.comm.all_gather(send, recv, axis="x"): over the rows."""

    @staticmethod
    def col_allgather(send: _Region, recv: _Region) -> _Any:
        """T.comm.all_gather(send, recv, axis="y"): over the columns."""

def commit_async() -> None:
    """Groups all copies that independent iterations have started by T.copy_async since the last commit into one
    copy, which may be empty."""

def commit_bulk() -> None:
    """Makes the copies with bulk_group=True that were started since the last commit a group, which may be empty:
    `cp.async.bulk.commit_group`."""

def copy(src: _Region, dst: _Region, pad: _Scalar = 0.0, dispatch: _b.str = '') -> None:
    """Copies src to dst elementwise, converting the dtype. Equal region shapes, dimensions of extent 1 aside.
    Elements read past the end of a global tensor are `pad`; elements written past its end are dropped.
    `dispatch` names the implementation; a target without one of that name refuses it."""

def copy_async(src: _Region, dst: _Region, pad: _Scalar = 0.0, dispatch: _b.str = '') -> None:
    """Starts a T.copy. It completes at the T.wait_async that covers it, or at any time before: until then dst must
    not be read or written and src not written. Copies of a block complete in the order in which they were
    started. In a loop whose iterations are independent it copies one run of constant length along the last
    dimension, and T.commit_async after the loop makes one copy of them all."""

def cos(x: _Scalar) -> _Any:
    """The scalar operator Cos."""

def cp_async(src: _Region, dst: _Region) -> None:
    """Starts a copy of one run of 4, 8 or 16 bytes from global to shared memory, by one thread: `cp.async`.
    T.commit_async groups it with the others that the threads of the block have started. A run past the end of
    src is 0."""

def cp_async_bulk(src: _Region, dst: _Region, wait: _b.bool = False, sources: _b.bool = False, barriers: _Region = False, bulk_group: _b.bool = False) -> None:
    """Starts a copy between global and shared memory by TMA, in pieces of contiguous bytes: `cp.async.bulk`.
    T.wait_async counts it as one copy; with wait=True it is waited for at once, with sources=True only until it
    has read its source, as by T.wait_async. What the machine counts it by can be named: a copy to shared memory
    with `barriers` waits for T.mbarrier_commit, one from shared memory with bulk_group=True for T.commit_bulk.
    The compiler chooses it otherwise. Both regions must be inside of their buffers."""

def cp_async_bulk_tensor(src: _Region, dst: _Region, wait: _b.bool = False, sources: _b.bool = False, barriers: _Region = False, bulk_group: _b.bool = False, multicast: _b.int = 1, warpgroup: _b.int = 0) -> None:
    """As T.cp_async_bulk, in boxes of a tensor of the call, which a tensor map describes: `cp.async.bulk.tensor`.
    Elements read past the end of the tensor are 0; elements written past its end are dropped. With `multicast`,
    the number of blocks of a cluster, all of them start the copy for the same slot of a ring and from the same
    region: each transfers a part of it to all, `.multicast::cluster`. `warpgroup` is the one whose first thread
    starts the copy."""

def cumsum(src: _Region, dst: _Region = ..., dim: _b.int = -1, reverse: _b.bool = False) -> None:
    """Inclusive running sums of src along dimension dim into dst, from the end with reverse; dst may be src.
    Floats may be re-associated; types below 32 bits accumulate in float32 and round each element once; integers
    wrap."""

double: _DType

def dyn(name: _b.str) -> _Var:
    """A dynamic extent, bound by the shapes of the arguments of a call."""

def dynamic(name: _b.str, dtype: _Any = 'index') -> _Var:
    """The same as T.dyn. An extent is an index, whatever integer type is named."""

def e8m0(x: _Any) -> _Any:
    """The power of two that a uint8 means in the OCP format E8M0, a scale of MXFP4, as float32; NaN of 255."""

def erf(x: _Scalar) -> _Any:
    """The scalar operator Erf."""

def exp(x: _Scalar) -> _Any:
    """The scalar operator Exp."""

def exp2(x: _Scalar) -> _Any:
    """The scalar operator Exp2."""

def exp2_approx(x: _Scalar) -> _Any:
    """The scalar operator Exp2Approx."""

def expm1(x: _Any) -> _Any:
    """exp(x) - 1, accurate near 0 too (Kahan)."""

def fail(*values: _Any, names: _Sequence[_b.str] | None = None, at: _Any | None = None) -> _Any:
    """Ends the call with an error, as T.assert_ does where its condition is false: a message, and values to name
    in the error."""

def fence_async() -> None:
    """Each thread of the block executes a proxy fence: `fence.proxy.async`. After the next T.sync_threads,
    T.cp_async_bulk and T.cp_async_bulk_tensor see what the threads wrote to shared or global memory before. The
    compiler inserts the fences that a kernel needs; they need not be written by hand."""

def fill(dst: _Region, value: _Scalar) -> None:
    """Stores a scalar to every element of dst."""

float: _DType

float16: _DType

float32: _DType

float4_e2m1: _DType

float4_e2m1fn: _DType

float64: _DType

float8_e4m3: _DType

float8_e4m3fn: _DType

float8_e5m2: _DType

def floor(x: _Scalar) -> _Any:
    """The scalar operator Floor."""

def fma(a: _Scalar, b: _Scalar, c: _Scalar) -> _Any:
    """The scalar operator Fma."""

def foreach_tile(buffer: _Any, parallel: _b.bool = False) -> _Any:
    """The same as T.foreach_tiles."""

def foreach_tiles(buffer: _Any, parallel: _b.bool = False) -> _Any:
    """A loop over the tiles of a buffer; inside, subscripts denote tiles."""

def gemm(A: _Region, B: _Region, C: _Region, transpose_A: _b.bool = False, transpose_B: _b.bool = False, clear: _b.bool = False, dispatch: _b.str = '') -> None:
    """C += A @ B for A (M, K), B (K, N), C (M, N); transpose_A takes A as (K, M), transpose_B takes B as (N, K);
    clear starts from zero. Products accumulate in the dtype of C and may be re-associated and contracted.
    `dispatch` names the implementation; a target without one of that name refuses it. "tensor_cores" is the
    best one by tensor cores on GPUs, and any where there are none. Tensor cores may take factors of float32 as
    TensorFloat-32."""

def get_block_binding(dim: _b.int = 0) -> _Any:
    """The place of the block in dimension `dim` of the grid of T.Kernel."""

def get_sharded_shape(tensor: _Any) -> _Any:
    """The extents of a core's block, rounded up, equal on every core."""

def get_thread_binding(dim: _b.int = 0) -> _Any:
    """In code of a thread: its place in dimension `dim` of `threads=` of T.Kernel, from 0."""

half: _DType

def if_then_else(condition: _Scalar, a: _Scalar, b: _Scalar) -> _Any:
    """The scalar operator Select."""

index: _DType

def infinity(dtype: _Any | None = None) -> _Any:
    """Infinity: a number that takes the type of the other operand, or a constant of `dtype`."""

int: _DType

int16: _DType

int32: _DType

int4: _DType

int64: _DType

int8: _DType

def isfinite(x: _Any) -> _Any:
    """Whether x is neither infinite nor NaN, with `fast_math` too."""

def isinf(x: _Any) -> _Any:
    """Whether x is infinity or -infinity, with `fast_math` too."""

def isnan(x: _Any) -> _Any:
    """Whether x is NaN, with `fast_math` too."""

def ldmatrix(src: _Region, dst: _Region, layout: _Any) -> None:
    """Copies the elements of src, 16 bits each, to registers of a fragment dst: `layout`, an Axe layout of src's
    region on tx and reg, gives the place of each element. In thread form the first dimension of dst is the
    thread; before, dst is a fragment, or a part of one, that has this layout. Of a part the registers count
    from its first one. A warp moves 8 x 8 elements at a time, each of its threads giving the address of a row."""

def load_vector(src: _Any, width: _Any) -> _Any:
    """An element, of lanes that are read before the first of them runs in accesses of so many bytes, in a lowered
    program."""

def local_shape(tensor: _Any) -> _Any:
    """The true extents of the executing core's block."""

def log(x: _Scalar) -> _Any:
    """The scalar operator Log."""

def log1p(x: _Any) -> _Any:
    """log(1 + x), accurate near 0 too (Goldberg, What every computer scientist should know, theorem 4)."""

def log2(x: _Scalar) -> _Any:
    """The scalar operator Log2."""

long: _DType

def macro(function: _Callable[..., _Any]) -> _Macro: ...

def make_swizzled_layout(buffer: _Any) -> _Any:
    """In T.annotate_layout, the hint of other libraries that a buffer be swizzled: accepted, with a warning. helve
    chooses swizzles."""

def max(a: _Scalar, b: _Scalar) -> _Any:
    """The scalar operator Max."""

def may_alias(*tensors: _Any) -> _Any:
    """Declares that arguments of these tensor parameters may share memory, in part or whole."""

def mbarrier_commit(barriers: _Region) -> None:
    """Makes the copies with these `barriers` that were started since the last commit a group, which may be empty.
    It has the next mbarrier of the array; if all are in use, the oldest group is waited for first."""

def mbarrier_init(barriers: _Region) -> None:
    """Initializes an array of mbarriers: shared memory of 1, 2, 4 or more uint64, a power of two. They count
    groups of copies by TMA, one after the other around the array; those of a ring, two rows of as many as it
    has slots, what T.ring_acquire, T.ring_commit, T.ring_wait and T.ring_release do. A kernel does this once,
    before its other uses of the array, and accesses the array by nothing else."""

def mbarrier_wait(barriers: _Region, pending: _b.int = 0) -> None:
    """Waits until at most the `pending` most recent groups of T.mbarrier_commit are unfinished:
    `mbarrier.try_wait`."""

def mesh_tensor_copy(src: _Region, dst: _Region, coord: _Sequence[_Extent], pad: _Scalar = 0.0) -> None:
    """Copies one tile between an annotated global tensor and a local buffer. coord counts tiles of the declared
    tiling inside the executing core's own block. Elements past the end of the block or the tensor read as `pad`
    and are not written."""

def min(a: _Scalar, b: _Scalar) -> _Any:
    """The scalar operator Min."""

def misalignment(tensor: _Any, unit: _Any) -> _Any:
    """The bytes by which the first element of a tensor lies behind a multiple of `unit`, in a lowered program."""

def mma(A: _Region, B: _Region, C: _Region, shape: _Sequence[_Extent], layout_A: _Any, layout_B: _Any, layout_C: _Any, transpose_A: _b.bool = False, transpose_B: _b.bool = False) -> None:
    """C += A @ B on fragments, by the tensor cores of each warp: `mma.sync.m16n8kK`, K 256 bits of factors. A (M,
    K) and B (K, N) are of float16, bfloat16 or float32, C (M, N) of float32, or of int8 or uint8 and C of
    int32; transpose_A takes A as (K, M), transpose_B takes B as (N, K). `shape` is [M, N, K]. The layouts, Axe
    layouts of the three on tx and reg, are those of the instruction's operands; a warp holds the elements that
    its sums need. In thread form the first dimension of a fragment is the thread; before, the fragments have
    these layouts. The machine determines the order of a sum's terms."""

def multiprocessors() -> _b.int:
    """How many blocks the machine of a call runs side by side, an index: the multiprocessors of a GPU, the threads
    that     helve uses on a CPU, 4 under target="interp". A kernel whose blocks take work in turn has as many."""

def nan(dtype: _Any | None = None) -> _Any:
    """NaN: a number that takes the type of the other operand, or a constant of `dtype`."""

def outline() -> _Any:
    """The body of a `with` in a lowered program, which becomes a function of its own in machine code. What it
    defines ends with it."""

def peer(buffer: _Any, core: _Any) -> _Any:
    """What a buffer of the kernel is on another core of the mesh, given by its coordinates, in a lowered program:
    for reading, and for T.st_async."""

def philox(c0: _Any, c1: _Any, c2: _Any, c3: _Any, k0: _Any, k1: _Any) -> _Any:
    """Four random uint32, of a counter of four uint32 and a key of two: Philox 4x32-10. The bits are the same on
    every target (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011)."""

def pow(a: _Scalar, b: _Scalar) -> _Any:
    """The scalar operator Pow."""

def prefetch(src: _Any) -> _Any:
    """Asks for the memory of one element, which is read soon, in a lowered or scheduled program; it may lie
    outside of its tensor."""

@_overload
def prim_func(
    function: _Callable[..., _Any], /, *, mesh: _Mesh | None = None
) -> _PrimFunc: ...

@_overload
def prim_func(
    function: None = None, /, *, mesh: _Mesh | None = None
) -> _Callable[[_Callable[..., _Any]], _PrimFunc]: ...

def print(*values: _Any, names: _Sequence[_b.str] | None = None, at: _Any | None = None) -> _Any:
    """Prints a line: a text, if the first value is one, and the other values with their names, after the values of
    the block's and the loops' variables. A tile, as the only value, is printed row by row. `names` and `at`
    give the names of the values and what stands in front, in a lowered program."""

def rand(seed: _Any, offset: _Any) -> _Any:
    """A random float32, evenly spaced from 0 to 1 (not included): the upper 24 bits of T.random_bits."""

def random_bits(seed: _Any, offset: _Any) -> _Any:
    """A random uint32: the first of Philox's four for the counter (offset, 0) and the key `seed`, of 64 bits each."""

def range(start: _Extent, stop: _Extent | None = None, step: _b.int = 1, scheduled: _b.bool = False, rolled: _b.bool = False) -> _Any:
    """The same as T.serial."""

def reduce_absmax(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Maximum of |src| over dimension dim into dst. Over an extent of 0: 0."""

def reduce_all(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Logical and of the bool src over dimension dim into dst."""

def reduce_any(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Logical or of the bool src over dimension dim into dst."""

def reduce_max(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Maximum of src over dimension dim into dst; a NaN makes the result NaN. Over an extent of 0: the least value
    of dst's type, -infinity if it has one."""

def reduce_min(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Minimum of src over dimension dim into dst; a NaN makes the result NaN. Over an extent of 0: the greatest
    value of dst's type, infinity if it has one."""

def reduce_prod(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Multiplies src over dimension dim into dst. Floats may be re-associated."""

def reduce_sum(src: _Region, dst: _Region, dim: _b.int = -1, clear: _b.bool = True) -> None:
    """Sums src over dimension dim into dst, which has the shape of src without that dimension, or with extent 1
    there. Floats may be re-associated; types below 32 bits accumulate in float32. clear=False adds to dst."""

def reinterpret(x: _Scalar, dtype: _Any) -> _Any:
    """The bits of x as dtype, of the same width; x and dtype may be exchanged. Which bits a NaN has is
    unspecified."""

def reshape(x: _Any, shape: _Shape) -> _Any:
    """The buffer x seen in another shape with as many elements, in row-major order; nothing is copied for accesses
    of its elements."""

def ring_acquire(barriers: _Region) -> None:
    """Begins to fill the next slot of a ring, once what it held has been released: from here to T.ring_commit its
    buffers are this slot. `barriers` are those of the ring, an array of 2 by as many uint64 as it has slots:
    one of each slot for its data, one for its room. The buffers are those that T.cp_async_bulk_tensor fills
    with these `barriers`."""

def ring_commit(barriers: _Region) -> None:
    """Ends the copies that fill the slot of a ring: whoever takes it waits for all of them."""

def ring_release(barriers: _Region, pending: _b.int = 0, cluster: _b.bool = False) -> None:
    """Gives back all slots of a ring that were taken, the `pending` most recent ones aside: they may be filled
    again. With cluster=True every block of the cluster is told, and a slot is filled when all of them have
    given it back."""

def ring_wait(barriers: _Region) -> None:
    """Takes the next slot of a ring, in the order in which they were filled, once its data have arrived: from here
    on the ring's buffers are this slot, and what the copies wrote is visible to all threads."""

def role(first: _Any, threads: _b.int | _Sequence[_b.int], registers: _Any = 0, elect: _Any = False) -> _Any:
    """What a part of the threads that are launched executes: `with T.role(first, threads)`, from `first` on. Roles
    stand side by side at the end of a kernel and run at the same time; rings alone order one with another. The
    first has the threads of T.Kernel, the second comes on top and fills what the first takes. `registers` is
    the budget of each thread (`setmaxnreg`), `elect` has the first thread execute the body alone."""

def round(x: _Scalar) -> _Any:
    """The scalar operator Round."""

def rsqrt(x: _Scalar) -> _Any:
    """The scalar operator Rsqrt."""

def serial(start: _Extent, stop: _Extent | None = None, step: _b.int = 1, scheduled: _b.bool = False, rolled: _b.bool = False) -> _Any:
    """A sequential loop: serial(n), serial(start, stop), serial(start, stop, step). No pass changes a loop that is
    `scheduled`. In a lowered program no compiler of machine code copies the body of one that is `rolled`."""

def shfl_down(value: _Scalar, offset: _Scalar) -> _Any:
    """As T.shfl_sync, of the lane `offset` above, 0 to 31; the last `offset` lanes of a warp receive their own
    value."""

def shfl_sync(value: _Scalar, lane: _Scalar) -> _Any:
    """In code of a thread: the value that lane `lane` % 32 of the thread's warp gives. All threads of the block
    reach it together."""

def shfl_up(value: _Scalar, offset: _Scalar) -> _Any:
    """As T.shfl_sync, of the lane `offset` below, 0 to 31; the first `offset` lanes of a warp receive their own
    value."""

def shfl_xor(value: _Scalar, offset: _Scalar) -> _Any:
    """As T.shfl_sync, of the lane whose number differs in the bits of `offset`, 0 to 31."""

short: _DType

def sigmoid(x: _Scalar) -> _Any:
    """The scalar operator Sigmoid."""

def sign(x: _Any) -> _Any:
    """1, -1 or x itself, which is then 0 or NaN, in the type of x."""

def sin(x: _Scalar) -> _Any:
    """The scalar operator Sin."""

def sqrt(x: _Scalar) -> _Any:
    """The scalar operator Sqrt."""

def st_async(src: _Region, dst: _Region, barriers: _Region) -> None:
    """Stores one element of 4 or 8 bytes to the shared memory of another core, a buffer of T.peer, by one thread:
    `st.async`. `barriers`, two of them, count its bytes on that core, where T.comm.wait_bytes waits for them.
    Before that the element must not be accessed."""

def stmatrix(src: _Region, dst: _Region, layout: _Any) -> None:
    """The other direction of T.ldmatrix: copies the registers of a fragment src to the elements of dst, whose
    region `layout` places on tx and reg."""

def store_nontemporal(dst: _Any, value: _Any, piece: _Any) -> _Any:
    """A store to one element, of lanes that go around the caches in pieces of so many bytes, in a lowered program."""

def store_vector(dst: _Any, value: _Any, width: _Any) -> _Any:
    """A store to one element, of lanes that are written after the last of them has run in accesses of so many
    bytes, in a lowered program."""

def symbolic(name: _b.str, dtype: _Any = 'index') -> _Var:
    """The same as T.dyn. An extent is an index, whatever integer type is named."""

def sync_cluster() -> None:
    """All threads of the blocks of a cluster arrive before any continues: `barrier.cluster`. Blocks that copy into
    each other's memory do this when their mbarriers are ready, and before they end."""

def sync_threads() -> None:
    """All threads of the block arrive before any continues; what each wrote to shared or global memory before is
    then visible to the others. The compiler inserts the barriers that a kernel needs; they need not be written
    by hand."""

def sync_warpgroups() -> None:
    """As T.sync_threads for the threads of each warpgroup, 128 from a multiple of 128 on; warpgroups do not wait
    for each other. The compiler chooses it where no threads of two warpgroups meet."""

def tanh(x: _Scalar) -> _Any:
    """The scalar operator Tanh."""

def thread() -> _Any:
    """Code that each thread of the block executes, a loop of T.threads over all threads of the kernel: `with` it
    `as tx`, or `as (tx, ty)` where T.Kernel has threads=(x, y)."""

def threads(count: _Any, y: _Any | None = None, z: _Any | None = None) -> _Any:
    """Code of a kernel in thread form that each of its `count` threads executes; the variable is the thread. With
    several extents there is a variable for each, the first fastest."""

def tma_load(src: _Any, dst: _Any, barrier: _Any) -> _Any:
    """Starts the copy of a box of a tensor to the acquired slot of a ring: T.cp_async_bulk_tensor."""

def topk(src: _Any, values: _Any, indices: _Any, dim: _b.int = -1) -> None:
    """The greatest elements of src along dimension dim into values, and their indices into indices. As many as
    dimension dim of values has, the greatest first; of equal ones the first comes first, NaN is the greatest.
    src, values and indices are buffers of the block, indices of integers."""

uint: _DType

uint16: _DType

uint32: _DType

uint64: _DType

uint8: _DType

def unpack_int4(src: _Region, dst: _Region) -> None:
    """Converts the two int4 in a byte, the low half first, to two registers of a fragment that follow one another:
    src is one element of uint8, dst two of float16 or bfloat16 along the last dimension. The compiler chooses
    it where a thread converts both halves."""

def unpack_scaled_int4(src: _Region, scale: _Region, dst: _Region) -> None:
    """As T.unpack_int4, times a scale: one element of the type of dst or of float32, of another buffer. Products
    are those of float32, rounded once to the type of dst."""

def unroll(start: _Extent, stop: _Extent | None = None, step: _b.int = 1, scheduled: _b.bool = False) -> _Any:
    """A loop that is unrolled."""

def update(dst: _Any, value: _Any, op: _Any) -> _Any:
    """Stores to one element what `op`, which is "add", "mul", "max" or "min", makes of it and the value. A
    schedule may change the order of updates of one element; they are not atomic."""

def use_swizzle(panel_size: _Any = 10, order: _Any = 'row', enable: _Any = True) -> _Any:
    """A hint that other libraries take: accepted, with a warning. helve's order of blocks is unspecified."""

def vectorized(start: _Extent, stop: _Extent | None = None, step: _b.int = 1, scheduled: _b.bool = False) -> _Any:
    """A loop over the lanes of a vector."""

def view(x: _Any, shape: _Shape | None = None, dtype: _Any | None = None) -> _Any:
    """As T.reshape; also as a type of the same width."""

def wait_async(pending: _b.int = 0, sources: _b.bool = False) -> None:
    """Waits until at most the `pending` most recent copies that the block has started by T.copy_async are
    unfinished; the data of the others is then visible. With sources=True, copies from shared to global memory
    need only have read their sources: what they write is visible after a wait without it, or after the kernel.
    A kernel must not end with unfinished copies."""

def wait_bulk(pending: _b.int = 0, sources: _b.bool = False) -> None:
    """Waits until at most the `pending` most recent groups of T.commit_bulk are unfinished, with sources=True
    until the others have read their sources: `cp.async.bulk.wait_group`."""

def warp(first: _Any, count: _Any = 1, elect: _Any = False) -> _Any:
    """T.role of `count` warps of 32 threads, from warp `first` on."""

def warpgroup(first: _Any, count: _Any = 1, registers: _Any = 0, elect: _Any = False) -> _Any:
    """T.role of `count` warpgroups of 128 threads, from warpgroup `first` on."""

def wgmma(A: _Region, B: _Region, C: _Region, shape: _Sequence[_Extent], descriptor_A: _Sequence[_Extent], descriptor_B: _Sequence[_Extent], layout_C: _Any, transpose_A: _b.bool = False, transpose_B: _b.bool = False, clear: _b.bool = False) -> None:
    """Starts C += A @ B by the tensor cores of warpgroups: `wgmma.mma_async.m64nNkK`, K 256 bits of factors. It
    completes at the T.wgmma_wait that covers its T.wgmma_commit; until then C must not be accessed and A and B
    not be written, except by further products that add to C, which follow in order. A (M, K) and B (K, N) are
    tiles of shared memory of one type, A may be a whole fragment, C is a fragment (M, N) of float32, for int8
    and uint8 of int32; transpose_A takes A as (K, M), transpose_B takes B as (N, K); of 16 bits both may be
    either way, else K is last. clear starts from zero. `shape` is [M, N, K]. The descriptors are [leading
    offset, stride offset, swizzle] in bytes, as the layouts of A and B determine them, [] for A in registers;
    `layout_C` is an Axe layout on tx and reg, that of the instruction's sums. In thread form the first
    dimension of C is the thread; before, C has that layout. What threads wrote to A and B needs a T.fence_async
    and a barrier before it, registers that threads have accessed need a T.wgmma_fence. The machine determines
    the order of a sum's terms."""

def wgmma_commit() -> None:
    """Makes the products by T.wgmma that were started since the last commit a group, which may be empty:
    `wgmma.commit_group`. The compiler inserts it after each product."""

def wgmma_fence() -> None:
    """Orders what each thread has done with registers with the products by T.wgmma that follow: `wgmma.fence`. The
    compiler inserts the fences that products need; they need not be written by hand."""

def wgmma_wait(pending: _b.int = 0) -> None:
    """Waits until at most the `pending` most recent groups of T.wgmma_commit are unfinished: `wgmma.wait_group`.
    The compiler inserts the waits that products need, each as late as their operands and results allow."""
