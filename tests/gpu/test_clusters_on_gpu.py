"""Clusters whose blocks fill rings for each other, on a CUDA device. Skips itself where PyTorch finds none.

Extents are random, with tails in every dimension and with pairs of tiles of which the second one is not there; a kernel
serves many calls, so that what one leaves behind shows itself in the next.
"""

import numpy as np
import pytest
import test_clusters
from ring_programs import gemm_arguments, persistent_gemm

import helve
from helve import kernels

torch = pytest.importorskip("torch")
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="blocks of clusters copy for each other on sm_90a")

from device_arrays import on_device  # noqa: E402 - it needs torch


@pytest.mark.parametrize("program", test_clusters.PROGRAMS)
def test_small_products(program):
    out = "bfloat16" if program == "staged results" else "float32"
    kernel = helve.compile(test_clusters.PROGRAMS[program], target="cuda")
    for m, n, k in test_clusters.SHAPES * 3:
        given, expected = gemm_arguments(m, n, k, out=out)
        arrays = [on_device(each) for each in given]
        kernel(*arrays)
        np.testing.assert_array_equal(arrays[2].float().cpu().numpy(), expected.astype("float32"), err_msg=f"{m, n, k}")


@pytest.mark.parametrize("cluster", [1, 2, 4])
@pytest.mark.parametrize("tile", [(128, 256), (256, 128), (128, 128), (64, 256)], ids=str)
def test_random_extents(tile, cluster):
    """Whole numbers: any order of a sum is exact."""
    function = kernels.gemm("bfloat16", "float32", transpose_B=True, tile=tile, cluster=cluster, blocks=128)
    kernel = helve.compile(function, target="cuda")
    rng = np.random.default_rng(cluster)
    torch.manual_seed(1)
    for _ in range(12):
        m, n, k = int(rng.integers(1, 3000)), 8 * int(rng.integers(1, 300)), 8 * int(rng.integers(0, 130))
        a, b = (torch.randint(-3, 4, shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
        c = torch.full((m, n), float("nan"), device="cuda")
        kernel(a, b, c)
        assert torch.equal(c, a.float() @ b.float().T), (m, n, k)


def test_large_products():
    """Many turns of pairs, with all that follows a product."""
    kernel = helve.compile(kernels.gemm(transpose_B=True, bias=True, activation="relu", cluster=2), target="cuda")
    torch.manual_seed(2)
    for m, n, k in [(4096, 4096, 4096), (4098, 4104, 1032), (8191, 8192, 512), (128, 65536, 64), (4096, 4096, 8)]:
        a, b = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in [(m, k), (n, k)])
        bias = torch.randn(n, device="cuda").to(torch.bfloat16)
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        for _ in range(3):
            kernel(a, b, bias, c)
        wanted = torch.relu(a.float() @ b.float().T + bias.float())
        scale = a.float().abs() @ b.float().abs().T + bias.float().abs() + 1
        assert bool(((c.float() - wanted).abs() <= 2.0**-7 * wanted.abs() + 1e-4 * scale).all()), (m, n, k)


def test_many_calls_at_one_time():
    """Kernels of two streams share the device: no cluster waits for one that does not run."""
    kernel = helve.compile(persistent_gemm(128, 128, 64, 256, 3, 66, cluster=2), target="cuda")
    a, b = (torch.randint(-3, 4, (1024, 512), device="cuda").to(torch.bfloat16) for _ in range(2))
    wanted = a.float() @ b.float().T
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = [torch.full((1024, 1024), float("nan"), device="cuda") for _ in range(8)]
    torch.cuda.synchronize()
    for number, c in enumerate(results):
        with torch.cuda.stream(streams[number % 2]):
            kernel(a, b, c)
    torch.cuda.synchronize()
    assert all(torch.equal(c, wanted) for c in results)
