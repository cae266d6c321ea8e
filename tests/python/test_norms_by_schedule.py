"""Norms from plain loops: every step is interpreted, and kernels are those that are written by hand.

The schedules are those of benchmarks/gpu/norms_by_schedule.py, which measures them, and docs/tutorials/norms.md.
"""

import re
import sys
from pathlib import Path

import helve
import helve.testing
import numpy as np
import pytest
from helve.kernels.rms_norm import rms_norm as by_hand
from helve.kernels.rows import plan_rows
from nvrtc import compile_cubin, needs_nvrtc

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from schedules_of import helve_norms  # noqa: E402


def arguments(rows, columns):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((rows, columns)).astype("float32"),
            rng.standard_normal(columns).astype("float32"), np.zeros((rows, columns), "float32")]


def expected(x, w):
    x = x.astype("float64")
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w


FORMS = {"whole": lambda n, check: helve_norms.whole_rows(helve_norms.rms_norm(n, "float32"), 32, check)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [2, 7, 64, 96])
def test_every_step_keeps_the_result(form, columns):
    s = FORMS[form](columns, True)
    assert {step.effect for step in s.report()} == {"equal", "reassociated"}
    for rows in (0, 1, 3):
        x, w, y = arguments(rows, columns)
        helve.compile(s)(x, w, y)
        np.testing.assert_allclose(y, expected(x, w), rtol=1e-5)
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


@pytest.mark.parametrize("form", FORMS)
def test_every_stage_keeps_the_result(form):
    helve.testing.check_stages(FORMS[form](64, False).function, lambda: arguments(3, 64), rtol=1e-5, atol=1e-5,
                               check="all")


def source(program):
    return helve.compile(program, target="cuda", arch="sm_90a").source("cuda")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("columns", [1024, 4096])
def test_rows_stay_in_registers(dtype, columns):
    """The only shared memory is that of the sums of warps, and every access of rows has 16 bytes, as by hand."""
    text = source(helve_norms.schedule(columns, dtype))
    hand = source(by_hand(columns, dtype))
    for access in (r"helve_load<16>", r"helve_store(_rounded)?<16>|helve_store<16>", r"helve_shuffle_xor\(",
                   r"__syncthreads", r"float\* const \w+ = \(float\*\)\(helve_shared"):
        assert len(re.findall(access, text)) == len(re.findall(access, hand)), access
    assert "total_fragment[" in text and "(float*)(helve_shared + 0)" in text or columns == 1024


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_machine_code_has_the_size_of_that_by_hand(dtype):
    """Registers and instructions decide the speed; benchmarks/gpu/norms_by_schedule.py measures it."""
    sizes = []
    for program in (helve_norms.schedule(4096, dtype), by_hand(4096, dtype)):
        cubin, log = compile_cubin(source(program), "sm_90a")
        assert "0 bytes spill stores" in log or "spill" not in log
        sizes.append((int(re.search(r"Used (\d+) registers", log)[1]), len(cubin)))
    assert sizes[0][0] <= sizes[1][0] + 2 and sizes[0][1] < sizes[1][1] * 1.05
    assert plan_rows(4096, dtype).chunks == 1
