"""The RMSNorm mesh kernel from end to end.

One function, every target, every stage on the way down, on meshes that are not square and extents that divide nothing.
"""

import importlib.util
import pathlib

import numpy as np
import pytest

import helve
import helve.testing

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "tutorials"


def load_tutorial(name):
    spec = importlib.util.spec_from_file_location(name, TUTORIALS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rms = load_tutorial("01_rms_norm")

MESHES = [(1, 1), (2, 2), (2, 3), (3, 2), (2, 4)]
# The last two leave cores without rows or columns.
SHAPES = [((64, 128), 32, 64), ((50, 77), 32, 64), ((37, 131), 16, 48), ((1, 1), 32, 32), ((3, 2), 32, 32)]


def expected_and_input(shape):
    a = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
    return a, rms.reference(a)


@pytest.mark.parametrize("mesh_shape", MESHES, ids=lambda m: "x".join(map(str, m)))
@pytest.mark.parametrize(("shape", "blk_m", "blk_k"), SHAPES, ids=lambda v: str(v))
@pytest.mark.parametrize("chunk", [1, 3])
def test_targets_agree_with_the_definition(shape, blk_m, blk_k, mesh_shape, chunk):
    mesh = helve.Mesh(mesh_shape)
    a, expected = expected_and_input(shape)
    function = rms.rms_norm_splitk(*shape, blk_m, blk_k, mesh)
    results = {}
    for target in ("interp", "llvm"):
        b = np.full_like(a, np.nan)
        helve.compile(function, mesh=mesh, target=target, verify=True, persistent_chunk=chunk)(a, b)
        np.testing.assert_allclose(b, expected, rtol=2e-6, atol=1e-6)
        results[target] = b
    np.testing.assert_allclose(results["interp"], results["llvm"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mesh_shape", MESHES, ids=lambda m: "x".join(map(str, m)))
@pytest.mark.parametrize("chunk", [1, 2])
def test_every_stage_means_the_same_and_parses_back(mesh_shape, chunk):
    mesh = helve.Mesh(mesh_shape)
    shape = (70, 45)
    a, expected = expected_and_input(shape)
    function = rms.rms_norm_splitk(*shape, 32, 32, mesh)
    stages = helve.testing.lowering_stages(function, mesh=mesh, persistent_chunk=chunk)
    for name, stage in helve.testing.changed_stages(stages):
        b = np.full_like(a, np.nan)
        helve.testing.interpret(stage, a, b)
        np.testing.assert_allclose(b, expected, rtol=2e-6, atol=1e-6, err_msg=f"after {name}")
        helve.testing.assert_round_trip(stage)


def test_results_repeat_bit_for_bit():
    mesh = helve.Mesh((2, 3))
    a, _ = expected_and_input((130, 257))
    kernel = helve.compile(rms.rms_norm_splitk(130, 257, 32, 64, mesh), mesh=mesh)
    first, second = np.empty_like(a), np.empty_like(a)
    kernel(a, first)
    kernel(a, second)
    assert np.array_equal(first, second)
