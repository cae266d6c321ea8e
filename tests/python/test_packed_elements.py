"""int4 and float4_e2m1: two elements share a byte, in tensors of a call and wherever a kernel keeps them."""

import re

import helve
import helve.testing
import ml_dtypes
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import check
from helve import T
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import thread_form

from helve import _core

KINDS = {"int4": np.int8, "float4_e2m1": np.float32}
FLOAT4 = np.arange(16, dtype="uint8").view(ml_dtypes.float4_e2m1fn).astype("float32")


def unpacked(data, dtype):
    """The elements of packed bytes, the low half of each first."""
    codes = np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], -1)
    return (codes.astype("int8") ^ 8) - 8 if dtype == "int4" else FLOAT4[codes]


def packed(values, dtype):
    codes = (values.astype("int64") & 15).astype("uint8") if dtype == "int4" else (
        values.astype(ml_dtypes.float4_e2m1fn).view("uint8"))
    return codes[..., ::2] | codes[..., 1::2] << 4


def some_bytes(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype("uint8")


def everywhere(program, arguments, expected):
    """Every way of the CPU, and every stage for GPUs under the interpreter."""
    check(program, arguments, expected, rtol=0, atol=0)
    helve.testing.check_stages(program, lambda: [a.copy() for a in arguments], target="cuda")


def read(dtype, to, rows=5, columns=24):
    """Elements, and copies that convert."""

    @T.prim_func
    def main(W: T.Tensor((rows, columns), dtype), A: T.Tensor((rows, columns), to), B: T.Tensor((rows, columns), to),
             C: T.Tensor((rows, columns), to)):
        with T.Kernel(rows, threads=32) as b:
            for j in T.Parallel(columns):
                A[b, j] = T.cast(W[b, j], to)
            w = T.alloc_fragment((columns,), to)
            T.copy(W[b, :], w)
            T.copy(w, B[b, :])
            s = T.alloc_shared((columns,), dtype)
            T.copy(W[b, :], s)
            for j in T.Parallel(columns):
                C[b, j] = T.cast(s[columns - 1 - j], to)

    return main


@pytest.mark.parametrize("to", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("dtype", KINDS)
def test_reads(dtype, to):
    data = some_bytes(5, 12)
    kind = helve.testing.numpy_dtype(to)
    wanted = unpacked(data, dtype).astype(kind)
    out = [np.zeros((5, 24), kind) for _ in range(3)]
    everywhere(read(dtype, to), [data, *out], {1: wanted, 2: wanted, 3: wanted[:, ::-1]})


def reads_from(dtype, K, *offsets):
    """Rows of K elements, which begin at an offset of the packed row."""

    @T.prim_func
    def main(W: T.Tensor((3, T.dyn("P")), dtype), X: T.Tensor((3, K), "float32"), Y: T.Tensor((3, K), "float32"),
             O: T.Tensor((1,), "int32")):
        with T.Kernel(3) as b:
            for j in T.Parallel(K):
                X[b, j] = T.cast(W[b, j + offsets[0]], "float32") * 2.0
            start = O[0]
            for j in T.Parallel(K):
                Y[b, j] = T.cast(W[b, j + start], "float32") + X[b, j]

    return main


@pytest.mark.parametrize("offset", [0, 1, 2, 5])
@pytest.mark.parametrize("columns", [2, 7, 64, 65, 131, None])
@pytest.mark.parametrize("dtype", KINDS)
def test_reads_of_rows(dtype, columns, offset):
    """Whole vectors begin with a whole byte, wherever the row begins, with tails and extents of the call too."""
    sizes = [columns] if columns else [0, 1, 2, 63, 64, 65, 140]
    program = reads_from(dtype, columns or T.dyn("K"), offset)
    for size in sizes:
        for start in (0, 3):
            data = some_bytes(3, (size + max(offset, start) + 1) // 2 + 1)
            elements = unpacked(data, dtype).astype("float32")
            x = elements[:, offset : offset + size] * 2
            y = elements[:, start : start + size] + x
            out = [np.zeros((3, size), "float32") for _ in range(2)]
            check(program, [data, *out, np.int32([start])], {1: x, 2: y}, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", KINDS)
def test_rows_are_read_in_vectors_of_bytes(dtype):
    """Also where only the call knows in which half of a byte a row begins."""
    text = helve.compile(reads_from(dtype, 256, 1), target="llvm").source("lowered")
    assert re.search(r"W\[bx?, v\w* \* 32 \+ l\w* // 2 \+ 1\]", text), text
    assert re.search(r"for j\w* in T.serial\(T.cast\(start, \"index\"\) % 2", text), text


def dequantised_product(K, dtype="int4", group=32):
    """C = A @ (W * S).T with packed weights and a scale for each group of them."""
    M, N = 20, 48
    SW = (N, K // group) if not isinstance(K, _core.Var) else (N, T.dyn("G"))

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), W: T.Tensor((N, K), dtype), S: T.Tensor(SW, "float32"),
             C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=64) as (bn, bm):
            a = T.alloc_shared((16, 32), "bfloat16")
            q = T.alloc_shared((16, 32), dtype)
            w = T.alloc_shared((16, 32), "bfloat16")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[bm * 16 : bm * 16 + 16, k * 32 : k * 32 + 32], a)
                T.copy(W[bn * 16 : bn * 16 + 16, k * 32 : k * 32 + 32], q)
                for i, j in T.Parallel(16, 32):
                    w[i, j] = T.cast(q[i, j], "float32") * S[bn * 16 + i, k]
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[bm * 16 : bm * 16 + 16, bn * 16 : bn * 16 + 16])

    return main


def product_arguments(K, dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (20, K)).astype(ml_dtypes.bfloat16)
    s = np.exp2(rng.integers(-2, 3, (48, K // 32))).astype("float32")
    return [a, some_bytes(48, K // 2), s, np.zeros((20, 48), "float32")]


def product(a, data, s, c, dtype):
    return a.astype("float32") @ (unpacked(data, dtype) * np.repeat(s, 32, axis=1)).T


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_dequantised_product(dtype, dynamic):
    program = dequantised_product(T.dyn("K") if dynamic else 96, dtype)
    arguments = product_arguments(96, dtype)
    everywhere(program, arguments, {3: product(*arguments, dtype)})


def mxfp4_product(K, M=20, N=48):
    """C = A @ W.T with W in MXFP4: 4-bit floats, and a power of two for each 32 of them along a row."""
    G = T.dyn("G")

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), W: T.Tensor((N, K), "float4_e2m1fn"), S: T.Tensor((N, G), "uint8"),
             C: T.Tensor((M, N), "float32")):
        T.assume(K == G * 32)
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=64) as (bn, bm):
            a = T.alloc_shared((16, 64), "bfloat16")
            q = T.alloc_shared((16, 64), "float4_e2m1fn")
            w = T.alloc_shared((16, 64), "bfloat16")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[bm * 16 : bm * 16 + 16, k * 64 : k * 64 + 64], a)
                T.copy(W[bn * 16 : bn * 16 + 16, k * 64 : k * 64 + 64], q)
                for i, g, j in T.Parallel(16, 2, 32):
                    scale = T.e8m0(S[bn * 16 + i, k * 2 + g]) if k * 2 + g < G else 0.0
                    w[i, g * 32 + j] = T.cast(q[i, g * 32 + j], "float32") * scale
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[bm * 16 : bm * 16 + 16, bn * 16 : bn * 16 + 16])

    return main


def mxfp4_arguments(K):
    a, w, *_ = product_arguments(K, "float4_e2m1")
    s = np.random.default_rng(4).integers(124, 130, (48, K // 32)).astype("uint8")
    return [a, w, s, np.zeros((20, 48), "float32")]


@pytest.mark.parametrize("K", [96, 128])
def test_mxfp4_product(K):
    a, w, s, c = mxfp4_arguments(K)
    scales = s.view(ml_dtypes.float8_e8m0fnu).astype("float32")
    everywhere(mxfp4_product(T.dyn("K")), [a, w, s, c], {3: product(a, w, scales, c, "float4_e2m1")})


def test_bytes_are_copied_ahead():
    """The packed tile is a copy of bytes, which the pipeline makes asynchronously."""
    stages = dict(helve.testing.lowering_stages(dequantised_product(96), target="cuda"))
    text = str(_core.print(stages["pipeline_loops"]))
    assert 'q = T.alloc_shared((2, 16, 16), "uint8")' in text and "T.copy_async(W[" in text


def written(dtype):
    """Copies, fills and clears of whole bytes, from memory that elements are stored to."""

    @T.prim_func
    def main(X: T.Tensor((6, 40), "float32"), W: T.Tensor((6, 40), dtype), V: T.Tensor((6, 40), dtype),
             U: T.Tensor((6, 40), dtype)):
        with T.Kernel(6, threads=32) as b:
            w = T.alloc_fragment((40,), dtype)
            for j in T.Parallel(40):
                w[j] = T.cast(X[b, j], dtype)
            T.copy(w, W[b, :])
            T.copy(w[0:16], V[b, 24:40])
            T.fill(V[b, 0:8], T.cast(3, dtype))
            T.clear(V[b, 8:24])
            T.copy(W[b, 0:32], U[b, 8:40])
            T.copy(w[1:9], U[b, 0:8])

    return main


@pytest.mark.parametrize("dtype", KINDS)
def test_writes_of_whole_bytes(dtype):
    x = (np.random.default_rng(2).integers(-40, 41, (6, 40)) / 4).astype("float32")
    x[0, :6] = [np.nan, np.inf, -np.inf, -0.1, 1e9, -0.0]
    with np.errstate(invalid="ignore"):
        whole = np.clip(np.nan_to_num(np.trunc(x), nan=0, posinf=7, neginf=-8), -8, 7)
    w = whole.astype("int8") if dtype == "int4" else x
    v = np.concatenate([np.full((6, 8), 3), np.zeros((6, 16)), w[:, :16]], axis=1)
    u = np.concatenate([w[:, 1:9], w[:, :32]], axis=1)
    out = [some_bytes(6, 20, seed=n) for n in range(3)]
    if dtype != "int4":
        v, u = v.astype("float32"), u.astype("float32")
    everywhere(written(dtype), [x, *out], {n + 1: packed(each, dtype) for n, each in enumerate((w, v, u))})


def test_arithmetic_wraps():
    @T.prim_func
    def main(A: T.Tensor((64,), "int4"), B: T.Tensor((64,), "int4"), C: T.Tensor((9, 64), "int4")):
        with T.Kernel(1, threads=32):
            c = T.alloc_shared((9, 64), "int4")
            for i in T.Parallel(64):
                x = A[i] + B[i]
                c[0, i] = x
                c[1, i] = A[i] * B[i] - x
                c[2, i] = -A[i]
                c[3, i] = T.abs(A[i])
                c[4, i] = T.max(A[i], B[i] << 1)
                c[5, i] = T.if_then_else(A[i] < B[i], ~A[i], A[i] ^ 5)
                c[6, i] = T.cast(T.cast(A[i], "int32") * 5, "int4")
                c[7, i] = A[i] >> 1
                c[8, i] = A[i] // T.cast(-1, "int4")
            T.copy(c, C)

    a, b = some_bytes(32), some_bytes(32, seed=1)
    x, y = (unpacked(each, "int4").astype("int64") for each in (a, b))
    wrapped = (y << 1 & 15 ^ 8) - 8
    wanted = [x + y, x * y - (x + y), -x, abs(x), np.maximum(x, wrapped), np.where(x < y, ~x, x ^ 5), x * 5, x >> 1,
              -x]
    everywhere(main, [a, b, np.zeros((9, 32), "uint8")], {2: packed(np.stack(wanted), "int4")})


def test_ragged_ends_are_padded_and_dropped():
    M, K = T.dyn("M"), T.dyn("K")

    @T.prim_func
    def main(W: T.Tensor((M, K), "int4"), V: T.Tensor((M, K), "int4"), A: T.Tensor((M, 16), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=32) as b:
            s = T.alloc_shared((4, 16), "int4")
            T.copy(W[b * 4 : b * 4 + 4, 0:16], s, pad=-3)
            T.copy(s, V[b * 4 : b * 4 + 4, 0:16])
            for i, j in T.Parallel(4, 16):
                if b * 4 + i < M:
                    A[b * 4 + i, j] = T.cast(s[i, j], "float32")

    for m, k in [(1, 2), (6, 10), (4, 16)]:
        w = some_bytes(m, k // 2)
        a = np.full((m, 16), -3, "float32")
        a[:, :k] = unpacked(w, "int4")
        everywhere(main, [w, np.zeros_like(w), np.zeros((m, 16), "float32")], {1: w, 2: a})


def test_values_of_loops_and_tiles():
    @T.prim_func
    def main(W: T.Tensor((32, 32), "int4"), A: T.Tensor((32, 32), "int32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            x = T.alloc_shared_tiles((32, 32), "int4")
            y = T.alloc_shared_tiles((32, 32), "int4")
            T.copy(W, x)
            for i, j in T.foreach_tiles(x):
                y[i, j] = x[i, j] + x[i, j]
            for i, j in T.Parallel(32, 32):
                A[i, j] = T.cast(y[i, j], "int32")
            last = T.alloc_local((1,), "int4")
            last[0] = T.cast(-8, "int4")
            while last[0] < 5:
                last[0] = last[0] + T.cast(3, "int4")
            N[0] = last[0]

    w = some_bytes(32, 16)
    doubled = (unpacked(w, "int4").astype("int32") * 2 + 8) % 16 - 8
    everywhere(main, [w, np.zeros((32, 32), "int32"), np.zeros(1, "int32")], {1: doubled, 2: np.int32([7])})


def test_products_and_extremes_of_int4():
    @T.prim_func
    def main(A: T.Tensor((16, 32), "int4"), B: T.Tensor((16, 32), "int4"), C: T.Tensor((16, 16), "int32"),
             M: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 32), "int4")
            b = T.alloc_shared((16, 32), "int4")
            c = T.alloc_fragment((16, 16), "int32")
            m = T.alloc_shared((16,), "int4")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)
            T.reduce_max(a, m, dim=1)
            for i in T.Parallel(16):
                M[i] = m[i]

    a, b = some_bytes(16, 16), some_bytes(16, 16, seed=1)
    x, y = (unpacked(each, "int4").astype("int32") for each in (a, b))
    everywhere(main, [a, b, np.zeros((16, 16), "int32"), np.zeros(16, "int32")], {2: x @ y.T, 3: x.max(axis=1)})


def test_outputs_are_bytes():
    K = T.dyn("K")

    @T.prim_func
    def main(W: T.Tensor((3, K), "int4"), V: T.Tensor((3, K), "int4")):
        with T.Kernel(3) as b:
            for i in T.serial(K // 2):
                T.copy(W[b, i * 2 : i * 2 + 2], V[b, i * 2 : i * 2 + 2])

    w = some_bytes(3, 5)
    for target in ("interp", "llvm"):
        made = helve.compile(main, target=target, out="V")(w)
        assert made.dtype == np.uint8 and np.array_equal(made, w)


def test_one_extent_counts_elements():
    program = dequantised_product(T.dyn("K"))
    for target in ("interp", "llvm"):
        a, w, s, c = product_arguments(96, "int4")
        with pytest.raises(helve.Error) as caught:
            helve.compile(program, target=target)(a, w[:, :40].copy(), s, c)
        assert caught.value.code == "HV0606" and "80" in str(caught.value) and "96" in str(caught.value)


def test_the_text_reads_back():
    for dtype in KINDS:
        helve.testing.assert_round_trip(read(dtype, "float32").function)


def written_arguments():
    x = (np.random.default_rng(2).integers(-40, 41, (6, 40)) / 4).astype("float32")
    return [x, *(some_bytes(6, 20, seed=n) for n in range(3))]


def read_arguments(to):
    return [some_bytes(5, 12), *(np.zeros((5, 24), helve.testing.numpy_dtype(to)) for _ in "ABC")]


# A program, fresh arguments, and the number of its blocks.
TEXTS = {
    **{f"{dtype} to {to}": (lambda dtype=dtype, to=to: read(dtype, to), lambda to=to: read_arguments(to), 5)
       for dtype in KINDS for to in ("float32", "bfloat16")},
    **{f"{dtype} written": (lambda dtype=dtype: written(dtype), written_arguments, 6) for dtype in KINDS},
    "product": (lambda: dequantised_product(96), lambda: product_arguments(96, "int4"), 6),
    "mxfp4": (lambda: mxfp4_product(96), lambda: mxfp4_arguments(96), 6),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    forms = [thread_form(program()) for program, *_ in TEXTS.values()]
    names = [f"packed{n}" for n in range(len(TEXTS))]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), True, names)


@pytest.mark.parametrize("n", range(len(TEXTS)), ids=list(TEXTS))
def test_the_text(kernels, n):
    program, arguments, blocks = list(TEXTS.values())[n]
    wanted = arguments()
    helve.compile(program(), target="interp")(*wanted)
    given = [aligned(array) for array in arguments()]
    names = [param.name for param in program().function.params]
    arrays = dict(zip(names, given))
    kernels.run(f"packed{n}", blocks, arrays, {"G": 3})
    for got, expected in zip(given, wanted):
        np.testing.assert_array_equal(got, expected)


@needs_nvrtc
@pytest.mark.parametrize("dtype", KINDS)
def test_the_text_compiles(dtype):
    for program in (read(dtype, "bfloat16"), written(dtype), dequantised_product(96, dtype), mxfp4_product(128)):
        assert_compiles(_core.cuda_source(thread_form(program))[0])


def scaled_pairs(to, scale):
    """All bytes of int4, for each scale, as a tensor core's factor would be made: `scale` is the dtype of scales."""
    R = len(SCALES)

    @T.prim_func
    def main(W: T.Tensor((R, 16, 32), "int4"), S: T.Tensor((R,), scale or to), C: T.Tensor((R, 16, 32), to)):
        with T.Kernel(R, threads=32) as r:
            q = T.alloc_shared((16, 32), "int4")
            w = T.alloc_fragment((16, 32), to, layout="S[(2, 8, 4, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]")
            T.copy(W[r, :, :], q)
            for n, d in T.Parallel(16, 32):
                if scale is None:
                    w[n, d] = T.cast(q[n, d], to)
                else:
                    w[n, d] = T.cast(q[n, d], "float32") * S[r]
            T.copy(w, C[r, :, :])

    return main


SCALES = [1.0, -0.5, 0.3, 3e38, 1e-38, 7e-6, 0.0, -0.0, np.inf, np.nan]


@pytest.mark.parametrize("scale", [None, "own", "float32"])
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
def test_bytes_become_pairs_of_floats(tmp_path, to, scale):
    """Every byte, with scales that overflow, vanish and are no numbers: as float32 rounds each product."""
    dtype = None if scale is None else to if scale == "own" else scale
    data = np.tile(np.arange(256, dtype="uint8").reshape(1, 16, 16), (len(SCALES), 1, 1))
    kind = helve.testing.numpy_dtype(to)
    with np.errstate(over="ignore"):
        s = np.array(SCALES, "float32").astype(helve.testing.numpy_dtype(dtype or to))
    form = thread_form(scaled_pairs(to, dtype))
    assert "helve_unpack_int4(w + " in _core.cuda_source(form)[0]
    wanted = [data, s, np.zeros((len(SCALES), 16, 32), kind)]
    helve.compile(scaled_pairs(to, dtype), target="interp")(*wanted)
    for prelude in (False, True):
        given = [aligned(array) for array in (data, s, np.zeros_like(wanted[2]))]
        folder = tmp_path / str(prelude)
        folder.mkdir()
        host = HostKernels([form], folder, prelude, ["pairs"])
        host.run("pairs", len(SCALES), dict(zip("WSC", given)))
        np.testing.assert_array_equal(given[2].astype("float32"), wanted[2].astype("float32"))
        zero = wanted[2] == 0
        np.testing.assert_array_equal(np.signbit(given[2][zero]), np.signbit(wanted[2][zero]))


@needs_nvrtc
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
def test_pairs_compile(to):
    for scale in (None, to, "float32"):
        assert_compiles(_core.cuda_source(thread_form(scaled_pairs(to, scale)))[0])


def test_a_scale_for_each_element_makes_no_pairs(tmp_path):
    """Of two neighbours each has its own; nor are elements of two bytes a pair."""

    @T.prim_func
    def main(W: T.Tensor((16, 34), "int4"), S: T.Tensor((32,), "bfloat16"), C: T.Tensor((2, 16, 32), "bfloat16")):
        with T.Kernel(1, threads=32):
            q = T.alloc_shared((16, 34), "int4")
            w = T.alloc_fragment((16, 32), "bfloat16", layout="S[(2, 8, 4, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]")
            v = T.alloc_fragment((16, 32), "bfloat16", layout="S[(2, 8, 4, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]")
            T.copy(W, q)
            for n, d in T.Parallel(16, 32):
                w[n, d] = T.cast(q[n, d], "float32") * S[d]
                v[n, d] = T.cast(q[n, d + 1], "float32")
            T.copy(w, C[0, :, :])
            T.copy(v, C[1, :, :])

    form = thread_form(main)
    assert "helve_unpack_int4" not in _core.cuda_source(form)[0]
    data, kind = some_bytes(16, 17), helve.testing.numpy_dtype("bfloat16")
    s = np.random.default_rng(3).standard_normal(32).astype(kind)
    given = [aligned(each) for each in (data, s, np.zeros((2, 16, 32), kind))]
    HostKernels([form], tmp_path, True, ["each"]).run("each", 1, dict(zip("WSC", given)))
    elements = unpacked(data, "int4").astype("float32")
    wanted = np.stack([elements[:, :32] * s.astype("float32"), elements[:, 1:33]]).astype(kind)
    np.testing.assert_array_equal(given[2], wanted)
