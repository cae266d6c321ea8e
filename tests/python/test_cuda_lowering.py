"""From tile kernels to the program of a thread: results of every stage, layouts, barriers."""

import ml_dtypes
import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core


def thread_form(function, mesh=None):
    return helve.testing.lowering_stages(function, mesh, target="cuda")[-1][1]


def softmax(columns, rows, threads, dtype):
    M = T.dyn("M")

    @T.prim_func
    def main(X: T.Tensor((M, columns), dtype), Y: T.Tensor((M, columns), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as b:
            x = T.alloc_fragment((rows, columns), "float32")
            m = T.alloc_fragment((rows,), "float32")
            s = T.alloc_fragment((rows,), "float32")
            T.copy(X[b * rows:(b + 1) * rows, :], x, pad=-T.infinity())
            T.reduce_max(x, m, dim=1)
            for i, j in T.Parallel(rows, columns):
                x[i, j] = T.exp(x[i, j] - m[i])
            T.reduce_sum(x, s, dim=1)
            for i, j in T.Parallel(rows, columns):
                x[i, j] = x[i, j] / s[i]
            T.copy(x, Y[b * rows:(b + 1) * rows, :])

    return main


@pytest.mark.parametrize("columns, rows, threads, dtype", [
    (64, 8, 128, "float32"), (7, 3, 32, "float32"), (1, 1, 64, "float32"), (1001, 2, 96, "float16"),
    (96, 2, 256, "bfloat16"),
    (1024, 1, 1024, "float32"),
])
def test_rows_in_registers(columns, rows, threads, dtype):
    element = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)

    def arguments():
        x = np.random.default_rng(columns).standard_normal((5, columns))
        return [x.astype(element), np.zeros((5, columns), element)]

    function = softmax(columns, rows, threads, dtype)
    helve.testing.check_stages(function, arguments, target="cuda", rtol=1e-2 if dtype != "float32" else 1e-5)
    text = _core.print(thread_form(function))
    assert "T.alloc_shared" not in text or "warps" in text, "a row left its registers"


@T.prim_func
def products(A: T.Tensor((50, 40), "float32"), B: T.Tensor((40, 30), "float32"), C: T.Tensor((50, 30), "float32")):
    with T.Kernel(2, 1, threads=64) as (bx, by):
        a = T.alloc_shared((32, 16), "float32")
        b = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[bx * 32:bx * 32 + 32, k * 16:k * 16 + 16], a)
            T.copy(B[k * 16:k * 16 + 16, by * 32:by * 32 + 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 32:bx * 32 + 32, by * 32:by * 32 + 32])


@T.prim_func
def reversed_rows(A: T.Tensor((4, 100), "int32"), B: T.Tensor((4, 100), "int32")):
    with T.Kernel(1, threads=64) as b:
        s = T.alloc_shared((100,), "int32")
        for r in T.serial(4):
            T.copy(A[r, :], s)
            for i in T.Parallel(100):
                B[r, i] = s[99 - i]


@T.prim_func
def counted(A: T.Tensor((100,), "int32"), B: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=32) as b:
        s = T.alloc_shared((100,), "int32")
        n = T.alloc_local((1,), "int32")
        T.copy(A, s)
        n[0] = 0
        while s[T.index(n[0])] > 0:
            n[0] = n[0] + 1
            for i in T.Parallel(100):
                s[i] = s[i] - 1
        B[0] = n[0]


@T.prim_func
def column_sums(A: T.Tensor((33, 70), "float32"), B: T.Tensor((70,), "float32"), C: T.Tensor((33,), "float32")):
    with T.Kernel(1, threads=64) as b:
        x = T.alloc_fragment((33, 70), "float32")
        s = T.alloc_fragment((70,), "float32")
        t = T.alloc_fragment((33,), "float32")
        T.copy(A, x)
        T.reduce_sum(x, s, dim=0)
        T.reduce_sum(x, t, dim=1)
        T.copy(s, B)
        T.copy(t, C)


def whole_numbers(*shapes, dtype="float32"):
    rng = np.random.default_rng(1)
    return [rng.integers(0, 5, shape).astype(dtype) for shape in shapes]


PROGRAMS = {
    "products": (products, lambda: whole_numbers((50, 40), (40, 30), (50, 30))),
    "reversed": (reversed_rows, lambda: whole_numbers((4, 100), (4, 100), dtype="int32")),
    "counted": (counted, lambda: whole_numbers((100,), (1,), dtype="int32")),
    "columns": (column_sums, lambda: whole_numbers((33, 70), (70,), (33,))),
    "softmax": (softmax(300, 1, 64, "float32"), lambda: whole_numbers((2, 300), (2, 300))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_computes_the_same(name):
    function, arguments = PROGRAMS[name]
    helve.testing.check_stages(function, arguments, target="cuda", check="races")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_barrier_is_needed(name):
    text = _core.print(thread_form(PROGRAMS[name][0]))
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if line.strip() == "T.sync_threads()"]
    assert places, "the program has no barrier to delete"
    assert _core.unordered_accesses(helve.parse(text).function) == []
    for place in places:
        without = "\n".join(lines[:place] + lines[place + 1:])
        assert _core.unordered_accesses(helve.parse(without).function), f"line {place} is not missed in:\n{without}"


def test_registers_of_one_thread_need_no_barrier():
    @T.prim_func
    def scaled(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((256,), "float32")
            T.copy(A, s)
            for i in T.Parallel(256):
                s[i] = s[i] * 2.0
            T.copy(s, B)

    text = _core.print(thread_form(scaled))
    assert "sync_threads" not in text and "alloc_shared" not in text


def test_layouts_say_where_buffers_live():
    kernel = compiled(softmax(4096, 1, 128, "bfloat16"))
    places = {place.name: place for place in kernel.layouts()}
    assert str(places["x"].layout) == "S[(4, 128, 8) : (8@reg, 1@tx, 1@reg)]"
    assert places["x"].domain == (1, 4096)
    assert str(places["m"].layout) == "S[() : ()] + R[128 : 1@tx]"
    product = {place.name: place for place in compiled(products).layouts()}
    assert product["c"].layout is not None
    assert product["a"].layout is None and "an operand of T.cp_async" in product["a"].reason


def compiled(function):
    try:
        return helve.compile(function, target="cuda", arch="sm_90a")
    except helve.Error as error:
        if error.code in ("HV0905", "HV0909"):
            pytest.skip("no CUDA compiler here")
        raise


def test_two_collective_phases_on_a_mesh():
    mesh = helve.Mesh((2, 3), ("x", "y"))

    @T.prim_func
    def norms(A: T.Tensor((20, 30), "float32"), B: T.Tensor((20,), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 8]},
                                B: {"sharding": {"x": 0}, "tiling": [4]}}, nrows=2, ncols=3)
        rows, columns = T.get_sharded_shape(A)
        with T.Kernel(2, 3) as (r, c):
            tile = T.alloc_shared_tiles((4, 8), "float32")
            part = T.alloc_shared_tiles((4,), "float32")
            total = T.alloc_shared_tiles((4,), "float32")
            for bx in T.Persistent([T.ceildiv(rows, 4)]):
                T.fill(total, 0.0)
                for bk in T.serial(T.ceildiv(columns, 8)):
                    T.mesh_tensor_copy(A, tile, coord=[bx, bk])
                    T.reduce_sum(tile, part, dim=1)
                    for i in T.foreach_tiles(part, parallel=True):
                        total[i] = total[i] + part[i]
                T.comm.all_reduce(total, part, op="sum", axis="y")
                if c == 0:
                    T.mesh_tensor_copy(part, B, coord=[bx])

    def arguments():
        return whole_numbers((20, 30), (20,))

    helve.testing.check_stages(norms, arguments, mesh=mesh, target="cuda", check="races")
