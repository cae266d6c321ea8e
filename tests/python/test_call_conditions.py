"""Conditions that only a call decides: a call is refused exactly when the interpreter finds the fault, on both targets.

Every program runs for all small values of its extents and numbers; the interpreter without the check is the judge.
"""

import itertools

import helve
import helve.testing
import numpy as np
import pytest
from helve import T

M, N = T.dyn("M"), T.dyn("N")
RACES = {"HV0705", "HV0706"}


@T.prim_func
def copy_parts(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), n: T.index, m: T.index):
    with T.Kernel(1) as b:
        s = T.alloc_shared((4,), "float32")
        T.clear(s)
        T.copy(A[0:n], s[0:m])
        T.copy(s[0:N], B)


@T.prim_func
def copy_moved(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), n: T.index):
    with T.Kernel(1) as b:
        T.copy(A[n - 2 : n + 2], B[0:N])


@T.prim_func
def rounded_grid(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(M, 3)) as b:
        for i in T.Parallel(3):
            A[b * 3 + i] = B[i]


@T.prim_func
def wrapped(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(1) as b:
        for i in T.Parallel(M):
            B[i % 2] = A[i]


@T.prim_func
def shifted(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), n: T.int32):
    with T.Kernel(2) as b:
        for i in T.serial(M):
            if i > 0 or T.index(n) > 2:
                B[2 * T.index(n) + i - b] = A[i] + 1.0


@T.prim_func
def product(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, 2), "float32"), C: T.Tensor((3, 2), "float32")):
    with T.Kernel(1) as b:
        T.gemm(A, B, C, clear=True)


@T.prim_func
def reduced(A: T.Tensor((M, N), "float32"), B: T.Tensor((2, 1), "float32")):
    with T.Kernel(1) as b:
        T.reduce_sum(A, B, dim=1)


@T.prim_func
def grid(A: T.Tensor((M,), "float32"), n: T.index):
    with T.Kernel(n, n - 1) as (b, c):
        if b + c == 0:
            A[b + c] = 1.0


@T.prim_func
def guarded_by_remainders(A: T.Tensor((5, N), "float32")):
    with T.Kernel(2) as b:
        for i in T.serial(3):
            if (2 - i + N) % 3 * 2 < 2 - i + b:
                A[i, b * 3 - 1] = 1.0


PROGRAMS = [copy_parts, copy_moved, rounded_grid, wrapped, shifted, product, reduced, grid, guarded_by_remainders]


def calls(function):
    """Arguments for every small value of what a call decides."""
    params = function.function.params
    extents = {e.name for p in params if hasattr(p, "shape") for e in p.shape if hasattr(e, "name")}
    names = sorted(extents) + [p.name for p in params if not hasattr(p, "shape")]
    ranges = [range(6) if name in extents else range(-2, 6) for name in names]
    for values in itertools.product(*ranges):
        known = dict(zip(names, values))

        def arguments():
            out = []
            for p in params:
                if not hasattr(p, "shape"):
                    out.append(known[p.name])
                    continue
                shape = [known[e.name] if hasattr(e, "name") else e.value for e in p.shape]
                out.append(np.arange(1, 1 + int(np.prod(shape)), dtype="float32").reshape(shape))
            return out

        yield known, arguments


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.name)
def test_a_call_is_refused_when_it_goes_wrong(function):
    machine, interpreter = helve.compile(function), helve.compile(function, target="interp")
    checked = helve.compile(function, target="interp", check="races")
    refused = ran = 0
    for known, arguments in calls(function):
        expected = arguments()
        try:
            helve.testing.interpret(function.function, *expected)
            wrong = None
        except helve.Error as error:
            wrong = error.code
        codes = []
        for kernel in (machine, interpreter):
            given = arguments()
            try:
                kernel(*given)
            except helve.Error as error:
                codes.append(error.code)
                continue
            codes.append(None)
            for x, y in zip(given, expected):
                np.testing.assert_array_equal(x, y, str(known))
        assert codes[0] == codes[1], known
        assert codes[0] in (None, "HV0209", "HV0616"), known
        if wrong is None and codes[0] is not None:  # the interpreter without checks lets iterations meet
            assert "checked" in {p.verdict for p in checked.proofs() if p.kind == "race"}, known
        elif wrong is not None:
            assert codes[0] is not None, known
        refused += codes[0] is not None
        ran += codes[0] is None
    assert refused > 0 and ran > 0


def test_verdicts():
    def conditions(function):
        return {p.condition for p in helve.compile(function, target="interp").proofs() if p.verdict == "checked"}

    assert conditions(rounded_grid) == {"M % 3 == 0", "M < 1 or N > 2"}
    assert conditions(product) == {"M == 3"}
    assert conditions(guarded_by_remainders) == {"N >= 3 and N % 3 == 0"}
    assert conditions(wrapped) == {"N >= 2 or N >= M", "M <= 2"}


def test_a_plan_shows_its_checks_once():
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1) as b:
            for i in T.serial(7):
                A[i] = B[i]

    lines = helve.compile(main).source("plan").splitlines()
    assert [line.strip() for line in lines if "check" in line] == ["check 7 <= M else HV0616"]


def test_what_a_loaded_number_decides_compiles_and_is_listed():
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), idx: T.Tensor((1,), "int32")):
        with T.Kernel(1) as b:
            s = T.alloc_shared((8,), "float32")
            T.copy(A[0 : T.index(idx[0])], s[0:4])

    (proof,) = [p for p in helve.compile(main, target="interp").proofs() if p.kind == "shape"]
    assert (proof.verdict, proof.condition) == ("unknown", "")
    assert "is not affine" in proof.reason


@pytest.mark.parametrize("target", ["llvm", "cuda"])
@pytest.mark.parametrize("size", [3, 6])
def test_a_call_that_meets_a_condition_by_remainders_runs_at_every_stage(target, size):
    expected = np.zeros((5, size), "float32")
    for b, i in itertools.product(range(2), range(3)):
        if (2 - i + size) % 3 * 2 < 2 - i + b:
            expected[i, b * 3 - 1] = 1.0
    made = []

    def arguments():
        made.append(np.zeros((5, size), "float32"))
        return [made[-1]]

    helve.testing.check_stages(guarded_by_remainders, arguments, target=target)
    for array in made:
        np.testing.assert_array_equal(array, expected)


@T.prim_func
def several(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), n: T.index, m: T.index):
    with T.Kernel(1):
        for i in T.serial(M):
            if n > 3 and m > 2:
                B[i] = A[i]
        for i in T.serial(M):
            if n > 3 or m > 2:
                B[i] = A[i]
        for i in T.serial(M):
            if n > 3:
                B[i + 1] = A[i]
        if n > 3 and m > N:
            B[n] = 1.0


def test_the_text_of_conditions():
    """Bounds are those that a user has written, and no precedence of 'and' and 'or' has to be known."""
    texts = [proof.condition for proof in helve.compile(several, target="interp").proofs() if proof.condition]
    assert texts == ["N >= M or n <= 3 or m <= 2", "N >= M or (n <= 3 and m <= 2)", "M < 1 or M < N or n < 4",
                     "N > n or n <= 3 or N >= m"]
