"""Apache TVM's TensorIR: the product, the blur and the illegal steps."""

from __future__ import annotations

import time

import tvm
from schedules_of.cases import LONG, WIDE, N
from tvm import te
from tvm.s_tir import Schedule, ScheduleError
from tvm.script import from_source

NAME = "TVM"
REFUSALS = (ScheduleError,)


def _compiled(s):
    module = tvm.compile(s.mod, target=_target())
    return lambda *arrays: module["main"](*(tvm.runtime.from_dlpack(a) for a in arrays))


def _run(s, *arrays) -> None:
    """On copies, since TVM takes arrays that begin at multiples of 64 bytes."""
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    tvm.compile(s.mod, target=_target())["main"](*tensors)
    for array, tensor in zip(arrays, tensors, strict=True):
        array[...] = tensor.numpy()


def _target():
    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})


def gemm(n: int):
    """Accumulators of 4 x 16 in registers, a packed panel of B."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    function = te.create_prim_func([a, b, c])
    start = time.perf_counter()
    # lines of the schedule: begin
    s = Schedule(function)
    c = s.get_sblock("C")
    panel = s.cache_read(c, 1, "global")
    s.transform_layout(c, ("read", 1), lambda k, j: (j // 16, k, j % 16))
    sums = s.cache_write(c, 0, "global")
    i, j, k = s.get_loops(c)
    io, ii = s.split(i, [None, 4])
    jo, ji = s.split(j, [None, 16])
    s.reorder(jo, io, k, ii, ji)
    s.reverse_compute_at(sums, io)
    s.unroll(ii)
    s.vectorize(ji)
    s.vectorize(s.get_loops(sums)[-1])
    s.compute_at(panel, jo)
    s.vectorize(s.get_loops(panel)[-1])
    s.decompose_reduction(c, k)
    # lines of the schedule: end
    scheduled = time.perf_counter()
    call = _compiled(s)
    return call, scheduled - start, time.perf_counter() - scheduled


def blur(rows: int, columns: int):
    """Rows of the first stage are computed in strips of rows of the second."""
    image = te.placeholder((rows + 2, columns + 2), name="I")
    third = tvm.tirx.const(1 / 3, "float32")
    x = te.compute((rows + 2, columns), lambda y, u: (image[y, u] + image[y, u + 1] + image[y, u + 2]) * third, "X")
    o = te.compute((rows, columns), lambda y, u: (x[y, u] + x[y + 1, u] + x[y + 2, u]) * third, name="O")
    function = te.create_prim_func([image, o])
    start = time.perf_counter()
    # lines of the schedule: begin
    s = Schedule(function)
    first, second = s.get_sblock("X"), s.get_sblock("O")
    y, u = s.get_loops(second)
    yo, _ = s.split(y, [None, 32])
    s.compute_at(first, yo)
    for block in (first, second):
        _, inner = s.split(s.get_loops(block)[-1], [None, 8])
        s.vectorize(inner)
    # lines of the schedule: end
    scheduled = time.perf_counter()
    call = _compiled(s)
    return call, scheduled - start, time.perf_counter() - scheduled


def _schedule(parameters: str, allocations: str, body: str, dims: str = "") -> Schedule:
    """The program of a text: (name|shape) parameters, buffers of the block, and statements."""
    names = [each.split("|") for each in parameters.split(" ")]
    head = ", ".join(f"{each[0]}_: T.handle" for each in names)
    bind = "".join(f"    {each[0]} = T.match_buffer({each[0]}_, {each[1]}, {(each + ['float32'])[2]!r})\n"
                   for each in names)
    lines = "".join(f"    {line}\n" for line in (allocations + body).splitlines() if line)
    text = ("@T.prim_func(s_tir=True)\n"
            f"def main({head}):\n    T.func_attr({{'global_symbol': 'main'}})\n{dims}{bind}{lines}")
    return Schedule(from_source(text))


def _loop(extent: str, block: str, store: str, first: int = 0, kind: str = "S") -> str:
    return (f"for i in T.serial({first}, {extent}):\n    with T.sblock('{block}'):\n"
            f"        v = T.axis.{'spatial' if kind == 'S' else 'reduce'}(({first}, {extent}), i)\n        {store}\n")


def _one(s: Schedule, block: str = "b"):
    return s.get_loops(s.get_sblock(block))


def carried_reorder(A):
    s = _schedule(f"A|({N},{N})", "",
                  f"for i, j in T.grid({N - 1}, {N - 1}):\n    with T.sblock('b'):\n"
                  "        x, y = T.axis.remap('SS', [i, j])\n        A[x + 1, y] = A[x, y + 1] + T.float32(1)")
    i, j = _one(s)
    s.reorder(j, i)
    _run(s, A)


def vectorized_recurrence(A):
    s = _schedule(f"A|({N},)", "", _loop(str(N), "b", "A[v] = A[v - 1] + T.float32(1)", 1))
    s.vectorize(_one(s)[0])
    _run(s, A)


def parallel_sum(A, S):
    s = _schedule(f"A|({LONG},) S|(1,)", "", _loop(str(LONG), "b", "S[0] = S[0] + A[v]", 0, "R"))
    s.parallel(_one(s)[0])
    _run(s, A, S)


def shared_temporary(A, B):
    s = _schedule(f"A|({LONG},) B|({LONG},)", "t = T.sblock_alloc_buffer((1,), 'float32')\n",
                  f"for i in range({LONG}):\n    with T.sblock('b'):\n        v = T.axis.spatial({LONG}, i)\n"
                  "        t[0] = A[v]\n        B[v] = t[0] * T.float32(2)")
    s.parallel(_one(s)[0])
    _run(s, A, B)


def parallel_recurrence(A):
    s = _schedule(f"A|({LONG},)", "", _loop(str(LONG), "b", "A[v] = A[v - 1] + T.float32(1)", 1))
    s.parallel(_one(s)[0])
    _run(s, A)


def scattered_stores(A, I, B):  # noqa: E741
    s = _schedule(f"A|({WIDE},) I|({WIDE},)|int32 B|({WIDE + 1},)", "", _loop(str(WIDE), "b", "B[I[v]] = A[v]"))
    s.parallel(_one(s)[0])
    _run(s, A, I, B)


def stale_inline(A, B):
    s = _schedule(f"A|({N},) B|({N},)", f"X = T.sblock_alloc_buffer(({N},), 'float32')\n",
                  _loop(str(N), "x", "X[v] = A[v] * T.float32(2)") + _loop(str(N), "a", "A[v] = T.float32(0)")
                  + _loop(str(N), "b", "B[v] = X[v]"))
    s.compute_inline(s.get_sblock("x"))
    _run(s, A, B)


def stale_copy(A):
    s = _schedule(f"A|({N},)", "", _loop(str(N), "b", "A[v] = A[v - 1] + T.float32(1)", 1))
    s.cache_read(s.get_sblock("b"), 0, "global")
    _run(s, A)


def inexact_split(A, B):
    s = _schedule("A|(10,) B|(10,)", "", _loop("10", "b", "B[v] = A[v] * T.float32(2)"))
    s.split(_one(s)[0], [2, 4])
    _run(s, A, B)


def triangular_reorder(A, B):
    s = _schedule(f"A|({N},{N}) B|({N},{N})", "",
                  f"for i in range({N}):\n    for j in range(i):\n        with T.sblock('b'):\n"
                  "            x, y = T.axis.remap('SS', [i, j])\n            B[x, y] = A[x, y] * T.float32(2)")
    i, j = _one(s)
    s.reorder(j, i)
    _run(s, A, B)


def float_sum_reorder(A, S):
    s = _schedule(f"A|({N},{N}) S|(1,)", "",
                  f"for i, j in T.grid({N}, {N}):\n    with T.sblock('b'):\n"
                  "        x, y = T.axis.remap('RR', [i, j])\n        S[0] = S[0] + A[x, y]")
    i, j = _one(s)
    s.reorder(j, i)
    _run(s, A, S)


def unskewed_tiles(A):
    s = _schedule(f"A|({N},)", "",
                  f"for t, i in T.grid(8, {N - 2}):\n    with T.sblock('b'):\n"
                  "        x, y = T.axis.remap('SS', [t, i])\n        A[y + 1] = A[y] + A[y + 2]")
    t, i = _one(s)
    outer, inner = s.split(i, [None, 8])
    s.reorder(outer, t, inner)
    _run(s, A)


def _stages(extent: str = "n") -> Schedule:
    return _schedule(f"A|({extent},) B|({extent},) E|({extent},)",
                     f"D = T.sblock_alloc_buffer(({extent},), 'float32')\n",
                     _loop(extent, "d", "D[v] = (A[v] + B[v]) * T.float32(2)")
                     + _loop(extent, "e", "E[v] = D[v] + A[v]"), "    n = T.int32()\n" if extent == "n" else "")


def dynamic_consumer(A, B, E):
    s = _stages()
    outer, _ = s.split(_one(s, "d")[0], [32, None])
    s.reverse_compute_at(s.get_sblock("e"), outer)
    _run(s, A, B, E)


def producer_in_vector(A, B, E):
    s = _stages()
    _, inner = s.split(_one(s, "e")[0], [None, 8])
    s.vectorize(inner)
    s.compute_at(s.get_sblock("d"), inner)
    _run(s, A, B, E)


def parallel_product(A, B, C):
    s = _schedule(f"A|(2,{LONG}) B|({LONG},2) C|(2,2)", "",
                  f"for i, j, k in T.grid(2, 2, {LONG}):\n    with T.sblock('b'):\n"
                  "        x, y, z = T.axis.remap('SSR', [i, j, k])\n        C[x, y] = C[x, y] + A[x, z] * B[z, y]")
    s.parallel(_one(s)[2])
    _run(s, A, B, C)


def late_producer(A, B):
    s = _schedule(f"A|({N},) B|({N},)", f"X = T.sblock_alloc_buffer(({N},), 'float32')\n",
                  _loop(str(N), "x", "X[v] = A[v] + T.float32(1)")
                  + f"for i in range({N}):\n    with T.sblock('a'):\n        v = T.axis.spatial({N}, i)\n"
                  f"        A[{N - 1} - v] = T.float32(0)\n    with T.sblock('b'):\n"
                  f"        v = T.axis.spatial({N}, i)\n        B[v] = X[v]\n")
    s.compute_at(s.get_sblock("x"), _one(s, "b")[0])
    _run(s, A, B)


# Loops are joined and divided only by moving blocks into each other; conditions are not taken out of loops.
join_past_dependence = fission_past_dependence = changing_condition = unshifted_join = None

# Where the lines of the schedules are counted.
gemm_schedule, blur_schedule = gemm, blur
