"""helve.kernels on a CUDA device, against their definitions in float64 and against the CPU target.

Skips itself where PyTorch finds no device. Shapes are random with tails; the long rows take the forms that a short test
on a CPU forces by tuning parameters.
"""

import zlib

import kernel_cases as cases
import numpy as np
import pytest

import helve
from helve import kernels

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

from device_arrays import on_device, on_host  # noqa: E402 - it needs torch


def run(call):
    """The arguments of the call after the kernel ran on the device."""
    before = call.arguments()
    tensors = [on_device(np.ascontiguousarray(a)) for a in before]
    helve.compile(call.function, target="cuda")(*tensors)
    return [on_host(t, a.dtype) for t, a in zip(tensors, before, strict=True)]


def has_llvm():
    try:
        helve.compile(kernels.transpose())
    except helve.Error:
        return False
    return True


SHAPES = {"float32": [(1, 1), (5, 3), (33, 77), (7, 1000), (130, 256), (3, 5001)],
          "float16": [(9, 40), (64, 333)],
          "bfloat16": [(2, 8), (17, 1024), (301, 130), (6, 4096), (4, 8200)]}  # fmt: skip


@pytest.mark.parametrize("dtype", SHAPES)
@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.__name__)
def test_kernels_meet_their_definition(case, dtype):
    for M, N in SHAPES[dtype]:
        call = case(M, N, dtype)
        call.check(run(call))


@pytest.mark.parametrize("N", [16384, 32768, 50257, 65536, 100_000, 131072, 262144])
@pytest.mark.parametrize("case", [*cases.BY_ROWS, *cases.BACKWARD], ids=lambda case: case.__name__)
def test_long_rows(case, N):
    call = case(3, N, "bfloat16")
    call.check(run(call))


WAITING = [cases.rms_norm, cases.layer_norm, cases.softmax]
LONG = [(16384, 2), (50257, 3), (65536, 4), (100_000, 8), (131072, 8)]
LONGEST = {"float32": 180_000, "bfloat16": 262144}  # of which a ring holds two slices


def has_clusters():
    return torch.cuda.get_device_capability()[0] >= 9


@pytest.mark.parametrize(("case", "N", "cluster", "dtype"), [
    *((case, N, cluster, dtype) for case in WAITING for N, cluster in LONG for dtype in LONGEST),
    *((case, N, 8, dtype) for case in WAITING for dtype, N in LONGEST.items()),
    *((case, N, cluster, dtype) for case in cases.BACKWARD
      for N, cluster in [(5001, 2), (8192, 2), (16384, 8), (32768, 8)] for dtype in LONGEST),
], ids=lambda value: getattr(value, "__name__", None))  # fmt: skip
def test_a_cluster_shares_a_row(case, N, cluster, dtype):
    """Fewer rows than clusters, one, and more."""
    if not has_clusters():
        pytest.skip("the device has no clusters")
    for M, tuning in [(3, {}), (1, {"clusters": 2}), (0, {"clusters": 2}), (301, {"clusters": 2})]:
        call = case(M, N, dtype, cluster=cluster, **tuning)
        call.check(run(call))


@pytest.mark.parametrize("case", cases.BACKWARD, ids=lambda case: case.__name__)
def test_clusters_repeat_bit_for_bit(case):
    if not has_clusters():
        pytest.skip("the device has no clusters")
    call = case(500, 8192, "bfloat16", cluster=2)
    first, second = run(call), run(call)
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.__name__)
def test_random_shapes_agree_with_the_cpu(case):
    rng = np.random.default_rng(zlib.crc32(case.__name__.encode()))
    targets = ["llvm"] if has_llvm() else ["interp"]
    for _ in range(4 if has_llvm() else 1):
        M, N = (int(n) for n in (rng.integers(1, 200), rng.integers(1, 3000))) if has_llvm() else (3, 70)
        dtype = str(rng.choice(list(cases.DTYPES)))
        call = case(M, N, dtype)
        found = run(call)
        for target in targets:
            arguments = call.arguments()
            helve.compile(call.function, target=target)(*arguments)
            step = cases.STEP[dtype] + 3e-6
            for got, wanted in zip(found, arguments, strict=True):
                got, wanted = np.asarray(got).astype(np.float64), np.asarray(wanted).astype(np.float64)
                np.testing.assert_allclose(got, wanted, rtol=step, atol=call.atol)


@pytest.mark.parametrize("case", [cases.softmax, cases.column_sums, cases.rms_norm_backward, cases.layer_norm_backward])
def test_results_repeat_bit_for_bit(case):
    call = case(500, 700, "bfloat16")
    first, second = run(call), run(call)
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


def test_any_number_of_rows_after_one_compile():
    kernel = helve.compile(kernels.layer_norm(300), target="cuda")
    for rows in (0, 1, 2, 31, 1000):
        call = cases.layer_norm(rows, 300, "float32")
        before = call.arguments()
        tensors = [on_device(a) for a in before]
        kernel(*tensors)
        call.check([on_host(t, a.dtype) for t, a in zip(tensors, before, strict=True)])


def test_tensors_of_more_than_2_31_elements():
    M, N = 2**19 + 3, 4096
    if torch.cuda.mem_get_info()[0] < 12 << 30:
        pytest.skip("the device has no 12 GiB to spare")
    x = torch.ones(M, N, dtype=torch.bfloat16, device="cuda")
    x[-1, ::2] = 3.0
    y = torch.full_like(x, float("nan"))
    w = torch.ones(N, dtype=torch.bfloat16, device="cuda")
    helve.compile(kernels.rms_norm(N, "bfloat16"), target="cuda")(x, w, y)
    assert bool((y[:-1] == 1.0).all())
    torch.testing.assert_close(y[-1, :2].float(), torch.tensor([3.0, 1.0], device="cuda") / 5**0.5, rtol=2**-7, atol=0)
