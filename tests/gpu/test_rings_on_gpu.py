"""Rings and roles on a CUDA device of sm_90: products whose copies run ahead of them, for any number of turns.

Skips itself where PyTorch finds none.
"""

import numpy as np
import pytest
from ring_programs import gemm, gemm_arguments, persistent_gemm, product_by_hand, two_rings

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="there is no device of sm_90"
)

KERNELS = {
    "one warpgroup": gemm(64, 32, 32, 128, 3),
    "two warpgroups": gemm(128, 256, 64, 256, 4),
    "three warpgroups": gemm(192, 64, 64, 384, 3),
    "two slots": gemm(128, 128, 64, 256, 2),
    "persistent": persistent_gemm(128, 128, 64, 256, 4, 132),
    "few blocks": persistent_gemm(64, 32, 32, 128, 4, 3),
    "by hand": product_by_hand(128, 128, 64, 4, blocks=132, groups=2, registers=(232, 40)),
    "by hand, other registers": product_by_hand(128, 256, 64, 3, blocks=132, groups=2, registers=(224, 56)),
    "by hand, few blocks": product_by_hand(64, 32, 32, 3, blocks=3),
}


def on_device(arrays):
    out = []
    for each in arrays:
        tensor = torch.from_numpy(each.astype("float32")).cuda()
        out.append(tensor if each.dtype == np.float32 else tensor.to(getattr(torch, each.dtype.name)))
    return out


@pytest.mark.parametrize("name", KERNELS)
def test_products_of_whole_numbers_are_exact(name):
    """No turn of the loop, fewer turns than slots, many; tails in every dimension."""
    kernel = helve.compile(KERNELS[name], target="cuda")
    assert "helve_ring_acquire" in kernel.source("cuda")
    rng = np.random.default_rng(5)
    shapes = [(64, 32, 32), (8, 8, 0), (192, 64, 8), (257, 136, 200), (1000, 808, 520), (1024, 2048, 4096)]
    shapes += [tuple(int(x) * 8 for x in rng.integers(1, 120, 3)) for _ in range(6)]
    for m, n, k in shapes:
        given, expected = gemm_arguments(m, n, k)
        tensors = on_device(given)
        for _ in range(3):  # the mbarriers of a launch begin anew
            tensors[2].fill_(7.0)
            kernel(*tensors)
            np.testing.assert_array_equal(tensors[2].cpu().numpy(), expected, err_msg=f"{name} {m, n, k}")


def test_rows_that_begin_anywhere():
    """Copied by threads: the other version of the kernel has no roles."""
    kernel = helve.compile(KERNELS["two warpgroups"], target="cuda")
    given, expected = gemm_arguments(130, 70, 61)
    tensors = on_device(given)
    kernel(*tensors)
    np.testing.assert_array_equal(tensors[2].cpu().numpy(), expected)


def test_tensors_that_begin_anywhere():
    """Aligned as an element is: the variant of the kernel without TMA."""
    kernel = helve.compile(KERNELS["two warpgroups"], target="cuda")
    given, expected = gemm_arguments(136, 72, 64)
    a, b, c = on_device(given)
    memory = torch.zeros(a.numel() + 1, device="cuda", dtype=a.dtype)
    moved = memory[1:].view(a.shape)
    moved.copy_(a)
    kernel(moved, b, c)
    np.testing.assert_array_equal(c.cpu().numpy(), expected)


def test_rings_of_two_operands():
    rng = np.random.default_rng(1)
    q, k, v = (rng.integers(-2, 3, shape).astype("float32") for shape in [(64, 64), (256, 64), (256, 64)])
    given = on_device([each.astype("float16") for each in (q, k, v)] + [np.zeros((64, 64), "float32")])
    helve.compile(two_rings(64, 64, 64, 2), target="cuda")(*given)
    scores = (q @ k.T).astype("float16").astype("float32")
    np.testing.assert_allclose(given[3].cpu().numpy(), scores @ v, rtol=1e-5, atol=1e-3)
