"""Code of single threads on a CUDA device: shuffles within a warp, and barriers.

Skips itself where PyTorch finds no device. The programs are those that the CPU checks on the text.
"""

import numpy as np
import pytest
import test_thread_code as programs
import test_work_beside_threads as beside

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def on_device(array):
    return torch.from_numpy(array).cuda()


@pytest.mark.parametrize("call", programs.SOURCES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "bool"])
def test_shuffles(call, dtype):
    a = programs.elements(dtype)
    given, out = on_device(a), on_device(np.zeros_like(a))
    helve.compile(programs.exchange(call, dtype), target="cuda", verify=True)(given, 6, out)
    np.testing.assert_array_equal(out.cpu().numpy(), a[:, programs.WARPS + programs.SOURCES[call]])


def test_sums_over_warps():
    a, s = programs.sum_arguments()
    out = on_device(s)
    helve.compile(programs.warp_sums(), target="cuda", verify=True)(on_device(a), out)
    np.testing.assert_array_equal(out.cpu().numpy(), a.sum(axis=1))


@pytest.mark.parametrize("name", beside.PROGRAMS)
def test_work_of_the_block_beside_threads(name):
    kernel = helve.compile(beside.program(name), target="cuda", verify=True)
    for size in beside.SIZES:
        given = [on_device(array) for array in beside.arguments(size)]
        kernel(*given)
        for place, wanted in beside.expected(name, size).items():
            np.testing.assert_array_equal(given[place].cpu().numpy(), wanted, err_msg=f"{name}, {size}")


@pytest.mark.parametrize("threads", [128, 256])
def test_products_beside_threads(threads):
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype("float16") for shape in ((128, 80), (80, 64)))
    sums = a.astype("float32") @ b.astype("float32")
    c, s = on_device(np.zeros((128, 64), "float32")), on_device(np.zeros(128, "float32"))
    for dispatch in ("mma", "tensor_cores"):
        helve.compile(beside.product(dispatch, threads), target="cuda", verify=True)(on_device(a), on_device(b), c, s)
        np.testing.assert_array_equal(c.cpu().numpy(), 2 * sums, err_msg=dispatch)
        np.testing.assert_array_equal(s.cpu().numpy(), sums.sum(axis=1), err_msg=dispatch)
