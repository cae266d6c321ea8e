"""T.gemm by the tensor cores of warpgroups, on a CUDA device of sm_90.

Skips itself where PyTorch finds none.
"""

import itertools

import numpy as np
import pytest
import test_overlapped_products
from product_checks import check_exact
from test_wgmma import CASES, IN_REGISTERS, arguments, matmul, product

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="there is no device of sm_90"
)

LARGE = [(128, 256, 64, 256, "bfloat16", False, True, 8), (192, 80, 64, 384, "float16", True, False, 5),
         (64, 320, 32, 128, "bfloat16", False, False, 2), (128, 40, 48, 128, "float16", True, True, 3)]
ORDERS = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize(("m", "n", "k", "threads", "dtype", "ta", "tb", "steps"), CASES + LARGE)
def test_products_of_whole_numbers_are_exact(m, n, k, threads, dtype, ta, tb, steps):
    given, expected = arguments(m, n, k, dtype, ta, tb, steps)
    check_exact(product(m, n, k, threads, dtype, ta, tb, steps=steps), given, expected, dtype)


@pytest.mark.parametrize(("m", "n", "k", "threads", "dtype", "tb", "steps"), IN_REGISTERS)
def test_factors_in_registers(m, n, k, threads, dtype, tb, steps):
    given, expected = arguments(m, n, k, dtype, False, tb, steps)
    check_exact(product(m, n, k, threads, dtype, False, tb, steps=steps, registers=True), given, expected, dtype)


@pytest.mark.parametrize("name", test_overlapped_products.PROGRAMS)
def test_products_in_flight(name):
    """Many runs, so that a wait that is missing shows itself."""
    make, arguments_of = test_overlapped_products.PROGRAMS[name]
    given, expected = arguments_of()
    kernel = helve.compile(make(), target="cuda")
    for _ in range(50):
        tensors = [torch.from_numpy(each).cuda() for each in given]
        kernel(*tensors)
        for out, wanted in zip(tensors[-len(expected) :], expected):
            np.testing.assert_array_equal(out.cpu().numpy(), wanted)


@pytest.mark.parametrize(("ta", "tb"), ORDERS)
@pytest.mark.parametrize(("bm", "bn", "bk", "threads", "stages"),
                         [(128, 128, 64, 128, 4), (128, 256, 64, 256, 3), (64, 24, 32, 128, 2), (256, 96, 64, 256, 1)])
def test_random_shapes_against_float64(bm, bn, bk, threads, stages, ta, tb):
    """Tails in every dimension; rows that are no multiples of 16 bytes are copied by threads."""
    rng = np.random.default_rng(bm + bn)
    torch.manual_seed(1)
    for dtype in ("bfloat16", "float16"):
        kernel = helve.compile(matmul(bm, bn, bk, threads, dtype, ta, tb, stages), target="cuda")
        shapes = [(bm, bn, bk), (8, 8, 0), (1, 1, 1), (1000, 808, 520)]
        shapes += [tuple(int(x) for x in rng.integers(1, 700, 3)) for _ in range(3)]
        shapes += [tuple(int(x) * 8 for x in rng.integers(1, 90, 3)) for _ in range(3)]
        for m, n, k in shapes:
            a = torch.randn((k, m) if ta else (m, k), device="cuda").to(getattr(torch, dtype))
            b = torch.randn((n, k) if tb else (k, n), device="cuda").to(getattr(torch, dtype))
            c = torch.full((m, n), 7.0, device="cuda")
            kernel(a, b, c)
            left, right = (a.T if ta else a).double(), (b.T if tb else b).double()
            error = (c.double() - left @ right).abs()
            bound = 1e-5 * (left.abs() @ right.abs()) + 1e-6
            assert bool((error <= bound).all()), (m, n, k, dtype, float(error.max()))
