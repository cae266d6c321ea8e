"""Asynchronous copies and pipelined loops: every stage, both targets, the text of GPU kernels and what is chosen when.

The CPU runs the text too: of a thread with an even number copies are done as late as they may be, of others at once.
"""

import re
import warnings

import numpy as np
import pytest
from copy_programs import arguments_of, check_on_the_cpu, check_text, misaligned, whole_numbers
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import compiled, thread_form
from undispatched import undispatched

import helve
import helve.kernels
import helve.testing
from helve import T, _core

ROWS, TILE = 4, 32


def by_hand(n, dtype="float32"):
    """Sums of mirrored tiles; a tile is copied while the one before is added."""

    @T.prim_func
    def main(A: T.Tensor((ROWS, n * TILE), dtype), B: T.Tensor((ROWS, TILE), dtype)):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((2, ROWS, TILE), dtype)
            s = T.alloc_fragment((ROWS, TILE), dtype)
            T.clear(s)
            T.copy_async(A[:, 0:TILE], x[0, :, :])
            for k in T.serial(n):
                T.wait_async()
                if k + 1 < n:
                    T.copy_async(A[:, (k + 1) * TILE:(k + 2) * TILE], x[(k + 1) % 2, :, :])
                for i, j in T.Parallel(ROWS, TILE):
                    s[i, j] = s[i, j] + x[k % 2, ROWS - 1 - i, TILE - 1 - j]
            T.copy(s, B)

    return main


def mirrored(columns, stages, dtype="float32", pad=0, rows=ROWS):
    """The same sums over any number of columns, the loop pipelined."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((ROWS, TILE), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((ROWS, TILE), dtype)
            s = T.alloc_fragment((ROWS, TILE), "float32")
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(columns, TILE), num_stages=stages):
                T.copy(A[0:ROWS, k * TILE:k * TILE + TILE], x, pad=pad)
                for i, j in T.Parallel(ROWS, TILE):
                    s[i, j] = s[i, j] + T.cast(x[ROWS - 1 - i, TILE - 1 - j], "float32")
            T.copy(s, B)

    return main


def products(m, n, k, stages, dtype="float32", tile=16):
    """Two copies an iteration, one of them of a dimension that may end anywhere."""

    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, tile), T.ceildiv(n, tile), threads=64) as (by, bx):
            a = T.alloc_shared((tile, tile), dtype)
            b = T.alloc_shared((tile, tile), dtype)
            c = T.alloc_fragment((tile, tile), "float32")
            T.clear(c)
            for t in T.Pipelined(T.ceildiv(k, tile), num_stages=stages):
                T.copy(A[by * tile:by * tile + tile, t * tile:t * tile + tile], a)
                T.copy(B[t * tile:t * tile + tile, bx * tile:bx * tile + tile], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * tile:by * tile + tile, bx * tile:bx * tile + tile])

    return main


def operations(function):
    """How often each operation stands in the thread form."""
    text = _core.print(thread_form(function))
    return {name: text.count(f"T.{name}(") for name in ("cp_async", "commit_async", "wait_async", "sync_threads")}


N = T.dyn("N")
K = T.dyn("K")

# name: (function, shapes of the arguments, their dtypes, blocks)
PROGRAMS = {
    "by_hand": (by_hand(4), [(ROWS, 128), (ROWS, TILE)], ["float32", "float32"], 1),
    "by_hand_halves": (by_hand(3, "float16"), [(ROWS, 96), (ROWS, TILE)], ["float16", "float16"], 1),
}
for columns in (0, 20, 32, 64, 96, 100, 101, 227):
    for stages in (1, 2, 3, 4):
        PROGRAMS[f"mirrored_{columns}_{stages}"] = (
            mirrored(columns, stages), [(ROWS, columns), (ROWS, TILE)], ["float32", "float32"], 1)
PROGRAMS["mirrored_missing_rows"] = (mirrored(100, 3, rows=3), [(3, 100), (ROWS, TILE)], ["float32", "float32"], 1)
PROGRAMS["mirrored_bytes"] = (mirrored(160, 3, "int8"), [(ROWS, 160), (ROWS, TILE)], ["int8", "float32"], 1)
PROGRAMS["mirrored_halves"] = (mirrored(136, 4, "float16"), [(ROWS, 136), (ROWS, TILE)], ["float16", "float32"], 1)
PROGRAMS["mirrored_padded"] = (mirrored(100, 3, pad=2), [(ROWS, 100), (ROWS, TILE)], ["float32", "float32"], 1)
for size in (0, 7, 40, 100):
    PROGRAMS[f"any_{size}"] = (mirrored(N, 3), [(ROWS, size), (ROWS, TILE)], ["float32", "float32"], 1)
PROGRAMS["products"] = (products(20, 30, 50, 3), [(20, 50), (50, 30), (20, 30)], ["float32"] * 3, 4)
PROGRAMS["products_any"] = (products(20, 30, K, 2), [(20, 41), (41, 30), (20, 30)], ["float32"] * 3, 4)


def arguments(name):
    return arguments_of(PROGRAMS[name])


def extents(name):
    size = PROGRAMS[name][1][0][1]
    return {"N": size, "K": size}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_computes_the_same(name):
    function = PROGRAMS[name][0]
    helve.testing.check_stages(function, lambda: arguments(name), target="cuda", check="all")
    helve.testing.check_stages(function, lambda: arguments(name))


@pytest.mark.parametrize("name", ["by_hand", "mirrored_100_3", "any_40", "products"])
def test_the_cpu_runs_programs_and_thread_forms(name):
    check_on_the_cpu(PROGRAMS[name], thread_form(PROGRAMS[name][0]))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(function) for function, *_ in PROGRAMS.values()]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=list(PROGRAMS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_computes_the_same(kernels, name):
    check_text(kernels, name, PROGRAMS[name], scalars=extents(name))


@pytest.mark.parametrize("prelude", [False, True])
def test_unaligned_kernels_copy_misaligned_tensors(tmp_path, prelude):
    names = ["by_hand", "mirrored_100_3", "mirrored_halves", "products"]
    forms = [thread_form(PROGRAMS[name][0]) for name in names]
    unaligned = HostKernels(forms, tmp_path, prelude=prelude, names=names, unaligned=True)
    for name in names:
        check_text(unaligned, name, PROGRAMS[name], misaligned, extents(name))


@needs_nvrtc
def test_the_unaligned_text_compiles():
    assert_compiles(_core.cuda_source(_core.narrow_accesses(thread_form(PROGRAMS["mirrored_100_3"][0])))[0])


def test_the_prelude_computes_the_same(tmp_path):
    names = ["mirrored_100_3", "mirrored_101_2", "mirrored_halves"]
    kernels = HostKernels([thread_form(PROGRAMS[name][0]) for name in names], tmp_path, prelude=True, names=names)
    for name in names:
        test_the_text_computes_the_same(kernels, name)


@needs_nvrtc
@pytest.mark.parametrize("name", ["by_hand", "by_hand_halves", "mirrored_101_2", "mirrored_227_4", "mirrored_bytes",
                                  "any_40", "products", "products_any"])
def test_the_text_compiles(name):
    assert_compiles(_core.cuda_source(thread_form(PROGRAMS[name][0]))[0])


@pytest.mark.parametrize("columns, width", [(96, "copy_async<16>"), (98, "copy_async<8>"), (101, "copy_async<4>")])
def test_the_widest_aligned_pieces_move(columns, width):
    text, (kernel,) = _core.cuda_source(thread_form(mirrored(columns, 2)), prelude=False)
    assert text.count("helve_copy_async<") == 2 and text.count(f"helve_{width}") == 2
    assert kernel["alignments"][kernel["buffers"].index("A")] == int(width.split("<")[1][:-1])


def test_pieces_past_the_end_are_filled_with_zeros():
    inside, _ = _core.cuda_source(thread_form(mirrored(96, 2)), prelude=False)
    across, _ = _core.cuda_source(thread_form(mirrored(100, 2)), prelude=False)
    guarded = r"helve_copy_async<16>\(x \+ \(.*\), A \+ \(.*\), k \* 8 \+ tx % 8 < 17\);"
    assert not re.search(guarded.replace("17", r"\d+"), inside)
    assert re.search(guarded, across)


@pytest.mark.parametrize("name", ["by_hand", "mirrored_64_2", "mirrored_227_4", "mirrored_101_3", "any_40", "products"])
def test_every_barrier_is_needed(name):
    text = _core.print(thread_form(PROGRAMS[name][0]))
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if line.strip() == "T.sync_threads()"]
    assert places, "the program has no barrier to delete"
    assert _core.unordered_accesses(helve.parse(text).function) == []
    for place in places:
        without = "\n".join(lines[:place] + lines[place + 1:])
        assert _core.unordered_accesses(helve.parse(without).function), f"line {place} is not missed in:\n{without}"


def test_a_barrier_before_the_wait_is_none():
    text = _core.print(thread_form(mirrored(96, 2)))
    assert _core.unordered_accesses(helve.parse(text).function) == []
    wait, barrier = "T.wait_async()\n            T.sync_threads()", "T.sync_threads()\n            T.wait_async()"
    assert wait in text
    assert _core.unordered_accesses(helve.parse(text.replace(wait, barrier)).function)


def test_one_barrier_an_iteration():
    for stages in (2, 3, 4):
        assert operations(mirrored(320, stages))["sync_threads"] == 1


def choices(function, operation):
    return [(choice.schedule, dict(choice.declined)) for choice in compiled(function).schedules()
            if choice.operation == operation]


def guarded_copy(columns):
    @T.prim_func
    def main(A: T.Tensor((ROWS, columns), "float32"), B: T.Tensor((ROWS, TILE), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((ROWS, TILE), "float32")
            s = T.alloc_fragment((ROWS, TILE), "float32")
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(columns, TILE), num_stages=2):
                if k % 2 == 0:
                    T.copy(A[0:ROWS, k * TILE:k * TILE + TILE], x)
                for i, j in T.Parallel(ROWS, TILE):
                    s[i, j] = s[i, j] + x[i, TILE - 1 - j]
            T.copy(s, B)

    return main


def test_what_is_chosen_and_why_not():
    assert choices(mirrored(96, 3), "T.Pipelined") == [("asynchronous copies", {})]
    assert choices(mirrored(96, 1), "T.Pipelined") == []
    assert choices(mirrored(96, 3), "T.copy_async") == [
        ("cp_async", {"tma": "its pieces have 128 bytes, less than 2048",
                      "tma_tensor": "its boxes have 512 bytes, less than 1024"})] * 2
    assert choices(mirrored(101, 2, "float16"), "T.Pipelined") == [("serial", {
        "copy to 'x'": "'cp_async' declined: an address in 'A' is not known to be a multiple of 4 bytes"})]
    assert choices(mirrored(100, 2, pad=2), "T.Pipelined") == [("serial", {
        "copy to 'x'": "'cp_async' declined: elements past the end of 'A' are not filled with 0"})]
    assert choices(guarded_copy(96), "T.Pipelined") == [("serial", {
        "copy to 'x'": "it is under a condition or in a loop of the body"})]
    assert choices(mirrored(96, 400), "T.Pipelined") == [("asynchronous copies", {})]
    assert choices(mirrored(96, 500), "T.Pipelined") == [("serial", {
        "copy to 'x'": "with 500 stages of it the kernel's buffers need 256000 bytes of shared memory, and 232448 are "
                       "there for them"})]


def loads():
    @T.prim_func
    def main(A: T.Tensor((ROWS, TILE), "float32"), B: T.Tensor((TILE,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((TILE,), "float32")
            T.clear(s)
            for k in T.Pipelined(ROWS, num_stages=2):
                for j in T.Parallel(TILE):
                    s[j] += A[k, j]
            T.copy(s, B)

    return main


def warned(function):
    """What a compile warns of: the codes, and the line and the notes of the first."""
    found = _core.lowering_warnings(function.function, target="cuda", arch="sm_90a")
    return [each.code for each in found], found and (found[0].span.line, [note.text for note in found[0].notes])


def test_a_loop_without_overlap_is_a_warning():
    """Only where no version of the kernel overlaps anything, and the program itself asks for stages."""
    codes, (line, notes) = warned(mirrored(101, 2, "float16"))
    assert codes == ["HV0930"] and line == mirrored.__code__.co_firstlineno + 9
    assert notes == ["the copy to 'x': 'cp_async' declined: an address in 'A' is not known to be a multiple of 4 bytes"]
    assert warned(guarded_copy(96))[1][1] == ["the copy to 'x': it is under a condition or in a loop of the body"]
    assert warned(mirrored(96, 500))[0] == ["HV0930"]
    reason = "no T.copy from a global tensor to shared memory stands at the top level of its body"
    assert warned(loads())[1][1] == [reason]
    assert choices(loads(), "T.Pipelined") == [("serial", {"asynchronous copies": reason})]
    silent = [mirrored(96, 2), mirrored(101, 1, "float16"), mirrored(T.dyn("n"), 2, "float16")]
    silent.append(mirrored(TILE - 1, 2, "float16"))  # one iteration
    schedule = helve.Schedule(mirrored(101, 0, "float16"))
    schedule.pipeline("k", 2)
    silent.append(schedule.function)
    for each in silent:
        assert warned(each) == ([], []), each


def test_kernels_of_the_library_do_not_warn_of_their_loops():
    """Who calls them cannot mend them; the reasons can be listed."""
    function = helve.kernels.gemm("bfloat16", N=129, K=67)
    assert warned(function)[0] == ["HV0930"] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = choices(function, "T.Pipelined")
    assert [schedule for schedule, _ in found] == ["serial", "serial"]


def refusal(body, extra=""):
    """The reason for which the copy to X stays where it is."""
    lines = "\n".join("            " + line for line in body.strip().split("\n"))
    text = f"""
@T.prim_func
def main(A: T.Tensor((8, 32), "float32"), P: T.Tensor((8,), "int32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        X = T.alloc_shared((32,), "float32")
        Y = T.alloc_shared((2, 32), "float32")
        F = T.alloc_fragment((32,), "float32")
        for k in T.Pipelined(8, num_stages=2):
{lines}
{extra}
"""
    (choice,) = [c for c in compiled(helve.parse(text)).schedules() if c.operation == "T.Pipelined"]
    return dict(choice.declined)


def test_why_a_copy_stays():
    use = "T.copy(X, B)"
    assert refusal(f"T.copy(A[k, :], X)\n{use}") == {"copy to 'B'": "'X' is no global tensor"}
    assert refusal("T.copy(A[k, :], F)\nT.copy(F, B)")["copy to 'F'"] == "'F' is no shared memory"
    assert refusal("T.copy(A[k, :], Y[k % 2, :])\nT.copy(Y[k % 2, :], B)")["copy to 'Y'"] == (
        "iterations fill different places of 'Y'")
    assert refusal(f"T.copy(A[k, :], X)\nfor i in T.Parallel(32):\n    X[i] = X[i] * 2.0\n{use}")["copy to 'X'"] == (
        "'X' is written elsewhere in the loop")
    assert refusal(f"{use}\nT.copy(A[k, :], X)")["copy to 'X'"] == "'X' is used in front of the copy"
    assert refusal("T.copy(A[k, :], X)\nT.copy(X, A[7 - k, :])")["copy to 'X'"] == "'A' is written in the loop"
    assert refusal("T.copy(A[k, :], X)", "        T.copy(X, B)")["copy to 'X'"] == "'X' is used outside of the loop"
    assert refusal(f"p = T.index(P[k])\nT.copy(A[p, :], X)\n{use}\nP[7 - k] = 1")["copy to 'X'"] == (
        "its operands use 'p', which is read in the loop")
    assert refusal(f"T.copy(A[T.index(P[k]), :], X)\nP[7 - k] = 1\n{use}")["copy to 'X'"] == (
        "its operands use 'P', which is written in the loop")
    assert refusal("Z = T.alloc_shared((32,), \"float32\")\nT.copy(A[k, :], Z)\nT.copy(Z, B)")["copy to 'Z'"] == (
        "'Z' is allocated in the loop")


def copies_between_uses():
    """Copies begin early from anywhere in the body, through names and tables that the loop leaves alone."""

    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), P: T.Tensor((8,), "int32"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((32,), "float32")
            Y = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(2, 8, num_stages=3):
                row = 7 - k
                T.copy(A[row, :], X)
                for i in T.Parallel(32):
                    B[k, i] = X[31 - i]
                T.copy(A[T.index(P[row]), :], Y)
                for i in T.Parallel(32):
                    B[k, i] = B[k, i] + Y[31 - i]

    return main


def test_other_copies_may_stay_between():
    main = copies_between_uses()

    def make():
        rng = np.random.default_rng(0)
        return [whole_numbers((8, 32)), rng.permutation(8).astype("int32"), np.zeros((8, 32), "float32")]

    assert choices(main, "T.Pipelined") == [("asynchronous copies", {})]
    helve.testing.check_stages(main, make, target="cuda", check="all")


@needs_nvrtc
def test_copies_between_uses_compile():
    assert_compiles(_core.cuda_source(thread_form(copies_between_uses()))[0])


def test_a_loop_in_a_loop_and_a_tile_loop():
    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), B: T.Tensor((6, 64), "float32"), C: T.Tensor((6, 64), "float32")):
        with T.Kernel(2, threads=32) as b:
            Q = T.alloc_shared_tiles((64,), "float32")
            X = T.alloc_shared_tiles((64,), "float32")
            S = T.alloc_shared_tiles((64,), "float32")
            for r in T.Pipelined(3, num_stages=2):
                T.copy(A[b * 3 + r, :], Q)
                T.clear(S)
                for k in T.Pipelined(6, num_stages=3):
                    T.copy(B[k, :], X)
                    for i in T.foreach_tiles(S, parallel=True):
                        S[i] = S[i] + X[i] * Q[i]
                T.copy(S, C[b * 3 + r, :])

    assert [schedule for schedule, _ in choices(main, "T.Pipelined")] == ["asynchronous copies"] * 2
    helve.testing.check_stages(main, lambda: [whole_numbers((6, 64)) for _ in range(3)], target="cuda", check="all")
    helve.testing.check_stages(main, lambda: [whole_numbers((6, 64)) for _ in range(3)])
    assert _core.unordered_accesses(thread_form(main)) == []


def columns_and_sums(rows, stages):
    """Tiles of (rows, 80) in stages, and the sum of each row of a tile over the threads of 32 warps."""

    @T.prim_func
    def main(A: T.Tensor((8, rows, 80), "float32"), B: T.Tensor((8, rows), "float32")):
        with T.Kernel(1, threads=1024) as b:
            X = T.alloc_shared((rows, 80), "float32")
            s = T.alloc_fragment((rows,), "float32")
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[k, :, :], X)
                T.reduce_sum(X, s, dim=1)
                T.copy(s, B[k, :])

    return main


# Of the 163 KiB that a block has, the reduction takes 2: 4 stages of 128 rows are 160 KiB, of 130 rows 162.5, of 132
# rows 165.
@pytest.mark.parametrize(("rows", "room"), [(128, None), (130, 165248), (132, 166912)])
def test_stages_take_what_the_kernel_leaves(rows, room):
    kernel = helve.compile(columns_and_sums(rows, 4), target="cuda", arch="sm_80")
    assert (f"alloc_shared((4, {rows}, 80)" in kernel.source("pipeline_loops")) == (room is None)
    (choice,) = (choice for choice in kernel.schedules() if choice.operation == "T.Pipelined")
    refused = f"with 4 stages of it the kernel's buffers need {rows * 1280} bytes of shared memory, and {room} are"
    assert any(reason.startswith(refused) for _, reason in choice.declined) == (room is not None)
    judged = dict(helve.testing.lowering_stages(columns_and_sums(rows, 4), target="cuda", arch="sm_80"))
    for stage in ("pipeline_loops", "allocate_shared", "split_roles"):  # the interpreter judges what is compiled
        assert _core.print(judged[stage]) == kernel.source(stage)


def test_a_copy_that_is_asked_for():
    def copies(dispatch):
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                X = T.alloc_shared((64,), "float32")
                T.copy(A, X, dispatch=dispatch)
                for i in T.Parallel(64):
                    B[i] = X[63 - i]

        return main

    make = lambda: [np.arange(64, dtype="float32"), np.zeros(64, "float32")]  # noqa: E731
    assert operations(copies("")) == {"cp_async": 0, "commit_async": 0, "wait_async": 0, "sync_threads": 1}
    assert operations(copies("cp_async")) == {"cp_async": 1, "commit_async": 1, "wait_async": 1, "sync_threads": 1}
    helve.testing.check_stages(copies("cp_async"), make, target="cuda")
    helve.testing.check_stages(undispatched(copies("cp_async")), make)


def test_a_copy_that_is_done_at_once_is_counted():
    """The second copy converts, so it goes through registers; the wait for all but it covers the first."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), H: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((64,), "float32")
            Y = T.alloc_shared((64,), "float32")
            T.copy_async(A, X)
            T.copy_async(H, Y)
            T.wait_async(pending=1)
            for i in T.Parallel(64):
                B[i] = X[63 - i]
            T.wait_async()
            for i in T.Parallel(64):
                B[i] = B[i] + Y[63 - i]

    def make():
        return [whole_numbers((64,)), whole_numbers((64,), "float16"), np.zeros(64, "float32")]

    assert choices(main, "T.copy_async") == [
        ("cp_async", {"tma": "its pieces have 256 bytes, less than 2048",
                      "tma_tensor": "its boxes have 256 bytes, less than 1024"}),
        ("registers", {"tma": "its pieces have 128 bytes, less than 2048",
                       "tma_tensor": "'H' and 'Y' have different dtypes",
                       "cp_async": "it converts float16 to float32"})]
    helve.testing.check_stages(main, make, target="cuda", check="all")
    assert operations(main)["commit_async"] == 2


def test_copies_written_for_threads(tmp_path):
    text = """
@T.prim_func
def main(A: T.Tensor((2, 256), "float16"), B: T.Tensor((2, 256), "float16")):
    with T.Kernel(2, threads=32) as b:
        X = T.alloc_shared((256,), "float16")
        for tx in T.threads(32):
            T.copy_async(A[b, tx * 8:tx * 8 + 8], X[tx * 8:tx * 8 + 8])
        T.commit_async()
        T.wait_async()
        T.sync_threads()
        for tx in T.threads(32):
            for v in T.unroll(8):
                B[b, tx * 8 + v] = X[255 - (tx * 8 + v)]
"""
    function = helve.parse(text)
    make = lambda: [whole_numbers((2, 256), "float16"), np.zeros((2, 256), "float16")]  # noqa: E731
    helve.testing.check_stages(function, make, target="cuda", check="all")
    helve.testing.check_stages(function, make)
    assert "helve_copy_async<16>(X + tx * 8, A + (b * 256 + tx * 8));" in _core.cuda_source(thread_form(function))[0]
    unaligned = helve.parse(text.replace("tx * 8 + 8], X", "tx * 8 + 8], X").replace("A[b, tx * 8:tx * 8 + 8]",
                                                                                     "A[b, tx * 7:tx * 7 + 8]"))
    assert operations(unaligned) == {"cp_async": 0, "commit_async": 1, "wait_async": 1, "sync_threads": 1}
    helve.testing.check_stages(unaligned, make, target="cuda", check="all")


def test_copies_end_with_the_phase_of_a_mesh_kernel():
    mesh = helve.Mesh((2,), ("x",))

    @T.prim_func(mesh=mesh)
    def main(A: T.Tensor((2, 32), "float32"), B: T.Tensor((2, 32), "float32")):
        with T.Kernel(2) as c:
            X = T.alloc_shared((32,), "float32")
            Y = T.alloc_shared((32,), "float32")
            Z = T.alloc_shared((32,), "float32")
            T.copy(A[c, :], Y)
            T.copy_async(A[1 - c, :], X)
            T.comm.all_reduce(Y, Z, op="sum", axis="x")
            T.wait_async()
            for i in T.Parallel(32):
                B[c, i] = Z[i] + X[31 - i]

    make = lambda: [whole_numbers((2, 32)), np.zeros((2, 32), "float32")]  # noqa: E731
    for target in ("llvm", "cuda"):
        helve.testing.check_stages(main, make, mesh=mesh, target=target)
