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
from helve.kernels.layer_norm import layer_norm as layer_by_hand
from helve.kernels.rms_norm import rms_norm as by_hand
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


def chunked(turns, run, chunks, kept, tail=0):
    program = helve_norms.rms_norm(32 * turns * run * chunks - tail, "float32")
    return lambda check: helve_norms.chunked_rows(program, 32, turns, run, chunks, kept, check)


def whole(columns, early="XW"):
    return lambda check: helve_norms.whole_rows(helve_norms.rms_norm(columns, "float32"), 32, early, "j", check)


def in_turn(columns, blocks, stages):
    program = helve_norms.rms_norm(columns, "float32")
    return lambda check: helve_norms.rows_in_turn(program, 32, blocks, stages, check)


def in_clusters(columns, clusters, cores, stages, held="W"):
    program = helve_norms.rms_norm(columns, "float32")
    return lambda check: helve_norms.shared_rows(program, columns, 32, clusters, cores, stages, held, "j", check)


FORMS = {
    "whole of 2": whole(2),
    "whole of 7": whole(7),
    "whole of 96": whole(96),
    "whole without weights": whole(96, early="X"),
    "chunks, some kept": chunked(2, 2, 3, 1),
    "chunks, all kept": chunked(2, 1, 2, 2),
    "chunks, none kept": chunked(2, 2, 2, 0),
    "chunks, none kept, a smaller last one": chunked(2, 2, 2, 0, tail=51),
    "rows in turn": in_turn(64, 2, 3),
    "rows in turn, unaligned": in_turn(7, 3, 2),
    "clusters": in_clusters(64, 2, 4, 3),
    "clusters, weights read again": in_clusters(12, 3, 3, 2, held=""),
    "clusters, a smaller last slice": in_clusters(7, 2, 2, 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_step_keeps_the_result(form):
    s = FORMS[form](True)
    assert {step.effect for step in s.report()} == {"equal", "reassociated"}
    for rows in (0, 1, 3):
        x, w, y = arguments(rows, helve.testing.make_arguments(s)[1].size)
        helve.compile(s)(x, w, y)
        np.testing.assert_allclose(y, expected(x, w), rtol=1e-5)
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()


@pytest.mark.parametrize("form", FORMS)
def test_every_stage_keeps_the_result(form):
    s = FORMS[form](False)
    columns = helve.testing.make_arguments(s)[1].size
    helve.testing.check_stages(s.function, lambda: arguments(3, columns), rtol=1e-5, atol=1e-5, check="all")


def source(program):
    return helve.compile(program, target="cuda", arch="sm_90a").source("cuda")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("columns", [1024, 7168])
def test_rows_stay_in_registers(dtype, columns):
    """The only shared memory is that of the sums of warps, and every access of rows has 16 bytes, as by hand."""
    text = source(helve_norms.schedule(columns, dtype))
    hand = source(by_hand(columns, dtype))
    for access in (r"helve_load<16>", r"helve_store(_rounded)?<16>|helve_store<16>", r"helve_shuffle_xor\(",
                   r"__syncthreads", r"float\* const \w+ = \(float\*\)\(helve_shared"):
        assert len(re.findall(access, text)) == len(re.findall(access, hand)), access
    assert "total_fragment[" in text and "(float*)(helve_shared + 0)" in text or columns == 1024


def test_rows_in_turn_are_copied_ahead():
    s = helve_norms.rows_in_turn(helve_norms.rms_norm(4096, "bfloat16"), 128, 132, 3)
    assert "T.Pipelined(T.max((M - ii + 131) // 132, 0), num_stages=3" in s.script()
    text = source(s)
    assert text.count("helve_copy_bulk(X_shared") == 2 and "X_shared + (ioo + 2) % 3 * 4096" in text


def test_cores_of_a_cluster_exchange_sums_while_rows_arrive():
    s = helve_norms.shared(65536, "bfloat16", cluster=2, clusters=66, threads=1024, stages=3)
    assert 'T.comm.all_reduce(total_shared, total_cores, axis="y")' in s.script()
    text = source(s)
    assert text.count("helve_copy_bulk(X_shared") == 2 and text.count("helve_push(slots_y") == 1
    assert text.count("__global__") == 1 and "X_shared + (ioo + 2) % 3 * 32768" in text


@pytest.mark.parametrize("form", ["whole", "clusters"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_layer_norm(dtype, form):
    program = helve_norms.layer_norm(96, dtype)
    if form == "whole":
        s = helve_norms.whole_rows(program, 32, "XWB", "jh", check=True)
    else:
        s = helve_norms.shared_rows(program, 96, 32, 2, 3, 2, "WB", "jh", check=True)
        assert s.script().count("T.comm.all_reduce") == 2
    x, w, b, y = arguments = helve.testing.make_arguments(s)
    helve.compile(s)(*arguments)
    deviation = x.astype("float64") - x.astype("float64").mean(axis=1, keepdims=True)
    wanted = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(y.astype("float64"), wanted, rtol=2e-2 if dtype == "bfloat16" else 1e-4, atol=2e-2)
    hand, text = source(layer_by_hand(1024, dtype)), source(helve_norms.whole_layer_norm(1024, dtype))
    for access in ("helve_load<16>", "helve_store", r"helve_shuffle_xor\("):
        assert len(re.findall(access, text)) == len(re.findall(access, hand)), access


@needs_nvrtc
@pytest.mark.parametrize(("columns", "dtype"), [(4096, "bfloat16"), (32768, "float32"), (131072, "bfloat16")])
def test_machine_code_has_the_size_of_that_by_hand(columns, dtype):
    """Registers and instructions decide the speed; benchmarks/gpu/norms_by_schedule.py measures it."""
    sizes = []
    for program in (helve_norms.schedule(columns, dtype), by_hand(columns, dtype)):
        cubin, log = compile_cubin(source(program), "sm_90a")
        assert "0 bytes spill stores" in log or "spill" not in log
        sizes.append((int(re.search(r"Used (\d+) registers", log)[1]), len(cubin)))
    assert sizes[0][0] <= sizes[1][0] + 2 and sizes[0][1] < sizes[1][1] * 1.05
