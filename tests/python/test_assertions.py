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
    assert fault.notes == ["where b=1, i=5, A[b * block + i]=-1"]
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


def note_of(program, *values, **options):
    """What a call says beside the place; each target says the same."""
    notes = []
    for each in [{"target": "interp", "check": "all"}, {"target": "llvm"}]:
        fault = error_of(helve.compile(program, **each), *(np.copy(value) for value in values))
        (note,) = fault.notes
        notes.append(note)
    assert notes[0] == notes[1]
    return notes[0]


def ints(*values):
    return np.array(values, "int32")


def test_what_was_loaded_is_shown_in_the_order_of_the_text():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4, 4), "int32"), C: T.Tensor((4,), "bfloat16")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "float32")
            T.copy(A, tile)
            for i in T.serial(1, 3):
                T.assert_(tile[i + 1] > A[B[i, 0]] * 2.0 - tile[i + 1] and not (C[i] > 1.0 or C[i] < -1.0))

    a, b, c = np.array([1, 2, 3, 4], "float32"), np.zeros((4, 4), "int32"), np.zeros(4, "float32")
    b[2, 0], c[1] = 3, 0.5
    c = c.astype(helve.testing.numpy_dtype("bfloat16"))
    assert note_of(main, a, b, c) == "where bx=0, i=2, tile[i + 1]=4, A[B[i, 0]]=4, B[i, 0]=3"
    b[2, 0], c[2] = 0, -3
    assert note_of(main, a, b, c) == "where bx=0, i=2, tile[i + 1]=4, A[B[i, 0]]=1, B[i, 0]=0, C[i]=-3"


def test_a_load_behind_a_guard_is_shown_where_it_was_made():
    @T.prim_func
    def main(I: T.Tensor((4,), "int32"), A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.serial(4):
                k = I[i]
                T.assert_(0 <= k and k < 4 and A[k] > 0 and A[A[k] % 4] < 9)

    assert note_of(main, ints(1, 2, 3, 4), ints(1, 1, 1, 1)) == "where bx=0, i=3, k=4"
    assert note_of(main, ints(1, 2, 3, 2**31 - 1), ints(1, 1, 1, 1)) == f"where bx=0, i=3, k={2**31 - 1}"
    assert note_of(main, ints(1, 2, 0, 9), ints(-7, 1, 1, 1)) == "where bx=0, i=2, k=0, A[k]=-7"
    assert note_of(main, ints(1, 0, 3, 9), ints(2, 1, 10, 1)) == "where bx=0, i=1, k=0, A[k]=2, A[A[k] % 4]=10"


def test_guards_of_all_kinds():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), k: T.index, m: T.index, way: T.int32):
        with T.Kernel(1):
            if way == 0:  # where it fails, each side was evaluated
                T.assert_(k >= 4 or A[k] > 0 or A[3 - k] > 0)
            if way == 1:  # each has a guard of its own
                T.assert_((k < 4 and A[k] > 0) or (m < 4 and A[m] > 0))
            if way == 2:
                T.assert_(T.if_then_else(k < 4, A[k], A[k - 4]) > 0)
            if way == 3:  # one behind both
                T.assert_(not (k < 4 and A[k] < 0) and A[0] == 7)
            if way == 4:  # once behind a guard, then without one
                T.assert_((k > 8 and A[1] > 0) or A[1] > 2)

    a = ints(-1, -2, -3, -4)

    def note(*values):
        return note_of(main, a, *values).removeprefix("where bx=0, ")

    assert note(1, 0, 0) == "k=1, A[k]=-2, A[3 - k]=-3"
    assert note(1, 9, 1) == "k=1, m=9, A[k]=-2"
    assert note(9, 1, 1) == "k=9, m=1, A[m]=-2"
    assert note(0, 1, 1) == "k=0, m=1, A[k]=-1, A[m]=-2"
    assert note(9, 9, 1) == "k=9, m=9"
    assert note(3, 0, 2) == "k=3, A[k]=-4"
    assert note(4, 0, 2) == "k=4, A[k - 4]=-1"
    assert note(3, 0, 3) == "k=3, A[k]=-4"
    assert note(9, 0, 3) == "k=9, A[0]=-1"
    assert note(9, 0, 4) == "k=9, A[1]=-2"


def test_loads_that_functions_names_and_operators_hide():
    def small(X, i):
        return X[i + 1] < 3

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), way: T.int32):
        with T.Kernel(1):
            count = T.alloc_var("int32", 5)
            x = A[6]
            if way == 0:
                T.assert_(small(A, 2))
            if way == 1:
                T.assert_(x < count)
            if way == 2:
                T.assert_((A[0] > 0) & (A[1] > 0))
            if way == 3:
                T.assert_(small(A, -1) and small(A, 1) and small(A, 2) and A[7] == 7)
            if way == 4:
                T.assert_((lambda j: A[j] + A[j + 1])(count - 3) < 5 + (lambda j: A[j])(1) * 0)

    a = ints(0, 1, 2, 3, 4, 5, 6, 7)
    notes = [note_of(main, a, way).removeprefix("where bx=0, ") for way in range(5)]
    assert notes[:3] == ["A[3]=3", "x=6, count=5", "A[0]=0, A[1]=1"]
    assert notes[3] == "A[0]=0, A[2]=2, A[3]=3"
    assert notes[4] == 'count=5, A[T.cast(j, "index")]=2, A[T.cast(j, "index") + 1]=3, A[1]=1'


def test_a_fault_has_a_bounded_number_of_values():
    def four(X, i):
        return X[i] + X[i + 1] + X[i + 2] + X[i + 3]

    def late(X, n, j):
        return n >= j and X[9 + j] > 100

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), way: T.int32):
        with T.Kernel(1):
            if way == 0:
                T.assert_(four(A, 0) + four(A, 4) + four(A, 8) + four(A, 12) < 9)
            if way == 1:
                for a, b, c, d, e, f, g, h, i in T.Parallel(1, 1, 1, 1, 1, 1, 1, 1, 1):
                    for j, k, m, n, o, p, q, r, s in T.Parallel(1, 1, 1, 1, 1, 1, 1, 1, 1):
                        for t, u, v, w, x, y, z, aa, bb in T.Parallel(1, 1, 1, 1, 1, 1, 1, 1, 1):
                            T.assert_(A[0] + A[1] + A[2] + A[3] + A[4] + A[5] < 0)
            if way == 2:  # behind many guards
                T.assert_(A[0] < 7 and A[1] < 7 and A[2] < 7 and A[3] < 7 and A[4] < 4 and A[5] < 4)
            if way == 3:
                T.assert_(late(A, way, 0) or late(A, way, 1) or late(A, way, 2) or late(A, way, 3) or late(A, way, 4))

    a = np.arange(64, dtype="int32")
    assert note_of(main, a, 0) == "where bx=0, " + ", ".join(f"A[{j}]={j}" for j in range(8))
    assert note_of(main, a, 1).endswith("aa=0, bb=0, A[0]=0, A[1]=1, A[2]=2, A[3]=3")
    assert note_of(main, a, 2) == "where bx=0, A[0]=0, A[1]=1, A[2]=2, A[3]=3, A[4]=4"  # four guards
    assert note_of(main, a, 3) == "where bx=0, way=3, A[9]=9, A[10]=10, A[11]=11, A[12]=12"


def test_what_a_fault_shows_is_read_where_the_condition_is_false():
    script = gathered(8, 4).script()
    assert "T.fail" in script
    text = positive(20, 8).script()
    first, second = text.index("if not A[b * 8 + i] > 0.0:"), text.index('T.fail("A is positive", A[b * 8 + i]')
    assert first < second


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
    assert fault.notes == ["where r=1, c=2, total[0]=3"]


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
    assert 'A[b * 8 + i], names=["A[b * block + i]"], at={"b": b, "i": i})' in script
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
    assert fault[:4] == (0, 1, 5, bits(-1.0))


def bits(value):
    return int(np.float64(value).view(np.int64))


def test_a_thread_leaves_what_it_has_loaded(tmp_path):
    @T.prim_func
    def main(I: T.Tensor((128,), "int32"), A: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((128,), "int32")
            tile = T.alloc_shared((128,), "float16")
            T.copy(I, x)
            T.copy(A, tile)
            for i in T.Parallel(128):
                T.assert_(0 <= x[i] and x[i] < 128 and tile[x[i]] < 3.0)
            T.assert_(tile[7] < tile[8])

    i, a = np.arange(128, dtype="int32"), np.zeros(128, "float16")
    a[8] = 1
    assert on_host(main, tmp_path, 1, I=i, A=a) is None
    a[127] = 4.5
    assert on_host(main, tmp_path, 1, I=i, A=a)[:5] == (0, 0, 127, 127, bits(4.5))
    i[99], a[127] = 2**31 - 1, 0
    fault = on_host(main, tmp_path, 1, I=i, A=a)
    assert fault[1:4] == (0, 99, 2**31 - 1) and not any(fault[4:])
    i[99], a[7] = 0, 2
    fault = on_host(main, tmp_path, 1, I=i, A=a)
    assert fault[1:4] == (0, bits(2.0), bits(1.0)) and not any(fault[4:])


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
    assert on_host(main, tmp_path, 4, A=a)[:4] == (0, 2, 77, bits(-1.0))
    a[2, 77], a[3, 5] = 1, 100
    assert on_host(main, tmp_path, 4, A=a)[:3] == (1, 3, bits(227.0))


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_text_compiles(arch, recwarn):
    helve.compile(positive(20, 8), target="cuda", arch=arch)
    assert not recwarn.list


def test_a_condition_that_uses_its_variables_often_is_read_in_no_time():
    """Each of them is looked into once: expanded at every use, this one has 3 ** 20 loads."""

    @T.macro
    def four(x):
        x = x * x + x
        x = x * x + x
        x = x * x + x
        return x * x + x

    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(4) as b:
            T.assert_(four(four(four(four(four(A[b]))))) > 0.0)

    with pytest.raises(helve.Error, match=r"A\[b\]"):
        helve.compile(main, target="interp")(np.full(4, -0.5, "float32"))
