"""T.gemm on GPUs without tensor cores: sums in registers grow together, each in the order of k."""

import ctypes
import ctypes.util
import itertools

import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned

import helve
import helve.testing
from helve import T, _core

KINDS = [("float32", "float32"), ("float16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"),
         ("float64", "float64"), ("int8", "int32"), ("uint8", "int32"), ("int64", "int64")]


def product(m, n, k, dtype, out, clear=False, transpose_a=False, transpose_b=False, scope="fragment"):
    """C = A @ B, or C += A @ B, by way of shared memory and the scope's memory."""
    a_shape, b_shape = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), out)):
        with T.Kernel(1, threads=64) as g:
            a = T.alloc_shared(a_shape, dtype)
            b = T.alloc_shared(b_shape, dtype)
            if scope == "fragment":
                c = T.alloc_fragment((m, n), out)
            else:
                c = T.alloc_shared((m, n), out)
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, clear=clear)
            T.copy(c, C)

    return main


def operands(m, n, k, dtype, out, transpose_a=False, transpose_b=False):
    """Small whole numbers, of which every dtype holds all sums."""
    rng = np.random.default_rng(m * 100 + n * 10 + k)
    kind, wide = helve.testing.numpy_dtype(dtype), helve.testing.numpy_dtype(out)

    def draw(shape, kind):
        return rng.integers(0, 3, shape).astype(kind)

    return [draw((k, m) if transpose_a else (m, k), kind), draw((n, k) if transpose_b else (k, n), kind),
            draw((m, n), wide)]


def expected(a, b, c, clear=False, transpose_a=False, transpose_b=False):
    left, right = (x.astype(np.float64) for x in (a.T if transpose_a else a, b.T if transpose_b else b))
    return (left @ right + (0 if clear else c.astype(np.float64))).astype(c.dtype)


CASES = [
    *({"shape": (16, 12, 6), "dtype": dtype, "out": out, "clear": clear}
      for (dtype, out), clear in itertools.product(KINDS, (False, True))),
    *({"shape": (16, 12, depth)} for depth in (0, 1, 3, 4, 5, 8)),
    *({"shape": (5, 7, 9), "transpose_a": a, "transpose_b": b} for a, b in itertools.product((False, True), repeat=2)),
    *({"shape": shape} for shape in ((1, 1, 4), (1, 33, 5), (130, 3, 7))),
    {"shape": (16, 12, 6), "scope": "shared"},
]


def program_of(case):
    """The function of a case, its arguments, and what C holds afterwards."""
    options = {"dtype": "float32", "out": "float32", **case}
    m, n, k = options.pop("shape")
    flags = {name: value for name, value in options.items() if name.startswith("transpose")}
    arguments = operands(m, n, k, options["dtype"], options["out"], **flags)
    return product(m, n, k, **options), arguments, expected(*arguments, options.get("clear", False), **flags)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_stage(case):
    function, arguments, wanted = program_of(case)
    helve.testing.check_stages(function, lambda: [x.copy() for x in arguments], target="cuda", check="races")
    given = [x.copy() for x in arguments]
    helve.compile(function, target="interp")(*given)
    np.testing.assert_array_equal(given[2], wanted)


def test_the_text(tmp_path):
    programs = [program_of(case) for case in CASES]
    names = [f"product_{i}" for i in range(len(CASES))]
    forms = [helve.testing.lowering_stages(function, target="cuda")[-1][1] for function, _, _ in programs]
    kernels = HostKernels(forms, tmp_path, names=names)
    for case, name, (_, arguments, wanted) in zip(CASES, names, programs):
        a, b, c = map(aligned, arguments)
        kernels.run(name, 1, {"A": a, "B": b, "C": c})
        np.testing.assert_array_equal(c, wanted, err_msg=str(case))


@pytest.mark.parametrize(("options", "together"), [
    ({}, True), ({"out": "float16", "dtype": "float16"}, True), ({"scope": "shared"}, False),
])  # fmt: skip
def test_sums_in_registers_grow_together(options, together):
    function, _, _ = program_of({"shape": (16, 16, 8), **options})
    text = _core.print(helve.testing.lowering_stages(function, target="cuda")[-1][1])
    k, last = text.index("for piece in T.serial(2)") if together else text.index("T.serial(8)"), text.rindex("T.fma")
    assert text.index("T.threads", k) < last if together else text.rindex("T.threads", 0, k) < k
    assert text.count("T.fma") == (4 if together else 1)  # a sum takes four k, then the next sum does


def test_each_sum_has_the_order_of_k():
    """Every other order, and every product that is rounded before it is added, would change some of these sums."""
    m, n, k = 4, 5, 33
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    fma = ctypes.CDLL(ctypes.util.find_library("m")).fmaf
    fma.restype, fma.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    wanted = c.copy()
    for i, j, step in itertools.product(range(m), range(n), range(k)):
        wanted[i, j] = fma(a[i, step], b[step, j], wanted[i, j])
    form = helve.testing.lowering_stages(product(m, n, k, "float32", "float32"), target="cuda")[-1][1]
    helve.testing.interpret(form, a, b, c)
    assert c.tobytes() == wanted.tobytes()
