"""helve.kernels on tensor cores on a CUDA device, against their definitions in float64.

Skips itself where PyTorch finds none. Shapes have tails in every dimension; rows begin at whole vectors or elsewhere.
"""

import matrix_kernel_cases as cases
import numpy as np
import pytest
import test_grouped_gemm
import test_matrix_kernels
from test_matrix_kernels import ALL

import helve
from helve import kernels

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)

from device_arrays import check_on_device as check  # noqa: E402 - it needs torch


@pytest.mark.parametrize("name", test_matrix_kernels.GEMMS)
def test_small_products(name):
    if "eight" in name and not HOPPER:
        pytest.skip("products of 8-bit floats need sm_90a")
    check(test_matrix_kernels.GEMMS[name])


SHAPES = [(1, 1, 1), (128, 256, 64), (1000, 808, 520), (513, 264, 1032), (300, 511, 77), (2048, 96, 4096)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_products_of_any_extents(shape, turned):
    """One kernel for all shapes, and one for this."""
    options = dict(zip(("transpose_A", "transpose_B"), turned))
    check(cases.gemm(*shape, "bfloat16", **options))
    check(cases.gemm(*shape, "float16", known="MNK", **options, **ALL))


@pytest.mark.parametrize("rows", [1, 64, 65, 200, 300, 513])
def test_few_rows_have_tiles_of_their_own(rows):
    check(cases.gemm(rows, 4096, 264, "bfloat16", known="NK", transpose_B=True, **ALL))


@pytest.mark.parametrize("rows", [1, 16, 64, 128, 333])
def test_many_terms_of_few_rows_are_summed_in_parts(rows):
    check(cases.gemm(rows, 1024, 16384, "bfloat16", known="NK", transpose_B=True, **ALL))
    check(cases.gemm(rows, 1022, 4104, "float16", known="MNK", split=3))


def test_sums_of_parts_repeat_bit_for_bit():
    kernel = helve.compile(kernels.gemm(N=1024, K=16384, split=8, transpose_B=True), target="cuda")
    torch.manual_seed(1)
    a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(100, 16384), (1024, 16384)])
    results = [torch.full((100, 1024), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in range(5)]
    for each in results:
        kernel(a, b, each)
    assert all(torch.equal(results[0], each) for each in results[1:])


@pytest.mark.parametrize("options", [{"activation": "gelu", "bias": True}, {"activation": "silu", "residual": True},
                                     {"batch": 5, **ALL}, {"batch": 3, "out": "float32"}], ids=str)
def test_what_follows_a_product(options):
    check(cases.gemm(200, 328, 264, "bfloat16", transpose_B=True, **options))
    check(cases.gemm(131, 77, 45, "float16", **options))


@pytest.mark.skipif(not HOPPER, reason="products of 8-bit floats need sm_90a")
@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_products_of_eight_bits(dtype):
    check(cases.gemm(512, 384, 1024, dtype, transpose_B=True, scale=True))
    check(cases.gemm(130, 72, 208, dtype, transpose_B=True, scale=True, bias=True))


@pytest.mark.parametrize("name", test_grouped_gemm.CALLS)
def test_small_groups(name):
    if "eight" in name and not HOPPER:
        pytest.skip("products of 8-bit floats need sm_90a")
    check(test_grouped_gemm.CALLS[name])


@pytest.mark.parametrize("lengths", [(300, 0, 1, 700, 64, 129), (0, 0, 1000, 0), (1,) * 20, (128,) * 4], ids=str)
def test_groups_of_any_lengths(lengths):
    check(cases.grouped_gemm(lengths, 520, 264, "bfloat16", known="NK", transpose_B=True, bias=True, activation="silu"))
    check(cases.grouped_gemm(lengths, 333, 77, "float16"))


def test_a_kernel_serves_many_calls():
    """Of the plan for any extents, against float32 of PyTorch, again and again: what is left over shows itself."""
    kernel = helve.compile(kernels.gemm("bfloat16", transpose_B=True), target="cuda")
    rng = np.random.default_rng(1)
    torch.manual_seed(1)
    for _ in range(12):
        m, n, k = (8 * int(x) for x in rng.integers(1, 300, 3))
        a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        kernel(a, b, c)
        wanted = a.double() @ b.double().T
        bound = 2.0**-8 * wanted.abs() + 1e-5 * (a.double().abs() @ b.double().abs().T)
        assert bool(((c.double() - wanted).abs() <= bound).all()), (m, n, k)
