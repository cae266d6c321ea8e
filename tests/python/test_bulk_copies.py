"""TMA bulk copies of sm_90: every stage, both targets, the text of GPU kernels, what is chosen and why not.

The CPU runs the text too: every other TMA copy is done at once, the others as late as allowed.
"""

import re

import numpy as np
import pytest
from copy_programs import arguments_of, check_on_the_cpu, check_text, misaligned, whole_numbers
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_compiles, needs_nvrtc
from test_async_copies import choices, mirrored

import helve
import helve.testing
from helve import T, _core

ARCH = "sm_90a"


def thread_form(function, arch=ARCH):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


def rows_ahead(rows, columns, dtype="float32", stages=2, dispatch=""):
    """Rows reversed; some rows are copied while an earlier one is read."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((stages, columns), dtype)
            for k in T.serial(stages - 1):
                if k < rows:
                    T.copy_async(A[k, :], x[k, :], dispatch=dispatch)
            for k in T.serial(rows):
                if k + (stages - 1) < rows:
                    T.copy_async(A[k + (stages - 1), :], x[(k + (stages - 1)) % stages, :], dispatch=dispatch)
                    T.wait_async(pending=stages - 1)
                else:
                    T.wait_async()
                for i in T.Parallel(columns):
                    B[k, i] = x[k % stages, columns - 1 - i]

    return main


def tiles(rows, columns, height, width, stages, dtype="float32", pad=0, strides=None):
    """Sums of mirrored tiles of a tensor of any size, the loop pipelined."""
    strides = strides or (columns, 1)

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype, strides=strides), B: T.Tensor((height, width), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((height, width), dtype)
            s = T.alloc_fragment((height, width), "float32")
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(columns, width), num_stages=stages):
                T.copy(A[0:height, k * width:k * width + width], x, pad=pad, dispatch="tma")
                for i, j in T.Parallel(height, width):
                    s[i, j] = s[i, j] + T.cast(x[height - 1 - i, width - 1 - j], "float32")
            T.copy(s, B)

    return main


def line(size, width, stages, dtype="float32"):
    """Pieces of a line that may end anywhere, two at a time, added from both ends."""

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((width,), dtype)):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((width,), dtype)
            y = T.alloc_shared((width,), dtype)
            s = T.alloc_fragment((width,), dtype)
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(size, 2 * width), num_stages=stages):
                T.copy(A[2 * k * width:2 * k * width + width], x, dispatch="tma")
                T.copy(A[2 * k * width + width:2 * k * width + 2 * width], y, dispatch="tma")
                for i in T.Parallel(width):
                    s[i] = s[i] + x[width - 1 - i] - y[i]
            T.copy(s, B)

    return main


def at_once(rows, columns):
    """More copies in flight than there are barriers."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared((rows, columns), "float32")
            for k in T.serial(rows):
                T.copy_async(A[k, :], x[k, :], dispatch="tma")
            T.wait_async(pending=3)
            for k in T.serial(rows - 3):
                for i in T.Parallel(columns):
                    B[k, i] = x[k, columns - 1 - i]
            T.wait_async()
            for k in T.serial(3):
                for i in T.Parallel(columns):
                    B[rows - 3 + k, i] = x[rows - 3 + k, columns - 1 - i]

    return main


def copied_back(rows, columns, height):
    """Whole rows there, doubled in shared memory, and back, in blocks of rows of which the last has fewer."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, height), threads=64) as b:
            x = T.alloc_shared((height, columns), "float32")
            T.copy(A[b * height:b * height + height, :], x, dispatch="tma")
            for i, j in T.Parallel(height, columns):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, B[b * height:b * height + height, :], dispatch="tma")

    return main


def stores_in_flight(rows, columns):
    """Rows go back while the next ones are computed; a row's memory is used again when its store has read it."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((2, columns), "float32")
            for k in T.serial(rows):
                T.wait_async(pending=1)
                for i in T.Parallel(columns):
                    x[k % 2, i] = A[k, columns - 1 - i]
                T.copy_async(x[k % 2, :], B[k, :], dispatch="tma")
            T.wait_async()

    return main


def overwritten(rows, columns):
    """Rows come where threads have left others, of which some were read."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((columns,), "float32")
            for k in T.serial(rows):
                for i in T.Parallel(columns):
                    x[i] = A[k, i] + 1.0
                for i in T.Parallel(columns):
                    B[k, i] = x[columns - 1 - i]
                T.copy(A[k, :], x, dispatch="tma")
                for i in T.Parallel(columns):
                    B[k, i] = B[k, i] * x[columns - 1 - i]

    return main


def rows_that_return(rows, columns, row="k", then=(), copy="T.copy"):
    """Rows go back, each to a place that `row` says; statements of `then` follow each copy."""
    after = "".join(f"\n            {line}" for line in then)
    return helve.parse(f'''
@T.prim_func
def main(A: T.Tensor(({rows}, {columns}), "float32"), B: T.Tensor(({rows}, {columns}), "float32")):
    with T.Kernel(1, threads=64):
        x = T.alloc_shared((2, {columns}), "float32")
        for k in T.serial({rows}):
            for i in T.Parallel({columns}):
                x[k % 2, i] = A[k, {columns - 1} - i]
            {copy}(x[k % 2, :], B[{row}, :], dispatch="tma"){after}
        T.wait_async()
''')


# name: (function, shapes of the arguments, their dtypes, blocks)
PROGRAMS = {
    "ahead": (rows_ahead(5, 1024), [(5, 1024)] * 2, ["float32"] * 2, 1),
    "ahead_of_three": (rows_ahead(7, 1024, "float16", 4), [(7, 1024)] * 2, ["float16"] * 2, 1),
    "ahead_of_one_row": (rows_ahead(1, 512, stages=3), [(1, 512)] * 2, ["float32"] * 2, 1),
    "ahead_small": (rows_ahead(6, 12, stages=3, dispatch="tma"), [(6, 12)] * 2, ["float32"] * 2, 1),
    "at_once": (at_once(40, 16), [(40, 16)] * 2, ["float32"] * 2, 1),
    "overwritten": (overwritten(3, 128), [(3, 128)] * 2, ["float32"] * 2, 1),
    **{f"stored_{name}": (rows_that_return(4, 64, *how), [(4, 64)] * 2, ["float32"] * 2, 1) for name, how in {
        "again": ("k // 2",), "in_one_place": ("0",), "apart": ("3 - k",),
        "later": ("3 - k", ["T.wait_async(pending=1)"], "T.copy_async"),
        "and_read": ("k", ["A[(k + 1) % 4, 0] = B[k, 1] + B[k // 2, 2]"]),
        "and_written": ("k", ["B[k, 3] = B[k, 3] + 1.0"]),
    }.items()},
    "stores_in_flight": (stores_in_flight(5, 96), [(5, 96)] * 2, ["float32"] * 2, 1),
    "tiles_bytes": (tiles(4, 160, 4, 32, 3, "int8"), [(4, 160), (4, 32)], ["int8", "float32"], 1),
    "tiles_missing_rows": (tiles(3, 100, 4, 32, 3), [(3, 100), (4, 32)], ["float32"] * 2, 1),
    "tiles_padded": (tiles(3, 100, 4, 32, 2, pad=2), [(3, 100), (4, 32)], ["float32"] * 2, 1),
    "line_halves": (line(1003, 64, 3, "float16"), [(1003,), (64,)], ["float16"] * 2, 1),
}
for columns in (0, 20, 32, 64, 96, 100, 228):
    for stages in (2, 3, 4):
        PROGRAMS[f"tiles_{columns}_{stages}"] = (
            tiles(4, columns, 4, 32, stages), [(4, columns), (4, 32)], ["float32"] * 2, 1)
for size in (0, 3, 64, 65, 127, 130, 250, 511):
    PROGRAMS[f"line_{size}"] = (line(size, 32, 3), [(size,), (32,)], ["float32"] * 2, 1)
for rows in (1, 4, 6):
    PROGRAMS[f"copied_back_{rows}"] = (copied_back(rows, 60, 4), [(rows, 60)] * 2, ["float32"] * 2, -(-rows // 4))


def arguments(name):
    return arguments_of(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_computes_the_same(name):
    function = PROGRAMS[name][0]
    helve.testing.check_stages(function, lambda: arguments(name), target="cuda", check="all", arch=ARCH)
    smallest = min(np.prod(shape) for shape in PROGRAMS[name][1])
    assert ("T.cp_async_bulk(" in _core.print(thread_form(function))) == (smallest > 3)


@pytest.mark.parametrize("name", ["ahead", "tiles_100_3", "line_250", "copied_back_6", "stores_in_flight"])
def test_the_cpu_runs_programs_and_thread_forms(name):
    check_on_the_cpu(PROGRAMS[name], thread_form(PROGRAMS[name][0]))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    forms = [thread_form(function) for function, *_ in PROGRAMS.values()]
    return [HostKernels(forms, folder, prelude=prelude, names=list(PROGRAMS)) for prelude in (False, True)]


@pytest.mark.parametrize("prelude", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_computes_the_same(kernels, name, prelude):
    check_text(kernels[prelude], name, PROGRAMS[name])


@pytest.mark.parametrize("prelude", [False, True])
def test_unaligned_kernels_copy_misaligned_tensors(tmp_path, prelude):
    names = ["ahead", "tiles_100_3", "line_250", "copied_back_6", "stores_in_flight"]
    forms = [thread_form(PROGRAMS[name][0]) for name in names]
    unaligned = HostKernels(forms, tmp_path, prelude=prelude, names=names, unaligned=True)
    for name in names:
        check_text(unaligned, name, PROGRAMS[name], misaligned)


@needs_nvrtc
@pytest.mark.parametrize("name", ["ahead", "ahead_of_three", "at_once", "tiles_100_3", "tiles_bytes", "line_250",
                                  "copied_back_6", "stores_in_flight"])
@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_compiles(name, unaligned):
    form = thread_form(PROGRAMS[name][0])
    text, (kernel,) = _core.cuda_source(_core.narrow_accesses(form) if unaligned else form)
    assert_compiles(text, architectures=[ARCH])
    assert ("cp.async.bulk" in text) == (not unaligned)
    assert (16 in kernel["alignments"]) == (not unaligned)


def without_each(form, statement):
    """Texts of the program, each without one of these statements."""
    lines = _core.print(form).split("\n")
    places = [n for n, line in enumerate(lines) if line.strip() == statement]
    return ["\n".join(lines[:place] + lines[place + 1:]) for place in places]


@pytest.mark.parametrize("name", ["ahead", "ahead_of_three", "tiles_64_2", "tiles_228_4", "line_250", "copied_back_6",
                                  "stores_in_flight", "at_once"])
def test_every_barrier_is_needed(name):
    lines = _core.print(thread_form(PROGRAMS[name][0])).split("\n")
    assert _core.unordered_accesses(helve.parse("\n".join(lines)).function) == []
    places = [n for n, line in enumerate(lines) if line.strip() == "T.sync_threads()"]
    assert places, "the program has no barrier to delete"
    for place in places:
        without = "\n".join(lines[:place] + lines[place + 1:])
        assert _core.unordered_accesses(helve.parse(without).function), f"line {place} is not missed in:\n{without}"


def test_the_interpreter_needs_every_barrier():
    """TMA is none of the threads: a barrier orders what it does with what they do."""
    for name in ("ahead", "tiles_64_2", "line_250", "copied_back_6", "stores_in_flight"):
        for text in without_each(thread_form(PROGRAMS[name][0]), "T.sync_threads()"):
            with pytest.raises(helve.Error) as refused:
                helve.testing.interpret(helve.parse(text).function, *arguments(name), check="barriers")
            assert refused.value.code == "HV0705", name


# How many of a program's barriers have fences, and how many barriers there are.
FENCES = {"stores_in_flight": (1, 2), "copied_back_4": (1, 2), "overwritten": (1, 4), "ahead": (0, 2),
          "tiles_96_3": (0, 1), "tiles_100_3": (0, 1), "line_250": (0, 1), "at_once": (0, 2)}


@pytest.mark.parametrize("name", FENCES)
def test_barriers_have_fences_where_tma_accesses_what_threads_wrote(name):
    """Memory that is read before TMA overwrites it needs only a barrier, and so does what no TMA copy follows."""
    text, _ = _core.cuda_source(thread_form(PROGRAMS[name][0]), prelude=False)
    fenced = re.findall(r"helve_fence_async\(\);\s*__syncthreads\(\);", text)
    assert text.count("helve_fence_async") == len(fenced)
    assert (len(fenced), text.count("__syncthreads();")) == FENCES[name]


def without_places(form):
    """The program without the offsets of its shared memory, which depend on the order of allocations."""
    return re.sub(r", offset=\d+", "", _core.print(form))


def check_fences(function, arguments, mesh=None):
    """Without any fence of the program the interpreter refuses it, and the pass finds it again."""
    form = helve.testing.lowering_stages(function, mesh, target="cuda", arch=ARCH)[-1][1]
    helve.testing.interpret(form, *arguments(), check="fences")
    texts = without_each(form, "T.fence_async()")
    for text in texts:
        with pytest.raises(helve.Error) as refused:
            helve.testing.interpret(helve.parse(text).function, *arguments(), check="fences")
        assert refused.value.code == "HV0709"
        again = helve.testing.lowering_stages(helve.parse(text), mesh, target="cuda", arch=ARCH)[-1][1]
        assert without_places(again) == without_places(form)
    return len(texts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_fence_is_needed(name):
    assert check_fences(PROGRAMS[name][0], lambda: arguments(name)) == FENCES.get(name, (0,))[0] or name not in FENCES


# Do the program's waits for stores end when the sources have been read? Else what is stored is accessed later.
RELAXED = {"stores_in_flight": True, "copied_back_4": True, "copied_back_6": True, "stored_apart": True,
           "stored_later": True, "stored_again": False, "stored_in_one_place": False, "stored_and_read": False,
           "stored_and_written": False}


@pytest.mark.parametrize("name", RELAXED)
def test_waits_for_stores_end_early_where_nothing_accesses_what_they_store(name):
    form = thread_form(PROGRAMS[name][0])
    text = _core.print(form)
    assert ("sources=True" in text) == RELAXED[name]
    code, _ = _core.cuda_source(form, prelude=False)
    assert ("helve_wait_sources<" in code, "helve_wait_stores<" in code) == (RELAXED[name], not RELAXED[name])


@pytest.mark.parametrize("name", [name for name, relaxed in RELAXED.items() if not relaxed])
def test_the_interpreter_judges_waits_that_end_early(name):
    """What a store has written is not there after a wait for its source alone."""
    text = _core.print(thread_form(PROGRAMS[name][0]))
    early = text.replace("T.wait_bulk()", "T.wait_bulk(sources=True)")
    assert early != text
    with pytest.raises(helve.Error) as refused:
        helve.testing.interpret(helve.parse(early).function, *arguments(name), check="fences")
    assert refused.value.code == "HV0708"


def test_a_later_wait_makes_what_was_stored_visible():
    text = _core.print(thread_form(PROGRAMS["stored_and_read"][0]))
    early = re.sub(r"( *)T\.wait_bulk\(\)", r"\1T.wait_bulk(sources=True)\n\1T.wait_bulk()", text)
    assert "sources=True" in early
    helve.testing.interpret(helve.parse(early).function, *arguments("stored_and_read"), check="fences")
    (proof,) = [p for p in helve.compile(helve.parse(early), target="interp").proofs() if "complete" in p.question]
    assert proof.verdict == "proved"


def test_fences_of_a_program_are_replaced():
    form = _core.print(thread_form(PROGRAMS["stores_in_flight"][0]))
    more = re.sub(r"( *)T\.sync_threads\(\)", r"\1T.fence_async()\n\1T.sync_threads()", form)
    assert more.count("T.fence_async()") > form.count("T.fence_async()")
    assert _core.print(thread_form(helve.parse(more))) == form


def test_fences_before_collectives_serve_the_copies_of_other_cores():
    mesh = helve.Mesh((1, 2))

    @T.prim_func(mesh=T.Mesh((1, 2)))
    def main(A: T.Tensor((2, 64), "float32"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, 2, threads=64) as (r, c):
            x = T.alloc_shared((64,), "float32")
            for i in T.Parallel(64):
                A[c, i] = A[c, i] * 2.0
            T.comm.barrier()
            T.copy(A[1 - c, :], x, dispatch="tma")
            for i in T.Parallel(64):
                B[c, i] = x[63 - i]

    def make():
        return [whole_numbers((2, 64)), np.zeros((2, 64), "float32")]

    helve.testing.check_stages(main, make, mesh=mesh, target="cuda", arch=ARCH)
    assert check_fences(main, make, mesh) == 1


def test_the_text():
    text, (kernel,) = _core.cuda_source(thread_form(PROGRAMS["ahead"][0]), prelude=False)
    assert "helve_copy_bulk(x + (k + 1) % 2 * 1024, A + (k * 1024 + 1024), 4096, arrivals + begun % 16);" in text
    assert kernel["shared_bytes"] == 2 * 4096 + 128
    # Rows that follow each other on both sides are one piece, and tiles of wider rows a loop over rows.
    whole, _ = _core.cuda_source(thread_form(PROGRAMS["copied_back_4"][0]), prelude=False)
    assert "helve_copy_bulk(x + 0, A + 0, 960, arrivals + begun % 16);" in whole
    assert "helve_store_bulk(B + 0, x + 0, 960);" in whole
    rows, _ = _core.cuda_source(thread_form(PROGRAMS["tiles_64_2"][0]), prelude=False)
    assert "128, arrivals + begun % 16);" in rows


def test_what_is_chosen_and_why_not():
    def of(function, operation="T.copy_async"):
        return {(schedule, declined.get("tma", "")) for schedule, declined in choices(function, operation)}

    assert of(rows_ahead(4, 1024)) == {("tma", "")}
    assert of(rows_ahead(4, 508)) == {("cp_async", "its pieces have 2032 bytes, less than 2048")}
    assert of(rows_ahead(4, 12, dispatch="tma")) == {("tma", "")}
    # The first row is aligned, whatever the rows' length.
    assert of(rows_ahead(4, 1001)) == {
        ("tma", ""), ("cp_async", "an address in 'A' is not known to be a multiple of 16 bytes")}
    assert of(rows_ahead(4, 1024, "float64")) == {("tma", "")}
    assert choices(mirrored(96, 3), "T.Pipelined") == [("asynchronous copies", {})]


def test_small_architectures_decline():
    text = _core.print(thread_form(rows_ahead(4, 1024), arch="sm_80"))
    assert "T.cp_async_bulk(" not in text and "T.cp_async(" in text
    with pytest.raises(helve.Error) as refused:
        thread_form(rows_ahead(4, 1024, dispatch="tma"), arch="sm_80")
    assert refused.value.code == "HV0801"
    assert "'tma' declined: it needs sm_90" in str(refused.value)
    assert "cp_async" not in str(refused.value)  # was not asked


@needs_nvrtc
def test_a_single_element_is_copied_by_a_thread():
    """The loop over one run is simplified away; what is left is not a TMA copy."""
    @T.prim_func
    def first(A: T.Tensor((5, 7), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((4,), "float32")
            T.clear(x)
            for k in T.serial(4):
                T.copy_async(A[k, k : k + 1], x[k : k + 1])
            T.wait_async()
            T.copy(x, B)

    text = helve.compile(first, target="cuda", arch="sm_90a").source("cuda")
    assert "helve_copy_bulk" not in text and "helve_copy_async" in text
    helve.testing.check_stages(first, lambda: [np.arange(35, dtype="float32").reshape(5, 7), np.zeros(4, "float32")],
                               target="cuda")


@needs_nvrtc
def test_tensors_that_cores_exchange_are_copied_by_threads():
    mesh = helve.Mesh((2,), ("x",))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 1024), "float32"), B: T.Tensor((2, 1024), "float32")):
        with T.Kernel(2, threads=64) as c:
            X = T.alloc_shared((1024,), "float32")
            Y = T.alloc_shared((1024,), "float32")
            Z = T.alloc_shared((1024,), "float32")
            T.copy_async(A[c, :], Y)
            T.copy_async(A[1 - c, :], X)
            T.wait_async()
            T.comm.all_reduce(Y, Z, op="sum", axis="x")
            for i in T.Parallel(1024):
                B[c, i] = Z[i] + X[1023 - i]

    make = lambda: [whole_numbers((2, 1024)), np.zeros((2, 1024), "float32")]  # noqa: E731
    helve.testing.check_stages(main, make, mesh=mesh, target="cuda", arch=ARCH)
    chosen = helve.compile(main, target="cuda", arch=ARCH).schedules()
    assert [(c.schedule, dict(c.declined)) for c in chosen if c.operation == "T.copy_async"] == [
        ("cp_async", {"tma": "cores exchange 'Y'", "tma_tensor": "cores exchange 'Y'"}), ("tma", {})]


def rows_of_clusters(rows, columns, half):
    """Rows times their sums; two blocks share a row, and each brings its part of the next while it works on one."""

    @T.prim_func(mesh=T.Mesh((2, 2)))
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(2, 2, threads=64) as (b, s):
            ring = T.alloc_shared((2, half), "float32")
            x = T.alloc_fragment((half,), "float32")
            mine = T.alloc_shared((1,), "float32")
            ours = T.alloc_shared((1,), "float32")
            T.copy_async(A[b, s * half:s * half + half], ring[0, :], dispatch="tma")
            for step in T.serial(T.ceildiv(rows, 2)):
                T.copy_async(A[step * 2 + b + 2, s * half:s * half + half], ring[(step + 1) % 2, :], dispatch="tma")
                T.wait_async(pending=1)
                T.copy(ring[step % 2, :], x)
                T.reduce_sum(x, mine, dim=0)
                T.comm.all_reduce(mine, ours, axis="y")
                if step * 2 + b < rows:
                    for j in T.Parallel(half):
                        if s * half + j < columns:
                            B[step * 2 + b, s * half + j] = x[j] * ours[0]
            T.wait_async()

    return main


@needs_nvrtc
def test_blocks_of_a_cluster_bring_their_parts_of_the_next_row(tmp_path):
    shapes = [(5, 192, 96), (4, 200, 104), (3, 196, 128), (1, 64, 64)]
    names = ["_".join(map(str, shape)) for shape in shapes]
    mesh = helve.Mesh((2, 2))

    def make(rows, columns, _):
        return [whole_numbers((rows, columns)), np.zeros((rows, columns), "float32")]

    forms = []
    for shape in shapes:
        function = rows_of_clusters(*shape)
        helve.testing.check_stages(function, lambda shape=shape: make(*shape), mesh=mesh, target="cuda", arch=ARCH)
        forms.append(helve.testing.lowering_stages(function, mesh, target="cuda", arch=ARCH)[-1][1])
    kernels = HostKernels(forms, tmp_path, names=[f"rows_{name}" for name in names])
    for shape, name, form in zip(shapes, names, forms):
        a, b = (aligned(array) for array in make(*shape))
        kernels.run(f"rows_{name}", 4, {"A": a, "B": b})
        np.testing.assert_array_equal(b, a * a.sum(axis=1, keepdims=True))
        assert_compiles(_core.cuda_source(form, cluster_blocks=8)[0], architectures=[ARCH])


def random_boxes(seed):
    """A box of a tensor goes to shared memory and, changed, to another tensor; some lie past the ends. Text, shape."""
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float16", "int8"]))
    unit = 16 // np.dtype(dtype).itemsize
    rank, turns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    last = rank - 1
    shape = [int(rng.integers(1, 7)) for _ in range(last)] + [int(rng.integers(1, 7)) * unit]
    if rank == 1:
        shape[0] += int(rng.integers(0, unit))
    box = [int(rng.integers(1, extent + 2)) for extent in shape[:last]] + [int(rng.integers(1, 5)) * unit]
    places = []
    for d, extent in enumerate(shape):
        scale = unit if d == last else 1
        begin = f"k * {int(rng.integers(0, 3)) * scale} + {int(rng.integers(0, max(1, extent // scale))) * scale}"
        place = f"{begin}:{begin} + {box[d]}"
        if d < last and rng.random() < 0.3:
            place, box[d] = begin, 0
        places.append(place)
    kept = [extent for extent in box if extent]
    region, memory = ", ".join(places), ", ".join(map(str, kept))
    names = ", ".join("ijl"[: len(kept)])
    tensor = f'T.Tensor(({", ".join(map(str, shape))},), "{dtype}")'
    return f"""
@T.prim_func
def main(A: {tensor}, B: {tensor}):
    with T.Kernel(1, threads=64):
        X = T.alloc_shared((2, {memory},), "{dtype}")
        for k in T.serial({turns}):
            T.copy(A[{region}], X[k % 2, {", ".join(":" * len(kept))}], dispatch="tma")
            for {names} in T.Parallel({memory}):
                X[k % 2, {names}] = X[k % 2, {names}] + T.cast(k + 1, "{dtype}")
            T.copy(X[k % 2, {", ".join(":" * len(kept))}], B[{region}], dispatch="tma")
""", shape, dtype


def test_random_boxes(tmp_path):
    cases = {}
    for seed in range(60):
        text, shape, dtype = random_boxes(seed)
        try:
            cases[f"box_{seed}"] = (helve.parse(text), thread_form(helve.parse(text)), shape, dtype)
        except helve.Error as refused:
            assert refused.code == "HV0801", text
    assert len(cases) > 30, "too few of them become TMA copies"
    kernels = HostKernels([form for _, form, *_ in cases.values()], tmp_path, prelude=True, names=list(cases))
    for name, (function, _, shape, dtype) in cases.items():
        wanted, given = ([place(whole_numbers(shape, dtype)) for _ in range(2)] for place in (np.copy, aligned))
        helve.testing.interpret(function, *wanted)
        kernels.run(name, 1, {"A": given[0], "B": given[1]})
        np.testing.assert_array_equal(given[1], wanted[1], err_msg=name)
