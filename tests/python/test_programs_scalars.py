"""Scalar expressions as whole programs.

Every operator on every dtype that it takes, in a vector loop and its tail, against NumPy; casts between all dtypes.
"""

import math

import helve
import numpy as np
import pytest
from differential import FLOATS, INTS, check, dtype_of, sample

N = 37


def program_of(signature, body):
    lines = "".join(f"            {line}\n" for line in body)
    return helve.parse(f"@T.prim_func\ndef main({signature}):\n    with T.Kernel(1) as bx:\n"
                       f"        for i in T.Parallel({N}):\n{lines}")


def tensors(*dtypes):
    return ", ".join(f'{name}: T.Tensor(({N},), "{dtype}")' for name, dtype in zip("ABCDE", dtypes))


def wide_ints(dtype, seed):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    out = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    out[:4] = [info.min, info.max, 0, 1]
    return out


@pytest.mark.parametrize("dtype", INTS)
def test_integer_operators(dtype):
    """All wrap; // and % are floor, also of negative numbers."""
    bits = np.iinfo(dtype).bits
    a, b = wide_ints(dtype, 1), wide_ints(dtype, 2)
    b[:4] = [1, 1, 3, np.iinfo(dtype).max]
    b[b == 0] = 5
    if np.iinfo(dtype).min < 0:
        b[5:9] = -3
        a[5:9] = [7, -7, 9, -1]
    shift = np.arange(N, dtype=dtype) % bits
    forms = [
        ("A[i] + B[i]", a + b), ("A[i] - B[i]", a - b), ("A[i] * B[i]", a * b), ("A[i] // B[i]", a // b),
        ("A[i] % B[i]", a % b),
        ("A[i] & B[i]", a & b), ("A[i] | B[i]", a | b), ("A[i] ^ B[i]", a ^ b), ("~A[i]", ~a), ("-A[i]", -a),
        ("T.abs(A[i])", np.abs(a)),
        ("T.min(A[i], B[i])", np.minimum(a, b)), ("T.max(A[i], B[i])", np.maximum(a, b)), ("A[i] << C[i]", a << shift),
        ("A[i] >> C[i]", a >> shift), ("A[i] // 7", a // dtype_of(dtype).type(7)),
        ("A[i] % 7", a % dtype_of(dtype).type(7)),
        ("T.if_then_else(A[i] < B[i], A[i], B[i] + 1)", np.where(a < b, a, b + dtype_of(dtype).type(1))),
        ("T.clamp(A[i], 3, 9)", np.clip(a, 3, 9)),
    ]  # fmt: skip
    _check_forms(forms, [a, b, shift], dtype)


def _check_forms(forms, inputs, dtype, **options):
    names = [f"R{i}" for i in range(len(forms))]
    kinds = [x.dtype.name for x in inputs]
    head = ", ".join(f'{n}: T.Tensor(({N},), "{d}")' for n, d in zip("ABC", kinds))
    head += "".join(f', {n}: T.Tensor(({N},), "{dtype}")' for n in names)
    program = program_of(head, [f"{n}[i] = {form}" for n, (form, _) in zip(names, forms)])
    outputs = [np.zeros(N, dtype_of(dtype)) for _ in forms]
    start = len(inputs)
    check(program, [*inputs, *outputs], {start + i: wanted for i, (_, wanted) in enumerate(forms)}, **options)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8", "int64", "uint64"])
def test_comparisons_and_logic(dtype):
    a, b = sample(N, dtype, 1), sample(N, dtype, 2)
    b[::3] = a[::3]
    if dtype == "uint64":
        a[1], b[1] = 2**63 + 5, 3
    if dtype in FLOATS:
        a[5] = np.nan
    forms = [
        ("A[i] < B[i]", a < b), ("A[i] <= B[i]", a <= b), ("A[i] > B[i]", a > b), ("A[i] >= B[i]", a >= b),
        ("A[i] == B[i]", a == b),
        ("A[i] != B[i]", a != b), ("A[i] < B[i] and A[i] != 1", (a < b) & (a != 1)),
        ("A[i] < B[i] or A[i] == 1", (a < b) | (a == 1)),
        ("not A[i] < B[i]", ~(a < b)), ("1 <= A[i] < 4", (1 <= a) & (a < 4)),
        ("(A[i] < B[i]) == (B[i] > 1)", (a < b) == (b > 1)),
        ("T.if_then_else(A[i] > 0, B[i] > 0, A[i] == B[i])", np.where(a > 0, b > 0, a == b)),
    ]  # fmt: skip
    _check_forms(forms, [a, b, a], "bool")


def exact(a, f):
    return f(a.astype(np.float64)).astype(a.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operators(dtype):
    a, b, c = (sample(N, dtype, seed) for seed in (1, 2, 3))
    w, x, y = (v.astype(np.float64) for v in (a, b, c))
    forms = [
        ("A[i] + B[i]", w + x), ("A[i] - B[i]", w - x), ("A[i] * B[i]", w * x), ("A[i] / B[i]", w / x), ("-A[i]", -w),
        ("T.abs(A[i])", abs(w)), ("T.min(A[i], B[i])", np.minimum(w, x)), ("T.max(A[i], B[i])", np.maximum(w, x)),
        ("T.floor(A[i] * 3)", np.floor(exact(a, lambda v: v) * 3)) if dtype == "float64"
        else ("T.floor(A[i])", np.floor(w)),
        ("T.ceil(A[i])", np.ceil(w)), ("T.round(A[i])", np.round(w)), ("T.fma(A[i], B[i], C[i])", w * x + y),
        ("A[i] * 2 + 1", w * 2 + 1), ("1 / (2.5 - A[i] * A[i] * 0.01)", 1 / (2.5 - w * w * 0.01)),
    ]  # fmt: skip
    _check_forms(forms, [a, b, c], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_math_functions(dtype):
    a = sample(N, dtype, 1)
    p = np.abs(a.astype(np.float64)).astype(a.dtype) + np.asarray(0.25, a.dtype)
    w, x = a.astype(np.float64), p.astype(np.float64)
    forms = [
        ("T.exp(A[i])", np.exp(w)), ("T.exp2(A[i])", np.exp2(w)), ("T.log(B[i])", np.log(x)),
        ("T.log2(B[i])", np.log2(x)),
        ("T.sqrt(B[i])", np.sqrt(x)), ("T.rsqrt(B[i])", 1 / np.sqrt(x)), ("T.sin(A[i])", np.sin(w)),
        ("T.cos(A[i])", np.cos(w)),
        ("T.tanh(A[i])", np.tanh(w)), ("T.erf(A[i])", np.vectorize(math.erf)(w)),
        ("T.sigmoid(A[i])", 1 / (1 + np.exp(-w))),
        ("T.pow(B[i], A[i])", x**w),
    ]  # fmt: skip
    _check_forms(forms, [a, p, a], dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_math_functions_at_special_values(dtype):
    a = np.zeros(N, dtype)
    a[:14] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 700.0, -700.0, 1e-30, -1e-30, 88.5, -103.0, 1e30]
    half = np.zeros(N, dtype)
    half[:8] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e15, -1e15]
    with np.errstate(all="ignore"):
        forms = [
            ("T.exp(A[i])", np.exp(a)), ("T.exp2(A[i])", np.exp2(a)), ("T.log(A[i])", np.log(a)),
            ("T.log2(A[i])", np.log2(a)),
            ("T.sqrt(A[i])", np.sqrt(a)), ("T.rsqrt(A[i])", 1 / np.sqrt(a)), ("T.tanh(A[i])", np.tanh(a)),
            ("T.sigmoid(A[i])", 1 / (1 + np.exp(-a))), ("T.abs(A[i])", np.abs(a)), ("T.floor(A[i])", np.floor(a)),
            ("T.round(B[i])", np.round(half)), ("T.max(A[i], B[i])", np.maximum(a, half)),
            ("T.min(B[i], A[i])", np.minimum(half, a)),
            ("T.erf(A[i])", np.vectorize(math.erf)(a)),
        ]  # fmt: skip
    _check_forms(forms, [a, half, a], dtype, rtol=1e-6 if dtype == "float32" else 1e-13, atol=1e-38)


@pytest.mark.parametrize("source", [*FLOATS, *INTS, "bool"])
def test_casts(source):
    targets = [*FLOATS, *INTS, "bool"]
    a = sample(N, source, 4)
    if source in FLOATS:
        a = (a.astype(np.float64) * 3).astype(a.dtype)
    names = [f"R{i}" for i in range(len(targets))]
    head = f'A: T.Tensor(({N},), "{source}")' + "".join(f', {n}: T.Tensor(({N},), "{t}")' for n,
                                                        t in zip(names, targets))
    program = program_of(head, [f'{n}[i] = T.cast(A[i], "{t}")' for n, t in zip(names, targets)])
    if source in FLOATS:  # a negative float has no unsigned value
        a = np.abs(a.astype(np.float64)).astype(a.dtype)
    wide = a.astype(np.float64) if source in FLOATS else a
    expected = {1 + i: wide.astype(dtype_of(t)) for i, t in enumerate(targets)}
    outputs = [np.zeros(N, dtype_of(t)) for t in targets]
    check(program, [a, *outputs], expected)


def test_negative_numbers_become_signed_integers():
    a = np.asarray([-3.7, -0.2, 2.9, -128.0, 127.4] + [0.0] * (N - 5), np.float32)
    program = program_of(tensors("float32", "int8", "int64", "int32"),
                         [f'{n}[i] = T.cast(A[i], "{t}")' for n, t in zip("BCD", ("int8", "int64", "int32"))])
    check(program, [a, np.zeros(N, np.int8), np.zeros(N, np.int64), np.zeros(N, np.int32)],
          {i: a.astype(t) for i, t in ((1, np.int8), (2, np.int64), (3, np.int32))})


def test_index_arithmetic_is_floor_and_becomes_data():
    program = program_of(
        tensors("int64", "int32", "float32", "int64", "float32"),
        [
            "v = i - 20", "A[i] = v // 7 * 1000 + v % 7", "B[i] = -v // 3", "C[i] = v",
            "D[i] = T.max(v, -v) % 4 - T.min(v // -3, 2)",
            "E[i] = C[i] * v + 0.5",
        ],
    )  # fmt: skip
    v = np.arange(N) - 20
    z = np.zeros
    check(
        program,
        [z(N, np.int64), z(N, np.int32), z(N, np.float32), z(N, np.int64), z(N, np.float32)],
        {0: v // 7 * 1000 + v % 7, 1: -v // 3, 2: v, 3: np.maximum(v, -v) % 4 - np.minimum(v // -3, 2), 4: v * v + 0.5},
    )


def test_loaded_integers_are_indices():
    program = program_of(
        tensors("int32", "float32", "float32", "uint8", "float32"),
        ["B[T.index(A[i])] = C[i]", "E[i] = C[T.index(D[i])]"],
    )
    order = np.random.default_rng(1).permutation(N)
    c, d = sample(N), np.arange(N, dtype=np.uint8)[::-1].copy()
    b = np.zeros(N, np.float32)
    b[order] = c
    check(program, [order.astype(np.int32), np.zeros(N, np.float32), c, d, np.zeros(N, np.float32)], {1: b, 4: c[d]})


def test_short_circuit_keeps_accesses_inside():
    program = program_of(
        tensors("float32", "float32", "int32", "int32"),
        ["B[i] = T.if_then_else(i + 5 < %d and A[i + 5] > 0.0, A[i + 5], -1.0)" % N,
         "D[i] = T.if_then_else(C[i] != 0, 100 // C[i], -1)"],
    )  # fmt: skip
    a, c = sample(N), sample(N, "int32")
    ahead = np.append(a[5:], np.full(5, -1, np.float32))
    with np.errstate(all="ignore"):
        d = np.where(c != 0, 100 // np.where(c == 0, 1, c), -1)
    check(program, [a, np.zeros(N, np.float32), c, np.zeros(N, np.int32)], {1: np.where(ahead > 0, ahead, -1), 3: d})
