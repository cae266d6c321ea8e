"""Rings and roles: what they compute in every order, what the compiler makes of loops, what it proves and refuses."""

import re

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_fits_registers, needs_nvrtc
from ring_programs import (converted_halves, gathered_gemm, gemm, gemm_arguments, halves_arguments, persistent_gemm,
                           two_rings)

import helve
import helve.testing
from helve import T, _core
from helve.errors import warning_from

ORDERS = (0, 1, 2, 3, 4)
SHAPES = [(64, 16, 16), (72, 24, 48), (8, 8, 0), (136, 40, 80)]


def stages(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)


def last_stage(function, arch="sm_90a"):
    return stages(function, arch)[-1][1]


def run(stage, given, order=0, check="fences"):
    found = [each.copy() for each in given]
    helve.testing.interpret(stage, *found, check=check, roles=order)
    return found


PROGRAMS = {
    "one warpgroup": gemm(64, 32, 32, 128, 3),
    "two warpgroups": gemm(128, 32, 32, 256, 2),
    "persistent": persistent_gemm(64, 32, 32, 128, 4, 2),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_stage_in_every_order(program):
    for m, n, k in SHAPES[:3] if program == "two warpgroups" else SHAPES:
        given, expected = gemm_arguments(m, n, k)
        for name, stage in stages(PROGRAMS[program]):
            if name not in ("make_rings", "insert_fences", "split_roles"):
                continue
            helve.testing.assert_round_trip(stage)
            for order in ORDERS if name == "split_roles" else (0,):
                check = {"make_rings": "all"}.get(name, "fences")
                np.testing.assert_array_equal(run(stage, given, order, check)[2], expected, err_msg=f"{name} {order}")


@pytest.mark.parametrize("stages_of_loop", [2, 3])
def test_products_that_share_their_sums(stages_of_loop):
    """What threads read comes through a ring too, though memory for them may have any layout. Each of two products runs
    while the factor of the other is converted, and gives its slot back a turn later, where there are more than two.
    """
    lowered = dict(stages(converted_halves(64, 32, 64, 128, stages_of_loop)))
    for shape in [(64, 32, 192), (72, 40, 320), (8, 8, 0), (100, 24, 64)]:
        given, expected = halves_arguments(*shape)
        for name in ("make_rings", "insert_fences", "split_roles"):
            for order in ORDERS if name == "split_roles" else (0,):
                check = {"make_rings": "all"}.get(name, "fences")
                found = run(lowered[name], given, order, check)[2]
                np.testing.assert_array_equal(found, expected, err_msg=f"{name} {order}")
    text = _core.print(lowered["split_roles"]).partition("else:")[0].partition("elect=True")[0]
    later = stages_of_loop > 2
    assert text.count("T.ring_wait(") == 3 and text.count(", pending=1)") == 2 * later
    assert text.count("T.wgmma_wait(pending=1)") == 2 * later


def test_boxes_begin_where_memory_says():
    """Both roles read it, and know two names of one value for one."""
    (a, b, _), _ = gemm_arguments(72, 24, 48)
    places = np.array([8, 0, 64, 100, 71], "int32")
    expected = np.zeros((5, 64, 24), "float32")
    for tile, first in enumerate(places):
        rows = a[first : first + 64].astype("float32")
        expected[tile, : len(rows)] = rows @ b.astype("float32").T
    function = gathered_gemm(64, 32, 32, 128, 2, 2)
    lowered = dict(stages(function))
    for name in ("make_rings", "insert_fences", "split_roles"):
        for order in ORDERS if name == "split_roles" else (0,):
            given = [a, b, places, np.full_like(expected, np.nan)]
            found = run(lowered[name], given, order, "all" if name == "make_rings" else "fences")
            np.testing.assert_array_equal(found[3], expected, err_msg=f"{name} {order}")
    fills = _core.print(lowered["split_roles"]).partition("else:")[0].split("elect=True):")[1]
    assert "places[" in fills


def test_the_sequence_and_its_roles():
    """A ring is one sequence of events, then two roles with the same loops."""
    lowered = dict(stages(PROGRAMS["persistent"]))
    sequence = _core.print(lowered["make_rings"])
    events = re.findall(r"T\.ring_\w+|cp_async_bulk_tensor|gemm", sequence.partition("else:")[0])
    assert events == ["T.ring_acquire", "cp_async_bulk_tensor", "cp_async_bulk_tensor", "T.ring_commit",
                      "T.ring_wait", "gemm", "T.ring_release", "T.ring_release"]
    assert "T.ring_release(ring, pending=1)" in sequence  # the product may run while the next turn begins
    assert "slots=4" in sequence
    roles = _core.print(lowered["split_roles"]).partition("else:")[0]
    takes, fills = roles.split("with T.role(128, 32, elect=True):")
    takes = takes.split("with T.role(0, 128):")[1]
    assert re.findall(r"T\.ring_\w+|cp_async_bulk_tensor|wgmma\(", takes) == [
        "T.ring_wait", "wgmma(", "T.ring_release", "T.ring_release"]
    assert re.findall(r"T\.ring_\w+|cp_async_bulk_tensor|wgmma\(", fills) == [
        "T.ring_acquire", "cp_async_bulk_tensor", "cp_async_bulk_tensor", "T.ring_commit"]
    assert [line.strip() for line in fills.splitlines() if "for " in line][0].startswith("for turn")


def test_budgets_of_registers():
    """What the producers do not need goes to the consumers."""
    budgets = [(1, "", "32"), (2, ", registers=232", "128, registers=40"), (3, ", registers=160", "128, registers=32"),
               (4, ", registers=112", "128, registers=24")]
    for groups, takes, fills in budgets:
        text = _core.print(last_stage(gemm(64 * groups, 32, 32, 128 * groups, 2)))
        threads = 128 * groups
        assert re.findall(r"with T\.role\((.*)\):", text)[:2] == [
            f"0, {threads}{takes}", f"{threads}, {fills}, elect=True"]


def test_rings_have_as_many_slots_as_fit():
    """Not as many as asked, rather than no rings: a stage takes 32 KiB."""
    text = _core.print(dict(stages(gemm(128, 128, 64, 256, 8)))["make_rings"])
    assert re.findall(r"slots=(\d+)", text) == ["7", "7"] and "T.alloc_shared((2, 7)" in text


@needs_nvrtc
def test_the_schedule_tells_of_fewer_slots():
    function = gemm(128, 128, 64, 256, 8)
    choice = next(each for each in helve.compile(function, target="cuda", arch="sm_90a").schedules()
                  if each.operation == "T.Pipelined")
    assert choice.schedule == "rings"
    assert dict(choice.declined) == {
        "rings of 8": "with 8 stages of it the kernel's buffers need 262144 bytes of shared memory, and 232448 "
                      "are there for them"}


def test_products_have_the_registers_that_threads_begin_with():
    """384 threads begin with 128 registers each beside a warp that copies, too few for 104 sums of one instruction."""
    roles = re.findall(r"with T\.role\((.*)\):", _core.print(last_stage(gemm(192, 200, 64, 384, 2))))[:2]
    assert roles == ["0, 384, registers=160", "384, 128, registers=32, elect=True"]
    with pytest.raises(helve.Error, match="384 threads begin with 128 registers each, and an instruction of 208 colum"):
        last_stage(gemm(192, 208, 64, 384, 2))


def test_operands_with_other_uses_have_rings_of_their_own():
    rng = np.random.default_rng(1)
    q, k, v = (rng.integers(-2, 3, shape).astype("float32") for shape in [(64, 32), (128, 32), (128, 32)])
    given = [each.astype("float16") for each in (q, k, v)] + [np.zeros((64, 32), "float32")]
    function = two_rings(64, 32, 32, 2)
    lowered = dict(stages(function))
    assert _core.print(lowered["make_rings"]).count("T.mbarrier_init(") == 2
    for order in ORDERS:
        np.testing.assert_array_equal(run(lowered["split_roles"], given, order)[3], (q @ k.T) @ v)


@pytest.mark.parametrize("prelude", [False, True])
@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(tmp_path, prelude, unaligned):
    names = [name.replace(" ", "_") for name in PROGRAMS]
    forms = [last_stage(function) for function in PROGRAMS.values()]
    kernels = HostKernels(forms, tmp_path, prelude=prelude, names=names, unaligned=unaligned)
    tiles = {"one_warpgroup": 64, "two_warpgroups": 128}
    for name in names:
        for m, n, k in SHAPES:
            given, expected = gemm_arguments(m, n, k)
            given = [aligned(each) for each in given]
            blocks = -(-m // tiles[name]) * -(-n // 32) if name in tiles else 2
            kernels.run(name, blocks, dict(zip("ABC", given)), {"M": m, "N": n, "K": k})
            np.testing.assert_array_equal(given[2], expected, err_msg=f"{name} {m, n, k}")


@needs_nvrtc
@pytest.mark.parametrize(("bm", "bn", "bk", "threads", "stage_count"), [(128, 256, 64, 256, 4), (128, 128, 64, 128, 4)])
def test_the_text_compiles_without_spills(bm, bn, bk, threads, stage_count):
    for function in (gemm(bm, bn, bk, threads, stage_count, out="bfloat16"),
                     persistent_gemm(bm, bn, bk, threads, stage_count, 132, out="bfloat16")):
        text = _core.cuda_source(last_stage(function))[0]
        assert "helve_ring_acquire<4>" in text
        assert_fits_registers(text, "sm_90a")


def test_only_machines_with_products_of_warpgroups_have_rings():
    for arch in ("sm_80", "sm_90", "sm_90a"):
        assert "T.ring_" not in _core.print(last_stage(plain_gemm(), arch))


def plain_gemm():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 16), "float32")
            b = T.alloc_shared((16, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[:, k * 16 : k * 16 + 16], a)
                T.copy(B[k * 16 : k * 16 + 16, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


def crossing(bk=32):
    """How many turns the loop makes, the block computes."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((32, 64), "float16"), n: T.Tensor((4,), "int32"),
             C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, bk), "float16")
            b = T.alloc_shared((32, bk), "float16")
            count = T.alloc_shared((1,), "int32")
            c = T.alloc_fragment((64, 32), "float32")
            T.reduce_sum(n, count, dim=0)
            T.clear(c)
            for k in T.Pipelined(T.index(count[0]), num_stages=2):
                T.copy(A[:, k * bk : k * bk + bk], a)
                T.copy(B[:, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, C)

    return main


def test_a_value_that_crosses_roles_is_named():
    """The loop is pipelined as on other machines."""
    function = crossing()
    warnings = _core.lowering_warnings(function.function, target="cuda", arch="sm_90a")
    assert [warning.code for warning in warnings] == ["HV0929"]
    assert "'count'" in str(warning_from(warnings[0]))
    assert "T.ring_" not in _core.print(last_stage(function))


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_producers_are_nothing_to_warn_of_where_a_machine_has_none(arch):
    text = gemm(128, 128, 64, 256, 2).script().replace("threads=256", "threads=256, producers=128")
    text = text.replace('dispatch="wgmma"', 'dispatch="tensor_cores"')
    assert "producers=128" in text
    assert _core.lowering_warnings(helve.parse(text).function, target="cuda", arch=arch) == []


# The verifier.


def lines_with(text, pattern):
    return [number for number, line in enumerate(text.splitlines()) if re.search(pattern, line)]


def mutants(text):
    """Texts in which one event of a ring, or one copy, is missing, moved by one statement, or counts another number."""
    lines = text.splitlines()

    def indent(number):
        return len(lines[number]) - len(lines[number].lstrip())

    for at in lines_with(text, r"T\.ring_|barriers=ring"):
        yield f"without line {at}", lines[:at] + lines[at + 1 :]
        yield f"line {at} twice", lines[: at + 1] + lines[at:]
        for other in (at - 1, at + 1):
            if not 0 <= other < len(lines) or indent(other) != indent(at) or lines[other].rstrip().endswith(":"):
                continue
            moved = list(lines)
            moved[at], moved[other] = moved[other], moved[at]
            yield f"lines {at} and {other} changed", moved
        if "T.ring_release" in lines[at]:
            for pending in (0, 1, 2, 3):
                changed = re.sub(r"ring(, pending=\d)?\)", f"ring, pending={pending})", lines[at])
                yield f"line {at} pending {pending}", [*lines[:at], changed, *lines[at + 1 :]]
    for at in lines_with(text, r"slots=\d"):
        for change in (-1, 1):
            changed = re.sub(r"slots=(\d)", lambda m: f"slots={int(m[1]) + change}", lines[at])
            yield f"line {at} with {change} slots", [*lines[:at], changed, *lines[at + 1 :]]
    for at in lines_with(text, r"alloc_shared\(\(2, \d\)"):
        for change in (-1, 1):
            changed = re.sub(r"\(\(2, (\d)\)", lambda m: f"((2, {int(m[1]) + change})", lines[at])
            yield f"line {at} with {change} mbarriers", [*lines[:at], changed, *lines[at + 1 :]]
    for at in lines_with(text, r"for k\w* in T\.serial\("):
        changed = re.sub(r"T\.serial\((.*)\):", r"T.serial((\1) + 1):", lines[at])
        yield f"line {at} with another turn", [*lines[:at], changed, *lines[at + 1 :]]


def fixed(bm, bn, bk, stage_count, turns):
    """A product of constant extents, so that its text is short."""

    @T.prim_func
    def main(A: T.Tensor((bm, bk * turns), "float16"), B: T.Tensor((bn, bk * turns), "float16"),
             C: T.Tensor((bm, bn), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(turns, num_stages=stage_count):
                T.copy(A[:, k * bk : k * bk + bk], a)
                T.copy(B[:, k * bk : k * bk + bk], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="wgmma")
            T.copy(c, C)

    return main


@pytest.mark.parametrize("form", ["split_roles", "insert_fences"])
def test_the_verifier_objects_to_mutations(form):
    """What it does not object to computes the same in every order."""
    text = _core.print(dict(stages(fixed(64, 32, 32, 3, 5)))[form])
    given, expected = gemm_arguments(64, 32, 160, "float16")
    refused = harmless = 0
    for what, lines in mutants(text):
        try:
            mutant = helve.parse("\n".join(lines) + "\n")
            stages(mutant)
        except helve.Error as fault:
            assert fault.code == "HV0320", f"{what}: {fault}"
            refused += 1
            continue
        harmless += 1
        for order in ORDERS:
            found = run(mutant, given, order, check="fences")
            np.testing.assert_array_equal(found[2], expected, err_msg=f"{what}, order {order}")
    assert refused > 25 and harmless <= 10, (refused, harmless)


@pytest.mark.parametrize("order", ORDERS)
def test_the_interpreter_finds_roles_that_wait_for_ever(order):
    text = _core.print(last_stage(fixed(64, 32, 32, 2, 3)))
    given, _ = gemm_arguments(64, 32, 96, "float16")
    for event in ("ring_commit", "ring_release"):
        line = next(line for line in text.splitlines() if f"T.{event}(" in line)
        with pytest.raises(helve.Error) as fault:
            run(helve.parse(text.replace(line + "\n", "")), given, order, check=None)
        assert fault.value.code in ("HV0720", "HV0311")


def test_the_interpreter_finds_accesses_outside_of_brackets():
    text = _core.print(last_stage(fixed(64, 32, 32, 2, 3)))
    given, _ = gemm_arguments(64, 32, 96, "float16")
    lines = text.splitlines()
    wait = next(n for n, line in enumerate(lines) if "T.ring_wait(" in line)
    lines[wait], lines[wait + 1] = lines[wait + 1], lines[wait]
    for order in ORDERS:
        with pytest.raises(helve.Error):
            run(helve.parse("\n".join(lines) + "\n"), given, order)
