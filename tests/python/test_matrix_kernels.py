"""helve.kernels on tensor cores: against their definitions in float64 on the CPU, at every stage and as text."""

import re

import matrix_kernel_cases as cases
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents, one_launch_each
from nvrtc import assert_fits_registers, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.kernels.gemm_plan import GemmPlan, choices_by_rows, machine_of, plan_gemm, plans_by_rows

TINY = {"tile": (64, 32), "depth": 32, "stages": 3, "blocks": 3}  # blocks take several tiles each
ALL = {"bias": True, "activation": "relu", "residual": True}
# Extents of no tile, of one, of tails in every dimension.
GEMMS = {
    "nn": cases.gemm(136, 72, 104, "float16", **TINY),
    "nt": cases.gemm(72, 40, 136, "bfloat16", transpose_B=True, **TINY),
    "tn": cases.gemm(65, 17, 33, "float16", transpose_A=True, **TINY),
    "tt": cases.gemm(64, 32, 96, "bfloat16", transpose_A=True, transpose_B=True, out="float32", **TINY),
    "everything": cases.gemm(72, 40, 72, "bfloat16", transpose_B=True, **ALL, **TINY),
    "everything at odd places": cases.gemm(70, 41, 37, "bfloat16", transpose_B=True, **ALL, **TINY),
    "silu": cases.gemm(64, 24, 16, "float16", activation="silu", scale=True, **TINY),
    "gelu": cases.gemm(8, 8, 8, "float16", activation="gelu", bias=True, out="float32", **TINY),
    "pairs": cases.gemm(136, 72, 104, "float16", transpose_B=True, **ALL, **(TINY | {"blocks": 4, "cluster": 2})),
    "pairs of a batch": cases.gemm(200, 40, 72, "bfloat16", batch=2, out="float32",
                                   **(TINY | {"blocks": 4, "cluster": 4})),
    "batch": cases.gemm(72, 40, 48, "float16", batch=3, transpose_B=True, **ALL, **TINY),
    "no terms": cases.gemm(9, 7, 0, "float16", bias=True, **TINY),
    "known extents": cases.gemm(72, 40, 40, "float16", known="MNK", residual=True, **TINY),
    "known weights": cases.gemm(72, 40, 40, "float16", known="NK", transpose_B=True, **TINY),
    "parts": cases.gemm(72, 40, 136, "bfloat16", split=3, transpose_B=True, **ALL, **TINY),  # steps: 2, 2, 1
    "parts at odd places": cases.gemm(65, 17, 33, "float16", split=2, transpose_A=True, scale=True, **TINY),
    "parts of known extents": cases.gemm(72, 40, 128, "float16", split=2, known="MNK", activation="silu", **TINY),
    "parts of nothing": cases.gemm(8, 24, 72, "bfloat16", split=5, known="NK", out="float32", transpose_A=True,
                                   transpose_B=True, **TINY),
    "parts by pairs": cases.gemm(136, 72, 104, "float16", split=2, **(TINY | {"blocks": 4, "cluster": 2})),
    "parts without terms": cases.gemm(9, 7, 0, "float16", split=2, bias=True, **TINY),
    "parts of eight bits": cases.gemm(72, 40, 144, "float8_e4m3", transpose_B=True, scale=True, split=4, tile=(64, 32),
                                      depth=32, blocks=2),
    "eight bits": cases.gemm(72, 40, 144, "float8_e4m3", transpose_B=True, scale=True, tile=(64, 32), depth=32,
                             blocks=2),
}
gemms = pytest.mark.parametrize("name", GEMMS)


@gemms
def test_products_on_targets_without_tensor_cores(name):
    call = GEMMS[name]
    for target in ("interp", "llvm"):
        arguments = call.arguments()
        helve.compile(call.function, target=target)(*arguments)
        call.check(arguments)


@gemms
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_products_at_every_stage(name, arch):
    call = GEMMS[name]
    if "eight bits" in name and arch == "sm_80":
        pytest.skip("sm_80 has no products of 8-bit floats")
    stages = helve.testing.lowering_stages(call.function, target="cuda", arch=arch)
    for stage, form in helve.testing.with_variant(stages)[-2:]:
        arguments = call.arguments()
        helve.testing.interpret(form, *arguments, check="all")
        call.check(arguments)
    assert ("T.wgmma(" if arch == "sm_90a" else "T.mma(") in _core.print(stages[-1][1])


def last(function):
    return helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")[-1][1]


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_products(tmp_path, unaligned):
    """For tensors that begin at whole vectors, which TMA copies to rings, and for others."""
    names = {name: name.replace(" ", "_") for name in GEMMS
             if name not in ("no terms", "gelu") and not name.startswith("parts")}
    host = HostKernels([last(GEMMS[name].function) for name in names], tmp_path, names=list(names.values()),
                       unaligned=unaligned)
    for name, label in names.items():
        given = [aligned(np.ascontiguousarray(each)) for each in GEMMS[name].arguments()]
        form = host.forms[label]
        blocks, extents = blocks_and_extents(form, given)
        host.run(label, blocks, dict(zip([each.name for each in form.params], given)), extents)
        GEMMS[name].check(given)


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_sums_of_parts(tmp_path, unaligned):
    """Two launches, with what lies between them."""
    forms = {f"{name}_{place}".replace(" ", "_"): (name, last(function))
             for name in GEMMS if name.startswith("parts") and "without terms" not in name
             for place, function in enumerate(one_launch_each(GEMMS[name].function.script()))}
    host = HostKernels([form for _, form in forms.values()], tmp_path, names=list(forms), unaligned=unaligned)
    memory = {}
    for label, (name, _) in forms.items():
        call, form = GEMMS[name], host.forms[label]
        *own, parts = [each.name for each in form.params]
        if label.endswith("_0"):
            memory = {name: aligned(np.ascontiguousarray(each)) for name, each in zip(own, call.arguments())}
            split = int(str(form.params[-1].shape[0]))
            memory[parts] = aligned(np.full((split, *memory["C"].shape), np.nan, np.float32))
        blocks, extents = blocks_and_extents(form, [memory[each] for each in (*own, parts)])
        host.run(label, blocks, memory, extents)
        if not label.endswith("_0"):
            call.check([memory[each] for each in own])


@needs_nvrtc
@pytest.mark.parametrize("options", [
    {"transpose_B": True}, {}, {"transpose_A": True}, {"transpose_B": True, **ALL}, {"M": 128, "N": 4096, "K": 4096},
    {"batch": True, "out": "float32", "tile": (256, 128)}, {"dtype": "float8_e4m3", "transpose_B": True, "scale": True},
    {"M": 4098, "N": 4104, "K": 1032, "transpose_B": True}, {"N": 4104, "K": 1032, "transpose_B": True, **ALL},
    {"M": 64, "N": 4096, "K": 14336, "transpose_B": True, **ALL}, {"N": 4096, "K": 14336, "transpose_B": True},
    {"transpose_A": True, "split": 4},
], ids=str)
def test_products_of_rows_of_vectors_fill_rings_and_spill_nothing(options):
    """The first kernel of a text, which aligned rows take."""
    text = _core.cuda_source(last(kernels.gemm(**options)))[0]
    assert "helve_ring_acquire<" in text.partition("gemm_1(")[0]
    assert_fits_registers(text, "sm_90a", "gemm_0")


def test_plans():
    assert plan_gemm(None, None, "bfloat16") == GemmPlan(128, 256, 64, 256, 4, 132, 1)
    assert plan_gemm(8192, 8192, "float8_e4m3") == GemmPlan(128, 256, 128, 256, 4, 132, 1)
    small = plan_gemm(64, 4096, "bfloat16")  # of few rows: no tile is higher than they are
    assert small.rows == 64 and small.threads == 128
    assert plan_gemm(512, 512, "bfloat16").rows == 64  # tiles for more multiprocessors
    assert plan_gemm(64, 64, "bfloat16").blocks == 1
    assert small.cluster == 1  # and has no tile beside it
    clusters = [plan_gemm(rows, 65536, "bfloat16", K=1032, tile=(128, 256)).cluster for rows in (128, 256, 384, 1408)]
    assert clusters == [1, 2, 1, 2]
    assert [plan_gemm(8192, 8192, "bfloat16", K=terms).cluster for terms in (None, 64, 1024, 1032)] == [1, 1, 1, 2]
    assert plan_gemm(8192, 8192, "bfloat16", K=1032, tile=(256, 128)).cluster == 1  # tiles of B are the smaller ones
    assert plan_gemm(384, 4096, "bfloat16", tile=(128, 256), cluster=2).blocks == 64  # one row of them is not there
    assert plan_gemm(64, 64, "bfloat16", 100).blocks == 100
    assert plan_gemm(4096, 4096, "bfloat16", K=4096).why == (
        "512 tiles for 132 multiprocessors: 4 for the busiest, 3.9 in the mean; tiles of 128 x 128 would take 1.12 "
        "times as long")
    assert plan_gemm(64, 64, "bfloat16", tile=(64, 64), split=1).why == (
        "1 tile for 132 multiprocessors: 1 for the busiest, 0.0 in the mean")


@pytest.mark.parametrize("arch, depth, stages", [("sm_80", 32, 4), ("sm_86", 32, 3), ("sm_90", 64, 3)])
def test_products_of_warps_leave_room_for_a_second_block(arch, depth, stages):
    plan = plan_gemm(None, None, "bfloat16", arch=arch)
    machine = machine_of(arch)
    assert (plan.tile, plan.threads, plan.depth, plan.stages) == ((128, 128), 128, depth, stages)
    assert plan.blocks == 2 * machine.processors
    assert 2 * plan.stages * sum(plan.tile) * plan.depth * 2 <= machine.shared_bytes
    assert plan_gemm(None, None, "bfloat16", arch=arch, tile=(256, 128)).threads == 256


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90", "sm_90a", "sm_120"])
@pytest.mark.parametrize("rows", [64, 128, 256, 512, 8192])
def test_tiles_under_way_fit_shared_memory(arch, rows):
    plan = plan_gemm(rows, 4096, "bfloat16", K=4096, arch=arch)
    assert plan.stages * sum(plan.tile) * plan.depth * 2 <= machine_of(arch).block_shared_bytes


def test_plans_divide_many_terms_where_tiles_are_few():
    splits = [plan_gemm(rows, 1024, "bfloat16", K=terms).split
              for rows, terms in ((64, None), (64, 64), (8192, 65536), (64, 65536))]
    assert splits[:3] == [1, 1, 1] and splits[3] > 1
    assert plan_gemm(64, 1024, "bfloat16", K=65536).blocks > plan_gemm(64, 1024, "bfloat16", K=65536, split=1).blocks
    assert plan_gemm(64, 1024, "bfloat16", 2, K=65536).split == 1  # a batch
    given = plan_gemm(64, 1024, "bfloat16", tile=(64, 64), split=3)
    assert (given.split, given.blocks) == (3, 48)
    by_rows = plans_by_rows(None, 1024, "bfloat16", K=65536)
    assert by_rows[0][1].split > 1 and by_rows[-1][1].split == 1
    assert [plan.split for _, plan in plans_by_rows(None, 1024, "bfloat16", K=65536, split=2)] == [2] * len(
        plans_by_rows(None, 1024, "bfloat16", K=65536, split=2))


def test_rows_of_a_call_have_tiles_for_few_and_for_many():
    plans = plans_by_rows(None, 4096, "bfloat16")
    assert [(most, plan.tile) for most, plan in plans] == [
        (128, (64, 64)), (256, (128, 64)), (512, (128, 128)), (None, (128, 256))]
    assert plans == [(most, plan_gemm(most, 4096, "bfloat16")) for most, _ in plans]
    for alone in (plans_by_rows(100, 4096, "bfloat16"), plans_by_rows(None, None, "bfloat16"),
                  plans_by_rows(None, 4096, "bfloat16", tile=(64, 64))):
        assert [most for most, _ in alone] == [None]


def test_rows_of_a_call_choose_the_fewest_waves():
    """The first condition that holds is that of the plan which the number of rows would have among those compared."""
    choices = choices_by_rows(None, 5120, "bfloat16")
    compared = [plan for _, plan in choices[-3:]]
    assert [plan.tile for plan in compared] == [(192, 128), (128, 128), (128, 256)]
    for M, tile in ((333, (128, 128)), (700, (128, 256)), (3000, (192, 128)), (2048, (128, 128)), (4096, (128, 256))):
        taken = next(plan for fits, plan in choices if plan in compared and fits(M))
        waves = {each.tile: -(-(-(-M // each.rows) * -(-5120 // each.columns)) // 132) for each in compared}
        assert taken.tile == tile, waves
    for options in ({"tile": (64, 64)}, {"cluster": 2}, {"split": 2}, {"count": None}):
        plans = plans_by_rows(None, 5120, "bfloat16", **options)
        assert [plan for _, plan in choices_by_rows(None, 5120, "bfloat16", **options)] == [plan for _, plan in plans]


def test_rows_that_are_not_known_have_blocks_for_all_multiprocessors():
    assert plan_gemm(None, 128, "bfloat16").blocks % 132 == 0 and plan_gemm(8192, 128, "bfloat16").blocks < 132


@pytest.mark.parametrize("options", [{}, {"bias": True, "batch": 2}], ids=str)
def test_a_call_chooses_by_its_rows(options):
    """At both sides of every border, of one kernel."""
    calls = [cases.gemm(M, 1024, 16, "float16", known="NK", **options) for M in (0, 1, 512, 513)]
    kernel = helve.compile(calls[0].function)
    assert len(re.findall("if M < ", kernel.source("plan"))) == len(plans_by_rows(
        None, 1024, "float16", count=None if "batch" in options else 1)) - 1 > 0
    for call in calls:
        arguments = call.arguments()
        kernel(*arguments)
        call.check(arguments)


def test_few_rows_of_a_call_have_parts():
    """Each plan has scratch memory of its own."""
    calls = [cases.gemm(M, 512, 4096, "float16", known="NK", transpose_B=True, **ALL) for M in (0, 1, 65, 300)]
    kernel = helve.compile(calls[0].function)
    for call in calls:
        arguments = call.arguments()
        kernel(*arguments)
        call.check(arguments)


@pytest.mark.parametrize(("options", "message"), [
    ({"dtype": "float32"}, "dtype is one of bfloat16, float16, float8_e4m3, float8_e5m2, not 'float32'"),
    ({"out": "int32"}, "out is one of bfloat16, float16, float32, not 'int32'"),
    ({"dtype": "float8_e4m3"},
     "factors of float8_e4m3 have K as their last dimension: transpose_B, and not transpose_A"),
    ({"activation": "tanh"}, "activation is 'relu', 'silu', 'gelu', a function or None, not 'tanh'"),
    ({"M": 0}, "M is a whole number of 1 or more, not 0"),
    ({"arch": "sm_10"}, "arch is an architecture such as 'sm_90a', not 'sm_10'"),
    ({"stages": 1}, "stages is a whole number of 2 or more, not 1"),
    ({"cluster": 17}, "cluster is at most 16 on sm_90a, not 17"),
    ({"split": 0}, "split is a whole number of 1 or more, not 0"),
    ({"split": "all"}, "split is a whole number of 1 or more, not 'all'"),
    ({"split": 2, "batch": True}, "split is 1 for a batch, not 2"),
    ({"cluster": 2, "blocks": 3}, "blocks is a multiple of cluster, 2, not 3"),
], ids=str)
def test_arguments_of_products_are_checked(options, message):
    with pytest.raises(ValueError) as refused:
        kernels.gemm(**options)
    assert str(refused.value) == message


def test_an_activation_of_the_caller():
    call = cases.gemm(20, 24, 16, "float16", **TINY)
    function = kernels.gemm("float16", activation=lambda x: x * x, **TINY)
    given = call.arguments()
    helve.compile(function)(*given)
    np.testing.assert_allclose(given[2].astype("float64"), call.expected[0] ** 2, rtol=2e-3, atol=1e-3)
