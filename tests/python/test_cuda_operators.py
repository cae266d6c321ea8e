"""Every operator on every dtype and every conversion in CUDA C: against the interpreter, and through NVRTC."""

import re

import helve
import ml_dtypes
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, assert_same, interpret
from differential import INTS
from nvrtc import assert_compiles, needs_nvrtc

from helve import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SMALL = ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"]
FLOATS = ["float64", "float32", *SMALL]
DTYPES = [*FLOATS, *INTS, "bool"]
COUNT = 96
THREADS = 32

ARITHMETIC = {"Add": "a + b", "Sub": "a - b", "Mul": "a * b", "Neg": "-a", "Min": "T.min(a, b)", "Max": "T.max(a, b)",
              "Abs": "T.abs(a)"}
COMPARISONS = {"Lt": "a < b", "Le": "a <= b", "Gt": "a > b", "Ge": "a >= b", "Eq": "a == b", "Ne": "a != b"}
WHOLE = {"FloorDiv": "a // b", "FloorMod": "a % b", "BitAnd": "a & b", "BitOr": "a | b", "BitXor": "a ^ b",
         "BitNot": "~a",
         "ShiftLeft": "a << c", "ShiftRight": "a >> c"}
REAL = {"Div": "a / b", "Fma": "T.fma(a, b, c)", "Pow": "T.pow(a, b)", "Exp2Approx": "T.exp2_approx(a)"} | {
    name: f"T.{name.lower()}(a)"
    for name in ["Floor", "Ceil", "Round", "Exp", "Exp2", "Log", "Log2", "Sqrt", "Rsqrt", "Sin", "Cos", "Tanh", "Erf",
                 "Sigmoid"]
}
LOGICAL = {"And": "a and b", "Or": "a or b", "Not": "not a"}
SELECT = {"Select": "T.if_then_else(a < b, a, c)"}


def operators(dtype):
    """Operator -> (expression in a, b, c; dtype of the result)."""
    table = {name: (text, "bool") for name, text in COMPARISONS.items()}
    if dtype == "bool":
        table = {name: table[name] for name in ["Eq", "Ne"]}
        return table | {n: (t, "bool") for n, t in LOGICAL.items()} | {"Select": ("T.if_then_else(a, b, c)", "bool")}
    own = ARITHMETIC | SELECT | (REAL if dtype in FLOATS else WHOLE)
    return table | {name: (text, dtype) for name, text in own.items()}


def kind_of(dtype):
    return np.dtype(ml_dtypes.float8_e4m3fn) if dtype == "float8_e4m3" else np.dtype(getattr(ml_dtypes, dtype, dtype))


def program(name, dtype, expressions):
    """A kernel that stores each of (expression, dtype) of a, b and c to an array of its own."""
    outs = [f"O{k}" for k in range(len(expressions))]
    params = [f'{x}: T.Tensor(({COUNT},), "{dtype}")' for x in "ABC"]
    params += [f'{out}: T.Tensor(({COUNT},), "{to}")' for out, (_, to) in zip(outs, expressions)]
    lines = ["@T.prim_func", f"def {name}({', '.join(params)}):",
             f"    with T.Kernel({COUNT // THREADS}, threads={THREADS}) as bx:"]
    lines += [f"        for tx in T.threads({THREADS}):"]
    used = set(re.findall(r"\b[abc]\b", " ".join(text for text, _ in expressions)))
    lines += [f"            {x} = {x.upper()}[bx * {THREADS} + tx]" for x in sorted(used)]
    lines += [f"            {out}[bx * {THREADS} + tx] = {text}" for out, (text, _) in zip(outs, expressions)]
    return helve.parse("\n".join(lines) + "\n")


def operator_program(dtype):
    return program(f"operators_{dtype}", dtype, list(operators(dtype).values()))


def cast_program(dtype):
    return program(f"casts_{dtype}", dtype, [(f'T.cast(a, "{to}")', to) for to in DTYPES])


def samples(dtype, seed):
    """Numbers of every magnitude, with the special ones."""
    rng = np.random.default_rng(seed)
    kind = kind_of(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype in INTS:
        info = np.iinfo(kind)
        special = [info.min, info.max, info.min + 1, 0, 1, 2, info.max - 1, info.max // 2, 5, 7]
        values = [int(rng.integers(info.min, info.max, dtype=kind, endpoint=True)) for _ in range(COUNT // 2)]
        values += [int(v) for v in rng.integers(0 if info.min == 0 else -20, 20, COUNT)]
        return np.array((special + values)[:COUNT]).astype(kind)[rng.permutation(COUNT)]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 448.0, 464.0, 465.0, 57344.0,
               61440.0, 65504.0,
               65520.0, 2.0**-9, 2.0**-10, 2.0**-24, 2.0**-25, 1e-40, 3e38, 127.5, -128.5, 2.0**31, -(2.0**31), 2.0**63,
               255.9]
    values = np.concatenate([special, rng.standard_normal(COUNT) * np.exp2(rng.integers(-12, 12, COUNT))])[:COUNT]
    return values.astype(kind)[rng.permutation(COUNT)]


def arguments(dtype, expressions, seed):
    a, b, c = (samples(dtype, 3 * seed + k) for k in range(3))
    if dtype in INTS:
        b = np.where(b == 0, np.array(3, b.dtype), b)
        c = (np.arange(COUNT) % (kind_of(dtype).itemsize * 8 + 3)).astype(b.dtype)  # amounts of shifts
    return [a, b, c] + [np.zeros(COUNT, kind_of(to)) for _, to in expressions]


def check(kernels, function, dtype, expressions, seed):
    given = arguments(dtype, expressions, seed)
    wanted = [array.copy() for array in given]
    interpret(function, *wanted)
    names = [p.name for p in function.function.params]
    arrays = {name: aligned(array) for name, array in zip(names, given)}
    kernels.run(function.function.name, COUNT // THREADS, arrays)
    for (text, to), name, expected in zip(expressions, names[3:], wanted[3:]):
        if text == REAL["Exp2Approx"]:  # what is below the least normal number may be 0
            tiny = np.abs(expected.astype("float32")) < np.finfo("float32").tiny
            expected = np.where(tiny & (arrays[name] == 0), arrays[name], expected)
        assert_same(arrays[name], expected, f"{text} on {dtype} as {to}")


def test_every_operator_stands_here():
    named = set().union(*(operators(dtype) for dtype in DTYPES))
    assert named == {row[0] for row in _core.operator_rows()}


@pytest.fixture(scope="module", params=["own functions", "prelude"])
def kernels(request, tmp_path_factory):
    functions = [operator_program(d) for d in DTYPES] + [cast_program(d) for d in DTYPES]
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=request.param == "prelude")


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_mean_what_the_interpreter_says(kernels, dtype):
    for seed in range(3):
        check(kernels, operator_program(dtype), dtype, list(operators(dtype).values()), seed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_mean_what_the_interpreter_says(kernels, dtype):
    for seed in range(3):
        check(kernels, cast_program(dtype), dtype, [(f'T.cast(a, "{to}")', to) for to in DTYPES], seed)


@needs_nvrtc
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_and_casts_compile(dtype):
    assert_compiles(_core.cuda_source(operator_program(dtype).function)[0], in_registers=False)
    assert_compiles(_core.cuda_source(cast_program(dtype).function)[0])
