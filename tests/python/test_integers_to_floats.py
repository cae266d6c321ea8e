"""Integers and wide floats in smaller floats: rounded once, to nearest even, wherever the number comes from.

What is right is found with fractions, by search among the values of the format. float64 is no way station: it does
not hold 64 bits of an integer, and what it rounds to may be a tie of the format.
"""

import bisect
import functools
import math
from fractions import Fraction

import helve
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import INTS, check
from test_small_floats import FORMATS, TARGETS, decoded, kind_of, word_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

WIDE = ["int64", "uint64"]
DESTINATIONS = [*FORMATS, "float32", "float64"]


@functools.cache
def fields(name):
    """(bits of the mantissa, least exponent, the greatest value) of a format."""
    if name in ("float32", "float64"):
        info = np.finfo(name)
        return info.nmant, int(info.minexp), Fraction(float(info.max))
    finite = decoded(name)[np.isfinite(decoded(name))]
    mantissa, least = {"bfloat16": (7, -126), "float16": (10, -14), "float8_e4m3": (3, -6),
                       "float8_e5m2": (2, -14)}[name]
    return mantissa, least, Fraction(float(finite.max()))


def nearest(value, name):
    """The nearest value of the format to a Fraction, the even one of two; None beyond it."""
    mantissa, least, greatest = fields(name)
    size, exponent = abs(value), least
    if size >= 1:
        exponent = max(least, int(size).bit_length() - 1)
    elif size:
        exponent = max(least, -(int(1 / size).bit_length()))
        while exponent > least and Fraction(2) ** exponent > size:
            exponent -= 1
    unit = Fraction(2) ** (exponent - mantissa)
    steps = round(size / unit)  # Fractions round to even
    result = steps * unit
    if result > greatest:
        return None
    return -result if value < 0 else result


def hard_integers(dtype):
    """Beside the midpoints of neighbours of every format, and where float64 itself would round to them."""
    info, out = np.iinfo(dtype), {0, 1, 2, 3, 255, 256, 257}
    for mantissa in (2, 3, 7, 10, 23, 52):
        for exponent in range(mantissa + 1, info.bits):
            for step in (1, 2, 2**mantissa - 1):
                tie = 2**exponent + step * 2 ** (exponent - mantissa) - 2 ** (exponent - mantissa - 1)
                out |= {tie + d for d in (-1025, -1, 0, 1, 511, 1024)}
    out |= {-v for v in out}
    out |= {info.min, info.max, info.max - 1, info.max - 1023, info.max - 1024, 9042383626829825}
    return np.array(sorted(v for v in out if info.min <= v <= info.max), dtype)


@functools.cache
def as_float(value, name):
    """An integer in the format, as Python's float."""
    found = nearest(Fraction(value), name)
    special = math.nan if name == "float8_e4m3" else math.inf
    return float(found) if found is not None else special if value > 0 else -special


def expected(values, name):
    return np.array([as_float(value, name) for value in values.tolist()])


def program(source, name, count, function="main", threads=False):
    loop = f"        for i in T.Parallel({count}):\n            " if not threads else (
        "        for tx in T.threads(32):\n            ")
    at = "b * 32 + tx" if threads else "i"
    grid = f"{count // 32}, threads=32" if threads else "1"
    return helve.parse(
        f'@T.prim_func\ndef {function}(X: T.Tensor(({count},), "{source}"), Y: T.Tensor(({count},), "{name}")):\n'
        f'    with T.Kernel({grid}) as b:\n{loop}Y[{at}] = T.cast(X[{at}], "{name}")\n')


def same(got, wanted):
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


@pytest.mark.parametrize("name", DESTINATIONS)
@pytest.mark.parametrize("source", INTS)
def test_integers_round_once(source, name):
    values = hard_integers(source)
    wanted = expected(values, name).astype(np.float64)
    for target in TARGETS:
        out = np.zeros(len(values), kind_of(name))
        helve.compile(program(source, name, len(values)), target=target)(values, out)
        same(out, wanted)


@pytest.mark.parametrize("name", FORMATS)
def test_index_values_round_once(name):
    """They are of 64 bits too."""
    values = hard_integers("int64")[::23]
    kernel_text = (f'@T.prim_func\ndef main(n: T.index, Y: T.Tensor((1,), "{name}")):\n    with T.Kernel(1) as b:\n'
                   f'        Y[0] = T.cast(n, "{name}")\n')
    wanted = expected(values, name)
    for target in TARGETS:
        kernel = helve.compile(helve.parse(kernel_text), target=target)
        out = np.zeros((len(values), 1), kind_of(name))
        for value, place in zip(values.tolist(), out):
            kernel(value, place)
        same(out[:, 0], wanted)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_every_stage_rounds_once(name):
    values = hard_integers("int64")[::97].copy()
    check(program("int64", name, len(values)), [values, np.zeros(len(values), kind_of(name))],
          {1: expected(values, name).astype(kind_of(name))}, rtol=0, atol=0)


@pytest.mark.parametrize("name", DESTINATIONS)
def test_constants_round_once(name):
    values = hard_integers("int64")[::31]
    lines = "".join(f'        Y[{i}] = {value}\n' for i, value in enumerate(values.tolist()))
    text = f'@T.prim_func\ndef main(Y: T.Tensor(({len(values)},), "{name}")):\n    with T.Kernel(1) as b:\n{lines}'
    out = np.zeros(len(values), kind_of(name))
    helve.compile(helve.parse(text), target="interp")(out)
    same(out, expected(values, name))
    casts = text.replace("] = ", '] = T.cast(T.int64(').replace("\n        Y", f'), "{name}")\n        Y').rstrip() + (
        f'), "{name}")\n')
    casts = casts.replace(f'with T.Kernel(1) as b:), "{name}")', "with T.Kernel(1) as b:")
    helve.compile(helve.parse(casts), target="interp")(out)
    same(out, expected(values, name))


@pytest.mark.parametrize("name", DESTINATIONS)
def test_scalar_arguments_round_once(name):
    """Python's integers have any number of digits."""
    values = hard_integers("int64").tolist()[::41] + [
        2**62 + 2**38 + 1, 2**63 + 2**39 + 1, 2**64 - 1, 2**64 + 2**40 + 1, 2**64 + 2**56 + 1, -(2**64) - 2**56 - 1,
        2**100 + 2**76 + 1, 2**100 + 2**76, 2**100 + 2**76 - 1, 2**100 + 2**92 + 1, 2**127 + 2**103, 10**38, 3**80]
    text = (f'@T.prim_func\ndef main(s: T.{name}, Y: T.Tensor((1,), "{name}")):\n    with T.Kernel(1) as b:\n'
            f"        Y[0] = s\n")
    for target in TARGETS:
        kernel = helve.compile(helve.parse(text), target=target)
        for value in values:
            out = np.zeros(1, kind_of(name))
            kernel(value, out)
            np.testing.assert_array_equal(out.astype(np.float64), [as_float(value, name)],
                                          err_msg=f"{value} on {target}")


def test_the_search_itself():
    """Of formats with a table the search agrees with the table."""
    for name in FORMATS[1:]:
        table = sorted({Fraction(float(v)) for v in decoded(name)[np.isfinite(decoded(name))]})
        middles = [(a + b) / 2 for a, b in zip(table, table[1:])][::211]
        for value in [Fraction(n, 7) for n in range(-40, 400, 3)] + middles:
            found = nearest(value, name)
            place = bisect.bisect(table, value)
            around = table[max(place - 1, 0) : place + 1]
            assert found is None or found in around and abs(found - value) == min(abs(v - value) for v in around)
    assert word_of("bfloat16").itemsize == 2


@pytest.fixture(scope="module", params=["own functions", "prelude"])
def kernels(request, tmp_path_factory):
    functions = [program(source, name, -(-len(hard_integers(source)) // 32) * 32, f"{source}_{name}", threads=True)
                 for source in WIDE for name in DESTINATIONS]
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=request.param == "prelude")


@pytest.mark.parametrize("name", DESTINATIONS)
@pytest.mark.parametrize("source", WIDE)
def test_cuda_text_rounds_once(kernels, source, name):
    values = hard_integers(source)
    values = np.concatenate([values, np.zeros(-len(values) % 32, values.dtype)])
    arrays = {"X": aligned(values), "Y": aligned(np.zeros(len(values), kind_of(name)))}
    kernels.run(f"{source}_{name}", len(values) // 32, arrays)
    same(arrays["Y"], expected(values, name))
