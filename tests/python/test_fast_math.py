"""fast_math: a product and the sum that it goes into may be one operation, everything else stays as it is."""

import helve
import numpy as np
import pytest
from helve import T

N = 4096


@T.prim_func
def products(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(N):
            C[i] = A[i] * B[i] + A[i]


@T.prim_func
def functions(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(N):
            B[i] = T.exp(A[i]) + T.log(T.abs(A[i])) + T.tanh(A[i])


def random(seed):
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


def run(function, *arrays, **options):
    out = np.zeros(N, np.float32)
    helve.compile(function, target="llvm", **options)(*arrays, out)
    return out


def test_off_every_operation_rounds():
    a, b = random(0), random(1)
    np.testing.assert_array_equal(run(products, a, b), a * b + a)


def test_on_a_product_may_be_rounded_with_its_sum():
    a, b = random(0), random(1)
    exact = a.astype(np.float64) * b + a
    fast = run(products, a, b, fast_math=True)
    once = exact.astype(np.float32)
    twice = a * b + a
    assert np.all((fast == once) | (fast == twice))
    if "fmadd" in helve.compile(products, target="llvm", fast_math=True).source("asm"):
        np.testing.assert_array_equal(fast, once)
    assert "fmadd" not in helve.compile(products, target="llvm").source("asm")


def test_functions_keep_their_accuracy():
    a = random(2)
    np.testing.assert_allclose(run(functions, a, fast_math=True), run(functions, a), rtol=3e-7, atol=3e-7)


def test_the_interpreter_is_exact():
    a, b, out = random(0), random(1), np.zeros(N, np.float32)
    helve.compile(products, target="interp", fast_math=True)(a, b, out)
    np.testing.assert_array_equal(out, a * b + a)


def test_it_is_true_or_false():
    with pytest.raises(helve.Error) as caught:
        helve.compile(products, fast_math=1)
    assert caught.value.code == "HV0813"
