"""Results of tensor cores that leave through shared memory: which do, what is computed, that each wait is needed."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_fits_registers, needs_nvrtc
from ring_programs import gemm, gemm_arguments, persistent_gemm
from tile_products import TYPES

import helve
import helve.testing
from helve import T, _core

PARTS = tuple(f"T.{name}(" for name in ("stmatrix", "cp_async_bulk_tensor", "wait_bulk", "commit_bulk", "sync_threads",
                                        "sync_warpgroups", "fence_async"))


def stages(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)


def last_stage(function, arch="sm_90a"):
    return stages(function, arch)[-1][1]


def with_bias(bm=64, bn=64, bk=32, heads=3):
    """A result that is a fragment of the tensor's type, to a plane of a tensor of three dimensions."""
    M, N, K = T.dyn("M"), T.dyn("N"), T.dyn("K")

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, heads, N), "float16")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), heads, threads=128) as (j, i, h):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            rounded = T.alloc_fragment((bm, bn), "float16")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, rounded)
            for m, n in T.Parallel(bm, bn):
                rounded[m, n] = rounded[m, n] + T.cast(h, "float16")
            T.copy(rounded, C[i * bm : i * bm + bm, h, j * bn : j * bn + bn])

    return main


def two_results(bm=64, bn=64, bk=16):
    """Sums and differences, one after the other in every turn."""
    M, N = T.dyn("M"), T.dyn("N")

    @T.prim_func
    def main(A: T.Tensor((M, bk), "bfloat16"), B: T.Tensor((N, bk), "bfloat16"), C: T.Tensor((M, N), "bfloat16"),
             D: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(2, threads=128) as block:
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            for i, j in T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)]):
                T.copy(A[i * bm : i * bm + bm, :], a)
                T.copy(B[j * bn : j * bn + bn, :], b)
                T.gemm(a, b, c, transpose_B=True, clear=True, dispatch="wgmma")
                T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])
                for m, n in T.Parallel(bm, bn):
                    c[m, n] = -c[m, n]
                T.copy(c, D[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def one_place(steps=3, bm=64, bn=64, bk=16):
    """All turns store to the same elements, of which the last ones stay."""

    @T.prim_func
    def main(A: T.Tensor((bm * steps, bk), "bfloat16"), B: T.Tensor((bn, bk), "bfloat16"),
             C: T.Tensor((bm, bn), "bfloat16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.copy(B, b)
            for s in T.serial(steps):
                T.copy(A[s * bm : s * bm + bm, :], a)
                T.gemm(a, b, c, transpose_B=True, clear=True, dispatch="wgmma")
                T.copy(c, C)

    return main


def product_arguments(m, n, k, dtype="bfloat16"):
    given, expected = gemm_arguments(m, n, k, dtype, dtype)
    return given, [expected]


def bias_arguments(m, n, k):
    a, b, _ = gemm_arguments(m, n, k, "float16", "float16")[0]
    product = a.astype("float32") @ b.astype("float32").T
    result = np.stack([product + h for h in range(3)], axis=1).astype("float16")
    return [a, b, np.full(result.shape, 7, "float16")], [result]


def two_arguments(m, n, k):
    given, expected = gemm_arguments(m, n, 16, "bfloat16", "bfloat16")
    return [*given, given[2].copy()], [expected, -expected]


def place_arguments(m, n, k):
    given, expected = gemm_arguments(64 * 3, 64, 16, "bfloat16", "bfloat16")
    return [given[0], given[1], given[2][:64]], [expected[128:]]


def store(bm, bn, bk, threads, steps, blocks):
    return persistent_gemm(bm, bn, bk, threads, steps, blocks, out="bfloat16")


# The function, its arguments for extents, the parts that it stores and their shape, and how many there is room for.
PROGRAMS = {
    "two parts": (lambda: store(64, 128, 32, 128, 3, 2), product_arguments, (2, (64, 64), 2)),
    "four parts": (lambda: store(64, 256, 16, 128, 2, 2), product_arguments, (4, (64, 64), 2)),
    "narrow": (lambda: store(64, 96, 16, 128, 2, 2), product_arguments, (3, (64, 32), 2)),
    "two warpgroups": (lambda: gemm(128, 64, 32, 256, 2, out="bfloat16"), product_arguments, (1, (128, 64), 1)),
    "columns of two": (lambda: store(64, 128, 16, 256, 2, 2), product_arguments, (1, (64, 128), 1)),
    "bias": (with_bias, bias_arguments, (1, (64, 64), 1)),
    "two results": (two_results, two_arguments, (2, (64, 64), 1)),
    "one place": (one_place, place_arguments, (1, (64, 64), 1)),
}
SHAPES = [(64, 64, 32), (72, 136, 48), (200, 24, 16), (136, 40, 0), (65, 30, 24)]


@pytest.fixture(scope="module")
def lowered():
    return {name: stages(make()) for name, (make, *_) in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage(lowered, name):
    """Tiles that reach past the end of the tensor, and rows that no map describes, which go another way."""
    for m, n, k in SHAPES if name != "one place" else SHAPES[:1]:
        given, expected = PROGRAMS[name][1](m, n, k)
        for stage, form in lowered[name]:
            if stage not in ("stage_results", "lower_tile_ops", "insert_fences", "group_copies", "split_roles"):
                continue
            helve.testing.assert_round_trip(form)
            checks = {"stage_results": ["all"], "lower_tile_ops": ["all"]}.get(stage, ["fences"])
            for order in (0, 1, 2) if stage == "split_roles" else (0,):
                found = [each.copy() for each in given]
                helve.testing.interpret(form, *found, check=checks[0], roles=order)
                for out, wanted in zip(found[-len(expected) :], expected):
                    np.testing.assert_array_equal(out, wanted, err_msg=f"{stage}, {m, n, k}, {order}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_and_slots(lowered, name):
    count, shape, slots = PROGRAMS[name][2]
    text = _core.print(dict(lowered[name])["stage_results"]).partition("else:")[0]
    assert text.count("T.stmatrix(") == count
    assert len(re.findall(rf"staged\w* = T.alloc_shared\({re.escape(str(shape))}", text)) == slots
    assert text.count("staged") > 2 * count


def orders_of(form):
    """What stores a result, between the last product and the end."""
    text = _core.print(form).partition("else:")[0].partition("T.role(256")[0].partition("T.role(128")[0]
    lines = [line.strip() for line in text.splitlines()]
    lines = lines[max(n for n, line in enumerate(lines) if "T.wgmma_wait" in line) :]
    return [re.sub(r"T\.(wait_bulk|\w+)\((pending=\d|sources=True)?.*", r"\1 \2", line).strip()
            for line in lines if line.startswith(PARTS)]


def test_what_orders_four_parts(lowered):
    """TMA reads one slot while the threads fill the other; the last two, while the block goes on."""
    first = ["stmatrix", "fence_async", "sync_threads", "cp_async_bulk_tensor", "commit_bulk"]
    again = ["wait_bulk pending=1", "sync_threads"]
    assert orders_of(lowered["four parts"][-1][1]) == [
        "wait_bulk", "sync_threads", *first, *first, *again, *first, *again, *first, "wait_bulk sources=True"]


def test_warpgroups_with_rows_of_their_own_wait_for_themselves(lowered):
    """Each starts the copy of what it has stored, behind a barrier of its own."""
    boxes = ["cp_async_bulk_tensor"] * 2
    first = ["stmatrix", "fence_async", "sync_warpgroups", *boxes, "commit_bulk"]
    again = ["wait_bulk pending=1", "sync_warpgroups"]
    stored = dict(stages(fixed(2)))["split_roles"]
    assert orders_of(stored) == ["wait_bulk sources=True", "sync_warpgroups", *first, *first, *again, *first, *again,
                                 *first, "wait_bulk sources=True"]
    text = _core.print(stored)
    assert re.findall(r"staged\[(\d+:\d+), :\], .*?, bulk_group=True(, warpgroup=1)?\)", text) == [
        ("0:64", ""), ("64:128", ", warpgroup=1")] * 2
    columns = _core.print(lowered["columns of two"][-1][1])
    assert "warpgroup" not in columns and "T.sync_threads()" in columns


def test_a_barrier_between_warpgroups_is_one_of_the_block():
    """Were each to store the other's rows, they would have to meet."""
    text = _core.print(last_stage(fixed(2)))
    exchanged = text.replace(", warpgroup=1", ", warpgroup=2")
    exchanged = re.sub(r"(staged\w*\[0:64, :\], .*bulk_group=True)\)", r"\1, warpgroup=1)", exchanged)
    exchanged = exchanged.replace(", warpgroup=2", "")
    after = helve.parse(exchanged)
    assert "sync_warpgroups" in exchanged
    again = orders_of(last_stage(after))
    assert "sync_warpgroups" not in again and "sync_threads" in again
    assert _core.print(last_stage(helve.parse(text))) == text


def test_waits_for_data_stay_where_stores_meet(lowered):
    """Of one place, each store waits until the one before has arrived; of others it waits for what TMA reads."""
    assert orders_of(lowered["one place"][-1][1])[0] == "wait_bulk"
    apart = last_stage(gemm_of_constants())
    assert orders_of(apart)[0] == "wait_bulk sources=True"


def gemm_of_constants(bm=64, bn=64, bk=32, dispatch="", out="bfloat16", reads=False, rows=128, columns=128):
    @T.prim_func
    def main(A: T.Tensor((rows, bk), "bfloat16"), B: T.Tensor((columns, bk), "bfloat16"),
             C: T.Tensor((rows, columns), out)):
        with T.Kernel(-(-columns // bn), threads=128) as j:
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.copy(B[j * bn : j * bn + bn, :], b)
            for i in T.serial(-(-rows // bm)):
                T.copy(A[i * bm : i * bm + bm, :], a)
                T.gemm(a, b, c, transpose_B=True, clear=True, dispatch="wgmma")
                T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn], dispatch=dispatch)
            if reads:
                for m in T.Parallel(rows):
                    C[m, j * bn] = T.cast(T.cast(C[m, j * bn], "float32") + 1.0, out)

    return main


def clip(c, C, t, ends):
    if t * 64 + 64 <= ends[t]:
        T.copy(c, C[t * 64 : t * 64 + 64, :])
    else:
        for m, n in T.Parallel(64, 64):
            if t * 64 + m < ends[t]:
                C[t * 64 + m, n] = T.cast(c[m, n], "bfloat16")


def clipped(loop=0):
    """Tiles that end at a row of memory's choice: those that are whole are copied, others are stored by element."""

    @T.prim_func
    def main(A: T.Tensor((256, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), ends: T.Tensor((4,), "int32"),
             C: T.Tensor((256, 64), "bfloat16")):
        with T.Kernel(2, threads=128):
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            for t in T.Persistent([4]):
                T.clear(c)
                for k in T.Pipelined(1, num_stages=2):
                    T.copy(A[t * 64 : t * 64 + 64, :], a)
                    T.copy(B, b)
                    T.gemm(a, b, c, dispatch="tensor_cores")
                if loop:
                    for r in T.serial(loop):
                        clip(c, C, t, ends)
                else:
                    clip(c, C, t, ends)

    return main


def choices(function):
    kernel = helve.compile(function, target="cuda", arch="sm_90a")
    return [choice for choice in kernel.schedules() if choice.operation == "T.copy"]


@needs_nvrtc
def test_what_is_chosen_and_why():
    assert "staged" in [each.schedule for each in choices(gemm_of_constants())]
    assert "staged" in [each.schedule for each in choices(gemm_of_constants(dispatch="staged"))]
    assert "staged" not in [each.schedule for each in choices(gemm_of_constants(dispatch="registers"))]

    def reason(function):
        last = choices(function)[-1]
        assert last.schedule == "registers"
        return dict(last.declined)["staged"]

    assert reason(gemm_of_constants(out="float32")) == "the tensor's elements have not 16 bits"
    assert reason(gemm_of_constants(reads=True)) == "other statements of the kernel access 'C'"
    assert "staged" in [each.schedule for each in choices(clipped())]
    assert reason(clipped(loop=2)) == "other statements of the kernel access 'C'"  # its turns are in order
    assert reason(gemm_of_constants(columns=60)) == "rows of 'C' are not known to begin at multiples of 16 bytes"
    assert reason(gemm_of_constants(bn=8)) == "its columns are no multiple of 16"


@needs_nvrtc
def test_memory_that_is_left():
    """Stages come first; parts are as large as two of them fit beside, or one, and then there are none."""

    def slots_of(stage_count, bm=256, bn=128):
        function = persistent_gemm(bm, bn, 64, 256, stage_count, 132, out="bfloat16")
        kernel = helve.compile(function, target="cuda", arch="sm_90a")
        text = kernel.source("stage_results").partition("else:")[0]
        return re.findall(r"staged\w* = T.alloc_shared\((\(.*?\))", text)

    assert slots_of(3) == ["(128, 64)"] * 2  # registers of more rows do not follow one another
    assert slots_of(4) == ["(128, 64)"] * 2
    assert slots_of(6, 128, 128) == ["(128, 64)"] * 2
    assert slots_of(3, 128, 192) == ["(128, 64)"] * 2


def test_a_second_block_keeps_its_place():
    """A block of one warpgroup shares its multiprocessor, and still does."""
    text = _core.print(dict(stages(gemm(128, 128, 64, 128, 3, out="bfloat16")))["stage_results"])
    assert re.findall(r"staged\w* = T.alloc_shared\((\(.*?\))", text) == ["(64, 64)"] * 2


@pytest.mark.parametrize("prelude", [False, True])
@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(lowered, tmp_path, prelude, unaligned):
    names = [name.replace(" ", "_") for name in PROGRAMS]
    kernels = HostKernels([lowered[name][-1][1] for name in PROGRAMS], tmp_path, prelude=prelude, names=names,
                          unaligned=unaligned)
    for name, symbol in zip(PROGRAMS, names):
        for m, n, k in SHAPES[:4] if name != "one place" else SHAPES[:1]:
            given, expected = PROGRAMS[name][1](m, n, k)
            given = [aligned(each) for each in given]
            blocks = {"two warpgroups": -(-m // 128) * -(-n // 64), "bias": -(-m // 64) * -(-n // 64) * 3,
                      "one place": 1}.get(name, 2)
            kernels.run(symbol, blocks, dict(zip("ABCD", given)), {"M": m, "N": n, "K": k})
            for out, wanted in zip(given[-len(expected) :], expected):
                np.testing.assert_array_equal(out, wanted, err_msg=f"{name} {m, n, k}")


@needs_nvrtc
@pytest.mark.parametrize(("bm", "bn", "threads", "stage_count"), [(128, 256, 256, 4), (256, 128, 256, 4),
                                                                  (128, 128, 128, 4)])
def test_the_text_compiles_without_spills(bm, bn, threads, stage_count):
    text = _core.cuda_source(last_stage(store(bm, bn, 64, threads, stage_count, 132)))[0]
    assert "helve_store_matrices<4, false>(" in text and "helve_store_box(" in text
    assert_fits_registers(text, "sm_90a")


# Each wait, barrier and fence is needed.


def fixed(groups=1):
    """Constant extents and few of them, so that the text is short: two turns of four parts, of each warpgroup."""
    bm = 64 * groups

    @T.prim_func
    def main(A: T.Tensor((2 * bm, 16), "bfloat16"), B: T.Tensor((256, 16), "bfloat16"),
             C: T.Tensor((2 * bm, 256), "bfloat16")):
        with T.Kernel(1, threads=128 * groups):
            a = T.alloc_shared((bm, 16), "bfloat16")
            b = T.alloc_shared((256, 16), "bfloat16")
            c = T.alloc_fragment((bm, 256), "float32")
            for i in T.Persistent([2]):
                T.clear(c)
                for k in T.Pipelined(1, num_stages=2):
                    T.copy(A[i * bm : i * bm + bm, k * 16 : k * 16 + 16], a)
                    T.copy(B[:, k * 16 : k * 16 + 16], b)
                    T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
                T.copy(c, C[i * bm : i * bm + bm, :])

    return main


def mutants(form):
    """Texts in which a wait for stores, a barrier, a fence or a commit behind the product is missing, or a wait is for
    less."""
    lines = _core.print(form).split("\n")
    first = next(n for n, line in enumerate(lines) if "T.stmatrix(" in line)
    last = max(n for n, line in enumerate(lines) if "T.wait_bulk(" in line or "T.commit_bulk(" in line)
    for n in range(first - 2, last + 1):
        line = lines[n]
        if not line.strip().startswith(("T.wait_bulk", "T.sync_", "T.fence_async", "T.commit_bulk")):
            continue
        yield f"without {line.strip()} in line {n}", "\n".join([*lines[:n], *lines[n + 1 :]])
        pending = re.search(r"pending=(\d)", line)
        if "wait_bulk" in line:
            less = "pending=2, sources=True" if pending else "pending=1, sources=True"
            weak = re.sub(r"\(.*\)", f"({less})", line)
            yield f"{weak.strip()} in line {n}", "\n".join([*lines[:n], weak, *lines[n + 1 :]])


@pytest.mark.wrong_programs
@pytest.mark.parametrize("form", ["group_copies", "split_roles"])
@pytest.mark.parametrize("groups", [1, 2])
def test_every_wait_barrier_and_fence_is_needed(form, groups):
    """The interpreter finds each in a run, of one sequence and of roles, and barriers are found before it."""
    program = dict(stages(fixed(groups)))[form]
    given, (expected,) = product_arguments(128 * groups, 256, 16)
    helve.testing.interpret(program, *[each.copy() for each in given], check="fences")
    found = 0
    for what, text in mutants(program):
        found += 1
        try:
            mutant = helve.parse(text).function
        except helve.Error as refused:
            assert refused.code == "HV0311", what
            continue
        if "sync_threads" in what and form == "group_copies":
            assert _core.unordered_accesses(mutant), what
        if "sync_" in what and "wait_bulk" in text.split("\n")[int(what.split()[-1]) - 1]:
            continue  # in a run, the block stores matrices as one
        with pytest.raises(helve.Error) as refused:
            helve.testing.interpret(mutant, *[each.copy() for each in given], check="fences")
        assert refused.value.code in ("HV0708", "HV0709", "HV0311"), what
    assert found > 20


def test_the_proof_of_waits_knows_them():
    """For any number of turns, as long as waits are for all that was stored."""
    form = dict(stages(fixed()))["insert_fences"]

    def verdict(text):
        proofs = helve.compile(helve.parse(text), target="interp").proofs()
        (proof,) = [proof for proof in proofs if "copies to C" in proof.question]
        return proof.verdict

    assert verdict(_core.print(form)) == "proved"
    for what, text in mutants(form):
        if "wait_bulk" not in what:
            continue
        try:
            assert verdict(text) == "unknown", what
        except helve.Error as refused:  # the last one is missing
            assert refused.code == "HV0311", what


def test_what_is_stored_is_stored_in_its_type():
    given, (expected,) = product_arguments(128, 256, 16)
    found = [each.copy() for each in given]
    helve.compile(helve.parse(_core.print(last_stage(fixed()))), target="llvm")(*found)
    np.testing.assert_array_equal(found[2], expected)
    assert found[2].dtype == TYPES["bfloat16"]
