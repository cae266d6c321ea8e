"""kernels.gemm_w4a16: against its definition in float64 on the CPU, at every stage and as text."""

import re

import matrix_kernel_cases as cases
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents
from nvrtc import assert_fits_registers, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.kernels.w4a16_plan import MANY, PART, plan_w4a16, plans_by_rows

# Tiles that are whole, cut off in both directions, and several for a block; rings of which slots are used again.
TINY = {"tile": (64, 16), "depth": 64, "stages": 3, "blocks": 3}
ONE = {"tile": (64, 16), "blocks": 1}
PRODUCTS = {
    "a row": cases.gemm_w4a16(1, 72, 768),
    "tails": cases.gemm_w4a16(21, 136, 384, **TINY),
    "odd columns": cases.gemm_w4a16(19, 77, 128, "float16", **TINY),
    "known rows": cases.gemm_w4a16(16, 64, 128, known="M", **TINY),
    "two warpgroups": cases.gemm_w4a16(70, 136, 256, tile=(128, 64), depth=128, stages=2, blocks=1),
    "columns through shared memory": cases.gemm_w4a16(66, 72, 256, "float16", tile=(64, 64), depth=128, blocks=1),
    "parts of sums": cases.gemm_w4a16(19, 600, 512, depth=64, split=4, tile=(64, 16)),
    "pairs": cases.gemm_w4a16(33, 200, 256, tile=(64, 16), depth=64, stages=3, blocks=4, cluster=2),
    "small groups": cases.gemm_w4a16(9, 70, 256, "float16", group=32, depth=128, **ONE),
    "a scale a row": cases.gemm_w4a16(9, 70, 320, group=320, **ONE),
    "groups of three units": cases.gemm_w4a16(9, 40, 192, group=96, tile=(64, 32), blocks=1),
    "scales of float32": cases.gemm_w4a16(9, 70, 512, scales="float32", **ONE),
    "small groups of float32": cases.gemm_w4a16(9, 70, 192, "float16", group=32, depth=64, scales="float32",
                                                  **ONE),
}
products = pytest.mark.parametrize("name", PRODUCTS)


@products
def test_targets_without_tensor_cores(name):
    call = PRODUCTS[name]
    for target in ("interp", "llvm"):
        arguments = call.arguments()
        helve.compile(call.function, target=target)(*arguments)
        call.check(arguments)


@products
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_stages(name, arch):
    """The program of aligned tensors, and that of others; weights are in registers where a product takes them there."""
    call = PRODUCTS[name]
    function = older(name) if arch == "sm_80" else call.function
    stages = helve.testing.lowering_stages(function, target="cuda", arch=arch)
    for _, form in helve.testing.with_variant(stages)[-2:]:
        arguments = call.arguments()
        helve.testing.interpret(form, *arguments, check="all")
        call.check(arguments)
    text = _core.print(stages[-1][1])
    made = {"sm_90a": ("T.wgmma(w0", "T.wgmma(w1", "T.ring_wait("), "sm_80": ("T.mma(",)}[arch]
    assert all(each in text for each in made)


def older(name):
    """The function as it is planned for sm_80, which has no clusters."""
    (x, w, s), (c,) = PRODUCTS[name].inputs, PRODUCTS[name].expected
    N, K = c.shape[1], x.shape[1]
    return kernels.gemm_w4a16(N, K, x.dtype.name, group=K // s.shape[1], scales=s.dtype.name, arch="sm_80", blocks=2)


def last(function):
    return helve.testing.lowering_stages(function, target="cuda", arch="sm_90a")[-1][1]


TEXTS = ["tails", "odd columns", "known rows", "two warpgroups", "columns through shared memory", "pairs",
         "small groups", "scales of float32"]


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_products(tmp_path, unaligned):
    """For tensors that begin at whole vectors, which TMA copies to rings, and for others."""
    names = {name: name.replace(" ", "_") for name in TEXTS}
    host = HostKernels([last(PRODUCTS[name].function) for name in names], tmp_path, names=list(names.values()),
                       unaligned=unaligned)
    for name, label in names.items():
        given = [aligned(np.ascontiguousarray(each)) for each in PRODUCTS[name].arguments()]
        form = host.forms[label]
        blocks, extents = blocks_and_extents(form, given)
        host.run(label, blocks, dict(zip([each.name for each in form.params], given)), extents)
        PRODUCTS[name].check(given)


def test_rows_of_a_call_choose_a_kernel():
    """At both sides of every border, of one kernel; few rows are multiplied in parts."""
    plans = plans_by_rows(None, 128, 2048, 128)
    assert plans[0][1].split == 2 and plans[-1][0] is None
    borders = [most for most, _ in plans[:-1]]
    assert borders == sorted(borders)
    calls = [cases.gemm_w4a16(M, 128, 2048) for most in borders for M in (most, most + 1)] + [
        cases.gemm_w4a16(0, 128, 2048)]
    kernel = helve.compile(calls[0].function)
    assert len(re.findall("if M < ", kernel.source("plan"))) == len(borders)
    for call in calls:
        arguments = call.arguments()
        kernel(*arguments)
        call.check(arguments)


SIZES = [(4096, 4096), (14336, 4096), (4096, 14336), (8192, 28672), (4104, 4096)]


@needs_nvrtc
@pytest.mark.parametrize(("N", "K"), SIZES[::4])
@pytest.mark.parametrize("M", [1, 16, 32, 64, 256, 512, 4096])
def test_weights_stay_in_registers_and_rings_are_filled(M, N, K):
    """The first kernel of a text, which aligned rows take: nothing spills, and pairs of weights are converted."""
    options = {"dtype": "float16", "group": 64} if M == 16 else {}
    text = _core.cuda_source(last(kernels.gemm_w4a16(N, K, M=M, **options)))[0]
    first = text.partition("gemm_w4a16_0(")[2].partition("__global__")[0]
    assert "helve_ring_acquire<" in first and all(f"helve_unpack_int4(w{n} + " in first for n in (0, 1))
    assert first.count("helve_wait_for_products<1>();") == 2  # in front of each half, while the other is multiplied
    assert first.count("helve_wait_for_products<0>();") == 1  # at the end of a tile
    assert_fits_registers(text, "sm_90a", "gemm_w4a16_0")


@needs_nvrtc
def test_older_machines_spill_nothing():
    for M in (8, 64, 4096):
        function = kernels.gemm_w4a16(4096, 4096, M=M, arch="sm_80")
        text = _core.cuda_source(helve.testing.lowering_stages(function, target="cuda", arch="sm_80")[-1][1])[0]
        assert_fits_registers(text, "sm_80", "gemm_w4a16_0")


def test_plans():
    """Sums are split where tiles are few, as long as parts have terms and cost less than weights."""
    for N, K in SIZES:
        for most, plan in plans_by_rows(None, N, K, 128):
            assert K // plan.depth % plan.split == 0 and plan.threads == 2 * plan.rows
            assert plan.split == 1 or plan.split * min(plan.columns, most or MANY) * PART <= K
            assert most is None or most >= 256 or plan.blocks >= 100
    assert plan_w4a16(1, 4096, 4096).split > 1 == plan_w4a16(None, 4096, 4096).split
    assert plan_w4a16(None, 8192, 8192).columns == 256 > plan_w4a16(None, 8192, 8192, arch="sm_80").columns
    assert [plan_w4a16(1, 64, K, group).depth for K, group in ((96, 32), (192, 96), (192, 64), (256, 256))] == [
        32, 32, 64, 256]
    assert [plan_w4a16(M, 4096, 4096).depth for M in (1, 64, 512, None)] == [256, 256, 128, 64]
    assert plan_w4a16(1, 4096, 4096, 64).scales is False  # a half has two of them
    assert [plan_w4a16(1, 64, K, 32).columns for K in (96, 192, 256)] == [32, 16, 8]  # boxes that TMA copies
    assert plan_w4a16(4096, 4100, 4096).staged is False  # rows of C do not begin at vectors
    assert plan_w4a16(1, 4096, 4096, split=2, blocks=7).blocks == 7


@pytest.mark.parametrize(("options", "message"), [
    ({"N": 0}, "N is a whole number of 1 or more, not 0"),
    ({"M": 0}, "M is a whole number of 1 or more, not 0"),
    ({"K": 100}, "K is a multiple of group, 128, not 100"),
    ({"dtype": "float32"}, "dtype is one of bfloat16, float16, not 'float32'"),
    ({"scales": "float16"}, "scales is bfloat16 or float32, not 'float16'"),
    ({"group": 16}, "group is a multiple of 32, not 16"),
    ({"group": "all"}, "group is a multiple of 32, not 'all'"),
    ({"tile": (32, 16)}, "tile has a multiple of 64 rows of W, up to 512, not 32"),
    ({"tile": (1024, 8)}, "tile has a multiple of 64 rows of W, up to 512, not 1024"),
    ({"tile": 64}, "tile is rows and columns, two whole numbers of 1 or more, not 64"),
    ({"tile": (64.0, 8)}, "tile is rows and columns, two whole numbers of 1 or more, not (64.0, 8)"),
    ({"threads": 96}, "threads is a multiple of 128 up to two for each of 64 rows of W, not 96"),
    ({"split": -1}, "split is a whole number of 1 or more, not -1"),
    ({"split": 0}, "split is a whole number of 1 or more, not 0"),
    ({"tile": (64, 12)}, "tile has a multiple of 8 rows of X, up to 256, not 12"),
    ({"depth": 48}, "depth is 32, 64, 128 or 256, divides K, 256, and divides or is a multiple of group, 128, not 48"),
    ({"split": 2, "tile": (64, 8)}, "split is a divisor of the 1 tiles of K, not 2"),
    ({"arch": "sm_10"}, "arch is an architecture such as 'sm_90a', not 'sm_10'"),
    ({"stages": 1}, "stages is a whole number of 2 or more, not 1"),
    ({"cluster": 17}, "cluster is at most 16 on sm_90a, not 17"),
    ({"cluster": 2, "blocks": 3}, "blocks is a multiple of cluster, 2, not 3"),
], ids=str)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError) as refused:
        kernels.gemm_w4a16(**{"N": 64, "K": 256, **options})
    assert str(refused.value) == message
