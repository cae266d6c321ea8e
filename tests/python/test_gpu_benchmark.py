"""The problems of benchmarks/gpu on the CPU: arguments, definitions and tolerances fit helve's kernels.

A benchmark that cannot run where it is changed would rot; here all of it runs but the clock and the rivals.
"""

import importlib
import sys
from pathlib import Path

import pytest

import helve

torch = pytest.importorskip("torch")
FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"


@pytest.fixture
def modules(monkeypatch):
    """The benchmark's modules, with tensors on the CPU."""
    monkeypatch.syspath_prepend(str(FOLDER))
    modules = {name: importlib.import_module(name) for name in ("measure", "problems", "run")}
    monkeypatch.setattr(modules["measure"], "DEVICE", "cpu")
    yield type("Benchmark", (), modules)
    for name in modules:
        sys.modules.pop(name)


def names():
    return ["rms_norm", "softmax", "cross_entropy", "layer_norm", "rms_norm_backward", "layer_norm_backward",
            "softmax_backward", "rope",
            "swiglu", "swiglu_backward", "transpose", "row_sums", "column_sums"]  # fmt: skip


def test_every_problem_is_tested(modules):
    assert sorted(modules.problems.PROBLEMS) == sorted(names())


@pytest.mark.parametrize("name", names())
def test_a_problem_is_what_the_kernel_computes(modules, monkeypatch, name):
    monkeypatch.setattr(modules.problems, "TENSOR_BYTES", 12 * 256 * 2)
    problem = modules.problems.PROBLEMS[name]
    M, N = modules.problems.rows_of(256), 256
    assert M == 12
    setup = problem.setup(M, N)
    kernel = helve.compile(problem.build(N))
    calls = {"helve": lambda: kernel(*setup.inputs, *setup.outputs), "eager": setup.call_of(setup.expression)}
    assert modules.run.verdict(setup, calls).startswith("right")
    assert setup.moved >= sum(t.nbytes for t in setup.outputs) + setup.inputs[0].nbytes
    # A wrong result is seen.
    calls["helve"] = lambda: [t.fill_(0.5) for t in setup.outputs]
    assert "WRONG" in modules.run.verdict(setup, calls)


def test_sizes_follow_the_options(modules, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py", "--kernels", "softmax,rope", "--quick"])
    listed = [(name, N) for name, _, _, N in modules.run.sizes(modules.run.arguments())]
    assert listed == [("softmax", 4096), ("softmax", 65536), ("rope", 4096)]
    monkeypatch.setattr(sys, "argv", ["run.py", "--kernels", "softmax", "--columns", "1000,3000"])
    assert [(M, N) for _, _, M, N in modules.run.sizes(modules.run.arguments())] == [(134217, 1000), (44739, 3000)]


def test_clusters_share_rows_where_that_was_measured_to_be_faster(modules):
    choice = modules.problems.measured({65536: {"cluster": 4}, 131072: {"cluster": 8}})
    assert [choice(N) for N in (1024, 65535, 65536, 131071, 131072, 262144)] == [
        {}, {}, {"cluster": 4}, {"cluster": 4}, {"cluster": 8}, {"cluster": 8}]  # fmt: skip


def test_a_sweep_tries_every_combination_of_each_grid(modules):
    tried = list(modules.run.tunings(({"a": (1, 2), "b": (3,)}, {"c": (4, 5)})))
    assert tried == [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"c": 4}, {"c": 5}]
