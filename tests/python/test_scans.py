"""Running sums as whole programs: NumPy's, the interpreter's and the machine's, on a CPU and over threads."""

import itertools

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, interpret
from differential import FLOATS, INTS, check, dtype_of, sample
from helve import T, _core
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form

ALLOC = {
    "plain": "T.alloc_shared({shape}, {dtype!r})",
    "fragment": "T.alloc_fragment({shape}, {dtype!r})",
    "tiles": "T.alloc_shared_tiles({shape}, {dtype!r}, tile_size={tile})",
}


def sums(a, dim, reverse, dtype):
    """The running sums of `a`, in a wide type for floats, wrapped for integers."""
    wide = a.astype(np.float64) if a.dtype.kind not in "iu" else a.astype(dtype)
    flipped = np.flip(wide, dim) if reverse else wide
    out = np.cumsum(flipped, axis=dim, dtype=flipped.dtype)
    return (np.flip(out, dim) if reverse else out).astype(dtype)


def scan(shape, dim, reverse=False, dtype="float32", to=None, kind="plain", in_place=False, threads=64):
    """Copies A in, scans it, and copies the sums out to B."""
    to = to or dtype
    tile = tuple([1] * (len(shape) - 2) + [4, 8][-min(2, len(shape)) :])
    alloc = {name: ALLOC[kind].format(shape=tuple(shape), dtype=element, tile=tile)
             for name, element in (("S", dtype), ("D", to))}
    target = "S" if in_place else "D"
    lines = [f"S = {alloc['S']}", *([] if in_place else [f"D = {alloc['D']}"]), "T.copy(A, S)",
             f"T.cumsum(S, {target}, dim={dim}, reverse={reverse})", f"T.copy({target}, B)"]
    body = "".join(f"        {line}\n" for line in lines)
    head = f"A: T.Tensor({tuple(shape)}, {dtype!r}), B: T.Tensor({tuple(shape)}, {to!r})"
    return helve.parse(f"@T.prim_func\ndef main({head}):\n    with T.Kernel(1, threads={threads}) as b:\n{body}")


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("reverse", [False, True])
def test_dtypes(dtype, reverse):
    a = sample((5, 19), dtype, 3)
    for dim in (0, -1):
        check(scan(a.shape, dim, reverse, dtype), [a, np.zeros_like(a)], {1: sums(a, dim, reverse, a.dtype)}, atol=4e-2)


def test_without_a_destination_it_is_in_place():
    text = """
@T.prim_func
def main(A: T.Tensor((3, 9), "float32"), B: T.Tensor((3, 9), "float32")):
    with T.Kernel(1) as b:
        S = T.alloc_shared((3, 9), "float32")
        T.copy(A, S)
        T.cumsum({})
        T.copy(S, B)
"""
    for short, whole in (("S", "S, S"), ("S, dim=0", "S, S, dim=0"), ("S, reverse=True", "S, S, reverse=True")):
        assert helve.parse(text.format(short)).script() == helve.parse(text.format(whole)).script()


def test_integers_wrap():
    a = np.full((40,), 100, np.int8)
    check(scan((40,), 0, dtype="int8"), [a, np.zeros_like(a)], {1: np.cumsum(a, dtype=np.int8)})


@pytest.mark.parametrize("kind, in_place", list(itertools.product(ALLOC, [False, True])))
@pytest.mark.parametrize(
    "shape, dim", [((40,), 0), ((3, 40), 1), ((33, 5), 0), ((2, 9, 6), 1), ((4, 0), 1), ((0, 3), 1)]
)
def test_shapes_and_memory(kind, in_place, shape, dim):
    a = sample(shape, "int32", 5)
    for reverse in (False, True):
        check(scan(shape, dim, reverse, "int32", kind=kind, in_place=in_place), [a, np.zeros_like(a)],
              {1: sums(a, dim, reverse, a.dtype)})


@pytest.mark.parametrize("dtype, to", [("bfloat16", "float32"), ("float32", "float16"), ("int8", "int32")])
def test_another_type_of_sums(dtype, to):
    a = sample((4, 30), dtype, 7)
    check(scan((4, 30), 1, dtype=dtype, to=to), [a, np.zeros(a.shape, dtype_of(to))],
          {1: sums(a.astype(dtype_of(to)) if a.dtype.kind in "iu" else a, 1, False, dtype_of(to))}, atol=2e-2)


def test_small_floats_round_once():
    """A sum that rounds at each step would stay at 256."""
    a = np.ones(1000, dtype_of("bfloat16"))
    kernel = helve.compile(scan((1000,), 0, dtype="bfloat16"))
    out = np.zeros_like(a)
    kernel(a, out)
    np.testing.assert_array_equal(out, np.arange(1, 1001).astype(a.dtype))


def test_parts_of_buffers_and_extents_of_the_call():
    M = T.dyn("M")

    @T.prim_func
    def main(A: T.Tensor((M, 12), "int32"), B: T.Tensor((M, 12), "int32")):
        with T.Kernel(1) as b:
            T.cumsum(A, B, dim=0)
            for i in T.serial(M):
                T.cumsum(B[i, 3:9], B[i, 3:9], reverse=True)

    a = sample((7, 12), "int32", 2)
    wanted = np.cumsum(a, axis=0, dtype=a.dtype)
    wanted[:, 3:9] = sums(wanted[:, 3:9], 1, True, a.dtype)
    check(main, [a, np.zeros_like(a)], {1: wanted})


# -- over threads -----------------------------------------------------------------------------------------------------

THREADED = [  # shape, dim, reverse, dtype, kind, in_place, threads
    ((256,), 0, False, "float32", "fragment", False, 64),
    ((1000,), 0, True, "int32", "fragment", False, 128),
    ((7, 33), 1, False, "int64", "plain", True, 32),
    ((64, 9), 0, True, "float32", "fragment", True, 96),
    ((3, 8, 20), 1, False, "bfloat16", "fragment", False, 128),
    ((4, 300), 1, True, "float16", "plain", False, 256),
    ((5,), 0, False, "int8", "fragment", False, 256),
    ((2, 4096), 1, False, "float32", "fragment", False, 1024),
    ((70, 65), 0, False, "float64", "plain", False, 32),
    ((100, 100), 1, True, "int32", "plain", False, 32),
]


def threaded_name(case):
    shape, dim, reverse, dtype, kind, in_place, threads = case
    extents = "x".join(str(n) for n in shape)
    return f"scan_{extents}_{dim}_{'back' * reverse}{dtype}_{kind}_{'own' * in_place}{threads}"


def threaded(case):
    shape, dim, reverse, dtype, kind, in_place, threads = case
    return scan(shape, dim, reverse, dtype, kind=kind, in_place=in_place, threads=threads)


def whole_numbers(shape, dtype):
    """Their sums are exact in every type, in any order."""
    return np.random.default_rng(1).integers(0, 2, shape).astype(dtype_of(dtype))


@pytest.mark.parametrize("case", THREADED, ids=threaded_name)
def test_the_program_of_a_thread(case):
    def arguments():
        a = whole_numbers(case[0], case[3])
        return [a, np.zeros_like(a)]

    program = threaded(case)
    helve.testing.check_stages(program, arguments, target="cuda")
    form = thread_form(program)
    helve.testing.assert_round_trip(form)
    assert _core.unordered_accesses(form) == []


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(threaded(case)) for case in THREADED]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=[threaded_name(case) for case in THREADED])


@pytest.mark.parametrize("case", THREADED, ids=threaded_name)
def test_the_text(kernels, case):
    a = whole_numbers(case[0], case[3])
    wanted = np.zeros_like(a)
    interpret(threaded(case), a.copy(), wanted)
    out = aligned(np.zeros_like(a))
    kernels.run(threaded_name(case), 1, {"A": aligned(a), "B": out})
    np.testing.assert_array_equal(out, wanted)


@needs_nvrtc
@pytest.mark.parametrize("case", THREADED, ids=threaded_name)
def test_the_text_compiles(case):
    assert_compiles(_core.cuda_source(thread_form(threaded(case)))[0])


def test_rows_of_registers_cross_lanes_without_block_memory():
    """A row within a warp needs no memory; one over warps needs one place a warp."""
    inside = _core.print(thread_form(scan((4, 128), 1, kind="fragment", threads=128)))
    assert "T.alloc_shared" not in inside
    across = _core.print(thread_form(scan((512,), 0, kind="fragment", threads=128)))
    assert 'warps = T.alloc_shared((4, 1, 1), "float32"' in across


def test_in_place_where_memory_says():
    """Source and destination are one region although each subscript is read from memory."""

    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), I: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.cumsum(A[0:2, T.index(I[0]) : T.index(I[0]) + 2], A[0:2, T.index(I[0]) : T.index(I[0]) + 2], dim=1)

    make = lambda: [np.arange(32, dtype="int32").reshape(4, 8), np.array([3], "int32")]  # noqa: E731
    a, i = make()
    helve.compile(main)(a, i)
    np.testing.assert_array_equal(a[:2, 3:5], [[3, 7], [11, 23]])
    helve.testing.check_stages(main, make, target="cuda")
