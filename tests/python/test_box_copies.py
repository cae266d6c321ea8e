"""TMA tensor copies of sm_90: every stage, both targets, the text, what is chosen and why not.

The CPU runs the text with maps of its own: boxes come element by element, every other one as late as it may.
"""

import re

import numpy as np
import pytest
from copy_programs import arguments_of, check_on_the_cpu, check_text, misaligned, whole_numbers
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_compiles, needs_nvrtc
from test_async_copies import choices
from test_bulk_copies import ARCH, check_fences, random_boxes, thread_form

import helve
import helve.testing
from helve import T, _core

BY_MAP = "tma_tensor"


def mirrored_tiles(rows, columns, height, width, stages, dtype="float32", first=0):
    """Sums of mirrored tiles along the rows of a tensor of any size, the loop pipelined."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((height, width), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((height, width), dtype)
            s = T.alloc_fragment((height, width), "float32")
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(rows, height), num_stages=stages):
                T.copy(A[k * height:k * height + height, first:first + width], x, dispatch="tma_tensor")
                for i, j in T.Parallel(height, width):
                    s[i, j] = s[i, j] + T.cast(x[height - 1 - i, width - 1 - j], "float32")
            T.copy(s, B)

    return main


def doubled_tiles(rows, columns, height, width, dtype="float32"):
    """Tiles there, doubled in shared memory, and back; tiles at the ends have fewer elements."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, height), T.ceildiv(columns, width), threads=64) as (b, c):
            x = T.alloc_shared((height, width), dtype)
            T.copy(A[b * height:b * height + height, c * width:c * width + width], x, dispatch="tma_tensor")
            for i, j in T.Parallel(height, width):
                x[i, j] = x[i, j] + x[i, j]
            T.copy(x, B[b * height:b * height + height, c * width:c * width + width], dispatch="tma_tensor")

    return main


def transposed(rows, columns, height, width, dtype="float16"):
    """Columns of a tile are read from shared memory, which a map has swizzled."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((columns, rows), dtype)):
        with T.Kernel(T.ceildiv(rows, height), T.ceildiv(columns, width), threads=64) as (b, c):
            x = T.alloc_shared((height, width), dtype)
            T.copy(A[b * height:b * height + height, c * width:c * width + width], x, dispatch="tma_tensor")
            for j, i in T.Parallel(width, height):
                if (b * height + i < rows) and (c * width + j < columns):
                    B[c * width + j, b * height + i] = x[i, j]

    return main


def stages_in_flight(rows, columns, height, depth):
    """A ring of tiles; a row of tiles comes while earlier ones go back, each where it was."""
    tiles = -(-rows // height)

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((depth, height, columns), "float32")
            y = T.alloc_shared((height, columns), "float32")
            for k in T.serial(depth - 1):
                T.copy_async(A[k * height:k * height + height, :], x[k, :, :], dispatch="tma_tensor")
            for k in T.serial(tiles):
                T.copy_async(A[(k + depth - 1) * height:(k + depth - 1) * height + height, :],
                             x[(k + depth - 1) % depth, :, :], dispatch="tma_tensor")
                T.wait_async(pending=depth - 1)
                for i, j in T.Parallel(height, columns):
                    y[i, j] = x[k % depth, i, columns - 1 - j]
                T.copy(y, B[k * height:k * height + height, :], dispatch="tma_tensor")
            T.wait_async()

    return main


def many_dimensions(shape, begin, extents, dtype="int32"):
    """A box of a tensor of one to five dimensions goes to shared memory and, increased, to another tensor."""
    places = ", ".join(f"{b}:{b + n}" for b, n in zip(begin, extents))
    elements = ", ".join("ijklm"[:len(shape)])
    text = f'''
@T.prim_func
def main(A: T.Tensor({tuple(shape)}, "{dtype}"), B: T.Tensor({tuple(shape)}, "{dtype}")):
    with T.Kernel(1, threads=32):
        x = T.alloc_shared({tuple(extents)}, "{dtype}")
        T.copy_async(A[{places}], x, dispatch="tma_tensor")
        T.wait_async()
        for {elements} in T.Parallel({", ".join(map(str, extents))}):
            x[{elements}] = x[{elements}] + 1
        T.copy(x, B[{places}], dispatch="tma_tensor")
'''
    return helve.parse(text)


def large_tiles(rows, columns):
    """Boxes have 256 elements along a dimension at most."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int8"), B: T.Tensor((rows, columns), "int8")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((320, 32), "int8")
            y = T.alloc_shared((2, 512), "int8")
            T.copy(A[0:320, 0:32], x, dispatch="tma_tensor")
            T.copy(x, B[0:320, 0:32], dispatch="tma_tensor")
            T.copy(A[0:2, 32:544], y, dispatch="tma_tensor")
            T.copy(y, B[0:2, 32:544], dispatch="tma_tensor")

    return main


def strided(rows, columns, pitch):
    """Rows that lie `pitch` elements apart."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32", strides=(pitch, 1)), B: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared((8, 16), "float32")
            T.copy(A[1:9, 8:24], x, dispatch="tma_tensor")
            for i, j in T.Parallel(8, 16):
                B[i, j] = x[7 - i, j]

    return main


# name: (function, shapes of the arguments, their dtypes, blocks)
PROGRAMS = {
    "rank_1": (many_dimensions([40], [20], [32]), [(40,)] * 2, ["int32"] * 2, 1),
    "rank_3": (many_dimensions([5, 6, 12], [3, 1, 4], [4, 4, 8]), [(5, 6, 12)] * 2, ["int32"] * 2, 1),
    "rank_4": (many_dimensions([2, 3, 4, 16], [0, 2, 1, 0], [2, 2, 2, 16], "uint8"), [(2, 3, 4, 16)] * 2,
               ["uint8"] * 2, 1),
    "rank_5": (many_dimensions([2, 2, 3, 2, 8], [1, 0, 1, 0, 2], [2, 2, 2, 2, 8], "int64"), [(2, 2, 3, 2, 8)] * 2,
               ["int64"] * 2, 1),
    "large": (large_tiles(330, 544), [(330, 544)] * 2, ["int8"] * 2, 1),
    "ring": (stages_in_flight(30, 32, 8, 3), [(30, 32)] * 2, ["float32"] * 2, 1),
    "ring_short": (stages_in_flight(5, 64, 4, 4), [(5, 64)] * 2, ["float32"] * 2, 1),
    "past_the_end": (mirrored_tiles(20, 36, 8, 32, 2, first=8), [(20, 36), (8, 32)], ["float32"] * 2, 1),
    "wide_elements": (doubled_tiles(10, 12, 4, 8, "float64"), [(10, 12)] * 2, ["float64"] * 2, 6),
}
for rows in (0, 3, 8, 20, 48):
    for stages in (2, 3):
        PROGRAMS[f"mirrored_{rows}_{stages}"] = (
            mirrored_tiles(rows, 64, 8, 64, stages, "float16"), [(rows, 64), (8, 64)], ["float16", "float32"], 1)
for rows, columns in ((1, 8), (16, 32), (33, 72), (40, 40)):
    for height, width in ((16, 32), (8, 8)):
        blocks = -(-rows // height) * -(-columns // width)
        PROGRAMS[f"doubled_{rows}_{columns}_{height}"] = (
            doubled_tiles(rows, columns, height, width), [(rows, columns)] * 2, ["float32"] * 2, blocks)
for width in (16, 32, 64, 128):
    rows, columns = 70, 136
    PROGRAMS[f"transposed_{width}"] = (
        transposed(rows, columns, 64, width), [(rows, columns), (columns, rows)], ["float16"] * 2,
        -(-rows // 64) * -(-columns // width))


def arguments(name):
    return arguments_of(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_computes_the_same(name):
    function = PROGRAMS[name][0]
    helve.testing.check_stages(function, lambda: arguments(name), target="cuda", check="all", arch=ARCH)


@pytest.mark.parametrize("name", ["ring", "doubled_33_72_16", "transposed_64", "rank_3"])
def test_the_cpu_runs_programs_and_thread_forms(name):
    check_on_the_cpu(PROGRAMS[name], thread_form(PROGRAMS[name][0]))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    names = [name for name, (_, shapes, _, _) in PROGRAMS.items() if 0 not in shapes[0]]
    forms = [thread_form(PROGRAMS[name][0]) for name in names]
    return [HostKernels(forms, folder, prelude=prelude, names=names) for prelude in (False, True)]


@pytest.mark.parametrize("prelude", [False, True])
@pytest.mark.parametrize("name", [name for name, (_, shapes, _, _) in PROGRAMS.items() if 0 not in shapes[0]])
def test_the_text_computes_the_same(kernels, name, prelude):
    check_text(kernels[prelude], name, PROGRAMS[name])


def test_unaligned_kernels_need_no_maps(tmp_path):
    forms = [thread_form(function) for function, *_ in PROGRAMS.values()]
    unaligned = HostKernels(forms, tmp_path, names=list(PROGRAMS), unaligned=True)
    for name in PROGRAMS:
        assert all(kernel["maps"] == [] for kernel in unaligned.kernels[name])
        check_text(unaligned, name, PROGRAMS[name], misaligned)


@pytest.mark.parametrize("prelude", [False, True])
def test_rows_with_a_stride(tmp_path, prelude):
    memory, out = aligned(whole_numbers((9, 64))), aligned(np.zeros((8, 16), "float32"))
    a = memory[:, :40]
    HostKernels([thread_form(strided(9, 40, 64))], tmp_path, prelude=prelude).run("main", 1, {"A": a, "B": out})
    np.testing.assert_array_equal(out, a[1:9, 8:24][::-1])


@needs_nvrtc
@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize("name", ["rank_1", "rank_3", "rank_4", "rank_5", "large", "ring", "mirrored_20_3",
                                  "doubled_33_72_16", "transposed_64"])
def test_the_text_compiles(name, unaligned):
    form = thread_form(PROGRAMS[name][0])
    text, (kernel,) = _core.cuda_source(_core.narrow_accesses(form) if unaligned else form)
    assert_compiles(text, architectures=[ARCH])
    assert ("cp.async.bulk.tensor" in text) == (not unaligned)
    assert (16 in kernel["alignments"]) == (not unaligned)


@pytest.mark.parametrize("name", ["ring", "mirrored_20_2", "mirrored_48_3", "doubled_33_72_16", "transposed_64"])
def test_every_barrier_is_needed(name):
    lines = _core.print(thread_form(PROGRAMS[name][0])).split("\n")
    assert _core.unordered_accesses(helve.parse("\n".join(lines)).function) == []
    places = [n for n, line in enumerate(lines) if line.strip() == "T.sync_threads()"]
    assert places, "the program has no barrier to delete"
    for place in places:
        without = "\n".join(lines[:place] + lines[place + 1:])
        assert _core.unordered_accesses(helve.parse(without).function), f"line {place} is not missed in:\n{without}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_fence_is_needed(name):
    count = check_fences(PROGRAMS[name][0], lambda: arguments(name))
    assert count == (name.startswith(("rank", "ring", "doubled", "wide")))


def test_maps_of_a_kernel():
    def maps(name):
        return _core.cuda_source(thread_form(PROGRAMS[name][0]), prelude=False)[1][0]["maps"]

    assert maps("doubled_33_72_16") == [("A", [16, 32], 0), ("B", [16, 32], 0)]
    assert maps("large") == [("A", [160, 32], 0), ("B", [160, 32], 0), ("A", [1, 256], 0), ("B", [1, 256], 0)]
    assert maps("rank_3") == [("A", [4, 4, 8], 0), ("B", [4, 4, 8], 0)]
    assert maps("ring") == [("A", [8, 32], 0), ("B", [8, 32], 0)]


@pytest.mark.parametrize("width, bits", [(16, 1), (32, 2), (64, 3), (128, 0)])
def test_columns_are_read_where_a_map_swizzles(width, bits):
    """Rows of 32, 64 and 128 bytes can be swizzled by a map; longer ones keep their order."""
    form = thread_form(PROGRAMS[f"transposed_{width}"][0])
    assert re.findall(r"Swizzle\([^)]*\)", _core.print(form)) == ([f"Swizzle({bits}, 3, 3)"] if bits else [])
    assert _core.cuda_source(form)[1][0]["maps"][0][2] == (16 << bits if bits else 0)


@needs_nvrtc
def test_layouts_of_maps_and_others():
    def choice(layout, width=64):
        @T.prim_func
        def main(A: T.Tensor((100, 200), "float16"), B: T.Tensor((64, width), "float16")):
            with T.Kernel(1, threads=64):
                x = T.alloc_shared((64, width), "float16", layout=layout)
                T.copy_async(A[0:64, 0:width], x, dispatch="tma_tensor")
                T.wait_async()
                for i, j in T.Parallel(64, width):
                    B[i, j] = x[63 - i, j]

        return helve.compile(main, target="cuda", arch=ARCH)

    text = choice("S[(64, 64) : (64, 1)] ^ Swizzle(3, 3, 3)").source("cuda")
    assert re.search(r"helve_load_box\(x \+ 0, A_boxes, \{0, 0\}, 8192, ", text)
    with pytest.raises(helve.Error, match="'tma_tensor' declined: no map has the layout of 'x'"):
        choice("S[(64, 64) : (64, 1)] ^ Swizzle(2, 3, 4)")
    with pytest.raises(helve.Error, match="'tma_tensor' declined: no map has the layout of 'x'"):
        choice("S[(64, 64) : (72, 1)]")


def test_what_is_chosen_and_why_not():
    def tile(rows, columns, height, width, dtype="float32", first=0, pad=0, dispatch="", strides=None):
        strides = strides or (columns, 1)

        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype, strides=strides), B: T.Tensor((height, width), dtype)):
            with T.Kernel(1, threads=64):
                x = T.alloc_shared((height, width), dtype)
                T.copy_async(A[0:height, first:first + width], x, pad=pad, dispatch=dispatch)
                T.wait_async()
                for i, j in T.Parallel(height, width):
                    B[i, j] = x[height - 1 - i, j]

        return choices(main, "T.copy_async")

    def why(*args, **kwargs):
        ((schedule, declined),) = tile(*args, **kwargs)
        return schedule, declined.get("tma_tensor", "")

    threads = "the threads can make it in pieces of 16 bytes, which leaves the memory any layout"
    assert why(64, 64, 16, 32) == ("cp_async", threads)
    assert why(64, 64, 16, 32, first=1) == (
        "cp_async", "a box is not known to begin at a multiple of 16 bytes along the last dimension of 'A'")
    assert why(64, 64, 4, 32, first=1) == ("cp_async", "its boxes have 512 bytes, less than 1024")
    assert why(64, 66, 16, 32) == ("cp_async", "rows of 'A' are not known to begin at multiples of 16 bytes")
    assert why(64, 66, 16, 32, "float16") == (
        "cp_async", "rows of 'A' are not known to begin at multiples of 16 bytes")
    assert why(12, 64, 16, 32, pad=3) == ("registers", "it pads with another value than 0")
    # Runs of 16 bytes would end together with the tensor; a map knows where it ends.
    assert why(64, 62, 16, 32, first=32, strides=(64, 1)) == ("tma_tensor", "")
    assert why(64, 64, 4, 32, dispatch="tma_tensor") == ("tma_tensor", "")


def test_small_architectures_decline():
    with pytest.raises(helve.Error) as refused:
        thread_form(PROGRAMS["ring"][0], arch="sm_80")
    assert refused.value.code == "HV0801"
    assert "'tma_tensor' declined: it needs sm_90" in str(refused.value)


def test_a_kernel_has_room_for_so_many_maps():
    def with_boxes(count):
        copies = "\n".join(f'        T.copy(A[0:{h}, 0:32], x[0:{h}, 0:32], dispatch="tma_tensor")'
                           for h in range(1, count + 1))
        return helve.parse(f"""
@T.prim_func
def main(A: T.Tensor((256, 32), "float32"), B: T.Tensor((256, 32), "float32")):
    with T.Kernel(1, threads=64):
        x = T.alloc_shared((256, 32), "float32")
{copies}
        T.copy(x, B)
""")

    assert len(_core.cuda_source(thread_form(with_boxes(200)))[1][0]["maps"]) == 200
    with pytest.raises(helve.Error) as refused:
        helve.compile(with_boxes(201), target="cuda", arch=ARCH)
    assert refused.value.code == "HV0801"
    assert "'tma_tensor' declined: a kernel takes 200 tensor maps, one for each tensor and box" in str(refused.value)
    assert 'dispatch="cp_async"' in str(refused.value)


def test_only_tensors_of_the_call_have_maps():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        C = T.alloc_global((64, 64), "float32")
        with T.Kernel(1, threads=64):
            T.copy(A, C)
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((64, 64), "float32")
            T.copy(C, x, dispatch="tma_tensor")
            T.copy(x, B)

    with pytest.raises(helve.Error, match="'tma_tensor' declined: 'C' and 'x' are not a tensor of the call and shared"):
        helve.compile(main, target="cuda", arch=ARCH)


def test_random_boxes(tmp_path):
    """Those of the copies by pieces that a map takes: stages begin at multiples of 128 bytes, tensors are not empty."""
    cases = {}
    for seed in range(150):
        text, shape, dtype = random_boxes(seed)
        text = text.replace('dispatch="tma"', 'dispatch="tma_tensor"')
        try:
            cases[f"box_{seed}"] = (helve.parse(text), thread_form(helve.parse(text)), shape, dtype)
        except helve.Error as refused:
            assert refused.code == "HV0801", text
    assert len(cases) > 15, "maps take too few of them to be tested"
    kernels = HostKernels([form for _, form, *_ in cases.values()], tmp_path, prelude=True, names=list(cases))
    for name, (function, _, shape, dtype) in cases.items():
        wanted, given = ([place(whole_numbers(shape, dtype)) for _ in range(2)] for place in (np.copy, aligned))
        helve.testing.interpret(function, *wanted)
        kernels.run(name, 1, {"A": given[0], "B": given[1]})
        np.testing.assert_array_equal(given[1], wanted[1], err_msg=name)
