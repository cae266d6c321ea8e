"""helve, a tensor compiler: tile kernels in Python, machine code for CPUs, GPUs and meshes of both.

What is imported here is public; the rest is reached through its own modules.
"""

from helve import cute, dist, layout, viz
from helve import language as T
from helve._core import __version__
from helve.autotune import autotune
from helve.bench import bench
from helve.errors import (
    BoundsError,
    DivisibilityError,
    Error,
    InjectivityError,
    InternalError,
    LayoutError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
    Warning,
)
from helve.jit import jit
from helve.layout import Layout, Swizzle, axis
from helve.einsum import einsum
from helve.mesh import Mesh
from helve.notation import (
    function,
    index,
    indices,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    scalar,
    tensor,
)
from helve.schedule import Schedule, Trace
from helve.script.entry import parse
from helve.script.prim_func import PrimFunc
from helve.target import Kernel, Proof, compile, num_threads, set_num_threads

__all__ = [
    "BoundsError",
    "DivisibilityError",
    "Error",
    "InjectivityError",
    "InternalError",
    "Kernel",
    "Layout",
    "LayoutError",
    "Mesh",
    "PrimFunc",
    "Proof",
    "Schedule",
    "ShapeError",
    "Swizzle",
    "T",
    "Trace",
    "UnknownNameError",
    "UnsupportedError",
    "Warning",
    "__version__",
    "autotune",
    "axis",
    "bench",
    "compile",
    "cute",
    "dist",
    "einsum",
    "function",
    "index",
    "indices",
    "jit",
    "layout",
    "num_threads",
    "parse",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "scalar",
    "set_num_threads",
    "tensor",
    "viz",
]
