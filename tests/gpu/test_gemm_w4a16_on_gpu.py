"""kernels.gemm_w4a16 on a CUDA device, against its definition in float64.

Skips itself where PyTorch finds none. Shapes have tails in every dimension; rows of C begin at whole vectors or not.
"""

import matrix_kernel_cases as cases
import numpy as np
import pytest
import test_gemm_w4a16

import helve
from helve import kernels
from helve.kernels.w4a16_plan import plans_by_rows

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
ARCH = {} if HOPPER else {"arch": "sm_80"}

from device_arrays import check_on_device as check  # noqa: E402 - it needs torch


@pytest.mark.skipif(not HOPPER, reason="these are planned for sm_90a")
@pytest.mark.parametrize("name", test_gemm_w4a16.PRODUCTS)
def test_small_products(name):
    check(test_gemm_w4a16.PRODUCTS[name])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [0, 1, 8, 9, 16, 32, 33, 64, 100, 200, 300, 513, 1100])
def test_rows_of_a_call(rows, dtype):
    """At both sides of the borders between kernels, sums in parts and whole."""
    check(cases.gemm_w4a16(rows, 1000, 1024, dtype, **ARCH))


@pytest.mark.parametrize("N", [1, 77, 520])
@pytest.mark.parametrize(("group", "K"), [(32, 96), (32, 2048), (64, 1088), (96, 960), (256, 512), (1056, 1056)])
def test_groups_and_tails(N, group, K):
    check(cases.gemm_w4a16(13, N, K, group=group, **ARCH))
    check(cases.gemm_w4a16(70, N, K, "float16", group=group, scales="float32", **ARCH))


@pytest.mark.skipif(not HOPPER, reason="clusters need Hopper")
@pytest.mark.parametrize("cluster", [2, 4])
@pytest.mark.parametrize("rows", [5, 200])
def test_pairs(rows, cluster):
    check(cases.gemm_w4a16(rows, 1000, 1024, cluster=cluster, blocks=8 * cluster, **ARCH))


def test_tensors_at_odd_places():
    """Threads copy what no tensor map describes."""
    kernel = helve.compile(kernels.gemm_w4a16(200, 256, **ARCH), target="cuda")
    for rows in (3, 70, 600):
        call = cases.gemm_w4a16(rows, 200, 256)
        x, w, s, c = call.arguments()
        size = [rows * 256, 200 * 128, 200 * 2, rows * 200]
        flat = [torch.empty(n + 1, dtype=kind, device="cuda") for n, kind in zip(
            size, (torch.bfloat16, torch.uint8, torch.bfloat16, torch.bfloat16))]
        given = [each[1:].view(shape.shape) for each, shape in zip(flat, (x, w, s, c))]
        for tensor, array in zip(given[:3], (x, w, s)):
            tensor.copy_(torch.from_numpy(array.astype("float32") if array.dtype != np.uint8 else array))
        kernel(*given)
        call.check([x, w, s, given[3].float().cpu().numpy()])


def test_a_kernel_serves_many_calls():
    """Of one layer, again and again: what is left over in rings or parts of sums shows itself."""
    N, K = 1536, 2048
    assert any(plan.split > 1 for _, plan in plans_by_rows(None, N, K, 128, **ARCH))
    kernel = helve.compile(kernels.gemm_w4a16(N, K, **ARCH), target="cuda")
    torch.manual_seed(1)
    codes = torch.randint(-8, 8, (N, K), device="cuda")
    packed = ((codes[:, ::2] & 15) | (codes[:, 1::2] & 15) << 4).to(torch.uint8)
    scales = torch.rand(N, K // 128, device="cuda").to(torch.bfloat16)
    weights = (codes.float() * scales.float().repeat_interleave(128, dim=1)).to(torch.bfloat16).double()
    for rows in (1, 300, 16, 64, 1, 2000, 100, 7, 31, 513):
        x = torch.randn(rows, K, device="cuda").to(torch.bfloat16)
        c = torch.full((rows, N), float("nan"), device="cuda", dtype=torch.bfloat16)
        kernel(x, packed, scales, c)
        wanted = x.double() @ weights.T
        bound = 2.0**-8 * wanted.abs() + 1e-5 * (x.double().abs() @ weights.abs().T)
        assert bool(((c.double() - wanted).abs() <= bound).all()), rows
