"""T.may_alias: parameters whose arguments share memory.

Two names of one piece of memory: machine code must do what the program says in its order, as the interpreter does.
"""

import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core


def run_on(target, function, make, mesh=None):
    """The memory after a call on views of it: `make` gives (memory, arguments)."""
    memory, arguments = make()
    helve.compile(function, target=target, mesh=mesh)(*arguments)
    return memory


def agree(function, make, mesh=None):
    """Machine code leaves in the shared memory what the interpreter leaves; gives that."""
    expected = run_on("interp", function, make, mesh)
    assert np.array_equal(run_on("llvm", function, make, mesh), expected)
    return expected


def shifted(count, by, dtype="int64"):
    """Two views of `count` elements, the second `by` after the first."""

    def make():
        memory = np.arange(1, count + abs(by) + 1).astype(dtype)
        first, second = memory[max(0, -by) :][:count], memory[max(0, by) :][:count]
        return memory, [first, second]

    return make


SHIFTS = (-5, -1, 0, 1, 2, 7, 8, 40)


def chain(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "int64"), B: T.Tensor((n,), "int64")):
        T.may_alias(A, B)
        with T.Kernel(1):
            for i in T.serial(n):
                B[i] = A[i] * 3 + 1

    return main


@pytest.mark.parametrize("by", SHIFTS)
@pytest.mark.parametrize("n", [1, 7, 40])
def test_a_serial_loop_sees_what_it_wrote(n, by):
    memory = agree(chain(n), shifted(n, by))
    plain, (a, b) = shifted(n, by)()
    for i in range(n):
        b[i : i + 1] = a[i : i + 1] * 3 + 1
    assert np.array_equal(memory, plain)


def two_loops(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "int64"), B: T.Tensor((n,), "int64"), C: T.Tensor((n,), "int64")):
        T.may_alias(A, B)
        with T.Kernel(1):
            x = T.alloc_shared((n,), "int64")
            for i in T.serial(n):
                x[i] = A[i]
            for i in T.serial(n):
                B[i] = x[n - 1 - i] * 2
            for i in T.serial(n):
                C[i] = x[i] + A[i]

    return main


@pytest.mark.parametrize("by", SHIFTS)
def test_what_was_kept_of_one_name_stays_when_the_other_writes(by):
    """Neither may the loops be fused nor may `x` be read where A lies."""
    n = 24

    def make_views():
        memory = np.arange(1, 2 * n + abs(by) + 1)
        return memory, [memory[max(0, -by) :][:n], memory[max(0, by) :][:n], memory[-n:]]

    memory = agree(two_loops(n), make_views)
    plain, (a, b, c) = make_views()
    x = a.copy()
    b[:] = 2 * x[::-1]
    c[:] = x + a
    assert np.array_equal(memory, plain)


def copies(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        T.may_alias(A, B)
        with T.Kernel(1):
            T.copy(A, B)

    return main


@pytest.mark.parametrize("by", SHIFTS)
def test_a_copy_reads_everything_first(by):
    n = 33
    memory = agree(copies(n), shifted(n, by, "float32"))
    plain, (a, b) = shifted(n, by, "float32")()
    b[:] = a.copy()
    assert np.array_equal(memory, plain)


def padded(n, reach):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int64")):
        T.may_alias(B, A)
        with T.Kernel(1):
            T.copy(A[n // 2 : n // 2 + reach], B[0:reach], pad=-7)

    return main


@pytest.mark.parametrize("by", [-8, 0, 8, 24])
def test_a_copy_between_types_pads_and_drops(by):
    """Elements of different sizes, aligned to the larger."""
    n, reach = 16, 14

    def make():
        memory = np.arange(64 * 8, dtype="uint8") % 120
        first, second = max(0, -by), max(0, by)
        return memory, [memory[first : first + 4 * n].view("int32"), memory[second : second + 8 * n].view("int64")]

    memory = agree(padded(n, reach), make)
    plain, (a, b) = make()
    source = np.concatenate([a[n // 2 :], np.full(reach, -7)])[:reach]
    b[:reach] = source
    assert np.array_equal(memory, plain)


def products(m, clear):
    @T.prim_func
    def main(A: T.Tensor((m, m), "int32"), B: T.Tensor((m, m), "int32"), C: T.Tensor((m, m), "int32")):
        T.may_alias(A, B, C)
        with T.Kernel(1):
            T.gemm(A, B, C, clear=clear)

    return main


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("places", [(0, 0, 0), (0, 5, 0), (3, 0, 0), (0, 2, 1), (0, 100, 200)])
@pytest.mark.parametrize("m", [1, 5, 9])
def test_a_product_into_its_own_factor(m, places, clear):
    def make():
        memory = np.arange(400, dtype="int32") % 11 - 5
        return memory, [memory[p : p + m * m].reshape(m, m) for p in places]

    memory = agree(products(m, clear), make)
    plain, (a, b, c) = make()
    c[:] = a @ b + (0 if clear else c)
    assert np.array_equal(memory, plain)


def row_sums(m, n):
    @T.prim_func
    def main(A: T.Tensor((m, n), "int64"), S: T.Tensor((m,), "int64")):
        T.may_alias(A, S)
        with T.Kernel(1):
            T.reduce_sum(A, S, dim=1)

    return main


@pytest.mark.parametrize("at", [0, 1, 6, 30])
def test_a_reduction_into_its_source(at):
    m, n = 5, 6

    def make():
        memory = np.arange(60)
        return memory, [memory[: m * n].reshape(m, n), memory[at : at + m]]

    memory = agree(row_sums(m, n), make)
    plain, (a, s) = make()
    s[:] = a.sum(axis=1)
    assert np.array_equal(memory, plain)


def in_place(n, vectorized):
    loop = T.vectorized if vectorized else T.Parallel

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        T.may_alias(A, B)
        with T.Kernel(1):
            for i in loop(n):
                B[i] = A[i] * 2.0 + 1.0

    return main


@pytest.mark.parametrize("vectorized", [False, True])
def test_independent_iterations_in_place(vectorized):
    """B is A: each iteration touches its own element under two names."""
    function = in_place(37, vectorized)
    memory = agree(function, shifted(37, 0, "float32"))
    assert np.array_equal(memory, np.arange(1, 38, dtype="float32") * 2 + 1)
    races = [p for p in helve.compile(function).proofs() if p.kind == "race" and "iterations" in p.question]
    assert [(p.verdict, p.reason) for p in races] == [("unknown", "'A' and 'B' may share memory")]


@pytest.mark.parametrize("by", [1, -1])
def test_the_interpreter_finds_a_race_between_two_names(by):
    kernel = helve.compile(in_place(8, False), target="interp", check="races")
    _, arguments = shifted(8, 0, "float32")()
    kernel(*arguments)
    _, arguments = shifted(8, by, "float32")()
    with pytest.raises(helve.Error) as caught:
        kernel(*arguments)
    assert caught.value.code == "HV0705"
    assert caught.value.message.startswith("iteration i=1 ")


def test_a_race_between_elements_that_share_a_part():
    """Halves of an element that another iteration reads."""

    @T.prim_func
    def main(A: T.Tensor((4,), "int64"), B: T.Tensor((8,), "int32")):
        T.may_alias(A, B)
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = T.cast(A[i] % 100, "int32")

    kernel = helve.compile(main, target="interp", check="races")
    memory = np.arange(16)
    kernel(memory[:4], memory[8:12].view("int32"))
    with pytest.raises(helve.Error) as caught:
        kernel(memory[:4], memory[:4].view("int32"))
    assert caught.value.code == "HV0705"


def test_a_guard_on_a_number_that_another_name_may_change_proves_nothing():
    @T.prim_func
    def main(I: T.Tensor((4,), "int64"), J: T.Tensor((4,), "int64"), A: T.Tensor((10,), "float32")):
        T.may_alias(I, J)
        with T.Kernel(1):
            for k in T.serial(4):
                if T.index(I[k]) >= 0 and T.index(I[k]) < 10:
                    J[k] = 99
                    A[T.index(I[k])] = 1.0

    bounds = [p.verdict for p in helve.compile(main).proofs() if "A[" in p.question]
    assert bounds == ["unknown"]


def test_only_what_is_declared_may_overlap():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
        T.may_alias(A, B)
        T.may_alias(B, C)
        with T.Kernel(1):
            for i in T.serial(4):
                C[i] = A[i] + B[i]

    memory = np.arange(12, dtype="int32")
    for target in ("llvm", "interp"):
        kernel = helve.compile(main, target=target)
        kernel(memory[:4], memory[2:6], memory[5:9])
        kernel(memory[:4], memory[2:6], memory[4:8])
        with pytest.raises(helve.Error) as caught:
            kernel(memory[:4], memory[8:12], memory[1:5])
        assert caught.value.code == "HV0611"
    assert "tensor B: int32[4] read may_alias(A, C)\n" in helve.compile(main).source("plan")


def test_declarations_count_for_equality_and_print():
    def make(declares):
        return helve.parse(
            f"""
@T.prim_func
def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
    {"T.may_alias(A, B)" if declares else "pass"}
"""
        )

    with_it, without = make(True), make(False)
    same, path = _core.structural_equal(with_it.function, without.function)
    assert (same, path) == (False, "may_alias")
    assert _core.structural_hash(with_it.function) != _core.structural_hash(without.function)
    assert "    T.may_alias(A, B)\n" in with_it.script()
    helve.testing.assert_round_trip(with_it.function)
    assert helve.parse(with_it.script()).script() == with_it.script()


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 2)])
def test_blocks_of_a_mesh_in_place(shape):
    rows, cols = shape
    m, n = 13, 11

    @T.prim_func
    def main(A: T.Tensor((m, n), "int32"), B: T.Tensor((m, n), "int32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 4]},
                                B: {"sharding": {"x": 0, "y": 1}, "tiling": [4, 4]}}, nrows=rows, ncols=cols)
        T.may_alias(A, B)
        p, q = T.get_sharded_shape(A)
        with T.Kernel(rows, cols) as (r, c):
            tile = T.alloc_shared((4, 4), "int32")
            total = T.alloc_shared((4, 4), "int32")
            for i in T.serial(T.ceildiv(p, 4)):
                for j in T.serial(T.ceildiv(q, 4)):
                    T.mesh_tensor_copy(A, tile, coord=[i, j])
                    T.comm.all_reduce(tile, total, axis="y")
                    for k, l in T.Parallel(4, 4):
                        tile[k, l] = tile[k, l] + total[k, l]
                    T.mesh_tensor_copy(tile, B, coord=[i, j])

    def make():
        memory = np.arange(m * n, dtype="int32")
        return memory, [memory.reshape(m, n), memory.reshape(m, n)]

    agree(main, make, mesh=helve.Mesh(shape))
