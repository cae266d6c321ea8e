"""Atomic updates as expressions, `return_prev=True`: what stood in the element before, on every target.

Programs here give the same result in every order of their updates, so that all targets can be compared.
"""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import check, dtype_of
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_atomics import OPS, TYPES, values
from test_cuda_lowering import thread_form


def exchanged(op, dtype, threads=64):
    """Elements of an iteration's own, in tensors and in shared memory, and one that the block updates."""
    return helve.parse(f"""@T.prim_func
def main(X: T.Tensor((4, 40), "{dtype}"), S: T.Tensor((4, 40), "{dtype}"), OLD: T.Tensor((4, 42), "{dtype}"),
         N: T.Tensor((4,), "{dtype}")):
    with T.Kernel(4, threads={threads}) as b:
        own = T.alloc_shared((40,), "{dtype}")
        T.copy(X[b, :], own)
        for i in T.Parallel(40):
            old = T.atomic_{op}(S[b, 39 - i], X[b, i] * X[b, i], return_prev=True)
            again = T.atomic_{op}(own[i], old, return_prev=True)
            OLD[b, i] = old + again
        first = T.atomic_{op}(N[b], 2, return_prev=True)
        OLD[b, 40] = first
        OLD[b, 41] = T.atomic_{op}(own[3], first, return_prev=True)
""")


def exchanged_arguments(op, dtype):
    start = {"add": 0, "max": 0, "min": 9}[op]
    return [values((4, 40), dtype, 1, -2), np.full((4, 40), start, dtype_of(dtype)), np.zeros((4, 42), dtype_of(dtype)),
            np.full(4, 1, dtype_of(dtype))]


def exchanged_results(op, dtype):
    x, s, old, n = exchanged_arguments(op, dtype)
    own = x.copy()
    for b in range(4):
        for i in range(40):
            first, second = s[b, 39 - i], own[b, i]
            s[b, 39 - i] = OPS[op](first, x[b, i] * x[b, i])
            own[b, i] = OPS[op](second, first)
            old[b, i] = first + second
        old[b, 40] = n[b]
        n[b] = OPS[op](n[b], n.dtype.type(2))
        old[b, 41] = own[b, 3]
    return {1: s, 2: old, 3: n}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_types(op, dtype):
    check(exchanged(op, dtype), exchanged_arguments(op, dtype), exchanged_results(op, dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["int64", "float32", "bfloat16"])
@pytest.mark.parametrize("op", OPS)
def test_the_program_of_a_thread(op, dtype):
    program = exchanged(op, dtype)
    helve.testing.check_stages(program, lambda: exchanged_arguments(op, dtype), target="cuda")
    form = thread_form(program)
    helve.testing.assert_round_trip(form)
    assert _core.unordered_accesses(form) == []


def places(n=96, blocks=3):
    """Each value takes a place of its own: the places are those of the values, in some order."""

    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), COUNT: T.Tensor((1,), "int32"), OUT: T.Tensor((n,), "int32")):
        with T.Kernel(blocks, threads=32) as b:
            for i in T.Parallel(n // blocks):
                if X[b * (n // blocks) + i] > 0:
                    place = T.atomic_add(COUNT[0], 1, return_prev=True)
                    OUT[place] = 7

    return main


def test_iterations_and_blocks_take_places():
    x = np.random.default_rng(2).integers(-1, 2, 96).astype("int32")
    positive = int((x > 0).sum())
    wanted = np.where(np.arange(96) < positive, 7, 0).astype("int32")
    check(places(), [x, np.zeros(1, "int32"), np.zeros(96, "int32")], {1: np.int32([positive]), 2: wanted})


def test_places_are_each_taken_once_on_many_threads():
    n = 50_000

    @T.prim_func
    def main(COUNT: T.Tensor((1,), "int64"), TAKEN: T.Tensor((n,), "int32")):
        with T.Kernel(n // 50, threads=32):
            for i in T.Parallel(50):
                T.atomic_add(TAKEN[T.atomic_add(COUNT[0], 1, return_prev=True)], 1)

    kernel = helve.compile(main, target="llvm")
    taken = np.zeros(n, "int32")
    kernel(np.zeros(1, "int64"), taken)
    assert (taken == 1).all()


def test_the_last_block_knows_that_it_is_the_last():
    """Split sums: whoever finishes last adds the parts."""

    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), PART: T.Tensor((8,), "float32"), DONE: T.Tensor((1,), "int32"),
             LAST: T.Tensor((1,), "int32")):
        with T.Kernel(8, threads=64) as b:
            x = T.alloc_fragment((64,), "float32")
            s = T.alloc_shared((1,), "float32")
            T.copy(X[b, :], x)
            T.reduce_sum(x, s, dim=0)
            PART[b] = s[0]
            ticket = T.atomic_add(DONE[0], 1, return_prev=True)
            if ticket == 7:
                LAST[0] = ticket

    x = np.arange(512, dtype="float32").reshape(8, 64)
    check(main, [x, np.zeros(8, "float32"), np.zeros(1, "int32"), np.zeros(1, "int32")],
          {1: x.sum(axis=1), 2: np.int32([8]), 3: np.int32([7])})
    helve.testing.check_stages(main, lambda: [x, np.zeros(8, "float32"), np.zeros(1, "int32"), np.zeros(1, "int32")],
                               target="cuda")


def test_a_value_that_nobody_uses_is_an_update():
    @T.prim_func
    def main(S: T.Tensor((1,), "int32")):
        with T.Kernel(3):
            T.atomic_add(S[0], 2, return_prev=True)

    check(main, [np.zeros(1, "int32")], {0: np.int32([6])})


def test_a_variable_takes_it():
    @T.prim_func
    def main(S: T.Tensor((1,), "int32"), OUT: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            last = T.alloc_var("int32", 0)
            for i in T.serial(4):
                last = T.atomic_add(S[0], 3, return_prev=True)
                OUT[i] = last

    check(main, [np.zeros(1, "int32"), np.zeros(4, "int32")], {0: np.int32([12]), 1: np.int32([0, 3, 6, 9])})


def test_updates_that_return_do_not_race_with_each_other():
    @T.prim_func
    def main(S: T.Tensor((1,), "int32"), SUM: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                old = T.atomic_add(S[0], 1, return_prev=True)
                T.atomic_add(SUM[0], old)

    s, total = np.zeros(1, "int32"), np.zeros(1, "int32")
    helve.compile(main, target="interp", check="all")(s, total)
    assert s[0] == 64 and total[0] == 64 * 63 // 2


def test_a_plain_read_of_the_element_still_races():
    @T.prim_func
    def main(S: T.Tensor((1,), "int32"), OUT: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                OUT[i] = T.atomic_add(S[0], 1, return_prev=True) + S[0]

    races = [str(each) for each in helve.compile(main).proofs() if "iterations i are independent" in str(each)]
    assert len(races) == 1 and races[0].startswith("<unknown race")
    with pytest.raises(helve.Error) as found:
        helve.compile(main, target="interp", check="all")(np.zeros(1, "int32"), np.zeros(8, "int32"))
    assert found.value.code == "HV0705"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    cases = [(op, dtype) for op in OPS for dtype in TYPES]
    forms = [thread_form(exchanged(*case)) for case in cases]
    folder = tmp_path_factory.mktemp("cuda")
    names = [f"previous_{op}_{dtype}" for op, dtype in cases]
    return [HostKernels(forms, folder, prelude, names) for prelude in (False, True)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("prelude", [False, True])
def test_the_text(kernels, op, dtype, prelude):
    wanted = exchanged_arguments(op, dtype)
    interpret(exchanged(op, dtype), *wanted)
    given = [aligned(array) for array in exchanged_arguments(op, dtype)]
    kernels[prelude].run(f"previous_{op}_{dtype}", 4, dict(zip(("X", "S", "OLD", "N"), given)))
    for got, expected in zip(given, wanted):
        np.testing.assert_array_equal(got, expected)


@needs_nvrtc
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_the_text_compiles(op, dtype):
    assert_compiles(_core.cuda_source(thread_form(exchanged(op, dtype)))[0])


def ticketed(use):
    """A resident block that takes tickets, as schedulers of tiles do; `use` says where the number decides."""
    places = {"place": ("T.max(T.min(T.index(n) * 16, 64), 0)", "2"),
              "trips": ("i * 64", "T.max(T.min(T.index(n), 2), 0)")}
    first, trips = places[use]
    return helve.parse(f"""@T.prim_func
def main(A: T.Tensor((128, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), Q: T.Tensor((1,), "int32"),
         C: T.Tensor((2, 64, 32), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 16), "bfloat16")
        b = T.alloc_shared((32, 16), "bfloat16")
        c = T.alloc_fragment((64, 32), "float32")
        for i in T.serial(2):
            n = T.atomic_add(Q[0], 1, return_prev=True)
            T.clear(c)
            for k in T.Pipelined({trips}, num_stages=2):
                T.copy(A[{first} : {first} + 64, k * 16 : k * 16 + 16], a)
                T.copy(B[:, k * 16 : k * 16 + 16], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, C[i, :, :])
""")


@pytest.mark.parametrize("use", ["place", "trips"])
def test_a_ticket_that_decides_of_copies_crosses_no_roles(use):
    """Only one role could take it; the copies of the loop are pipelined without a ring."""
    function = ticketed(use)
    warnings = _core.lowering_warnings(function.function, target="cuda", arch="sm_90a")
    assert [each.code for each in warnings] == ["HV0929"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(dtype_of("bfloat16")) for shape in ((128, 32), (32, 32)))
    arguments = lambda: [a.copy(), b.copy(), np.zeros(1, "int32"), np.zeros((2, 64, 32), "float32")]  # noqa: E731
    helve.testing.check_stages(function, arguments, target="cuda", arch="sm_90a")


@pytest.mark.parametrize("inside", [False, True])
def test_a_ticket_keeps_a_mesh_kernel_whole(inside):
    mesh = helve.Mesh((1, 2))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2,), "int32"), B: T.Tensor((2, 8), "int32"), O: T.Tensor((2,), "int32")):
        with T.Kernel(1, 2) as (r, c):
            x = T.atomic_add(A[c], 1, return_prev=True)
            for i in T.Persistent([8]):
                B[c, i] = i + x if inside else i
            O[c] = x

    arguments = lambda: [np.full(2, 3, "int32"), np.zeros((2, 8), "int32"), np.zeros(2, "int32")]  # noqa: E731
    helve.testing.check_stages(main, arguments, mesh, target="cuda", arch="sm_90a", cores="devices")
