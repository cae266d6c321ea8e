"""The functions of floats from end to end of float32: signs of zero, subnormal numbers, infinities, NaN, accuracy.

Values are special ones, those about the places where an implementation changes its way, and a sample of all codes.
float64 says what is right, to far less than the last place of a float32.
"""

import math

import helve
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def rsqrt(x):
    return 1.0 / np.sqrt(x)


# In float64; and how many units in the last place a result may be off.
FUNCTIONS = {
    "exp": (np.exp, 2), "exp2": (np.exp2, 2), "exp2_approx": (np.exp2, 2), "log": (np.log, 2), "log2": (np.log2, 2),
    "sqrt": (np.sqrt, 0.5), "rsqrt": (rsqrt, 1.5), "sin": (np.sin, 1), "cos": (np.cos, 1), "tanh": (np.tanh, 2.5),
    "erf": (np.vectorize(math.erf), 2), "sigmoid": (sigmoid, 3), "abs": (np.abs, 0), "floor": (np.floor, 0),
    "ceil": (np.ceil, 0), "round": (np.round, 0),
}
TURNS = [0.625, 0.875, 4.0, 3.9, 9.0, 16.6, 17.3, 87.33654, 88.0, 88.37626, 88.72283, 88.7229, 89.0, 103.0, 103.27893,
         103.97208, 103.98, 104.0, 104.5, 126.0, 127.0, 128.0, 149.0, 149.5, 150.0, 151.0, 0.5, 1.5, 2.5, 1.0, 2.0,
         2.0**22, 2.0**23, 2.0**24, 0.70710677, 1.4142135, 1e-3, 1e10]


def values():
    """float32 values, a multiple of 32 of them."""
    tiny = np.arange(1, 9, dtype=np.uint32).view(np.float32)
    least = np.float32(np.finfo(np.float32).tiny)
    near = np.array(TURNS, np.float32)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    positive = np.concatenate([
        [0.0, np.inf, np.finfo(np.float32).max], tiny, [least, np.nextafter(least, np.float32(0))], near,
        np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf)), powers, powers * np.float32(1.7),
        np.linspace(0, 110, 4000), np.arange(0, 2**31 - 2**23, 524287, dtype=np.uint32).view(np.float32),
    ]).astype(np.float32)
    all_of_them = np.concatenate([positive, -positive, [np.nan]]).astype(np.float32)
    return np.concatenate([all_of_them, np.ones(-len(all_of_them) % 32, np.float32)])


def ulps(got, exact):
    """Distance in units of the last place that float32 has there, subnormal numbers included; equal infinities are
    near."""
    nearest = exact.astype(np.float32)
    same = np.isinf(nearest) & (got == nearest)
    _, exponent = np.frexp(nearest.astype(np.float64))
    unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
    return np.where(same, 0.0, np.abs(got.astype(np.float64) - exact) / unit)


def assert_right(name, x, got, bounds=None):
    """`bounds` are those of functions that a machine has from elsewhere."""
    function, limit = FUNCTIONS[name]
    limit = (bounds or {}).get(name, limit)
    exact = function(x.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact), err_msg=f"NaN of {name}")
    known = ~np.isnan(exact)
    if name == "exp2_approx":  # what is below the least normal number may be 0
        known &= (exact >= np.finfo(np.float32).tiny) | (got != 0)
    x, got, exact = x[known], got[known], exact[known]
    signs = np.signbit(got) != np.signbit(exact)
    assert not signs.any(), f"the sign of {name}({x[signs][0]!r}) is that of {got[signs][0]!r}"
    off = ulps(got, exact)
    worst = int(np.nanargmax(np.where(np.isfinite(off), off, np.inf)))
    assert off[worst] <= limit, f"{name}({x[worst]!r}) is {got[worst]!r}, not {exact[worst]!r}: {off[worst]} units off"


def program(name, count, function="main", threads=False):
    loop = "for i in T.Parallel(32)" if not threads else "for i in T.threads(32)"
    return helve.parse(
        f'@T.prim_func\ndef {function}(X: T.Tensor(({count},), "float32"), Y: T.Tensor(({count},), "float32")):\n'
        f"    with T.Kernel({count // 32}, threads=32) as b:\n        {loop}:\n"
        f"            Y[b * 32 + i] = T.{name}(X[b * 32 + i])\n")


@pytest.mark.parametrize("target", ["llvm", "interp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_hold_from_end_to_end(name, target):
    x = values()
    y = np.zeros_like(x)
    helve.compile(program(name, len(x)), target=target)(x, y)
    assert_right(name, x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_keep_signs_and_ends(name):
    """float64 functions are those of the C library; what is built around them is not."""
    ends = [5e-324, -5e-324, 745.0, -745.0, 709.0, -709.0, 800.0, -800.0, 1e308]
    x = np.concatenate([values().astype(np.float64), ends])
    text = (f'@T.prim_func\ndef main(X: T.Tensor(({len(x)},), "float64"), Y: T.Tensor(({len(x)},), "float64")):\n'
            f"    with T.Kernel(1) as b:\n        for i in T.Parallel({len(x)}):\n            Y[i] = T.{name}(X[i])\n")
    for target in ("llvm", "interp"):
        y = np.zeros_like(x)
        helve.compile(helve.parse(text), target=target)(x, y)
        exact = FUNCTIONS[name][0](x)
        np.testing.assert_allclose(y, exact, rtol=1e-14, atol=5e-324)
        known = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(exact[known]))


@pytest.fixture(scope="module", params=["own functions", "prelude"])
def kernels(request, tmp_path_factory):
    functions = [program(name, len(values()), f"of_{name}", threads=True) for name in FUNCTIONS]
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=request.param == "prelude")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cuda_text_holds_from_end_to_end(kernels, name):
    """Functions that CUDA has are the C library's here; those of the prelude are its own."""
    x = values()
    arrays = {"X": aligned(x), "Y": aligned(np.zeros_like(x))}
    kernels.run(f"of_{name}", len(x) // 32, arrays)
    assert_right(name, x, arrays["Y"])


def test_a_wrong_sign_and_a_lost_number_are_seen():
    with pytest.raises(AssertionError, match="the sign of tanh"):
        assert_right("tanh", np.float32([-0.0]), np.float32([0.0]))
    with pytest.raises(AssertionError, match="units off"):
        assert_right("sigmoid", np.float32([-90.0]), np.float32([0.0]))
