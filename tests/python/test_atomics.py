"""Atomic operations: blocks, iterations and threads that meet in an element, on every target."""

import re

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import check, dtype_of
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form

TYPES = ["int32", "int64", "uint32", "uint64", "float32", "float64", "float16", "bfloat16"]
OPS = {"add": np.add, "max": np.maximum, "min": np.minimum}


def values(shape, dtype, seed=0, low=0):
    """Small whole numbers: their sums are exact in every type, in any order."""
    low = 0 if dtype.startswith("u") else low
    return np.random.default_rng(seed).integers(low, 3, shape).astype(dtype_of(dtype))


def histogram(n, bins, block, threads=64):
    """Counts of values: each block its own first, in shared memory, then all blocks into one."""

    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as b:
            own = T.alloc_shared((bins,), "int32")
            T.clear(own)
            for i in T.Parallel(block):
                if b * block + i < n:
                    T.atomic_add(own[T.index(X[b * block + i])], 1)
            T.atomic_add(H, own)

    return main


def histogram_arguments(n=1000, bins=10):
    return [np.random.default_rng(n).integers(0, bins, n).astype("int32"), np.arange(bins, dtype="int32")]


def counted():
    x, h = histogram_arguments()
    return h + np.bincount(x, minlength=len(h)).astype("int32")


@pytest.mark.parametrize("block", [64, 96, 1024])
def test_histogram(block):
    x, h = histogram_arguments()
    check(histogram(1000, 10, block), [x, h], {1: counted()})


@pytest.mark.parametrize("target", ["llvm", "cuda"])
def test_histogram_has_no_races(target):
    helve.testing.check_stages(histogram(1000, 10, 96), histogram_arguments, target=target)


def test_histogram_of_many_blocks_loses_nothing():
    """Blocks run on several threads of the pool, thousands of times."""
    n = 200_000
    kernel = helve.compile(histogram(n, 7, 64), target="llvm")
    x = (np.arange(n) % 7).astype("int32")
    for _ in range(5):
        h = np.zeros(7, np.int32)
        kernel(x, h)
        np.testing.assert_array_equal(h, np.bincount(x))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_blocks_that_meet_in_one_element_lose_nothing(dtype):
    source = helve.parse(f"""@T.prim_func
def main(S: T.Tensor((2,), "{dtype}")):
    with T.Kernel(400) as b:
        for i in T.Parallel(5):
            T.atomic_add(S[i % 2], 1)
""")
    out = np.zeros(2, dtype_of(dtype))
    helve.compile(source, target="llvm")(out)
    np.testing.assert_array_equal(out, np.array([1200, 800], dtype_of(dtype)))


def scattered(op, dtype, threads=64):
    """Elements that several iterations and blocks meet in, by the statement and by the operation."""
    return helve.parse(f"""@T.prim_func
def main(X: T.Tensor((6, 40), "{dtype}"), I: T.Tensor((40,), "int32"), S: T.Tensor((8,), "{dtype}"),
         R: T.Tensor((3, 40), "{dtype}")):
    with T.Kernel(6, threads={threads}) as b:
        part = T.alloc_fragment((40,), "{dtype}")
        T.copy(X[b, :], part)
        for i in T.Parallel(40):
            T.atomic_{op}(S[T.index(I[i])], X[b, i] * X[b, i])
        T.atomic_{op}(R[b % 3, :], part)
        T.atomic_{op}(S[0:2], 1)
        T.atomic_{op}(S[7], 2)
""")


def scattered_arguments(op, dtype):
    start = {"add": 0, "max": 0, "min": 9}[op]
    index = np.random.default_rng(4).integers(0, 8, 40).astype("int32")
    return [values((6, 40), dtype, 1, -2), index, np.full(8, start, dtype_of(dtype)),
            np.full((3, 40), start, dtype_of(dtype))]


def scattered_results(op, dtype):
    x, index, s, r = scattered_arguments(op, dtype)
    for b in range(6):
        for i in range(40):
            s[index[i]] = OPS[op](s[index[i]], x[b, i] * x[b, i])
        r[b % 3] = OPS[op](r[b % 3], x[b])
        for i in range(2):
            s[i] = OPS[op](s[i], s.dtype.type(1))
        s[7] = OPS[op](s[7], s.dtype.type(2))
    return {2: s, 3: r}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_types(op, dtype):
    check(scattered(op, dtype), scattered_arguments(op, dtype), scattered_results(op, dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["int64", "float32", "bfloat16"])
@pytest.mark.parametrize("op", OPS)
def test_the_program_of_a_thread(op, dtype):
    program = scattered(op, dtype)
    helve.testing.check_stages(program, lambda: scattered_arguments(op, dtype), target="cuda")
    form = thread_form(program)
    helve.testing.assert_round_trip(form)
    assert _core.unordered_accesses(form) == []


@pytest.mark.parametrize("kind", ["fragment", "shared", "tiles"])
def test_regions_of_any_memory(kind):
    alloc = {"fragment": 'T.alloc_fragment((5, 20), "int32")', "shared": 'T.alloc_shared((5, 20), "int32")',
             "tiles": 'T.alloc_shared_tiles((5, 20), "int32", tile_size=(2, 8))'}[kind]
    program = helve.parse(f"""@T.prim_func
def main(A: T.Tensor((5, 20), "int32"), B: T.Tensor((9, 30), "int64"), n: T.int32):
    with T.Kernel(2) as b:
        X = {alloc}
        T.copy(A, X)
        T.atomic_add(B[b : b + 5, 3:23], X)
        T.atomic_add(B[b, 4:9], X[1, 0:5])
        T.atomic_max(B[8, :], n)
""")
    a = values((5, 20), "int32", 3)
    wanted = np.zeros((9, 30), np.int64)
    for b in range(2):
        wanted[b : b + 5, 3:23] += a
        wanted[b, 4:9] += a[1, :5]
    wanted[8] = np.maximum(wanted[8], 6)
    check(program, [a, np.zeros((9, 30), np.int64), 6], {1: wanted})


def test_a_not_a_number_stays():
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((3,), "float32"), S: T.Tensor((2,), "float32")):
    with T.Kernel(1) as b:
        for i in T.Parallel(3):
            T.atomic_max(S[0], X[i])
            T.atomic_min(S[1], X[i])
""")
    x = np.array([1, np.nan, 2], np.float32)
    check(program, [x, np.zeros(2, np.float32)], {1: np.array([np.nan, np.nan], np.float32)})


def test_small_floats_round_each_sum_once():
    """The value keeps its float32 until it is added: 256 + 1.0039 is nearer to 258, 256 + 1 would be a tie."""
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((2,), "bfloat16"), S: T.Tensor((1,), "bfloat16")):
    with T.Kernel(1) as b:
        T.atomic_add(S[0], X[0] * X[1])
""")
    x = np.array([1.0078125, 0.99609375], dtype_of("bfloat16"))
    s = np.array([256.0], dtype_of("bfloat16"))
    check(program, [x, s], {1: np.array([258.0], s.dtype)}, rtol=0, atol=0)


def test_a_value_read_from_what_is_updated_is_read_first():
    program = helve.parse("""@T.prim_func
def main(S: T.Tensor((4,), "int32")):
    with T.Kernel(1) as b:
        T.atomic_add(S, S[1])
""")
    check(program, [np.arange(1, 5, dtype="int32")], {0: np.arange(3, 7, dtype="int32")})


# -- who may meet -----------------------------------------------------------------------------------------------------

RACES = {  # of T.atomic_add(at, 1) with
    "an atomic of another kind": ["T.atomic_max({at}, 1)"],
    "a store": ["if i == 1:", "    {at} = 1"],
    "a read": ["R[i] = {at}"],
}


def meeting(statements, at):
    """Iterations that meet in an element, which the data of N decides or which is stated."""
    body = "".join(f"            {line.format(at=at)}\n" for line in statements)
    return helve.parse(f"""@T.prim_func
def main(S: T.Tensor((4,), "int32"), R: T.Tensor((8,), "int32"), N: T.Tensor((1,), "int32")):
    with T.Kernel(1) as b:
        for i in T.Parallel(8):
{body}""")


def race_of(statements):
    """The race that the interpreter finds."""
    program = meeting(statements, "S[T.index(N[0])]")
    with pytest.raises(helve.Error) as found:
        arguments = np.zeros(4, "int32"), np.zeros(8, "int32"), np.zeros(1, "int32")
        helve.testing.interpret(program.function, *arguments, check="races")
    return found.value


@pytest.mark.parametrize("other", RACES.values(), ids=list(RACES))
@pytest.mark.parametrize("swapped", [False, True])
def test_everything_else_races(other, swapped):
    add = ["T.atomic_add({at}, 1)"]
    statements = other + add if swapped else add + other
    with pytest.raises(helve.Error) as refused:
        helve.compile(meeting(statements, "S[0]"))
    assert refused.value.code == "HV0306"
    assert race_of(statements).code == "HV0705"


def test_updates_of_one_kind_are_no_race():
    for at in ("S[0]", "S[T.index(N[0])]"):
        program = meeting(("T.atomic_add({at}, 1)", "T.atomic_add({at}, 2)"), at)
        s = np.zeros(4, "int32")
        helve.compile(program, target="interp", check="all")(s, np.zeros(8, "int32"), np.zeros(1, "int32"))
        np.testing.assert_array_equal(s, [24, 0, 0, 0])


def test_an_earlier_update_is_remembered():
    """The last update before the read is the reader's own; the race is with the one before it."""
    found = race_of(("T.atomic_add({at}, 1)", "if i == 1:", "    R[0] = {at}"))
    assert found.code == "HV0705"
    assert found.message.endswith("which iteration i=0 updates")


def test_updates_of_an_undefined_element_are_found():
    program = helve.parse("""@T.prim_func
def main(S: T.Tensor((1,), "int32")):
    with T.Kernel(1) as b:
        X = T.alloc_shared((1,), "int32")
        T.atomic_add(X[0], 1)
        T.copy(X, S)
""")
    with pytest.raises(helve.Error) as found:
        helve.testing.interpret(program.function, np.zeros(1, "int32"), check="all")
    assert found.value.code == "HV0704"


def test_threads_wait_between_an_update_and_a_read_only():
    """A barrier stands before the updates, for the zeros, and before the read; none between updates."""
    program = helve.parse("""@T.prim_func
def main(X: T.Tensor((64,), "int32"), R: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as b:
        own = T.alloc_shared((4,), "int32")
        T.clear(own)
        for i in T.Parallel(64):
            T.atomic_add(own[T.index(X[i])], 1)
        for i in T.Parallel(64):
            T.atomic_add(own[T.index(X[63 - i])], 1)
        for i in T.Parallel(64):
            R[i] = own[i % 4]
""")
    form = thread_form(program)
    text = _core.print(form)
    assert text.count("T.sync_threads()") == 2
    assert re.findall("T.sync_threads|atomic_add", text) == ["T.sync_threads", *["atomic_add"] * 2, "T.sync_threads"]
    assert _core.unordered_accesses(form) == []


# -- the text ---------------------------------------------------------------------------------------------------------

TEXTS = [(op, dtype) for op in OPS for dtype in TYPES]


def text_name(case):
    return f"atomic_{case[0]}_{case[1]}"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(scattered(*case)) for case in TEXTS]
    folder = tmp_path_factory.mktemp("cuda")
    return [HostKernels(forms, folder, prelude, [text_name(case) for case in TEXTS]) for prelude in (False, True)]


@pytest.mark.parametrize("case", TEXTS, ids=text_name)
@pytest.mark.parametrize("prelude", [False, True])
def test_the_text(kernels, case, prelude):
    wanted = scattered_arguments(*case)
    interpret(scattered(*case), *wanted)
    given = [aligned(array) for array in scattered_arguments(*case)]
    kernels[prelude].run(text_name(case), 6, dict(zip("XISR", given)))
    for got, expected in zip(given, wanted):
        np.testing.assert_array_equal(got, expected)


@needs_nvrtc
@pytest.mark.parametrize("case", TEXTS, ids=text_name)
def test_the_text_compiles(case):
    assert_compiles(_core.cuda_source(thread_form(scattered(*case)))[0])
