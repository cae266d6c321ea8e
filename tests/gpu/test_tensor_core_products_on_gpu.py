"""T.gemm by the tensor cores of each warp, on a CUDA device.

Skips itself where PyTorch finds no device.
"""

import pytest
from product_checks import check_exact
from test_tensor_core_products import CASES, arguments, product

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

LARGE = [(128, 128, 32, 128, "bfloat16", False, False, 8), (128, 64, 64, 256, "float16", True, True, 5)]


@pytest.mark.parametrize(("m", "n", "k", "threads", "dtype", "ta", "tb", "steps"), CASES + LARGE)
def test_products_of_whole_numbers_are_exact(m, n, k, threads, dtype, ta, tb, steps):
    given, expected = arguments(m, n, k, dtype, ta, tb, steps)
    check_exact(product(m, n, k, threads, dtype, ta, tb, steps=steps), given, expected, dtype)
