"""T.gemm(dispatch="tensor_cores"): the best implementation that the machine and the product allow."""

import numpy as np
import pytest
from nvrtc import needs_nvrtc
from tile_products import arguments, product

import helve
import helve.testing
from helve import T, _core

# m, n, k, threads, dtype, transpose_a, transpose_b; what is chosen on sm_80 and on sm_90a.
CASES = [
    (64, 16, 32, 128, "float16", False, False, "mma", "wgmma"),
    (128, 24, 16, 256, "bfloat16", True, True, "mma", "wgmma"),
    (32, 16, 32, 128, "float16", False, True, "mma", "mma"),  # too few rows for a warpgroup
    (64, 16, 32, 64, "bfloat16", False, True, "mma", "mma"),  # no whole warpgroup
    (64, 16, 16, 128, "float32", False, True, "mma", "wgmma"),
    (64, 16, 16, 128, "float32", False, False, "mma", "mma"),  # K is not the last dimension of B
    (64, 16, 32, 128, "int8", False, True, "mma", "wgmma"),
]


def named(case, dispatch, **keywords):
    m, n, k, threads, dtype, ta, tb, *_ = case
    return product(dispatch, m, n, k, threads, dtype, ta, tb, steps=2, **keywords)


def stages(function, arch):
    return [(name, _core.print(stage))
            for name, stage in helve.testing.lowering_stages(function, target="cuda", arch=arch)]


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_program_with_the_name_of_the_choice(case):
    """At every stage; the name stands until the operation is lowered."""
    for arch, chosen in zip(("sm_80", "sm_90a"), case[-2:]):
        wanted = [(name, text.replace(f'dispatch="{chosen}"', 'dispatch="tensor_cores"'))
                  for name, text in stages(named(case, chosen), arch)]
        assert stages(named(case, "tensor_cores"), arch) == wanted
        assert f"T.{chosen}(" in dict(wanted)["lower_tile_ops"]


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("case", CASES)
def test_other_targets_compute_it_as_any_product(case, target):
    m, n, k, _, dtype, ta, tb, *_ = case
    given, expected = arguments(m, n, k, dtype, ta, tb, 2)
    kernel = helve.compile(named(case, "tensor_cores"), target=target)
    kernel(*given)
    np.testing.assert_array_equal(given[2], expected)


@needs_nvrtc
def test_the_choice_says_why_the_better_one_does_not_apply():
    kernel = helve.compile(named(CASES[2], "tensor_cores"), target="cuda", arch="sm_90a")
    choice = next(each for each in kernel.schedules() if each.operation == "T.gemm")
    assert choice.schedule == "mma"
    assert choice.declined == (("wgmma", "M, N, K of 32 x 16 x 32 are no positive multiples of 64, 8, 16"),)


def test_operations_before_have_the_first_choice():
    """Sums that one product has placed for warps are those of the next one, too."""

    @T.prim_func
    def main(A: T.Tensor((64, 16), "float16"), B: T.Tensor((16, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 16), "float16")
            b = T.alloc_shared((16, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear=True, dispatch="mma")
            T.gemm(a, b, c, dispatch="tensor_cores")
            T.copy(c, C)

    text = dict(stages(main, "sm_90a"))["lower_tile_ops"]
    assert text.count("T.mma(") == 2 and "T.wgmma(" not in text


def test_copies_before_it_fill_rings():
    """As before a product that is asked of warpgroups by name."""

    @T.prim_func
    def main(A: T.Tensor((64, 256), "bfloat16"), B: T.Tensor((64, 256), "bfloat16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[:, k * 64 : k * 64 + 64], a)
                T.copy(B[:, k * 64 : k * 64 + 64], b)
                T.gemm(a, b, c, transpose_B=True, dispatch="tensor_cores")
            T.copy(c, C)

    assert "T.ring_acquire(" in dict(stages(main, "sm_90a"))["make_rings"]
    assert "T.ring_acquire(" not in dict(stages(main, "sm_80"))["make_rings"]
