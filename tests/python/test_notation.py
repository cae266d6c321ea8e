"""Index notation: classical expressions against NumPy, on targets and in every stage."""

import helve
import helve.testing
import numpy as np
import pytest
from helve import T

i, j, k, l = helve.indices("i j k l")


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")


def check(function, inputs, wanted):
    def make():
        return [*(x.copy() for x in inputs), np.full(wanted.shape, 7, "float32")]

    for target in ("llvm", "interp"):
        args = make()
        helve.compile(function, target)(*args)
        np.testing.assert_allclose(args[-1], wanted, rtol=1e-5)
    helve.testing.check_stages(function, make)


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 1, 1), (0, 3, 2), (3, 4, 0)])
def test_matrix_product(sizes):
    m, n, inner = sizes
    A, B, C = helve.tensor("A", (m, inner)), helve.tensor("B", (inner, n)), helve.tensor("C", (m, n))
    C[i, j] = A[i, k] * B[k, j]
    a, b = whole(0, m, inner), whole(1, inner, n)
    check(helve.function(C), [a, b], a @ b)


def test_mttkrp():
    B, C, D = helve.tensor("B", (4, 3, 5)), helve.tensor("C", (3, 6)), helve.tensor("D", (5, 6))
    A = helve.tensor("A", (4, 6))
    A[i, l] = B[i, j, k] * C[j, l] * D[k, l]
    b, c, d = whole(0, 4, 3, 5), whole(1, 3, 6), whole(2, 5, 6)
    check(helve.function(A), [b, c, d], np.einsum("ijk,jl,kl->il", b, c, d))


def test_a_sum_stays_in_its_term():
    b, A, x, y = (helve.tensor(*each) for each in (("b", (5,)), ("A", (5, 7)), ("x", (7,)), ("y", (5,))))
    y[i] = b[i] * (b[i] + A[i, j] * x[j]) + 1.0
    v, m, u = whole(0, 5), whole(1, 5, 7), whole(2, 7)
    check(helve.function(y), [v, m, u], v * (v + m @ u) + 1)


def test_a_convolution_of_a_dynamic_extent():
    M = T.dyn("M")
    u, w, y = helve.tensor("u", (M,)), helve.tensor("w", (3,)), helve.tensor("y", (M - 2,))
    y[i] = u[i + k] * w[k]
    a, b = whole(0, 9), whole(1, 3)
    check(helve.function(y), [a, b], np.correlate(a, b, "valid"))


def test_statements_with_temporaries():
    X, m, E, P = (helve.tensor(*each) for each in (("X", (4, 6)), ("m", (4,)), ("E", (4, 6)), ("P", (4, 6))))
    m[i] = helve.reduce_max(j, X[i, j])
    E[i, j] = T.exp(X[i, j] - m[i])
    P[i, j] = E[i, j] / helve.reduce_sum(j, E[i, j])
    x = whole(0, 4, 6)
    e = np.exp(x - x.max(1, keepdims=True))
    check(helve.function(P), [x], e / e.sum(1, keepdims=True))


@pytest.mark.parametrize("seed", range(40))
def test_einsum_of_random_specifications(seed):
    rng = np.random.default_rng(seed)
    operands = ["".join(rng.choice(list("ijkl"), rng.integers(1, 4))) for _ in range(rng.integers(1, 4))]
    letters = sorted(set("".join(operands)))
    spec = ",".join(operands) + "->" + "".join(rng.permutation([c for c in letters if rng.random() < 0.5]))
    extents = {"i": 2, "j": 3, "k": 1, "l": 4}
    arrays = [whole(seed + n, *(extents[c] for c in operand)) for n, operand in enumerate(operands)]
    wanted = np.einsum(spec, *arrays)
    np.testing.assert_allclose(helve.einsum(spec, *arrays, target="interp"), wanted, rtol=1e-5, err_msg=spec)
