"""What numbers become on a CUDA device: conversions, functions, what reductions begin with, quotients, shifts.

Skips itself where PyTorch finds no device. Programs and what they mean are those of the tests on the CPU.
"""

import numpy as np
import pytest
import test_far_divisors as divisors
import test_integers_to_floats as conversions
import test_math_functions as functions
import test_reduction_identities as reductions

import helve
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

from device_arrays import on_device, on_host  # noqa: E402 - it needs torch

OF_CUDA = {"sin": 2, "cos": 2}  # units in the last place, by the table of the CUDA programming guide


def run(function, *arguments):
    """What the arrays hold after the call."""
    given = [on_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    helve.compile(function, target="cuda")(*given)
    return [on_host(t, a.dtype) for t, a in zip(given, arguments) if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", conversions.DESTINATIONS)
@pytest.mark.parametrize("source", conversions.WIDE)
def test_integers_round_once(source, name):
    values = conversions.hard_integers(source)
    values = np.concatenate([values, np.zeros(-len(values) % 32, values.dtype)])
    out = np.zeros(len(values), conversions.kind_of(name))
    _, got = run(conversions.program(source, name, len(values), threads=True), values, out)
    conversions.same(got, conversions.expected(values, name))


@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_functions_hold_from_end_to_end(name):
    x = functions.values()
    _, y = run(functions.program(name, len(x)), x, np.zeros_like(x))
    functions.assert_right(name, x, y, OF_CUDA)


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("name", [*reductions.NUMBERS, "bool"])
def test_reductions_over_nothing(name, clear):
    function, operations = reductions.program(name, clear)
    kind = reductions.dtype_of(name)
    before = np.array([0, 1, 1]).astype(kind)
    _, *got = run(function, np.zeros((3, 0), kind), *[before] * len(operations))
    for operation, found in zip(operations, got, strict=True):
        wanted = np.full(3, reductions.identity(operation, name)).astype(kind) if clear else before
        assert found.tobytes() == wanted.tobytes(), operation


@pytest.mark.parametrize("divisor", divisors.DIVISORS)
def test_quotients_and_remainders_by_far_divisors(divisor):
    q, r = run(divisors.quotients(divisor), np.zeros(80, "int64"), np.zeros(80, "int64"))
    np.testing.assert_array_equal(q, divisors.NUMBERS // divisor)
    np.testing.assert_array_equal(r, divisors.NUMBERS % divisor)


def test_a_shift_beyond_the_width_of_an_index_is_refused():
    @T.prim_func
    def main(s: T.index, A: T.Tensor((1,), "int64")):
        with T.Kernel(1):
            A[0] = T.cast(1 << s, "int64")

    for s in (0, 1, 31, 32, 62):
        assert run(main, s, np.zeros(1, "int64"))[0] == 1 << s
    for s in (63, 64, 70):
        with pytest.raises(helve.Error) as refused:
            run(main, s, np.zeros(1, "int64"))
        assert refused.value.code == "HV0625"
