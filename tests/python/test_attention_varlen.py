"""helve.kernels.attention_varlen: sequences of different lengths against attention of each, at every stage and as text.
"""

import re

import matrix_kernel_cases as cases
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents
from nvrtc import assert_fits_registers, needs_nvrtc
from test_attention import TINY, last

import helve
import helve.testing
from helve import _core, kernels
from helve.testing import changed_stages

# Queries and keys of each sequence: with tails, of whole tiles, empty ones, without keys, room behind the last.
CALLS = {
    "tails": {"lengths": [(5, 41), (70, 20), (9, 9)], "lse": True},
    "whole tiles": {"lengths": [(64, 32), (64, 16)], "dtype": "float16"},
    "empty": {"lengths": [(0, 3), (3, 0), (0, 0), (7, 5)], "lse": True, "causal": True},
    "causal": {"lengths": [(66, 66), (5, 30), (40, 7)], "heads": 4, "heads_kv": 2, "causal": True, "room": 6},
    "one": {"lengths": [(1, 1)], "dtype": "float16", "lse": True},
    "float32": {"lengths": [(17, 33), (2, 5)], "heads": 1, "dtype": "float32", "causal": True},
    "head 128": {"lengths": [(17, 33), (20, 18)], "head": 128, "heads": 1},
}
names = pytest.mark.parametrize("name", CALLS)


def call(name, arch="sm_90a"):
    return cases.attention_varlen(**CALLS[name], arch=arch, **TINY)


@names
def test_on_targets_without_tensor_cores(name):
    packed = call(name)
    for target in ("interp", "llvm"):
        arguments = packed.arguments()
        helve.compile(packed.function, target=target)(*arguments)
        packed.check(arguments)


@pytest.mark.parametrize(("name", "arch"), [("tails", "sm_80"), ("tails", "sm_90a"), ("causal", "sm_90a"),
                                            ("empty", "sm_90a"), ("head 128", "sm_90a")])
def test_at_every_stage(name, arch):
    packed = call(name, arch)
    for _, form in changed_stages(helve.testing.with_variant(
            helve.testing.lowering_stages(packed.function, target="cuda", arch=arch))):
        arguments = packed.arguments()
        helve.testing.interpret(form, *arguments, check="all")
        packed.check(arguments)


def test_the_text_computes_it(tmp_path):
    calls = {re.sub(r"\W+", "_", name): call(name) for name in ("tails", "causal", "empty")}
    host = HostKernels([last(each.function) for each in calls.values()], tmp_path, names=list(calls))
    for label, packed in calls.items():
        given = [each if isinstance(each, int) else aligned(np.ascontiguousarray(each)) for each in packed.arguments()]
        form = host.forms[label]
        blocks, extents = blocks_and_extents(form, given)
        arrays = {p.name: each for p, each in zip(form.params, given, strict=True) if not isinstance(each, int)}
        scalars = {p.name: each for p, each in zip(form.params, given, strict=True) if isinstance(each, int)}
        host.run(label, blocks, arrays, extents | scalars)
        packed.check(given)


def test_places_out_of_range_reach_no_other_memory():
    packed = call("tails")
    arguments = packed.arguments()
    arguments[3], arguments[4] = (np.array([-9, -5, 1 << 20, 1 << 30], "int32") for _ in range(2))
    for target in ("interp", "llvm"):
        helve.compile(packed.function, target=target)(*arguments)  # the interpreter checks bounds


@needs_nvrtc
@pytest.mark.parametrize("head", [64, 128, 256])
def test_tiles_of_the_next_sequence_come_early(head):
    """Queries come through a ring as well, and nothing spills."""
    function = kernels.attention_varlen(16, head, causal=True, lse=True)
    form, schedules = last(function), str(helve.compile(function, target="cuda", arch="sm_90a").schedules())
    assert all(f"{each} by" in schedules for each in ("T.Pipelined", "T.Persistent"))
    assert "T.Pipelined by rotated products" in schedules  # though the loop names where its tiles begin
    text = _core.cuda_source(form)[0]
    assert "helve_ring_acquire<1>" in text and "helve_ring_acquire<2>" in text
    assert_fits_registers(text, "sm_90a", "attention_varlen_0")
