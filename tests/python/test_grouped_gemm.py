"""helve.kernels.grouped_gemm: groups of rows of any lengths against products of each, at every stage and as text."""

import re

import matrix_kernel_cases as cases
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents
from nvrtc import assert_fits_registers, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.kernels.gemm_plan import plans_by_rows

TINY = {"tile": (64, 32), "depth": 32, "stages": 3, "blocks": 3}  # blocks take several tiles each
# Lengths of groups: with tails, of whole tiles, empty ones, one that has all rows, one group, many.
CALLS = {
    "ragged": cases.grouped_gemm((70, 0, 1, 130, 5), 40, 40, "float16", transpose_B=True, **TINY),
    "whole tiles": cases.grouped_gemm((64, 128, 64), 64, 32, out="float32", **TINY),
    "all in one": cases.grouped_gemm((0, 0, 150, 0), 40, 72, transpose_B=True, bias=True, activation="silu", **TINY),
    "none in any": cases.grouped_gemm((0, 0), 24, 16, "float16", room=3, **TINY),
    "one row each": cases.grouped_gemm((1,) * 9, 24, 40, known="NK", bias=True, activation="relu", **TINY),
    "one group": cases.grouped_gemm((77,), 33, 41, "float16", **TINY),
    "rows of no group": cases.grouped_gemm((3, 70), 40, 16, "float16", before=130, room=70, **TINY),
    "strips": cases.grouped_gemm((65, 3), 10 * 32 + 8, 32, "float16", known="N", transpose_B=True, **TINY),
    "many": cases.grouped_gemm([n % 3 for n in range(37)], 8, 16, "float16", transpose_B=True, **TINY),
    "eight bits": cases.grouped_gemm((9, 0, 66), 40, 144, "float8_e4m3", transpose_B=True, scale=True, **TINY),
}
names = pytest.mark.parametrize("name", CALLS)


def last(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


@names
def test_on_targets_without_tensor_cores(name):
    for target in ("interp", "llvm"):
        arguments = CALLS[name].arguments()
        helve.compile(CALLS[name].function, target=target)(*arguments)
        CALLS[name].check(arguments)


@pytest.mark.parametrize(("name", "arch"), [("ragged", "sm_80"), ("ragged", "sm_90a"), ("all in one", "sm_90a"),
                                            ("rows of no group", "sm_90a"), ("strips", "sm_90a")])
def test_at_every_stage(name, arch):
    stages = helve.testing.lowering_stages(CALLS[name].function, target="cuda", arch=arch)
    for _, form in helve.testing.with_variant(stages)[-2:]:
        arguments = CALLS[name].arguments()
        helve.testing.interpret(form, *arguments, check="all")
        CALLS[name].check(arguments)


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(tmp_path, unaligned):
    labels = {name: re.sub(r"\W+", "_", name) for name in CALLS if name != "none in any"}
    host = HostKernels([last(CALLS[name].function) for name in labels], tmp_path, names=list(labels.values()),
                       unaligned=unaligned)
    for name, label in labels.items():
        given = [aligned(np.ascontiguousarray(each)) for each in CALLS[name].arguments()]
        blocks, extents = blocks_and_extents(host.forms[label], given)
        host.run(label, blocks, dict(zip([each.name for each in host.forms[label].params], given)), extents)
        CALLS[name].check(given)


def test_places_out_of_range_reach_no_other_memory():
    call = CALLS["ragged"]
    for target in ("interp", "llvm"):
        kernel = helve.compile(call.function, target=target)
        for places in ([-9, -5, -1, 7, 1 << 20, 1 << 30], [1 << 30] * 6, [-(1 << 31)] * 3 + [1, 2, 2]):
            arguments = call.arguments()
            arguments[2] = np.array(places, "int32")
            kernel(*arguments)  # the interpreter checks bounds
        arguments[2] = np.array([0, 4, 3, 5, 6, 7], "int32")
        with pytest.raises(helve.Error, match=r"HV0626.*\n?.*'places' is declared sorted, and element 2"):
            kernel(*arguments)


def test_rows_of_a_call_choose_the_tiles():
    """By the mean of a group, at both sides of a border."""
    calls = [cases.grouped_gemm(lengths, 512, 32, "float16", known="NK") for lengths in ((100, 28), (129, 0), (0, 600))]
    kernel = helve.compile(calls[0].function)
    assert len(re.findall("if rows < ", kernel.source("plan"))) == len(plans_by_rows(None, 512, "float16", count=2)) - 1
    for call in calls:
        arguments = call.arguments()
        kernel(*arguments)
        call.check(arguments)


@needs_nvrtc
@pytest.mark.parametrize("options", [{}, {"transpose_B": True, "bias": True},
                                     {"N": 4096, "K": 2048, "transpose_B": True},
                                     {"M": 512, "N": 14336, "K": 4096, "bias": True, "activation": "silu"}], ids=str)
def test_tiles_of_the_next_group_come_early(options):
    """By warps of their own, though a loop names where groups begin; nothing spills, and every bound is proved."""
    function = kernels.grouped_gemm(64, **options)
    kernel = helve.compile(function, target="cuda", arch="sm_90a", strict=True)
    assert "T.Pipelined by rings" in str(kernel.schedules())
    assert {p.kind for p in kernel.proofs() if p.verdict != "proved"} <= {"race"}  # whether groups overlap
    assert_fits_registers(_core.cuda_source(last(function))[0], "sm_90a", "grouped_gemm_0")


@pytest.mark.parametrize(("options", "message"), [
    ({"groups": 0}, "groups is a whole number of 1 or more, not 0"),
    ({"groups": 4097}, "groups is at most 4096, not 4097"),
    ({"dtype": "float32"}, "dtype is one of bfloat16, float16, float8_e4m3, float8_e5m2, not 'float32'"),
    ({"dtype": "float8_e4m3"},
     "factors of float8_e4m3 have K as their last dimension: transpose_B, and not transpose_A"),
    ({"activation": "tanh"}, "activation is 'relu', 'silu', 'gelu', a function or None, not 'tanh'"),
    ({"N": 0}, "N is a whole number of 1 or more, not 0"),
    ({"cluster": 2}, "cluster is 1 for products of groups, not 2"),
    ({"split": 2}, "split is 1 for products of groups, not 2"),
], ids=str)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError) as refused:
        kernels.grouped_gemm(**{"groups": 4, **options})
    assert str(refused.value) == message
