"""Index notation on a CUDA device: random programs against their definition, sums of products against NumPy.

Skips itself where PyTorch finds no device. HELVE_TEST_LONG=1 takes more random programs.
"""

import os
import sys
from pathlib import Path

import helve
import numpy as np
import pytest
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))  # the random programs' modules are the fuzzer's
from test_notation_programs import case_of

PARTS, SEEDS = (20, 20) if os.environ.get("HELVE_TEST_LONG") else (4, 6)
M, N, K, L = 70, 33, 129, 5  # no multiples of anything that a GPU counts in


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part):
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        function, initial, wanted = case_of(seed)
        tensors = [torch.from_numpy(x.copy()).cuda() for x in initial]
        helve.compile(function, target="cuda")(*tensors)
        for x, y in zip(tensors, wanted, strict=True):
            np.testing.assert_array_equal(x.cpu().numpy(), y, err_msg=f"seed {seed}\n{function.script()}")


def whole_numbers(rng, *shape):
    """Floats whose sums of products are exact in any order."""
    return rng.integers(-3, 4, shape).astype("float32")


# Extents of the operands and the result by letters, as NumPy writes it, then the statement in index notation.
EXTENTS = {"i": M, "j": N, "k": K, "l": L}
SUMS = [
    ("ik,kj->ij", lambda A, B: lambda i, j, k, l: A[i, k] * B[k, j]),
    ("ki,jk->ij", lambda A, B: lambda i, j, k, l: A[k, i] * B[j, k]),
    ("lik,lkj->lij", lambda A, B: lambda i, j, k, l: A[l, i, k] * B[l, k, j]),
    ("ikl,kj,lj->ij", lambda A, B, C: lambda i, j, k, l: A[i, k, l] * B[k, j] * C[l, j]),
    ("ijl,l->ij", lambda A, b: lambda i, j, k, l: A[i, j, l] * b[l]),
    ("ij,ik,kj->ij", lambda A, B, C: lambda i, j, k, l: A[i, j] * B[i, k] * C[k, j]),
    ("ik,k->i", lambda A, b: lambda i, j, k, l: A[i, k] * b[k]),
    ("ikl,ikl->", lambda A, B: lambda i, j, k, l: A[i, k, l] * B[i, k, l]),
    ("i,j->ij", lambda a, b: lambda i, j, k, l: a[i] * b[j]),
]  # fmt: skip


def run(result, arrays, shape):
    """The result of a call on the device."""
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    out = torch.full(shape, float("nan"), device="cuda")
    helve.compile(helve.function(result), target="cuda")(*tensors, out)
    return out.cpu().numpy()


@pytest.mark.parametrize("spec, statement", SUMS, ids=[spec for spec, _ in SUMS])
@pytest.mark.parametrize("empty", ["", "k", "i"])
def test_sums_of_products(spec, statement, empty):
    """Where `empty` names an index, its extent is 0."""
    extents = EXTENTS | ({empty: 0} if empty else {})
    given, _, left = spec.partition("->")
    rng = np.random.default_rng(len(spec))
    arrays = [whole_numbers(rng, *(extents[x] for x in part)) for part in given.split(",")]
    tensors = [helve.tensor(f"P{n}", array.shape) for n, array in enumerate(arrays)]
    names = dict(zip("ijkl", helve.indices("i j k l")))
    result = helve.tensor("R", tuple(extents[x] for x in left))
    result[tuple(names[x] for x in left)] = statement(*tensors)(*names.values())
    got = run(result, arrays, tuple(extents[x] for x in left))
    np.testing.assert_array_equal(got, np.einsum(spec, *arrays))


def test_a_residual_and_reductions():
    """Sums inside of terms, a largest element, a function of a sum."""
    rng = np.random.default_rng(1)
    a, x, b = whole_numbers(rng, M, K), whole_numbers(rng, K), whole_numbers(rng, M)
    A, X, B = helve.tensor("A", (M, K)), helve.tensor("X", (K,)), helve.tensor("B", (M,))
    i, k = helve.indices("i k")
    r = helve.tensor("r", (M,))
    r[i] = B[i] - A[i, k] * X[k]
    np.testing.assert_array_equal(run(r, [b, a, x], (M,)), b - a @ x)
    peak = helve.tensor("peak", (M,))
    peak[i] = helve.reduce_max(k, T.abs(A[i, k] - X[k])) * 2
    np.testing.assert_array_equal(run(peak, [a, x], (M,)), np.abs(a - x).max(1) * 2)


@pytest.mark.parametrize("rows", [0, 1, 97])
def test_one_function_serves_any_number_of_rows(rows):
    rng = np.random.default_rng(rows)
    a, b = whole_numbers(rng, rows, K), whole_numbers(rng, K, N)
    A, B = helve.tensor("A", (T.dyn("R"), K)), helve.tensor("B", (K, N))
    C = helve.tensor("C", (A.shape[0], N))
    i, j, k = helve.indices("i j k")
    C[i, j] = A[i, k] * B[k, j]
    np.testing.assert_array_equal(run(C, [a, b], (rows, N)), a @ b)


@pytest.mark.parametrize("spec", ["ij,jk->ik", "...ij,jk", "ii->i", "bij,bjk->bik"])
def test_einsum(spec):
    shapes = {"ij,jk->ik": [(M, K), (K, N)], "...ij,jk": [(L, M, K), (K, N)], "ii->i": [(N, N)],
              "bij,bjk->bik": [(L, M, K), (L, K, N)]}[spec]
    rng = np.random.default_rng(2)
    arrays = [whole_numbers(rng, *shape) for shape in shapes]
    got = helve.einsum(spec, *(torch.from_numpy(array).cuda() for array in arrays))
    assert got.is_cuda
    np.testing.assert_array_equal(got.cpu().numpy(), np.einsum(spec, *arrays))
