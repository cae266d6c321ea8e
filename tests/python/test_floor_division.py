"""Floor division and modulo in every place that computes them, against Python's own.

The host's programs, machine code in 32 and 64 bits, vectors, the interpreter and the simplifier each have their form of
it; none may differ in a sign, at an end of a type, or beside a constant.
"""

import helve
import numpy as np
import pytest

TARGETS = ["llvm", "interp"]
SMALL = range(-17, 18)


def compiled(text, target):
    return helve.compile(helve.parse(text), target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("where", ["host", "kernel"])
def test_of_index_values(where, target):
    """Both operands known at the call: computed by the host before the launch, or inside the kernel."""
    bind = "q = n // m\n{0}r = n % m\n"
    host, kernel = (bind.format("    "), "") if where == "host" else ("", bind.format("        "))
    k = compiled(
        '@T.prim_func\ndef main(n: T.index, m: T.index, C: T.Tensor((2,), "int64")):\n'
        + ("    " + host if host else "")
        + "    with T.Kernel(1) as b:\n"
        + ("        " + kernel if kernel else "")
        + '        C[0] = T.cast(q, "int64")\n        C[1] = T.cast(r, "int64")\n',
        target,
    )
    ends = [2**62, 2**62 - 1, -(2**62), 2**31, -(2**31), 2**32 + 1]
    c = np.zeros(2, np.int64)
    for n in [*SMALL, *ends]:
        for m in [*SMALL, *ends]:
            if m != 0:
                k(n, m, c)
                assert (c[0], c[1]) == (n // m, n % m), (n, m)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("divisor",
                         [-(2**33), -(2**31), -48, -8, -7, -3, -2, -1, 1, 2, 3, 7, 8, 48, 2**31 - 1, 2**31, 2**33])
def test_of_index_values_by_constants(divisor, target):
    """The simplifier turns these into other forms; loops make them vectors of 32 or of 64 bits."""
    for begin, count in ((-40, 80), (2**31 - 30, 60), (-(2**31) - 30, 60), (2**40, 16)):
        k = compiled(
            f'@T.prim_func\n'
            f'def main(Q: T.Tensor(({count},), "int64"), R: T.Tensor(({count},), "int64"), '
            f'D: T.Tensor(({count},), "int64")):\n'
            f"    with T.Kernel(1) as b:\n        for i in T.Parallel({count}):\n"
            f'            Q[i] = T.cast((i + {begin}) // {divisor}, "int64")\n'
            f'            R[i] = T.cast((i + {begin}) % {divisor}, "int64")\n'
            f"            D[i] = T.cast((i * 24 + {begin}) // {divisor} // 3 + "
            f'(i * 24 + {begin}) // {divisor} % 3, "int64")\n',
            target,
        )
        q, r, d = (np.zeros(count, np.int64) for _ in range(3))
        k(q, r, d)
        values = [i + begin for i in range(count)]
        assert q.tolist() == [v // divisor for v in values]
        assert r.tolist() == [v % divisor for v in values]
        assert d.tolist() == [(i * 24 + begin) // divisor // 3 + (i * 24 + begin) // divisor % 3 for i in range(count)]


def wrapped(value, dtype):
    bits = np.dtype(dtype).itemsize * 8
    value &= 2**bits - 1
    return value - 2**bits if np.dtype(dtype).kind == "i" and value >= 2 ** (bits - 1) else value


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_of_data(dtype, target):
    """All pairs of 8 bits, pairs of ends of the wider types; a quotient that leaves the type wraps."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        values = list(range(info.min, info.max + 1))
    else:
        near = [v for v in range(-9, 10) if v >= info.min]
        values = sorted({*near, *(info.min + v for v in range(5)), *(info.max - v for v in range(5)), info.max // 2,
                         info.max // 3})
    pairs = [(a, b) for a in values for b in values if b != 0]
    n = len(pairs)
    k = compiled(
        f'@T.prim_func\n'
        f'def main(A: T.Tensor(({n},), "{dtype}"), B: T.Tensor(({n},), "{dtype}"), Q: T.Tensor(({n},), "{dtype}"), '
        f'R: T.Tensor(({n},), "{dtype}")):\n    with T.Kernel(1) as b:\n        for i in T.Parallel({n}):\n'
        f"            Q[i] = A[i] // B[i]\n            R[i] = A[i] % B[i]\n",
        target,
    )
    a, b = (np.asarray(side, dtype) for side in zip(*pairs))
    q, r = np.zeros_like(a), np.zeros_like(a)
    k(a, b, q, r)
    assert q.tolist() == [wrapped(x // y, dtype) for x, y in pairs]
    assert r.tolist() == [wrapped(x % y, dtype) for x, y in pairs]
