"""Every pattern of the small floats, in every place that converts them.

Four pieces of code round and decode them (ir/expr for constants and the interpreter, codegen/llvm, the runtime's scalar
arguments and its collectives); all are held against ml_dtypes and against the definition: the nearest value of the
format, the even one of two.
"""

import helve
import ml_dtypes
import numpy as np
import pytest
from differential import dtype_of
from helve import T

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow is what is tested

FORMATS = ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"]
TARGETS = ["llvm", "interp"]


def kind_of(name):
    return np.dtype(ml_dtypes.float8_e4m3fn) if name == "float8_e4m3" else dtype_of(name)


def word_of(name):
    return np.dtype(f"u{kind_of(name).itemsize}")


def patterns(name):
    """All values of the format, in the order of their bits."""
    word = word_of(name)
    return np.arange(2 ** (8 * word.itemsize), dtype=np.uint32).astype(word).view(kind_of(name))


def decoded(name):
    """Their values by the definition of the format's fields."""
    exponent, mantissa, bias = {"bfloat16": (8, 7, 127), "float16": (5, 10, 15), "float8_e4m3": (4, 3, 7),
                                "float8_e5m2": (5, 2, 15)}[name]
    bits = np.arange(2 ** (1 + exponent + mantissa))
    e, m = bits >> mantissa & (2**exponent - 1), bits & (2**mantissa - 1)
    value = np.where(e == 0, np.ldexp(m / 2**mantissa, 1 - bias), np.ldexp(1 + m / 2**mantissa, e - bias))
    if name == "float8_e4m3":
        value[(e == 15) & (m == 7)] = np.nan
    else:
        value[e == 2**exponent - 1] = np.where(m[e == 2**exponent - 1] == 0, np.inf, np.nan)
    return np.where(bits >> (exponent + mantissa) == 1, -value, value)


def rounded(values, name):
    """The bits of the nearest value of the format, by search; a NaN is any NaN."""
    table = decoded(name)
    half = table[: len(table) // 2]
    finite = half[np.isfinite(half)]
    step = finite[-1] - finite[-2]
    edges = np.append(finite, finite[-1] + step)  # the value that the format would have next
    middle = (edges[:-1] + edges[1:]) / 2
    size = np.abs(values.astype(np.float64))
    code = np.searchsorted(middle, size, side="left")  # values at a midpoint go to the lower neighbour
    tie = (code < len(middle)) & (size == middle[np.minimum(code, len(middle) - 1)])
    code = np.where(tie & (code % 2 == 1), code + 1, code)
    overflow = len(finite) if name != "float8_e4m3" else len(half) - 1
    code = np.where((code >= len(finite)) | np.isinf(size), overflow, code)
    code = np.where(np.isnan(size), len(half) - 1, code)
    return np.where(np.signbit(values), code + len(half), code).astype(word_of(name))


def hard_values(name, wide):
    """Every value, every midpoint of neighbours and the wide floats beside both; what overflows; what is no number."""
    table = decoded(name)
    finite = np.sort(table[np.isfinite(table) & ~np.signbit(table)])
    step = finite[-1] - finite[-2]
    ends = [finite[-1] + step / 2, finite[-1] + step, np.finfo(wide).max, np.inf, np.nan, finite[1] / 4]
    base = np.concatenate([finite, (finite[:-1] + finite[1:]) / 2, ends]).astype(wide)
    around = np.concatenate([base, np.nextafter(base, wide(0)), np.nextafter(base, wide(np.inf))])
    return np.concatenate([around, -around])


def assert_same_bits(got, wanted, name, message):
    """Equal bits, any NaN for a NaN."""
    word = word_of(name)
    table = decoded(name)
    got, wanted = got.view(word).ravel(), wanted.view(word).ravel()
    wrong = (got != wanted) & ~(np.isnan(table[got]) & np.isnan(table[wanted]))
    if wrong.any():
        first = f"first at {np.argmax(wrong)}: {got[wrong][0]:#x}, not {wanted[wrong][0]:#x}"
        pytest.fail(f"{message}: {wrong.sum()} differ, {first}")


def convert(values, source, destination, target, body="X[i]"):
    """`values` copied element by element from one dtype to another."""
    n = values.size
    program = helve.parse(
        f'@T.prim_func\ndef main(X: T.Tensor(({n},), "{source}"), Y: T.Tensor(({n},), "{destination}")):\n'
        f"    with T.Kernel(1) as b:\n        for i in T.Parallel({n}):\n"
        f"            Y[i] = T.cast({body}, \"{destination}\")\n"
    )
    out = np.zeros(n, kind_of(destination))
    helve.compile(program, target=target)(values, out)
    return out


def test_the_definition_is_that_of_ml_dtypes():
    for name in FORMATS:
        np.testing.assert_array_equal(patterns(name).astype(np.float64), decoded(name))
        values = hard_values(name, np.float32)
        assert_same_bits(values.astype(kind_of(name)), rounded(values, name), name, f"float32 to {name}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("other", ["float8_e4m3", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e3m4",
                                   "float8_e5m2fnuz"])
def test_arrays_of_other_formats_are_refused(other, target):
    """The bits of one format are no values of another, as similar as its name may be."""
    for name in ("float8_e4m3", "float8_e5m2"):
        values = patterns(name).view(getattr(ml_dtypes, other))
        with pytest.raises(helve.Error) as caught:
            convert(values, name, "float32", target)
        assert caught.value.code in ("HV0603", "HV0631")


def test_dtypes_of_other_libraries():
    """float8_e4m3 is the type without infinities, which others call float8_e4m3fn."""
    for dtype in (ml_dtypes.float8_e4m3fn, np.dtype(ml_dtypes.float8_e4m3fn)):

        @T.prim_func
        def clear(A: T.Tensor((4,), dtype)):
            with T.Kernel(1):
                T.clear(A)

        assert '"float8_e4m3"' in clear.script()
    for dtype in (ml_dtypes.float8_e4m3, np.dtype(ml_dtypes.float8_e4m3)):
        with pytest.raises(helve.Error) as caught:

            @T.prim_func
            def wrong(A: T.Tensor((4,), dtype)):
                with T.Kernel(1):
                    T.clear(A)

        assert caught.value.code == "HV0107"
        assert "has no infinity" in caught.value.help


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_widens(name, target):
    for wide in ("float32", "float64"):
        got = convert(patterns(name), name, wide, target)
        np.testing.assert_array_equal(got.astype(np.float64), decoded(name))
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(decoded(name))[~np.isnan(got)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wide", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FORMATS)
def test_narrowing_is_nearest_even(name, wide, target):
    values = hard_values(name, wide)
    got = convert(values, wide.__name__, name, target)
    assert_same_bits(got, rounded(values, name), name, f"{wide.__name__} to {name} on {target}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_returns(name, target):
    values = patterns(name)
    assert_same_bits(convert(values, name, name, target), values, name, "a copy")
    assert_same_bits(convert(values, name, name, target, "X[i] * 1.0"), values, name, "a product with one")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", FORMATS)
def test_every_pattern_in_every_other_format(source, target):
    for name in FORMATS:
        if name == source:
            continue
        got = convert(patterns(source), source, name, target)
        assert_same_bits(got, rounded(decoded(source), name), name, f"{source} to {name} on {target}")


@pytest.mark.parametrize("name", FORMATS)
def test_constants_round_as_stores_do(name):
    values = [v for v in hard_values(name, np.float64) if np.isfinite(v)]
    values = values[:: max(1, len(values) // 300)]
    lines = "".join(f"        Y[{i}] = T.cast({float(v)!r}, \"{name}\")\n" for i, v in enumerate(values))
    program = helve.parse(f'@T.prim_func\ndef main(Y: T.Tensor(({len(values)},), "{name}")):\n'
                          f'    with T.Kernel(1) as b:\n{lines}')
    for target in TARGETS:
        out = np.zeros(len(values), kind_of(name))
        helve.compile(program, target=target)(out)
        assert_same_bits(out, rounded(np.asarray(values), name), name, f"constants on {target}")


@pytest.mark.parametrize("name", FORMATS)
def test_scalar_arguments_round_as_stores_do(name):
    program = helve.parse(
        f'@T.prim_func\ndef main(Y: T.Tensor((1,), "{name}"), s: T.{name}):\n    with T.Kernel(1) as b:\n'
        f'        Y[0] = s\n'
    )
    values = hard_values(name, np.float64)
    values = values[:: max(1, len(values) // 4000)]
    for target in TARGETS:
        kernel = helve.compile(program, target=target)
        out = np.zeros((len(values), 1), kind_of(name))
        for row, value in zip(out, values):
            kernel(row, float(value))
        assert_same_bits(out, rounded(values, name), name, f"scalar arguments on {target}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FORMATS)
def test_collectives_round_as_stores_do(name, target):
    """A sum over two cores, of every pattern with values that make ties, rounds once from float32."""
    values = patterns(name)
    n = values.size
    program = helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor((2, {n}), "{name}"), B: T.Tensor((2, {n}), "{name}")):\n'
        f'    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0}}, "tiling": [1, {n}]}}, '
        f'B: {{"sharding": {{"x": 0}}, "tiling": [1, {n}]}}}}, nrows=2, ncols=1)\n'
        f"    with T.Kernel(2, 1) as (r, c):\n"
        f'        S = T.alloc_shared(({n},), "{name}")\n        T.copy(A[r, :], S)\n'
        f'        T.comm.all_reduce(S, S, axis="x", op="sum")\n'
        f"        T.copy(S, B[r, :])\n"
    )
    kernel = helve.compile(program, target=target, mesh=helve.Mesh((2, 1)))
    table = decoded(name)
    finite = np.sort(table[np.isfinite(table) & (table > 0)])
    for other in (0.0, finite[0], finite[len(finite) // 2], finite[-1]):
        a = np.stack([values, np.full(n, other).astype(kind_of(name))])
        b = np.zeros_like(a)
        kernel(a, b)
        exact = table.astype(np.float32) + np.float32(other)
        for row in b:
            assert_same_bits(row, rounded(exact, name), name, f"sums with {other}")
