"""T.gemm by the tensor cores of each warp: what it computes at every stage, its layouts and its text."""

from functools import partial

import numpy as np
import pytest
import tile_products
from cuda_on_host import HostKernels, aligned
from nvrtc import assert_compiles, needs_nvrtc
from tile_products import arguments

import helve
import helve.testing
from helve import T, _core
from helve.testing import changed_stages, lowering_stages

product = partial(tile_products.product, "mma")

CASES = [
    (16, 8, 16, 32, "float16", False, False, 1),
    (32, 16, 32, 32, "bfloat16", False, True, 2),
    (64, 48, 32, 128, "float16", True, False, 1),
    (48, 64, 16, 96, "bfloat16", True, True, 3),
    (32, 16, 16, 64, "float32", False, True, 2),
    (16, 16, 8, 64, "float32", True, False, 1),
    (32, 16, 32, 32, "int8", False, True, 2),
    (16, 16, 64, 32, "uint8", False, False, 1),
]


@pytest.mark.parametrize(("m", "n", "k", "threads", "dtype", "ta", "tb", "steps"), CASES)
def test_every_stage(m, n, k, threads, dtype, ta, tb, steps):
    function = product(m, n, k, threads, dtype, ta, tb, steps=steps)
    given, expected = arguments(m, n, k, dtype, ta, tb, steps)
    for arch in ("sm_80", "sm_90a"):
        for name, stage in changed_stages(lowering_stages(function, target="cuda", arch=arch)):
            found = [each.copy() for each in given]
            helve.testing.interpret(stage, *found)
            np.testing.assert_array_equal(found[2], expected, err_msg=name)
            helve.testing.assert_round_trip(stage)


LAYOUTS = {
    "A": "S[(2, 8, 2, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]",
    "B": "S[(2, 4, 2, 8) : (2@reg, 1@tx, 1@reg, 4@tx)]",
    "C": "S[(2, 8, 4, 2) : (2@reg, 4@tx, 1@tx, 1@reg)]",
}


@T.prim_func
def instruction(
    A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 8), "float16"), C: T.Tensor((16, 8), "float32")
):
    with T.Kernel(1, threads=32):
        a = T.alloc_fragment((16, 16), "float16", layout=LAYOUTS["A"])
        b = T.alloc_fragment((16, 8), "float16", layout=LAYOUTS["B"])
        c = T.alloc_fragment((16, 8), "float32", layout=LAYOUTS["C"])
        T.copy(A, a)
        T.copy(B, b)
        T.copy(C, c)
        T.mma(a, b, c, shape=[16, 8, 16], layout_A=LAYOUTS["A"], layout_B=LAYOUTS["B"], layout_C=LAYOUTS["C"])
        for i, j in T.Parallel(16, 8):
            C[i, j] = c[i, j] * 2.0


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_the_instruction_runs_on_every_target(target):
    """As the program has it, and as the threads of a block have it."""
    given, expected = arguments(16, 8, 16, "float16", False, False, 1)
    last = helve.testing.lowering_stages(instruction, target="cuda", arch="sm_80")[-1][1]
    assert "T.mma(" in _core.print(last) and "T.threads" in _core.print(last)
    for function in (instruction, helve.parse(_core.print(last))):
        found = [each.copy() for each in given]
        helve.compile(function, target=target)(*found)
        np.testing.assert_array_equal(found[2], expected)
    for case in CASES[1:]:
        m, n, k, _, dtype, ta, tb, steps = case
        given, expected = arguments(m, n, k, dtype, ta, tb, steps)
        last = helve.testing.lowering_stages(product(*case[:-1], steps=steps), target="cuda", arch="sm_80")[-1][1]
        helve.compile(helve.parse(_core.print(last)), target=target)(*given)
        np.testing.assert_array_equal(given[2], expected)


def text_of(function, arch="sm_80"):
    return _core.cuda_source(helve.testing.lowering_stages(function, target="cuda", arch=arch)[-1][1])[0]


@pytest.mark.parametrize("prelude", [False, True])
def test_the_text_computes_it(tmp_path, prelude):
    names = [f"product_{n}" for n in range(len(CASES))]
    forms = [helve.testing.lowering_stages(product(*case[:-1], steps=case[-1]), target="cuda", arch="sm_80")[-1][1]
             for case in CASES]
    kernels = HostKernels(forms, tmp_path, prelude=prelude, names=names)
    for name, (m, n, k, _, dtype, ta, tb, steps) in zip(names, CASES):
        given, expected = arguments(m, n, k, dtype, ta, tb, steps)
        given = [aligned(each) for each in given]
        kernels.run(name, 1, dict(zip("ABC", given)))
        np.testing.assert_array_equal(given[2], expected, err_msg=name)


@needs_nvrtc
@pytest.mark.parametrize(("m", "n", "k", "threads", "dtype", "ta", "tb", "steps"), CASES)
def test_the_text_multiplies_matrices_in_registers(m, n, k, threads, dtype, ta, tb, steps):
    text = text_of(product(m, n, k, threads, dtype, ta, tb, steps=steps))
    assert "helve_matrix_product(" in text and ("helve_load_matrices<" in text) == ("16" in dtype)
    assert_compiles(text)


def test_the_sums_have_the_layout_of_the_instruction():
    stages = dict(helve.testing.lowering_stages(product(64, 64, 32, 128), target="cuda", arch="sm_90a"))
    text = _core.print(stages["place_operands"])
    digits = "(2, 2, 2, 8, 4, 2, 4, 2) : (16@reg, 64@tx, 2@reg, 4@tx, 4@reg, 32@tx, 1@tx, 1@reg)"  # 2 x 2 warps
    assert f'c = T.alloc_fragment((64, 64), "float32", layout="S[{digits}]")' in text


@needs_nvrtc
def test_the_loads_of_factors_are_choices_with_reasons():
    chosen = helve.compile(product(64, 64, 32, 128), target="cuda", arch="sm_90a").schedules()
    at = next(n for n, choice in enumerate(chosen) if choice.operation == "T.gemm")
    assert [(each.operation, each.schedule) for each in chosen[at - 2 : at + 1]] == [
        ("T.copy", "ldmatrix"), ("T.copy", "ldmatrix"), ("T.gemm", "mma")]
