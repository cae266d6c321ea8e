"""helve.kernels.attention_backward: against its definition in float64 on the CPU, at every stage and as text."""

import re

import matrix_kernel_cases as cases
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents
from nvrtc import assert_fits_registers, needs_nvrtc

import helve
import helve.testing
from helve import _core, kernels
from helve.testing import changed_stages
from helve.kernels.attention_plan import BackwardPlan, plan_attention_backward

# As of the forward pass: tails, rows without a key, more and fewer keys than queries, heads that share keys.
CALLS = {
    "tails": {"M": 70, "N": 41, "heads": 1, "dtype": "float16"},
    "causal": {"M": 72, "N": 72, "heads": 1, "causal": True},
    "causal, more keys": {"M": 5, "N": 50, "causal": True, "dtype": "float16"},
    "causal, fewer keys": {"M": 70, "N": 20, "heads": 1, "causal": True},
    "grouped": {"M": 9, "N": 20, "heads": 2, "heads_kv": 1, "batch": 2, "causal": True, "dtype": "float16"},
    "one query, one key": {"M": 1, "N": 1},
    "no query": {"M": 0, "N": 3},
    "no key": {"M": 3, "N": 0},
    "a scale": {"M": 8, "N": 24, "scale": 0.5, "dtype": "float16"},
    "head 128": {"M": 17, "N": 33, "head": 128, "heads": 1, "causal": True},
    "float32": {"M": 5, "N": 20, "heads": 1, "dtype": "float32", "causal": True},
}
SMALL = {"rows": 64, "columns": 32, "threads": 128}  # tiles that tests compute faster
names = pytest.mark.parametrize("name", CALLS)
archs = pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])


def last(function, arch="sm_90a"):
    return helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1]


@names
def test_on_targets_without_tensor_cores(name):
    backward = cases.attention_backward(**CALLS[name], **({} if name == "grouped" else SMALL))
    for target in ("interp", "llvm"):
        arguments = backward.arguments()
        helve.compile(backward.function, target=target)(*arguments)
        backward.check(arguments)


@pytest.mark.parametrize(("name", "arch"), [("causal, more keys", "sm_80"), ("grouped", "sm_90a"),
                                            ("float32", "sm_80")])
def test_at_every_stage(name, arch):
    backward = cases.attention_backward(**CALLS[name], **SMALL, arch=arch)
    stages = helve.testing.lowering_stages(backward.function, target="cuda", arch=arch)
    for _, form in changed_stages(helve.testing.with_variant(stages)):
        arguments = backward.arguments()
        helve.testing.interpret(form, *arguments, check="all")
        backward.check(arguments)
    products = _core.print(stages[-1][1]).count("T.wgmma(" if arch == "sm_90a" else "T.mma(")
    assert products == 0 if CALLS[name].get("dtype") == "float32" else products >= 5


@pytest.mark.parametrize("part", ["queries", "keys"])
def test_the_text_computes_it(part, tmp_path):
    calls = {re.sub(r"\W+", "_", name): cases.attention_backward(**options, **SMALL, part=part)
             for name, options in CALLS.items() if name in ("tails", "causal, fewer keys", "grouped", "head 128")}
    host = HostKernels([last(each.function) for each in calls.values()], tmp_path, names=list(calls))
    for label, backward in calls.items():
        given = [aligned(each) for each in backward.arguments()]
        form = host.forms[label]
        blocks, extents = blocks_and_extents(form, given)
        host.run(label, blocks, dict(zip([each.name for each in form.params], given)), extents)
        backward.check(given)


@needs_nvrtc
@archs
@pytest.mark.parametrize(("head", "causal"), [(64, True), (128, False)])
def test_it_spills_nothing(head, causal, arch):
    text = _core.cuda_source(last(kernels.attention_backward(16, head, causal=causal, heads_kv=4, arch=arch), arch))[0]
    assert ("helve_ring_acquire<" in text) == (arch == "sm_90a")
    assert_fits_registers(text, arch)


def test_plans():
    assert plan_attention_backward(128) == BackwardPlan(128, 128, 256, 2, True, "tensor_cores")
    assert plan_attention_backward(128, of="keys", threads=128) == BackwardPlan(128, 48, 128, 3, True, "tensor_cores")
    assert not plan_attention_backward(64, arch="sm_80").registers
    assert plan_attention_backward(64, "float32").dispatch == ""


@pytest.mark.parametrize(("options", "message"), [
    ({"dtype": "float64"}, "dtype is one of bfloat16, float16, float32, not 'float64'"),
    ({"head": 256}, "head is one of 64, 128 for gradients, not 256"),
    ({"heads_kv": 3}, "heads is a multiple of heads_kv, and 8 is none of 3"),
    ({"columns": 0}, "columns is a whole number of 1 or more, not 0"),
    ({"arch": "sm_10"}, "arch is an architecture such as 'sm_90a', not 'sm_10'"),
], ids=str)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError) as refused:
        kernels.attention_backward(**{"heads": 8, **options})
    assert str(refused.value) == message
