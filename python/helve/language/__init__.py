"""What `T` is: the names that kernels are written with.

Tile operations, operators and element types come from the tables of the core; what has syntax of its own is listed
here.
`NAMES` holds them all, so that parser, documentation and tests see one list.
"""

from __future__ import annotations

import builtins as _builtins
import keyword as _keyword
import math as _math
import sys as _sys

from helve import _core
from helve.language import library as _library
from helve.language.constructs import (
    Construct,
    DType,
    FrontEnd,
    HostConstruct,
    LibraryFunction,
    MacroMaker,
    Namespace,
    Operator,
    Parameter,
    TensorConstruct,
    TensorType,
    TileOperation,
)
from helve.errors import shown as _shown
from helve.language.constructs import unknown_name as _unknown_name
from helve.language.habits import meant as _meant
from helve.mesh import Mesh as _Mesh

_p = Parameter


def _o(name: str, default) -> Parameter:
    return Parameter(name, required=False, default=default)


def _tensor(shape, dtype="float32", strides=None, out=False, sorted=False) -> TensorType:
    """The type of a tensor parameter: extents (ints, T.dyn, arithmetic on them), element type, strides in elements.

    A parameter with out=True is made and returned by calls, as if `out=` of helve.compile named it. With sorted=True
    the elements of one row of integers do not decrease, as the places where parts begin and end: iterations that are
    apart in such parts are then proved independent. Calls check it where the data is in the memory of the CPU.
    """
    for what, given in (("out", out), ("sorted", sorted)):
        if not isinstance(given, _builtins.bool):
            raise TypeError(f"{what} is True or False; given {_shown(given)}")
    return TensorType(shape, dtype, strides, out, sorted)


def _dyn(name: str) -> _core.Var:
    """A dynamic extent, bound by the shapes of the arguments of a call."""
    if not isinstance(name, str) or not name.isidentifier() or _keyword.iskeyword(name):
        raise TypeError(f"the name of an extent is an identifier in quotes, as in T.dyn(\"M\"); given {_shown(name)}")
    return _core.make_var(name, "index")


# The names below T that make a dynamic extent.
EXTENT_NAMES = ("dyn", "dynamic", "symbolic")


def _dynamic(name: str, dtype: str = "index") -> _core.Var:
    """The same as T.dyn. An extent is an index, whatever integer type is named."""
    if str(dtype) not in ("index", "int", "int32", "int64"):
        raise TypeError(f"an extent is an integer; given {_shown(dtype)}")
    return _dyn(name)


def _multiprocessors() -> _core.Var:
    """How many blocks the machine of a call runs side by side, an index: the multiprocessors of a GPU, the threads that
    helve uses on a CPU, 4 under target="interp". A kernel whose blocks take work in turn has as many.
    """
    return _core.multiprocessors()


def _ceildiv(a, b):
    """The quotient rounded up: an int for ints, else the expression (a + b - 1) // b."""
    if isinstance(a, _builtins.int) and isinstance(b, _builtins.int):
        return -(-a // b)
    for x in (a, b):
        if not isinstance(x, (_builtins.int, _core.Expr)):
            raise TypeError(f"the operands are extents; given {_shown(x)}")
    as_expr = [x if isinstance(x, _core.Expr) else _core.constant_of(x, "index") for x in (a, b)]
    return _core.ceil_div(*as_expr)


def _float_type(dtype) -> str:
    name = _core.parse_dtype(str(dtype))
    if name is None or not name.startswith(("float", "bfloat")):
        raise TypeError(f"{_shown(dtype)} is not a float type")
    return name


def _infinity(dtype=None):
    """Infinity: a number that takes the type of the other operand, or a constant of `dtype`."""
    return _math.inf if dtype is None else _core.float_imm(_math.inf, _float_type(dtype))


def _nan(dtype=None):
    """NaN: a number that takes the type of the other operand, or a constant of `dtype`."""
    return _math.nan if dtype is None else _core.float_imm(_math.nan, _float_type(dtype))


def _mesh(shape, names=("x", "y"), device="host") -> _Mesh:
    """A mesh; see helve.Mesh."""
    return _Mesh(shape, names, device)


_SCOPE = _o("scope", "shared.dyn")
_SCHEDULED = _o("scheduled", False)
_ROLLED = _o("rolled", False)
_BOUNDS = (_p("start"), _o("stop", None), _o("step", 1), _SCHEDULED)
_ALLOC = (_p("shape"), _p("dtype"))
_LAYOUT = _o("layout", None)
_OFFSET = _o("offset", None)
_SLOTS = _o("slots", None)
_PLACE = _o("place", None)
_TILED = (*_ALLOC, _o("tile_size", None))
_TILES = (_p("buffer"), _o("parallel", False))

_CONSTRUCTS = [
    Construct(
        "Kernel", (_o("threads", 128), _o("cluster", 1), _o("producers", 0), _o("registers", ())),
        "A launch: `with T.Kernel(*grid) as (bx, by)`. In a mesh function the grid is the mesh. `cluster` neighbouring "
        "blocks along the last dimension of the grid run at the same time, so that GPUs can copy for them together. "
        "`producers` threads more fill rings, where the target has such; `registers`, two numbers, are the budgets of "
        "each thread that takes from rings and of each that fills them. By default the compiler chooses.",
        "grid",
    ),
    Construct(
        "role", (_p("first"), _p("threads"), _o("registers", 0), _o("elect", False)),
        "What a part of the threads that are launched executes: `with T.role(first, threads)`, from `first` on. Roles "
        "stand side by side at the end of a kernel and run at the same time; rings alone order one with another. The "
        "first has the threads of T.Kernel, the second comes on top and fills what the first takes. `registers` is the "
        "budget of each thread (`setmaxnreg`), `elect` has the first thread execute the body alone.",
    ),
    Construct(
        "warpgroup", (_p("first"), _o("count", 1), _o("registers", 0), _o("elect", False)),
        "T.role of `count` warpgroups of 128 threads, from warpgroup `first` on.",
    ),
    Construct(
        "warp", (_p("first"), _o("count", 1), _o("elect", False)),
        "T.role of `count` warps of 32 threads, from warp `first` on.",
    ),
    Construct(
        "outline", (),
        "The body of a `with` in a lowered program, which becomes a function of its own in machine code. What it "
        "defines ends with it.",
    ),
    Construct("alloc_global", _TILED, "A buffer in global memory; in a mesh function one instance per core."),
    Construct(
        "alloc_shared", (*_ALLOC, _SCOPE, _LAYOUT, _OFFSET, _SLOTS, _PLACE),
        "A buffer in the block's shared memory; `layout`, on the memory axis, gives the address of each element. "
        "`offset` is its first byte, in a lowered program. With `slots` there are so many instances of it, which a "
        "ring hands over. `place` is \"stack\" in a lowered program where a CPU keeps it there.",
    ),
    Construct(
        "alloc_shared_tiles", (*_TILED, _SCOPE, _LAYOUT),
        "A buffer in shared memory that T.foreach_tiles iterates over; tiles of (32, 32), or (32,) for one dimension.",
    ),
    Construct(
        "alloc_fragment", (*_TILED, _LAYOUT, _PLACE),
        "A buffer distributed over the registers of the block; `layout`, on tx and reg, gives each element's place. "
        "`place` says in a lowered program where a thread keeps its part, \"packed\" in registers or "
        "in \"memory\", or that a CPU keeps all of it on the \"stack\".",
    ),
    Construct(
        "alloc_local", (*_TILED, _LAYOUT, _PLACE),
        "A buffer private to a thread; `layout` as for shared memory. Registers of a GPU have none. `place` as for "
        "T.alloc_fragment.",
    ),
    Construct(
        "alloc_var", (_p("dtype"), _o("init", None)),
        "A variable, private to a thread: its name is its value, and assigning to the name stores. `init` is stored "
        "first.",
    ),
    Construct(
        "serial", (*_BOUNDS, _ROLLED),
        "A sequential loop: serial(n), serial(start, stop), serial(start, stop, step). No pass changes a loop that is "
        "`scheduled`. In a lowered program no compiler of machine code copies the body of one that is `rolled`.",
    ),
    Construct("range", (*_BOUNDS, _ROLLED), "The same as T.serial."),
    Construct("unroll", _BOUNDS, "A loop that is unrolled."),
    Construct("vectorized", _BOUNDS, "A loop over the lanes of a vector."),
    Construct(
        "threads", (_p("count"), _o("y", None), _o("z", None)),
        "Code of a kernel in thread form that each of its `count` threads executes; the variable is the thread. With "
        "several extents there is a variable for each, the first fastest.",
    ),
    Construct(
        "thread", (),
        "Code that each thread of the block executes, a loop of T.threads over all threads of the kernel: `with` it "
        "`as tx`, or `as (tx, ty)` where T.Kernel has threads=(x, y).",
    ),
    Construct(
        "get_thread_binding", (_o("dim", 0),),
        "In code of a thread: its place in dimension `dim` of `threads=` of T.Kernel, from 0.",
    ),
    Construct(
        "get_block_binding", (_o("dim", 0),), "The place of the block in dimension `dim` of the grid of T.Kernel."
    ),
    Construct(
        "shfl_sync", (_p("value"), _p("lane")),
        "In code of a thread: the value that lane `lane` % 32 of the thread's warp gives. All threads of the block "
        "reach it together.",
    ),
    Construct(
        "shfl_xor", (_p("value"), _p("offset")),
        "As T.shfl_sync, of the lane whose number differs in the bits of `offset`, 0 to 31.",
    ),
    Construct(
        "shfl_up", (_p("value"), _p("offset")),
        "As T.shfl_sync, of the lane `offset` below, 0 to 31; the first `offset` lanes of a warp receive their own "
        "value.",
    ),
    Construct(
        "shfl_down", (_p("value"), _p("offset")),
        "As T.shfl_sync, of the lane `offset` above, 0 to 31; the last `offset` lanes of a warp receive their own "
        "value.",
    ),
    Construct(
        "Pipelined", (_p("start"), _o("stop", None), _o("num_stages", 1), _SCHEDULED),
        "A serial loop whose iterations may overlap over num_stages stages.",
    ),
    Construct("Parallel", (_SCHEDULED, _ROLLED), "A loop over elements whose iterations are independent.", "extents"),
    Construct(
        "Persistent", (_p("domain"), _SCHEDULED),
        "A loop over work items, independent and in any order; domain is a list of extents.",
    ),
    Construct("foreach_tiles", _TILES, "A loop over the tiles of a buffer; inside, subscripts denote tiles."),
    Construct("foreach_tile", _TILES, "The same as T.foreach_tiles."),
    Construct(
        "annotate_mesh_tensor", (_p("annotations"), _o("nrows", None), _o("ncols", None)),
        "Places tensors on the mesh: {tensor: {\"sharding\": {axis: dimension}, \"tiling\": [...]}}.",
    ),
    Construct(
        "annotate_layout", (_p("layouts"),),
        "Gives layouts to buffers of the block: {buffer: layout}, like the argument `layout` of their allocations.",
    ),
    Construct(
        "use_swizzle", (_o("panel_size", 10), _o("order", "row"), _o("enable", True)),
        "A hint that other libraries take: accepted, with a warning. helve's order of blocks is unspecified.",
    ),
    Construct(
        "make_swizzled_layout", (_p("buffer"),),
        "In T.annotate_layout, the hint of other libraries that a buffer be swizzled: accepted, with a warning. helve "
        "chooses swizzles.",
    ),
    Construct(
        "may_alias", (),
        "Declares that arguments of these tensor parameters may share memory, in part or whole.", "tensors",
    ),
    Construct(
        "assume", (_p("condition"),),
        "States a condition on extents and integer parameters, at the head of a function: each call is checked.",
    ),
    Construct("get_sharded_shape", (_p("tensor"),), "The extents of a core's block, rounded up, equal on every core."),
    Construct("local_shape", (_p("tensor"),), "The true extents of the executing core's block."),
    Construct(
        "misalignment", (_p("tensor"), _p("unit")),
        "The bytes by which the first element of a tensor lies behind a multiple of `unit`, in a lowered program.",
    ),
    Construct(
        "update", (_p("dst"), _p("value"), _p("op")),
        "Stores to one element what `op`, which is \"add\", \"mul\", \"max\" or \"min\", makes of it and the value. A "
        "schedule may change the order of updates of one element; they are not atomic.",
    ),
    Construct(
        "store_nontemporal", (_p("dst"), _p("value"), _p("piece")),
        "A store to one element, of lanes that go around the caches in pieces of so many bytes, in a lowered program.",
    ),
    Construct(
        "load_vector", (_p("src"), _p("width")),
        "An element, of lanes that are read before the first of them runs in accesses of so many bytes, in a lowered "
        "program.",
    ),
    Construct(
        "store_vector", (_p("dst"), _p("value"), _p("width")),
        "A store to one element, of lanes that are written after the last of them has run in accesses of so many "
        "bytes, in a lowered program.",
    ),
    Construct(
        "prefetch", (_p("src"),),
        "Asks for the memory of one element, which is read soon, in a lowered or scheduled program; it may lie outside "
        "of its tensor.",
    ),
    Construct(
        "assert_", (_p("condition"), _o("message", None)),
        "Ends the call with an error (HV0724) where the condition is false; `message`, a string, is by default the "
        "text of the condition. The error has the values of the names in the condition and of what it loaded, of the "
        "loops around it and of the block.",
    ),
    Construct(
        "print", (_o("names", None), _o("at", None)),
        "Prints a line: a text, if the first value is one, and the other values with their names, after the values of "
        "the block's and the loops' variables. A tile, as the only value, is printed row by row. `names` and `at` give "
        "the names of the values and what stands in front, in a lowered program.",
        "values",
    ),
    Construct(
        "fail", (_o("names", None), _o("at", None)),
        "Ends the call with an error, as T.assert_ does where its condition is false: a message, and values to name in "
        "the error.",
        "values",
    ),
    Construct(
        "breakpoint", (_o("shown", None),),
        "Stops a run of the interpreter in sys.breakpointhook, by default pdb, where the locals are the scalars and "
        "buffers in scope; the same as Python's own breakpoint(). Other targets leave it out, with a warning. `shown` "
        "is a dict of them, in a printed program.",
    ),
    Construct(
        "peer", (_p("buffer"), _p("core")),
        "What a buffer of the kernel is on another core of the mesh, given by its coordinates, in a lowered program: "
        "for reading, and for T.st_async.",
    ),
    Construct("cast", (_p("x"), _p("dtype")), "x converted to dtype."),
    Construct(
        "reinterpret", (_p("x"), _p("dtype")),
        "The bits of x as dtype, of the same width; x and dtype may be exchanged. Which bits a NaN has is unspecified.",
    ),
    Construct(
        "reshape", (_p("x"), _p("shape")),
        "The buffer x seen in another shape with as many elements, in row-major order; nothing is copied for accesses "
        "of its elements.",
    ),
    Construct(
        "view", (_p("x"), _o("shape", None), _o("dtype", None)), "As T.reshape; also as a type of the same width."
    ),
    Construct("bitcast", (_p("x"), _p("dtype")), "The same as T.reinterpret."),
    Construct("Cast", (_p("dtype"), _p("x")), "The same as T.cast, with the type first."),
    Construct("clamp", (_p("x"), _p("lo"), _p("hi")), "min(max(x, lo), hi)."),
    TensorConstruct("Tensor", (_p("shape"), _o("dtype", "float32"), _o("strides", None), _o("out", False),
                               _o("sorted", False)), _tensor),
    HostConstruct("dyn", (_p("name"),), _dyn),
    HostConstruct("dynamic", (_p("name"), _o("dtype", "index")), _dynamic),
    HostConstruct("symbolic", (_p("name"), _o("dtype", "index")), _dynamic),
    HostConstruct("multiprocessors", (), _multiprocessors),
    HostConstruct("Mesh", (_p("shape"), _o("names", ("x", "y")), _o("device", "host")), _mesh),
    HostConstruct("ceildiv", (_p("a"), _p("b")), _ceildiv),
    HostConstruct("infinity", (_o("dtype", None),), _infinity),
    HostConstruct("nan", (_o("dtype", None),), _nan),
]

_COMM = [
    Construct(
        "comm.row_allgather", (_p("send"), _p("recv")),
        "T.comm.all_gather(send, recv, axis=\"x\"): over the rows.",
    ),
    Construct(
        "comm.col_allgather", (_p("send"), _p("recv")),
        "T.comm.all_gather(send, recv, axis=\"y\"): over the columns.",
    ),
]


# What C, PyTorch and others call the element types.
DTYPE_ALIASES = dict(_core.dtype_aliases())


def _names() -> dict[str, object]:
    operations = [TileOperation(row) for row in _core.tile_op_rows()]
    names: dict[str, object] = {c.name: c for c in _CONSTRUCTS}
    names.update({o.name: o for o in map(Operator, (row for row in _core.operator_rows() if row[3] == "Call"))})
    names.update({f.__name__: LibraryFunction(f, *rest) for f, *rest in _library.FUNCTIONS})
    names.update({o.name: o for o in operations if "." not in o.name})
    names.update({name: DType(name) for name in _core.dtype_names()})
    names.update({name: DType(dtype) for name, dtype in DTYPE_ALIASES.items()})
    comm = {o.__name__: o for o in [*operations, *_COMM] if o.name.startswith("comm.")}
    names["comm"] = Namespace("comm", comm)
    return names


NAMES = _names()
_library.T = _sys.modules[__name__]
globals().update(NAMES)

NAMES["prim_func"] = prim_func = FrontEnd()
NAMES["macro"] = macro = MacroMaker()

# x.astype(dtype), a method of values.
ASTYPE = Construct("astype", (_p("dtype"),), "x converted to dtype.")

__all__ = list(NAMES)


def __getattr__(name: str):
    """Called by Python for a name that is not there.

    Raises:
        AttributeError: always; of helve.Error too (HV0102) where a kernel may have meant the name.
    """
    if name.startswith("_"):
        raise AttributeError(f"T has no name '{name}'")
    raise _unknown_name(name, _meant(name, NAMES))
