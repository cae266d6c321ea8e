"""Parameters and host bodies as whole programs.

Dynamic extents, strides, scalars of every type, several kernels with buffers between them, and host control flow.
"""

import helve
import ml_dtypes
import numpy as np
import pytest
from differential import INTS, check, dtype_of, sample
from helve import T

M, N = T.dyn("M"), T.dyn("N")


@T.prim_func
def scaled_transpose(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32"), s: T.float32):
    with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 16)) as (bx, by):
        S = T.alloc_shared_tiles((8, 16), "float32", tile_size=(4, 8))
        D = T.alloc_shared((16, 8), "float32")
        T.copy(A[bx * 8 : bx * 8 + 8, by * 16 : by * 16 + 16], S)
        for i, j in T.Parallel(8, 16):
            D[j, i] = S[i, j] * s
        T.copy(D, B[by * 16 : by * 16 + 16, bx * 8 : bx * 8 + 8])


def test_dynamic_extents_of_one_compile():
    kernels = [helve.compile(scaled_transpose, target=t, verify=True) for t in ("interp", "llvm")]
    for shape in ((1, 1), (8, 16), (9, 33), (0, 5), (30, 7), (17, 0)):
        a = sample(shape)
        for kernel in kernels:
            b = np.full(shape[::-1], np.nan, np.float32)
            kernel(a, b, 3.0)
            np.testing.assert_array_equal(b, a.T * 3)


@pytest.mark.parametrize("shape", [(5, 3), (20, 41), (0, 4)])
def test_dynamic_extents_on_every_stage(shape):
    a = sample(shape)
    check(scaled_transpose, [a, np.zeros(shape[::-1], np.float32), -0.5], {1: a.T * -0.5})


def test_dynamic_extents_in_arithmetic():
    @T.prim_func
    def main(A: T.Tensor((M, N + 1), "int32"), B: T.Tensor((M, N), "int32"), C: T.Tensor((N * 2,), "int32"),
             D: T.Tensor((N,), "int32")):
        with T.Kernel(M) as bx:
            for j in T.Parallel(N):
                B[bx, j] = A[bx, j + 1] - A[bx, j] + T.cast(N * 10 + M, "int32")
        with T.Kernel(1) as bx:
            for j in T.serial(N * 2):
                C[j] = D[j // 2]

    for m, n in ((3, 17), (1, 1), (2, 0), (0, 3)):
        a, d = sample((m, n + 1), "int32"), sample((n,), "int32")
        check(
            main,
            [a, np.zeros((m, n), np.int32), np.zeros(2 * n, np.int32), d],
            {1: np.diff(a, axis=1) + n * 10 + m, 2: np.repeat(d, 2)},
        )


def test_declared_strides():
    @T.prim_func
    def main(
        A: T.Tensor((6, 20), "float32", strides=(30, 1)),
        B: T.Tensor((6, 20), "float32", strides=(1, 8)),
        C: T.Tensor((20,), "float32", strides=(2,)),
        D: T.Tensor((6, 20), "float32", strides=(0, 1)),
    ):
        with T.Kernel(1) as bx:
            S = T.alloc_shared_tiles((6, 20), "float32", tile_size=(4, 8))
            T.copy(A, S)
            for i, j in T.Parallel(6, 20):
                B[i, j] = S[i, j] + D[i, j]
            for j in T.Parallel(20):
                C[j] = A[2, j] * 2.0

    a = np.zeros((6, 30), np.float32)[:, :20]
    a[...] = sample((6, 20))
    b = np.zeros((20, 8), np.float32).T[:6]
    c = np.zeros(40, np.float32)[::2]
    d = np.broadcast_to(sample((20,), seed=3), (6, 20))
    for target in ("interp", "llvm"):
        helve.compile(main, target=target, verify=True)(a, b, c, d)
        np.testing.assert_array_equal(b, a + d)
        np.testing.assert_array_equal(c, a[2] * 2)
        b[...] = c[...] = 0


def test_strided_arguments_on_every_stage():
    @T.prim_func
    def main(A: T.Tensor((6, 20), "float32", strides=(30, 1)), B: T.Tensor((6, 20), "float32", strides=(45, 2))):
        with T.Kernel(2) as bx:
            S = T.alloc_shared((4, 24), "float32")
            T.copy(A[bx * 4 : bx * 4 + 4, 0:24], S, pad=1.0)
            T.copy(S, B[bx * 4 : bx * 4 + 4, 0:24])

    a = np.zeros((6, 30), np.float32)[:, :20]
    a[...] = sample((6, 20))
    b = np.zeros((6, 45), np.float32)[:, :40:2]
    check(main, [a, b], {1: a})


SCALARS = {
    "index": [0, 5, -3, 2**40], "bool": [True, False], "float32": [0.1, -1e30], "float64": [0.1, 1e300],
    "float16": [0.1], "bfloat16": [0.1],
    **{t: [int(np.iinfo(t).min), min(int(np.iinfo(t).max), 2**63 - 1), 3] for t in INTS},
}  # fmt: skip


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalar_parameters(dtype):
    stored = "int64" if dtype == "index" else dtype
    program = helve.parse(
        f'@T.prim_func\ndef main(x: T.{dtype}, A: T.Tensor((3,), "{stored}"), k: T.index):\n'
        f'    with T.Kernel(3) as bx:\n'
        "        if bx < k:\n            A[bx] = x\n"
    )
    for value in SCALARS[dtype]:
        wanted = np.zeros(3, dtype_of(stored))
        wanted[:2] = value
        check(program, [value, np.zeros_like(wanted), 2], {1: wanted})


def test_kernels_with_buffers_between_them():
    @T.prim_func
    def main(A: T.Tensor((M, 40), "float32"), B: T.Tensor((40,), "float32"), rounds: T.index, flag: T.bool):
        G = T.alloc_global((M, 40), "float32")
        R = T.alloc_global((40,), "float32")
        with T.Kernel(M) as bx:
            for j in T.Parallel(40):
                G[bx, j] = A[bx, j] * 2.0
        with T.Kernel(5) as bx:
            for j in T.Parallel(8):
                R[bx * 8 + j] = 0.0
        for r in T.serial(rounds):
            with T.Kernel(5) as bx:
                for j in T.Parallel(8):
                    for i in T.serial(M):
                        R[bx * 8 + j] += G[i, bx * 8 + j]
            if flag:
                with T.Kernel(M) as bx:
                    for j in T.Parallel(40):
                        G[bx, j] = G[bx, j] + T.cast(r, "float32")
        if flag and rounds > 1:
            with T.Kernel(1) as bx:
                T.copy(R, B)
        else:
            with T.Kernel(1) as bx:
                T.fill(B, -1.0)

    for m, rounds, flag in ((3, 3, True), (1, 2, True), (4, 0, True), (2, 2, False), (0, 2, True)):
        a = sample((m, 40))
        g, r = a * 2, np.zeros(40, np.float32)
        for turn in range(rounds):
            r = r + g.sum(0)
            g = g + turn if flag else g
        check(main, [a, np.zeros(40, np.float32), rounds, flag], {1: r if flag and rounds > 1 else np.full(40, -1.0)},
              atol=1e-4)


def test_host_conditions_on_integers():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), n: T.int32, k: T.uint8):
        if n % 3 == 1 and T.max(n, -5) < 9:
            with T.Kernel(4) as bx:
                A[bx] = 1
        elif T.min(k, 7) % 4 == 3:
            with T.Kernel(4) as bx:
                A[bx] = 2

    for n, k in ((4, 0), (10, 0), (-2, 3), (-8, 200), (0, 255), (0, 4)):
        value = 1 if n % 3 == 1 and max(n, -5) < 9 else 2 if min(k, 7) % 4 == 3 else 0
        check(main, [np.zeros(4, np.int32), n, k], {0: np.full(4, value, np.int32)})


def test_host_names_and_nested_loops():
    @T.prim_func
    def main(A: T.Tensor((24,), "int32"), n: T.int32, k: T.index):
        half = k // 2 + T.index(n) % 5
        for i in T.serial(half):
            for j in T.serial(i, half + 1, 2):
                last = j - i
                with T.Kernel(half) as bx:
                    A[bx] = A[bx] + T.cast(i * 100 + last, "int32")

    for n, k in ((7, 6), (-1, 0), (0, 0), (3, 9)):
        half = k // 2 + n % 5
        a = sample((24,), "int32")
        wanted = a.copy()
        for i in range(half):
            for j in range(i, half + 1, 2):
                wanted[:half] += i * 100 + j - i
        check(main, [a, n, k], {0: wanted})


def test_zero_rank_and_empty_arguments():
    @T.prim_func
    def main(A: T.Tensor((), "float32"), B: T.Tensor((3, 0), "float32"), C: T.Tensor((1,), "float32")):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((1,), "float32")
            A[()] = A[()] + 1.0
            T.copy(A, S)
            T.fill(B, 1.0)
            T.copy(S, C)

    check(main, [np.asarray(2.0, np.float32), np.zeros((3, 0), np.float32), np.zeros(1, np.float32)],
          {0: np.asarray(3.0), 2: np.asarray([3.0])})


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_an_extent_that_no_call_can_learn_is_refused(target):
    text = ('M = T.dyn("M")\n@T.prim_func\n'
            'def main(A: T.Tensor((4, 4), "float32", strides=(M, 1)), B: T.Tensor((M * 2,), "float32")):\n    pass\n')
    with pytest.raises(helve.Error) as caught:
        helve.compile(helve.parse(text), target=target)
    assert (caught.value.code, caught.value.message) == ("HV0703", "'M' is not the extent of any tensor parameter")


def test_small_floats_of_eight_bits():
    program = helve.parse(
        '@T.prim_func\n'
        'def main(A: T.Tensor((37,), "float8_e4m3"), B: T.Tensor((37,), "float32"), '
        'C: T.Tensor((37,), "float8_e5m2")):\n'
        "    with T.Kernel(1) as bx:\n        for i in T.Parallel(37):\n            B[i] = A[i] * 2.0\n"
        "            C[i] = B[i]\n"
    )
    a = sample((37,)).astype(ml_dtypes.float8_e4m3fn)
    b = a.astype(np.float32) * 2
    check(program, [a, np.zeros_like(b), np.zeros(37, ml_dtypes.float8_e5m2)],
          {1: b, 2: b.astype(ml_dtypes.float8_e5m2)})


def test_arrays_of_foreign_byte_order_are_refused():
    program = helve.parse('@T.prim_func\ndef main(A: T.Tensor((3,), "float32")):\n    with T.Kernel(3) as bx:\n'
                          '        A[bx] = A[bx] + 1.0\n')
    a = np.ones(3, np.dtype("float32").newbyteorder())
    with pytest.raises(helve.Error, match="its dtype >f4 has no counterpart"):
        helve.compile(program)(a)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool):
        name = str(dtype).partition(".")[2]
        program = helve.parse(
            f'@T.prim_func\ndef main(A: T.Tensor((5, 9), "{name}"), B: T.Tensor((5, 9), "{name}")):\n'
            f'    with T.Kernel(1) as bx:\n'
            f'        S = T.alloc_shared((5, 9), "{name}")\n        T.copy(A, S)\n        T.copy(S, B)\n'
        )
        a = (torch.arange(45).reshape(5, 9) % 2).to(dtype)
        for target in ("interp", "llvm"):
            b = torch.zeros_like(a)
            helve.compile(program, target=target)(a, b)
            assert torch.equal(a, b)
