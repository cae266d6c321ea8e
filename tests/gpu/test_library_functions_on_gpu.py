"""Functions of the language, bits of floats, views and jumps on a CUDA device: what NumPy and the CPU compute.

Skips itself where PyTorch finds no device.
"""

import numpy as np
import pytest

import helve
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

N = T.dyn("N")


def device(array):
    return torch.from_numpy(array).cuda()


@T.prim_func
def random_words(seed: T.int64, B: T.Tensor((N,), "uint32"), F: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 256), threads=128) as b:
        for i in T.Parallel(256):
            if b * 256 + i < N:
                B[b * 256 + i] = T.random_bits(seed, b * 256 + i)
                F[b * 256 + i] = T.rand(seed, b * 256 + i)


@pytest.mark.parametrize("seed", [0, 42, -7, 2**40 + 3])
def test_random_numbers_have_the_bits_of_the_cpu(seed):
    n = 100_003
    bits, floats = np.zeros(n, "uint32"), np.zeros(n, "float32")
    helve.compile(random_words)(seed, bits, floats)
    gpu_bits, gpu_floats = torch.zeros(n, dtype=torch.uint32, device="cuda"), torch.zeros(n, device="cuda")
    helve.compile(random_words, target="cuda")(seed, gpu_bits, gpu_floats)
    assert np.array_equal(gpu_bits.cpu().numpy(), bits) and np.array_equal(gpu_floats.cpu().numpy(), floats)


@T.prim_func
def kinds(A: T.Tensor((N,), "float32"), B: T.Tensor((N, 3), "int32"), C: T.Tensor((N, 3), "float32")):
    with T.Kernel(T.ceildiv(N, 64), threads=64) as b:
        for i in T.Parallel(64):
            if b * 64 + i < N:
                x = A[b * 64 + i]
                B[b * 64 + i, 0] = 1 if T.isnan(x) else 0
                B[b * 64 + i, 1] = 1 if T.isinf(x) else 0
                B[b * 64 + i, 2] = T.reinterpret(x, "int32")
                C[b * 64 + i, 0] = T.sign(x)
                C[b * 64 + i, 1] = T.expm1(x)
                C[b * 64 + i, 2] = T.log1p(x)


@pytest.mark.parametrize("fast_math", [False, True])
def test_kinds_of_numbers(fast_math):
    a = np.float32([0.0, -0.0, 1e-8, -1e-4, 0.3, 0.5, -0.51, 2.5, np.inf, -np.inf, np.nan, 1e-42, 3e38] * 11)
    b, c = device(np.zeros((len(a), 3), "int32")), device(np.zeros((len(a), 3), "float32"))
    helve.compile(kinds, target="cuda", fast_math=fast_math)(device(a), b, c)
    b, c = b.cpu().numpy(), c.cpu().numpy()
    assert np.array_equal(b[:, 0], np.isnan(a)) and np.array_equal(b[:, 1], np.isinf(a))
    assert np.array_equal(b[:, 2][~np.isnan(a)], a.view("int32")[~np.isnan(a)])
    if not fast_math:
        with np.errstate(all="ignore"):
            wide = a.astype("float64")
            np.testing.assert_array_equal(c[:, 0], np.sign(wide))
            np.testing.assert_allclose(c[:, 1], np.expm1(wide).astype("float32"), rtol=1e-6)
            np.testing.assert_allclose(c[:, 2], np.log1p(wide).astype("float32"), rtol=1e-6)


def greatest(rows, columns, k, dtype):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), X: T.Tensor((rows,), "int32"), V: T.Tensor((rows, k), dtype),
             I: T.Tensor((rows, k), "int32")):
        with T.Kernel(rows, threads=128) as r:
            a = T.alloc_fragment((1, columns), dtype)
            x = T.alloc_fragment((1,), "int32")
            v = T.alloc_fragment((1, k), dtype)
            i = T.alloc_fragment((1, k), "int32")
            T.copy(A[r, 0], a[0, :])
            T.argmax(a, x)
            T.topk(a, v, i)
            T.copy(x, X[r : r + 1])
            T.copy(v, V[r : r + 1, :])
            T.copy(i, I[r : r + 1, :])
    return main


@pytest.mark.parametrize("columns, k, dtype", [(128, 8, "float32"), (1000, 4, "float32"), (333, 5, "int32")])
def test_greatest_elements(columns, k, dtype):
    rows = 17
    a = np.random.default_rng(0).integers(0, 60, (rows, columns)).astype(dtype)
    if dtype == "float32":
        a[3, 7], a[3, 9], a[5, :] = np.nan, np.nan, -np.inf
    made = [((rows,), "int32"), ((rows, k), dtype), ((rows, k), "int32")]
    x, v, i = (device(np.zeros(shape, kind)) for shape, kind in made)
    helve.compile(greatest(rows, columns, k, dtype), target="cuda")(device(a), x, v, i)
    wide = a.astype("float64")
    order = np.argsort(np.where(np.isnan(wide), -np.inf, np.where(wide == -np.inf, 1e9, -wide)), axis=1, kind="stable")
    assert np.array_equal(x.cpu().numpy(), a.argmax(axis=1))
    assert np.array_equal(i.cpu().numpy(), order[:, :k])
    np.testing.assert_array_equal(v.cpu().numpy(), np.take_along_axis(a, order[:, :k], 1))


@T.prim_func
def groups(A: T.Tensor((N, 256), "float32"), S: T.Tensor((N, 8), "float32"), B: T.Tensor((N, 256), "float32")):
    with T.Kernel(N, threads=64) as n:
        x = T.alloc_fragment((1, 256), "float32")
        s = T.alloc_fragment((8,), "float32")
        T.copy(A[n, 0], x[0, :])
        grouped = T.reshape(x, (8, 32))
        T.reduce_absmax(grouped, s, dim=1)
        for i, j in T.Parallel(8, 32):
            grouped[i, j] = grouped[i, j] / s[i]
        T.copy(s, S[n, 0])
        T.copy(x[0, :], B[n, 0])


def test_views_of_groups():
    a = np.random.default_rng(0).uniform(-1, 1, (33, 256)).astype("float32")
    s, b = device(np.zeros((33, 8), "float32")), device(np.zeros_like(a))
    helve.compile(groups, target="cuda")(device(a), s, b)
    scales = np.abs(a).reshape(33, 8, 32).max(axis=2)
    assert np.array_equal(s.cpu().numpy(), scales)
    assert np.array_equal(b.cpu().numpy(), (a.reshape(33, 8, 32) / scales[:, :, None]).reshape(33, 256))


@T.prim_func
def search(A: T.Tensor((N, 300), "int32"), L: T.Tensor((N,), "int32"), B: T.Tensor((N, 2), "int32")):
    with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
        for i in T.Parallel(32):
            if b * 32 + i >= N:
                continue
            found = T.alloc_var("int32", -1)
            total = T.alloc_var("int32", 0)
            for k in T.serial(300):
                if A[b * 32 + i, k] == L[b * 32 + i]:
                    found = T.cast(k, "int32")
                    break
                if A[b * 32 + i, k] % 2 == 0:
                    continue
                total += A[b * 32 + i, k]
            B[b * 32 + i, 0] = found
            B[b * 32 + i, 1] = total


def test_jumps_of_threads():
    rng = np.random.default_rng(0)
    a, wanted = rng.integers(0, 400, (77, 300)).astype("int32"), rng.integers(0, 400, 77).astype("int32")
    b = device(np.zeros((77, 2), "int32"))
    helve.compile(search, target="cuda")(device(a), device(wanted), b)
    expected = np.zeros((77, 2), "int32")
    for r in range(77):
        places = np.flatnonzero(a[r] == wanted[r])
        seen = a[r, : places[0]] if len(places) else a[r]
        expected[r] = places[0] if len(places) else -1, seen[seen % 2 == 1].sum()
    assert np.array_equal(b.cpu().numpy(), expected)
