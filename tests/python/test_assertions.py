"""T.assert_ and T.fail: the same error on every target, where and when the program says."""

import re

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels
from differential import check
from helve import T
from nvrtc import needs_nvrtc
from test_cuda_lowering import thread_form

HOST = ["interp", "llvm"]


def error_of(kernel, *arguments):
    with pytest.raises(helve.Error) as raised:
        kernel(*arguments)
    return raised.value


def positive(n, block, threads=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as b:
            for i in T.Parallel(block):
                if b * block + i < n:
                    T.assert_(A[b * block + i] > 0.0, "A is positive")
                    B[b * block + i] = 2.0 * A[b * block + i]

    return main


def gathered(n, m):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), I: T.Tensor((m,), "int32"), B: T.Tensor((m,), "float32")):
        with T.Kernel(1) as b:
            for i in T.serial(m):
                k = I[i]
                T.assert_(0 <= k and k < n)
                B[i] = A[k]

    return main


def arguments(n):
    return [np.arange(1, n + 1, dtype="float32"), np.zeros(n, "float32")]


@pytest.mark.parametrize("target", HOST)
def test_the_error_names_the_line_the_message_and_the_iteration(target):
    kernel = helve.compile(positive(20, 8), target=target)
    a, b = arguments(20)
    a[13] = -1
    fault = error_of(kernel, a, b)
    assert (fault.code, fault.message) == ("HV0724", "assertion failed: A is positive")
    assert fault.notes == ["where b=1, i=5"]
    assert "T.assert_(A[b * block + i] > 0.0" in str(fault) and " ^" + "^" * 21 + "\n" in str(fault)
    a[13] = 1
    kernel(a, b)  # and the kernel is as before
    assert np.array_equal(b, 2 * a)


@pytest.mark.parametrize("target", HOST)
def test_without_a_message_the_condition_is_the_text_and_names_have_values(target):
    kernel = helve.compile(gathered(8, 4), target=target)
    fault = error_of(kernel, np.ones(8, "float32"), np.array([0, 7, 8, 1], "int32"), np.zeros(4, "float32"))
    assert fault.message == "assertion failed: 0 <= k and k < n"
    assert fault.notes == ["where b=0, i=2, k=8"]


@pytest.mark.parametrize("target", HOST)
def test_nothing_behind_a_fault_happens(target):
    """The subscript lies far outside of any memory."""
    kernel = helve.compile(gathered(8, 3), target=target)
    b = np.zeros(3, "float32")
    error_of(kernel, np.ones(8, "float32"), np.array([1, 2**31 - 1, 2], "int32"), b)
    assert b.tolist() == [1, 0, 0]


def test_what_holds_changes_nothing():
    a, b = arguments(100)
    check(positive(100, 32), [a, b], {1: 2 * a})
    helve.testing.check_stages(positive(100, 32), lambda: arguments(100))
    indices = np.array([3, 0, 7, 7], "int32")
    values = np.arange(8, dtype="float32")
    check(gathered(8, 4), [values, indices, np.zeros(4, "float32")], {2: values[indices]})


@pytest.mark.parametrize("target", HOST)
def test_faults_of_all_kinds_of_code(target):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), x: T.float32, n: T.int32, where: T.int32):
        with T.Kernel(4) as b:
            tile = T.alloc_shared((64,), "float32")
            count = T.alloc_var("int32", 0)
            T.copy(A[b, :], tile)
            T.assert_(where != 0 or b != 3, "in the block")
            while count < n:
                T.assert_(where != 1 or count < 5, "in a while loop")
                count += 1
            for v in T.vectorized(8):
                T.assert_(where != 2 or tile[v] < 100.0, "in lanes")
            for i in T.unroll(4):
                T.assert_(where != 3 or i < 3, "in an unrolled loop")
            for i, j in T.Parallel(8, 8):
                if where == 4 and tile[i * 8 + j] > 62.0:
                    T.fail("in a branch", x, n)
            T.copy(tile, A[b, :])

    kernel = helve.compile(main, target=target)
    a = np.tile(np.arange(64, dtype="float32"), (4, 1))
    a[:, 7] = 100

    def notes(where):
        fault = error_of(kernel, a.copy(), 1.5, 7, where)
        return fault.message.partition(": ")[2], *re.sub(r"b=[012]", "b=?", fault.notes[0]).split(", ")

    assert notes(0) == ("in the block", "where b=3", "where=0")
    assert notes(1) == ("in a while loop", "where b=?", "where=1", "count=5")
    assert notes(2)[0] == "in lanes" and "v=7" in notes(2)
    assert notes(3) == ("in an unrolled loop", "where b=?", "i=3", "where=3")
    assert notes(4) in [("in a branch", "where b=?", f"i={i}", f"j={j}", "x=1.5", "n=7") for i, j in ((0, 7), (7, 7))]
    kernel(a, 1.5, 7, 5)


@pytest.mark.parametrize("target", HOST)
def test_values_of_all_types(target):
    @T.prim_func
    def main(f: T.float32, h: T.bfloat16, d: T.float64, u: T.uint64, s: T.int8, t: T.bool, k: T.index):
        with T.Kernel(1):
            T.fail("these", f, h, d, u, s, t, k, not t, f * 2.0)

    fault = error_of(helve.compile(main, target=target), 0.1, 1.5, 1e300, 2**64 - 1, -128, True, 1 << 40)
    assert fault.notes == [
        "where bx=0, f=0.1, h=1.5, d=1e+300, u=18446744073709551615, s=-128, t=True, k=1099511627776, not t=False, "
        "f * 2.0=0.2"
    ]


@pytest.mark.parametrize("target", HOST)
def test_on_a_mesh(target):
    mesh = helve.Mesh((2, 3))

    @T.prim_func
    def main(A: T.Tensor((6,), "float32")):
        T.annotate_mesh_tensor({A: {"sharding": {"x": 0}, "tiling": [3]}}, nrows=2, ncols=3)
        with T.Kernel(2, 3) as (r, c):
            own = T.alloc_shared((1,), "float32")
            total = T.alloc_shared((1,), "float32")
            T.fill(own, 1.0)
            T.comm.all_reduce(own, total, axis="y")
            T.assert_(total[0] < 3.0 or r == 0 or c < 2, "after a collective")

    fault = error_of(helve.compile(main, mesh=mesh, target=target), np.zeros(6, "float32"))
    assert fault.notes == ["where r=1, c=2"]


def test_what_is_known_to_hold_costs_nothing():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(2) as b:
            for i in T.Parallel(32):
                T.assert_(b * 32 + i < 64)
                T.assert_(True)
                A[b * 32 + i] = 1.0

    assert "T.fail" not in helve.compile(main).source("lowered")


def test_a_condition_that_is_false_while_parsing_is_a_fault_where_it_stands():
    n = 3

    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), runs: T.bool):
        with T.Kernel(1):
            if runs:
                T.assert_(n > 3, "n is too small")

    kernel = helve.compile(main)
    kernel(np.zeros(4, "float32"), False)
    assert error_of(kernel, np.zeros(4, "float32"), True).message == "assertion failed: n is too small"


def test_the_printed_program_is_the_program():
    script = positive(20, 8).script()
    assert 'T.fail("A is positive", names=[], at={"b": b, "i": i})' in script
    assert helve.parse(script).script() == script


# The text of CUDA.


def on_host(program, folder, blocks, **arrays):
    form = thread_form(program)
    kernels = HostKernels([form], folder)
    return kernels.run("main", blocks, arrays)


def test_threads_leave_the_first_fault(tmp_path):
    a, b = arguments(20)
    assert on_host(positive(20, 8), tmp_path, 3, A=a, B=b) is None
    assert np.array_equal(b, 2 * a)
    a[13] = -1
    fault = on_host(positive(20, 8), tmp_path, 3, A=a, B=b)
    assert fault[:3] == (0, 1, 5)


def test_a_fault_of_the_block_and_of_fragments(tmp_path):
    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32")):
        with T.Kernel(4, threads=64) as b:
            x = T.alloc_fragment((128,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[b, :], x)
            for i in T.Parallel(128):
                T.assert_(x[i] >= 0.0, "an element")
            T.reduce_sum(x, total, dim=0)
            T.assert_(total[0] < 200.0, "the sum")

    a = np.ones((4, 128), "float32")
    assert on_host(main, tmp_path, 4, A=a) is None
    a[2, 77] = -1
    assert on_host(main, tmp_path, 4, A=a)[:3] == (0, 2, 77)
    a[2, 77], a[3, 5] = 1, 100
    assert on_host(main, tmp_path, 4, A=a)[:2] == (1, 3)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_text_compiles(arch, recwarn):
    helve.compile(positive(20, 8), target="cuda", arch=arch)
    assert not recwarn.list
