"""Floats in integers, and NaN in minima and maxima: one meaning on every target, at every stage.

A float loses its fraction; what lies beyond the range of the integer becomes its least or greatest value, NaN becomes
0. Python's own integers say what is right.
"""

import math

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import FLOATS, INTS, check, dtype_of
from test_small_floats import kind_of

import helve

SOURCES = [*FLOATS, "float8_e4m3", "float8_e5m2"]
COUNT = 320


def values(source):
    """Around the ends of every integer type, halves, and the special values of the float."""
    ends = [sign * (2.0**e + d) for e in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)
            for sign in (1, -1)]
    other = [0.0, -0.0, 0.99, -0.99, 1.5, -1.5, 2.5, 1e-40, 1e4, -1e4, 3e38, -3e38, math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        base = np.array(ends + other).astype(kind_of(source))
        wide = base.astype(np.float64)
        around = np.concatenate([base, *[(wide * (1 + d)).astype(base.dtype) for d in (2**-9, -(2**-9))]])
    return np.concatenate([around, np.zeros(COUNT - len(around), base.dtype)])


def whole(value, to):
    if math.isnan(value):
        return 0
    info = np.iinfo(to)
    if math.isinf(value):
        return info.max if value > 0 else info.min
    return min(max(math.trunc(value), info.min), info.max)


def expected(x, to):
    return np.array([whole(v, to) for v in x.astype(np.float64).tolist()], dtype_of(to))


def casts(source, function="main", loop="for i in T.Parallel(32)"):
    outs = ", ".join(f'O{to}: T.Tensor(({COUNT},), "{to}")' for to in INTS)
    lines = "".join(f'            O{to}[b * 32 + i] = T.cast(X[b * 32 + i], "{to}")\n' for to in INTS)
    return helve.parse(f'@T.prim_func\ndef {function}(X: T.Tensor(({COUNT},), "{source}"), {outs}):\n'
                       f"    with T.Kernel({COUNT // 32}, threads=32) as b:\n        {loop}:\n{lines}")


@pytest.mark.parametrize("source", SOURCES)
def test_floats_become_integers(source):
    x = values(source)
    check(casts(source), [x, *[np.zeros(COUNT, dtype_of(to)) for to in INTS]],
          {1 + k: expected(x, to) for k, to in enumerate(INTS)})


@pytest.mark.parametrize("source", ["float64", "float32", "float16"])
def test_indices_of_floats(source):
    """An index is a signed integer of 64 bits once a kernel runs."""
    x = values(source)
    text = (f'@T.prim_func\ndef main(X: T.Tensor(({COUNT},), "{source}"), Y: T.Tensor(({COUNT},), "int64")):\n'
            f"    with T.Kernel({COUNT}) as b:\n        Y[b] = T.cast(T.index(X[b]), \"int64\")\n")
    check(helve.parse(text), [x, np.zeros(COUNT, np.int64)], {1: expected(x, "int64")})


def extremes(source, function="main", loop="for i in T.Parallel(32)"):
    head = ", ".join(f'{name}: T.Tensor(({COUNT},), "{source}")' for name in ("X", "Y", "LOW", "HIGH", "CUT"))
    at = "b * 32 + i"
    return helve.parse(
        f"@T.prim_func\ndef {function}({head}):\n    with T.Kernel({COUNT // 32}, threads=32) as b:\n        {loop}:\n"
        f"            LOW[{at}] = T.min(X[{at}], Y[{at}])\n            HIGH[{at}] = T.max(X[{at}], Y[{at}])\n"
        f"            CUT[{at}] = T.clamp(X[{at}], -1.0, 1.0)\n")


def pairs(source):
    x = values(source)
    return x, x[np.random.default_rng(3).permutation(COUNT)]


def wanted_extremes(source):
    x, y = (v.astype(np.float64) for v in pairs(source))
    return {2: np.minimum(x, y), 3: np.maximum(x, y), 4: np.clip(x, -1.0, 1.0)}


@pytest.mark.parametrize("source", SOURCES)
def test_nan_in_minima_and_maxima(source):
    x, y = pairs(source)
    assert np.isnan(x.astype(np.float64)).any()
    kind = kind_of(source)
    check(extremes(source), [x, y, *[np.zeros(COUNT, kind)] * 3],
          {place: v.astype(kind) for place, v in wanted_extremes(source).items()}, rtol=0, atol=0)


@pytest.fixture(scope="module", params=["own functions", "prelude"])
def kernels(request, tmp_path_factory):
    loop = "for i in T.threads(32)"
    functions = [casts(s, f"casts_{s}", loop) for s in SOURCES] + [extremes(s, f"extremes_{s}", loop) for s in SOURCES]
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=request.param == "prelude")


@pytest.mark.parametrize("source", SOURCES)
def test_cuda_text_converts_alike(kernels, source):
    x = values(source)
    arrays = {"X": aligned(x)} | {f"O{to}": aligned(np.zeros(COUNT, dtype_of(to))) for to in INTS}
    kernels.run(f"casts_{source}", COUNT // 32, arrays)
    for to in INTS:
        np.testing.assert_array_equal(arrays[f"O{to}"], expected(x, to), err_msg=f"{source} to {to}")


@pytest.mark.parametrize("source", SOURCES)
def test_cuda_text_passes_nan_on(kernels, source):
    x, y = pairs(source)
    names = ["X", "Y", "LOW", "HIGH", "CUT"]
    arrays = {name: aligned(v) for name, v in zip(names, [x, y, *[np.zeros(COUNT, x.dtype)] * 3])}
    kernels.run(f"extremes_{source}", COUNT // 32, arrays)
    for place, wanted in wanted_extremes(source).items():
        np.testing.assert_array_equal(arrays[names[place]].astype(np.float64), wanted)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_numbers_that_python_writes_are_converted_too(target):
    """`T.cast(1.5, "int32")` means what it means of a value."""
    numbers = ["1.5", "-1.5", "0.0", "300.5", "-1e30", "T.infinity()", "-T.infinity()", "T.nan()"]
    known = [float(text.replace("T.", "").replace("infinity()", "inf").replace("nan()", "nan")) for text in numbers]
    lines = "".join(f'        I[{n}] = T.cast({text}, "int8")\n        U[{n}] = T.uint16({text})\n'
                    f'        B[{n}] = T.cast({text}, "bool")\n        X[{n}] = T.cast(T.index({text}), "int64")\n'
                    for n, text in enumerate(numbers))
    kernel = helve.compile(helve.parse(
        "@T.prim_func\ndef main(I: T.Tensor((8,), 'int8'), U: T.Tensor((8,), 'uint16'), B: T.Tensor((8,), 'bool'), "
        "X: T.Tensor((8,), 'int64')):\n"
        f"    with T.Kernel(1):\n{lines}"), target)
    i, u, b, x = np.ones(8, "int8"), np.ones(8, "uint16"), np.zeros(8, "bool"), np.zeros(8, "int64")
    kernel(i, u, b, x)
    assert i.tolist() == [whole(number, "int8") for number in known]
    assert u.tolist() == [whole(number, "uint16") for number in known]
    assert b.tolist() == [bool(number) for number in known]
    assert x.tolist() == [whole(number, "int64") for number in known]
