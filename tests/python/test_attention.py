"""helve.kernels.attention: against its definition in float64 on the CPU, at every stage and as text."""

import re

import matrix_kernel_cases as cases
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents
from nvrtc import assert_fits_registers, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.testing import changed_stages
from helve.kernels.attention_plan import AttentionPlan, plan_attention

TINY = {"queries": 64, "keys": 16, "threads": 128, "blocks": 2}
# Sequences of whole tiles, with tails, of one row, shorter than a tile, without keys; causal with more and fewer keys.
CALLS = {
    "whole tiles": {"M": 64, "N": 32, "lse": True},
    "tails": {"M": 70, "N": 41, "heads": 1, "dtype": "float16", "lse": True},
    "causal": {"M": 72, "N": 72, "heads": 1, "causal": True, "lse": True},
    "causal, more keys": {"M": 5, "N": 50, "causal": True, "dtype": "float16"},
    "causal, fewer keys": {"M": 70, "N": 20, "heads": 1, "causal": True, "lse": True},
    "grouped": {"M": 9, "N": 20, "heads": 4, "heads_kv": 2, "batch": 2, "dtype": "float16", "lse": True},
    "one query, one key": {"M": 1, "N": 1, "lse": True},
    "no key": {"M": 3, "N": 0, "lse": True},
    "a scale": {"M": 8, "N": 24, "scale": 0.5, "dtype": "float16"},
    "head 128": {"M": 17, "N": 33, "head": 128, "heads": 1, "causal": True},
    "float32": {"M": 17, "N": 33, "heads": 1, "dtype": "float32", "causal": True, "lse": True},
    "head 256": {"M": 17, "N": 18, "head": 256, "heads": 1, "dtype": "float16", "lse": True},
}
names = pytest.mark.parametrize("name", CALLS)


def call(name, arch="sm_90a"):
    return cases.attention(**CALLS[name], arch=arch, **TINY)


def last(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


@names
def test_on_targets_without_tensor_cores(name):
    attention = call(name)
    for target in ("interp", "llvm"):
        arguments = attention.arguments()
        helve.compile(attention.function, target=target)(*arguments)
        attention.check(arguments)


@names
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_at_every_stage(name, arch):
    attention = call(name, arch)
    stages = helve.testing.lowering_stages(attention.function, target="cuda", arch=arch)
    for _, form in changed_stages(helve.testing.with_variant(stages)):
        arguments = attention.arguments()
        helve.testing.interpret(form, *arguments, check="all")
        attention.check(arguments)
    products = _core.print(stages[-1][1]).count("T.wgmma(" if arch == "sm_90a" else "T.mma(")
    assert products == 0 if CALLS[name].get("dtype") == "float32" else products >= 2


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_text_computes_it(tmp_path, unaligned):
    """For tensors that begin at whole vectors, which TMA copies to rings, and for others."""
    calls = {re.sub(r"\W+", "_", name): call(name) for name in CALLS if name != "no key"}
    host = HostKernels([last(each.function) for each in calls.values()], tmp_path, names=list(calls),
                       unaligned=unaligned)
    for label, attention in calls.items():
        given = [aligned(np.ascontiguousarray(each)) for each in attention.arguments()]
        form = host.forms[label]
        blocks, extents = blocks_and_extents(form, given)
        host.run(label, blocks, dict(zip([each.name for each in form.params], given)), extents)
        attention.check(given)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head", [64, 128, 256])
def test_it_spills_nothing(head, causal, arch):
    """Weights stay in registers between the products of warpgroups, whose keys and values come through rings."""
    text = _core.cuda_source(last(kernels.attention(16, head, causal=causal, lse=True, arch=arch), arch))[0]
    if arch == "sm_90a":
        assert "helve_ring_acquire<" in text.partition("attention_1(")[0]
    assert_fits_registers(text, arch, "attention_0")


def test_plans():
    assert plan_attention(128) == AttentionPlan(128, 128, 256, 2, 132, True, "tensor_cores")
    assert plan_attention(256).keys < plan_attention(128).keys
    assert not plan_attention(64, arch="sm_80").registers
    assert plan_attention(64, "float32").dispatch == ""


@pytest.mark.parametrize(("options", "message"), [
    ({"dtype": "float64"}, "dtype is one of bfloat16, float16, float32, not 'float64'"),
    ({"head": 96}, "head is one of 64, 128, 256, not 96"),
    ({"heads": 0}, "heads is a whole number of 1 or more, not 0"),
    ({"heads_kv": 0}, "heads_kv is a whole number of 1 or more, not 0"),
    ({"heads_kv": 3}, "heads is a multiple of heads_kv, and 8 is none of 3"),
    ({"scale": 0.0}, "scale is a positive number, not 0.0"),
    ({"scale": float("inf")}, "scale is a positive number, not inf"),
    ({"keys": 0}, "keys is a whole number of 1 or more, not 0"),
    ({"arch": "sm_10"}, "arch is an architecture such as 'sm_90a', not 'sm_10'"),
    ({"stages": 1}, "stages is a whole number of 2 or more, not 1"),
], ids=str)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError) as refused:
        kernels.attention(**{"heads": 8, **options})
    assert str(refused.value) == message
