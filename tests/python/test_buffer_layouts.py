"""Layouts on buffers of a kernel: where they are given, what they decide, and that they change no result."""

import numpy as np
import pytest

import helve
import helve.testing
import helve.cute
from cuda_on_host import HostKernels, aligned, assert_same
from helve import T, _core
from helve.layout import R, S, Swizzle, laneid, reg, tx, warpid
from nvrtc import assert_compiles, needs_nvrtc
from undispatched import undispatched

# The operands of the tensor core's 16 x 8 x 16 product, and its accumulator (PTX ISA, mma.m16n8k16).
MMA_A = S[(2, 8, 2, 4, 2) : (2 @ reg, 4 @ tx, 4 @ reg, 1 @ tx, 1 @ reg)]
MMA_B = S[(2, 4, 2, 8) : (2 @ reg, 1 @ tx, 1 @ reg, 4 @ tx)]
MMA_C = S[(2, 8, 4, 2) : (2 @ reg, 4 @ tx, 1 @ tx, 1 @ reg)]


def compiled(function, arch="sm_90a", **options):
    try:
        return helve.compile(function, target="cuda", arch=arch, **options)
    except helve.Error as fault:
        if fault.code in ("HV0905", "HV0909"):
            pytest.skip("no CUDA compiler here")
        raise


def stages(function, arch=""):
    return dict(helve.testing.lowering_stages(function, target="cuda", arch=arch))


def places(function, **options):
    return {place.name: place for place in compiled(function, **options).layouts()}


def check(function, make_arguments, tmp_path, blocks=1, arch=""):
    """Every stage on both targets, and the CUDA text on the host, give what the interpreter gives."""
    helve.testing.check_stages(function, make_arguments, target="cuda", arch=arch)
    wanted = make_arguments()
    helve.testing.interpret(function, *wanted, check="all")
    got = make_arguments()
    helve.compile(undispatched(function), verify=True)(*got)
    for g, w in zip(got, wanted, strict=True):
        assert_same(g, w, "llvm")
    thread_form = list(stages(function, arch).values())[-1]
    kernels = HostKernels([thread_form], tmp_path)
    names = [p.name for p in function.function.params]
    arrays = dict(zip(names, map(aligned, make_arguments()), strict=True))
    kernels.run(function.function.name, blocks, arrays)
    for name, w in zip(names, wanted, strict=True):
        assert_same(arrays[name], w, "CUDA text")


def twice(layout, shape=(16, 64), threads=64, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads) as b:
            x = T.alloc_fragment(shape, dtype, layout=layout)
            T.copy(A, x)
            for i, j in T.Parallel(shape[0], shape[1]):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, B)

    return main


def two(shape, dtype="float32"):
    def arguments():
        a = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        return [a, np.zeros(shape, dtype)]

    return arguments


LAYOUTS = [
    S[(16, 64) : (1 @ reg, 1 @ tx)],
    S[(16, 2, 32) : (1 @ reg, 1 @ warpid, 1 @ laneid)],
    S[(2, 8, 2, 4, 8) : (8 @ reg, 4 @ tx, 32 @ tx, 1 @ tx, 1 @ reg)],
    S[(8, 2, 64) : (1 @ tx, 1 @ reg, 2 @ reg)] + R[8 : 8 @ tx],
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fragment_is_where_its_layout_says(layout, tmp_path):
    function = twice(layout)
    check(function, two((16, 64)), tmp_path)
    (place,) = compiled(function).layouts()
    assert place.reason == "annotated"
    assert place.layout.equivalent(layout.fuse_axes(tx))


def test_annotate_layout_is_the_argument(tmp_path):
    layout = LAYOUTS[2]

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=64) as b:
            x = T.alloc_fragment((16, 64), "float32")
            T.copy(A, x)
            T.annotate_layout({x: layout})
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, B)

    same, path = _core.structural_equal(main.function, twice(layout).function)
    assert same, path
    text = str(_core.print(main.function))
    assert f'layout="{layout}"' in text
    assert _core.structural_equal(helve.parse(text).function, main.function)[0]


def test_a_loop_that_needs_it_otherwise_works_on_a_copy(tmp_path):
    layout = S[64 : 1 @ tx]

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as b:
            x = T.alloc_fragment((64,), "float32", layout=layout)
            T.copy(A, x)
            for i in T.Parallel(64):
                B[i] = x[63 - i]

    check(main, two((64,)), tmp_path)
    assert "x_copy" in str(_core.print(stages(main)["distribute_threads"]))
    with pytest.raises(helve.Error) as caught:
        compiled(main, strict=True)
    assert caught.value.code == "HV0586"


def test_layouts_that_differ_meet_in_block_memory(tmp_path):
    rows, columns = S[(8, 16) : (16 @ tx, 1 @ tx)], S[(8, 16) : (1 @ tx, 8 @ tx)]

    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), B: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=128) as b:
            x = T.alloc_fragment((8, 16), "float32", layout=rows)
            y = T.alloc_fragment((8, 16), "float32", layout=columns)
            s = T.alloc_fragment((8,), "float32", layout=S[8 : 1 @ tx] + R[16 : 8 @ tx])
            T.copy(A, x)
            T.copy(x, y)
            T.reduce_sum(x, s, dim=1)
            for i, j in T.Parallel(8, 16):
                B[i, j] = y[i, j] + s[i]

    check(main, two((8, 16)), tmp_path)
    found = places(main)
    assert [found[name].reason for name in "xys"] == ["annotated"] * 3
    with pytest.raises(helve.Error) as caught:
        compiled(main, strict=True)
    notes = [note.text for note in caught.value.diagnostic.notes]
    assert any("has the layout" in note for note in notes) and any("divides its elements by" in note for note in notes)


def test_values_of_conditions_and_bounds(tmp_path):
    layout = S[4 : 1 @ tx] + R[8 : 4 @ tx]

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as b:
            x = T.alloc_fragment((4,), "int32", layout=layout)
            T.copy(A, x)
            if x[2] > 1:
                y = x[3]
                B[0] = y
            x[1] = 7
            T.copy(x[1:4], B[1:4])

    check(main, two((4,), "int32"), tmp_path)


def transposed(layout, tile=32, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((tile, tile), dtype), B: T.Tensor((tile, tile), dtype)):
        with T.Kernel(1, threads=128) as b:
            x = T.alloc_shared((tile, tile), dtype, layout=layout)
            T.copy(A, x)
            for i, j in T.Parallel(tile, tile):
                B[i, j] = x[j, i]

    return main


MEMORY = [
    S[(32, 32) : (33, 1)], S[(32, 32) : (1, 32)], S[(4, 8, 4, 8) : (256, 8, 64, 1)],
    S[(32, 32) : (32, 1)] ^ Swizzle(3, 2, 3), S[(32, 32) : (40, 1)] ^ Swizzle(2, 2, 3),
]


@pytest.mark.parametrize("layout", MEMORY, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_block_memory_has_the_addresses_of_its_layout(layout, dtype, tmp_path):
    function = transposed(layout, dtype=dtype)
    check(function, two((32, 32), dtype), tmp_path)
    (place,) = compiled(function).layouts()
    assert place.reason == "annotated" and place.layout == layout
    text, (kernel,) = _core.cuda_source(list(stages(function).values())[-1], prelude=False)
    bytes_needed = layout.span(helve.layout.m) * np.dtype(dtype).itemsize
    assert bytes_needed <= kernel["shared_bytes"] < bytes_needed + 128
    assert ("^" in text) == (layout.swizzle is not None and layout.swizzle.bits > 0)


def test_vectors_go_where_the_layout_keeps_them_together():
    def text(layout):
        return _core.cuda_source(list(stages(transposed(layout)).values())[-1], prelude=False)[0]

    assert "helve_store<16>(x" in text(S[(32, 32) : (32, 1)] ^ Swizzle(3, 2, 3))
    assert "(x + " not in text(S[(32, 32) : (32, 1)] ^ Swizzle(3, 1, 3))
    assert "(x + " not in text(S[(32, 32) : (33, 1)])
    assert "(x + " not in text(S[(32, 32) : (1, 32)])


def test_swizzles_are_chosen_where_columns_are_read(tmp_path):
    function = transposed(None)
    check(function, two((32, 32)), tmp_path)
    (place,) = compiled(function).layouts()
    assert place.layout.swizzle.bits > 0, place
    assert "8-way bank conflicts row by row, no bank conflicts so" in place.reason
    given = places(transposed(S[(32, 32) : (32, 1)]))["x"]
    assert given.layout == S[(32, 32) : (32, 1)], "a layout that is given stays"


def test_each_warp_has_a_row_and_not_all_begin_at_vectors(tmp_path):
    @T.prim_func
    def main(A: T.Tensor((4, 9), "float32"), B: T.Tensor((4, 32, 8), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_shared((4, 9), "float32")
            T.copy(A, x)
            for w, t in T.Parallel(4, 32):
                for i in T.vectorized(8):
                    B[w, t, i] = x[w, i] + x[w, i + 1]

    check(main, lambda: [np.arange(36, dtype="float32").reshape(4, 9), np.zeros((4, 32, 8), "float32")], tmp_path)


def test_rows_of_the_table_are_pictures():
    (place,) = compiled(twice(LAYOUTS[2])).layouts()
    assert place._repr_html_().count("<svg") == 1 and "annotated" in place._repr_html_()
    assert "T0" in place.picture().text()


@needs_nvrtc
@pytest.mark.parametrize("tile, dtype", [(32, "float32"), (64, "float16")])
def test_swizzled_memory_compiles(tile, dtype):
    assert_compiles(_core.cuda_source(list(stages(transposed(None, tile, dtype)).values())[-1])[0])


# -- random layouts ---------------------------------------------------------------------------------------------------


def digits(random, extent):
    """Extents of powers of two, and perhaps an odd one, that multiply to `extent`."""
    out = []
    while extent % 2 == 0:
        step = 2 ** int(random.integers(1, min(3, (extent & -extent).bit_length() - 1) + 1))
        out.append(step)
        extent //= step
    return [*out, extent] if extent > 1 else out


def random_fragment(random, shape, threads):
    """A layout of `shape` on registers and all of `threads` threads."""
    iters = [(extent, d) for d, dim in enumerate(shape) for extent in digits(random, dim)]
    order = list(random.permutation(len(iters)))
    strides, used, registers = {}, 1, 1
    for k in order:
        extent = iters[k][0]
        if random.random() < 0.6 and extent & (extent - 1) == 0 and threads % (used * extent) == 0:
            strides[k] = used @ tx
            used *= extent
        else:
            strides[k] = registers @ reg
            registers *= extent
    layout = S[tuple(e for e, _ in iters) : tuple(strides[k] for k in range(len(iters)))]
    return layout + R[threads // used : used @ tx] if used < threads else layout


def random_memory(random, shape):
    """A layout of `shape` on addresses, with gaps and swizzles at times."""
    iters = [extent for dim in shape for extent in digits(random, dim)]
    order = list(random.permutation(len(iters)))
    strides, next_stride = {}, 1
    for k in order:
        strides[k] = next_stride
        next_stride = next_stride * iters[k] + int(random.integers(0, 2)) * int(random.integers(0, 9))
    layout = S[tuple(iters) : tuple(strides[k] for k in range(len(iters)))]
    bits = int(random.integers(0, 4))
    return layout ^ Swizzle(bits, int(random.integers(0, 4)), bits + int(random.integers(0, 3))) if bits else layout


def random_program(seed):
    random = np.random.default_rng(seed)
    shape = tuple(int(random.choice([4, 8, 12, 16, 32])) for _ in range(2))
    threads = int(random.choice([32, 64, 128]))
    dtype = str(random.choice(["float32", "float16", "int32"]))
    first, second = (random_fragment(random, shape, threads) for _ in range(2))
    row = random_fragment(random, shape[:1], threads)
    memory = random_memory(random, shape)
    M, N = shape

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=threads) as b:
            x = T.alloc_fragment((M, N), dtype, layout=first)
            y = T.alloc_fragment((M, N), dtype, layout=second)
            r = T.alloc_fragment((M,), dtype, layout=row)
            z = T.alloc_shared((M, N), dtype, layout=memory)
            T.copy(A, x)
            T.reduce_max(x, r, dim=1)
            T.copy(x, z)
            T.copy(z, y)
            for i, j in T.Parallel(M, N):
                y[i, j] = y[i, j] + r[i]
            for i, j in T.Parallel(M, N):
                if j < N - 1:
                    x[i, j] = y[i, j + 1]
            for i, j in T.Parallel(M, N):
                B[i, j] = x[i, j] + y[M - 1 - i, j]

    return main, two(shape, dtype)


@pytest.mark.parametrize("seed", range(12))
def test_random_layouts(seed, tmp_path):
    check(*random_program(seed), tmp_path)


# -- matrices ---------------------------------------------------------------------------------------------------------


def by_matrices(layout, shape, threads=32, dtype="float16", pitch=None, back=False):
    rows, columns = shape
    width = pitch or columns

    @T.prim_func
    def main(A: T.Tensor((rows, width), dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads) as b:
            x = T.alloc_shared((rows, width), dtype)
            f = T.alloc_fragment(shape, dtype, layout=layout)
            y = T.alloc_shared(shape, dtype)
            T.copy(A, x)
            T.copy(x[:, width - columns:width], f)
            for i, j in T.Parallel(rows, columns):
                f[i, j] = f[i, j] + 1.0
            T.copy(f, y)
            for i, j in T.Parallel(rows, columns):
                B[i, j] = y[i, j]

    return main


MATRICES = [
    (MMA_A, (16, 16), 32, 4, False),
    (MMA_B, (16, 8), 32, 2, True),
    (MMA_C, (16, 8), 32, 2, False),
    (S[(8, 4, 2) : (4 @ tx, 1 @ tx, 1 @ reg)], (8, 8), 32, 1, False),
    (S[(2, 2, 8, 2, 4, 2) : (32 @ tx, 2 @ reg, 4 @ tx, 4 @ reg, 1 @ tx, 1 @ reg)], (32, 16), 64, 4, False),
    (S[(2, 8, 2, 4, 2) : (2 @ reg, 4 @ laneid, 4 @ reg, 1 @ laneid, 1 @ reg)] + R[2 : 1 @ warpid], (16, 16), 64, 4,
     False),
]


def filled(rows, width, columns):
    def arguments():
        a = np.arange(rows * width).reshape(rows, width).astype("float16")
        return [a, np.zeros((rows, columns), "float16")]

    return arguments


@pytest.mark.parametrize("layout, shape, threads, count, transpose", MATRICES, ids=lambda v: str(v))
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_copies_by_matrices(layout, shape, threads, count, transpose, arch, tmp_path):
    rows, columns = shape
    function = by_matrices(layout, shape, threads, pitch=columns + 8)
    check(function, filled(rows, columns + 8, columns), tmp_path, arch=arch)
    lowered = str(_core.print(stages(function, arch)["distribute_threads"]))
    assert "T.ldmatrix(" in lowered
    assert ("T.stmatrix(" in lowered) == (arch == "sm_90a" and not layout.replica)
    text = _core.cuda_source(list(stages(function, arch).values())[-1], prelude=False)[0]
    assert f"helve_load_matrices<{count}, {str(transpose).lower()}>" in text


@needs_nvrtc
@pytest.mark.parametrize("layout, shape, threads, count, transpose", MATRICES, ids=lambda v: str(v))
def test_matrices_compile(layout, shape, threads, count, transpose):
    kernel = compiled(by_matrices(layout, shape, threads), arch="sm_90a")
    assert "ldmatrix.sync" in kernel.source("cuda")
    compiled(by_matrices(layout, shape, threads), arch="sm_80")


def test_what_is_no_copy_by_matrices_goes_element_by_element(tmp_path):
    wide = S[(16, 2, 8) : (2 @ tx, 1 @ tx, 1 @ reg)]
    function = by_matrices(wide, (16, 16))
    check(function, filled(16, 16, 16), tmp_path)
    assert "matrix(" not in str(_core.print(stages(function)["distribute_threads"]))
    odd = by_matrices(MMA_A, (16, 16), pitch=20)
    check(odd, filled(16, 20, 16), tmp_path)
    assert "ldmatrix" not in str(_core.print(stages(odd)["distribute_threads"]))


def test_copies_by_matrices_can_be_asked_for():
    """By name, where they would be chosen, and with the reason where they are not."""

    def main_of(dispatch):
        @T.prim_func
        def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16")):
            with T.Kernel(1, threads=32) as b:
                x = T.alloc_shared((16, 16), "float16")
                f = T.alloc_fragment((16, 16), "float16", layout=MMA_A)
                T.copy(A, x)
                T.copy(x, f, dispatch=dispatch)
                T.copy(f, B)

        return main

    def chosen(dispatch):
        return [choice.schedule for choice in compiled(main_of(dispatch)).schedules()]

    assert chosen("") == chosen("ldmatrix") == ["registers", "ldmatrix", "registers"]
    assert chosen("registers") == ["registers"] * 3
    first, _, last = compiled(main_of("")).schedules()
    assert dict(first.declined)["ldmatrix"] == "it is not from shared memory to a fragment with a layout"
    assert dict(last.declined)["stmatrix"] == "it is not from a fragment with a layout to shared memory"


def test_matrices_are_free_of_bank_conflicts(tmp_path):
    function = by_matrices(MMA_A, (16, 16), pitch=64)
    check(function, filled(16, 64, 16), tmp_path)
    x = places(function)["x"]
    assert "bank conflicts row by row" in x.reason and "no bank conflicts so" in x.reason


# -- asynchronous copies ----------------------------------------------------------------------------------------------


def column_sums(stages, layout=None, tile=32, tiles=5, dtype="float32"):
    """Sums of tiles, each read by columns, copied ahead where that is more than one stage."""

    @T.prim_func
    def main(A: T.Tensor((tile, tiles * tile), dtype), B: T.Tensor((tile, tile), "float32")):
        with T.Kernel(1, threads=128) as b:
            x = T.alloc_shared((tile, tile), dtype, layout=layout)
            s = T.alloc_fragment((tile, tile), "float32")
            T.clear(s)
            for k in T.Pipelined(tiles, num_stages=stages):
                T.copy(A[:, k * tile:k * tile + tile], x)
                for i, j in T.Parallel(tile, tile):
                    s[i, j] = s[i, j] + T.cast(x[j, i], "float32")
            T.copy(s, B)

    return main


def summed(tile=32, tiles=5, dtype="float32"):
    def arguments():
        a = np.random.default_rng(tiles).integers(-4, 5, (tile, tiles * tile)).astype(dtype)
        return [a, np.zeros((tile, tile), "float32")]

    return arguments


@pytest.mark.parametrize("stages_", [1, 2, 3])
@pytest.mark.parametrize("layout", [None, *MEMORY], ids=str)
def test_stages_of_pipelined_loops_have_the_layout(layout, stages_, tmp_path):
    function = column_sums(stages_, layout)
    check(function, summed(), tmp_path)
    text, (kernel,) = _core.cuda_source(list(stages(function).values())[-1], prelude=False)
    assert ("helve_copy_async<" in text) == (stages_ > 1)
    if layout is not None:
        bytes_of_stage = 4 * layout.span(helve.layout.m)
        assert kernel["shared_bytes"] >= stages_ * bytes_of_stage


@pytest.mark.parametrize("layout, width", [
    (S[(32, 32) : (32, 1)] ^ Swizzle(3, 2, 3), 16), (S[(32, 32) : (32, 1)] ^ Swizzle(3, 1, 4), 8),
    (S[(32, 32) : (32, 1)] ^ Swizzle(5, 0, 5), 4), (S[(32, 32) : (36, 1)], 16), (S[(32, 32) : (34, 1)], 8),
    (S[(32, 32) : (1, 32)], 4), (S[(32, 8, 4) : (4, 128, 1)], 16),
], ids=str)  # fmt: skip
def test_what_a_layout_keeps_together_is_copied_at_once(layout, width):
    text = _core.cuda_source(list(stages(column_sums(2, layout)).values())[-1], prelude=False)[0]
    assert text.count("helve_copy_async<") == 2 and text.count(f"helve_copy_async<{width}>") == 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_swizzles_leave_runs_of_copies_whole(dtype, tmp_path):
    function = column_sums(3, dtype=dtype, tile=64)
    check(function, summed(64, dtype=dtype), tmp_path)
    text = _core.cuda_source(list(stages(function).values())[-1], prelude=False)[0]
    assert text.count("helve_copy_async<16>") == 2
    placed = next(line for line in str(_core.print(stages(function)["place_shared_memory"])).splitlines()
                  if "x = T.alloc_shared" in line)
    chosen = helve.Layout.parse(placed.split('layout="')[1].split('"')[0])
    run = 16 // np.dtype(dtype).itemsize
    for begin in range(0, 3 * 64 * 64, run):
        places_ = [chosen.apply(begin + k)[0][helve.layout.m] for k in range(run)]
        assert places_ == list(range(places_[0], places_[0] + run)) and places_[0] % run == 0


def test_wide_vectors_stay_together(tmp_path):
    """Eight lanes of 4 bytes are two accesses: a swizzle that parted them would leave single elements."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as b:
            x = T.alloc_shared((64, 64), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(64, 64):
                B[i, j] = x[j, i]

    check(main, two((64, 64), "float16"), tmp_path)
    text = _core.cuda_source(list(stages(main).values())[-1], prelude=False)[0]
    assert "helve_store<16>(x" in text


@needs_nvrtc
@pytest.mark.parametrize("layout", [None, MEMORY[0], MEMORY[3]], ids=str)
def test_copies_into_swizzled_memory_compile(layout):
    assert_compiles(_core.cuda_source(list(stages(column_sums(3, layout)).values())[-1])[0])


@pytest.mark.parametrize("layout", [None, S[(32, 64) : (64, 1)] ^ Swizzle(3, 2, 6)], ids=str)
def test_tma_copies_row_by_row(layout, tmp_path):
    """It fills no memory that a program places otherwise, and what it fills gets no swizzle."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=64) as b:
            x = T.alloc_shared((32, 64), "float32", layout=layout)
            T.copy_async(A, x)
            T.wait_async()
            for i, j in T.Parallel(64, 32):
                B[i, j] = x[j, i]

    def arguments():
        return [*two((32, 64))()[:1], np.zeros((64, 32), "float32")]

    check(main, arguments, tmp_path, arch="sm_90a")
    text = _core.cuda_source(list(stages(main, "sm_90a").values())[-1], prelude=False)[0]
    assert ("helve_copy_bulk(" in text) == (layout is None)
    assert ("helve_copy_async<16>(" in text) == (layout is not None)


def test_matrices_are_fenced_from_tma(tmp_path):
    """TMA copies out what stmatrix has stored."""

    @T.prim_func
    def main(A: T.Tensor((128, 16), "float16"), B: T.Tensor((128, 16), "float16")):
        with T.Kernel(1, threads=256) as b:
            x = T.alloc_shared((128, 16), "float16")
            f = T.alloc_fragment((128, 16), "float16",
                                 layout=S[(8, 2, 8, 2, 4, 2) : (32@tx, 2@reg, 4@tx, 4@reg, 1@tx, 1@reg)])
            T.copy(A, f)
            T.copy(f, x, dispatch="stmatrix")
            T.copy(x, B, dispatch="tma")

    check(main, filled(128, 16, 16), tmp_path, arch="sm_90a")
    text = _core.cuda_source(list(stages(main, "sm_90a").values())[-1], prelude=False)[0]
    stored, fenced, emptied = (text.index(f"helve_{name}(") for name in
                               ("store_matrices<4, false>", "fence_async", "store_bulk"))
    assert stored < fenced < emptied


# -- collectives ------------------------------------------------------------------------------------------------------


def exchanged(layout):
    """Sums over four cores, of a buffer that is read in place and of one that could be pushed."""

    @T.prim_func(mesh=T.Mesh((1, 4)))
    def main(A: T.Tensor((1, 4, 32, 32), "int32"), B: T.Tensor((1, 4, 32, 32), "int32"),
             C: T.Tensor((1, 4, 4), "int32")):
        with T.Kernel(1, 4, threads=64) as (r, c):
            x = T.alloc_shared((32, 32), "int32", layout=layout)
            y = T.alloc_shared((32, 32), "int32", layout=layout)
            z = T.alloc_shared((2, 2), "int32", layout="S[(2, 2) : (1, 2)]")
            w = T.alloc_shared((2, 2), "int32")
            T.copy(A[r, c, :, :], x)
            T.comm.all_reduce(x, y, axis="y")
            for i, j in T.Parallel(32, 32):
                B[r, c, i, j] = y[j, i]
            for i, j in T.Parallel(2, 2):
                z[i, j] = x[i, j] * 3
            T.comm.all_reduce(z, w, axis="y")
            for i, j in T.Parallel(2, 2):
                C[r, c, i * 2 + j] = w[i, j]

    return main


def exchange_arguments():
    a = np.random.default_rng(0).integers(-99, 100, (1, 4, 32, 32)).astype("int32")
    return [a, np.zeros_like(a), np.zeros((1, 4, 4), "int32")]


@pytest.mark.parametrize("arch, blocks", [("sm_90a", 8), ("sm_80", 1)])
@pytest.mark.parametrize("layout", [None, *MEMORY], ids=str)
def test_other_cores_find_what_a_layout_places(layout, arch, blocks, tmp_path):
    mesh, function = helve.Mesh((1, 4)), exchanged(layout)
    form = helve.testing.lowering_stages(function, mesh, target="cuda", arch=arch)[-1][1]
    wanted, got = exchange_arguments(), [aligned(array) for array in exchange_arguments()]
    helve.compile(function, target="interp", mesh=mesh)(*wanted)
    HostKernels([form], tmp_path, names=["main"], cluster_blocks=blocks).run("main", 4, dict(zip("ABC", got)))
    for g, w in zip(got, wanted, strict=True):
        assert np.array_equal(g, w)


# -- every kind of use ------------------------------------------------------------------------------------------------


def scanned(layout):
    @T.prim_func
    def main(A: T.Tensor((16, 64), "int32"), B: T.Tensor((16, 64), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=64) as b:
            x = T.alloc_fragment((16, 64), "int32", layout=layout)
            y = T.alloc_fragment((16, 64), "int32")
            T.copy(A, x)
            T.cumsum(x, y, dim=1)
            T.cumsum(x, x, dim=0, reverse=True)
            for i, j in T.Parallel(16, 64):
                if j < 60:
                    B[i, j] = x[i, j] + y[i, j]
            for i, j in T.Parallel(16, 64):
                T.atomic_add(C[i], x[i, j])

    return main


def scan_arguments():
    return [*two((16, 64), "int32")(), np.zeros(16, "int32")]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_scans_atomic_updates_and_guards(layout, tmp_path):
    check(scanned(layout), scan_arguments, tmp_path)


def test_layouts_of_cute(tmp_path):
    columns = helve.Layout.from_cute(helve.cute.Layout((32, 32), (1, 33)))
    function = transposed(columns)
    check(function, two((32, 32)), tmp_path)
    (place,) = compiled(function).layouts()
    assert place.layout == columns and columns.span(helve.layout.m) == 31 * 34 + 1


def test_layouts_are_written_in_the_kernel_too():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=64) as b:
            x = T.alloc_fragment((16, 64), "float32", layout=S[(2, 8, 2, 4, 8):(8@reg, 4@tx, 32@tx, 1@tx, 1@reg)])
            T.copy(A, x)
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, B)

    assert _core.structural_equal(main.function, twice(LAYOUTS[2]).function)[0]


def test_rows_that_cross_the_units_of_a_swizzle():
    """Six elements of a thread, side by side, begin in one unit of eight and end in the next, which is elsewhere."""
    @T.prim_func
    def main(A: T.Tensor((5, 6), "int64"), B: T.Tensor((5, 6), "int64")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((5, 6), "int64", layout="S[(5, 6) : (6, 1)] ^ Swizzle(1, 3, 1)")
            f = T.alloc_fragment((5, 6), "int64", layout="S[(5, 6) : (6@reg, 1@reg)] + R[32 : 1@tx]")
            T.copy(A, s)
            T.copy(s, f)
            T.copy(f, B)

    def arguments():
        return [np.arange(30).reshape(5, 6), np.zeros((5, 6), "int64")]

    helve.testing.check_stages(main, arguments, target="cuda", arch="sm_90a")
