"""Integers of 8 and 16 bits on a CUDA device: every value, through chains of operations, against NumPy.

The assembler of PTX takes the negation of 16 bits as exact: only where something widens the result does it show. Skips
itself where PyTorch finds no device.
"""

import numpy as np
import pytest

import helve
from helve import T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

FIRST = {
    "negated": ("-A[i]", lambda a, b: -a),
    "from zero": ("A[i] - A[i] - A[i]", lambda a, b: a - a - a),
    "times -1": ("A[i] * T.cast(-1, DTYPE)", lambda a, b: a * a.dtype.type(-1)),
    "magnitude": ("T.abs(A[i])", lambda a, b: np.abs(a)),
    "quotient": ("A[i] // T.cast(-1, DTYPE)", lambda a, b: a * a.dtype.type(-1)),
    "quotient by data": ("A[i] // B[i]", lambda a, b: np.where(b == -1, a * a.dtype.type(-1), a)),
    "cast of 32 bits": ("T.cast(-T.cast(A[i], 'int32'), DTYPE)", lambda a, b: (-a.astype("int32")).astype(a.dtype)),
    "cast of an index": ("T.cast(-T.cast(A[i], 'index'), DTYPE)", lambda a, b: (-a.astype("int64")).astype(a.dtype)),
    "sum": ("A[i] + A[i]", lambda a, b: a + a),
    "shifted left": ("A[i] << T.cast(3, DTYPE)", lambda a, b: a << a.dtype.type(3)),
}  # fmt: skip
THEN = {
    "larger": ("T.max({}, B[i])", lambda x, b: np.maximum(x, b)),
    "halved": ("({}) >> T.cast(1, DTYPE)", lambda x, b: x >> x.dtype.type(1)),
    "widened": ("T.cast(T.cast({}, 'float32') * 0.5, DTYPE)",
                lambda x, b: np.trunc(x * np.float32(0.5)).astype(x.dtype)),
    "less": ("T.if_then_else(({}) < B[i], A[i], B[i])", None),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("first", FIRST)
def test_every_value(first, dtype):
    limits = np.iinfo(dtype)
    a = np.arange(limits.min, limits.max + 1, dtype="int64").astype(dtype)
    b = np.where(np.arange(a.size) % 2 == 0, -1, 1).astype(dtype)
    formula, meaning = FIRST[first]
    with np.errstate(over="ignore"):
        middle = meaning(a, b)
    for name, (then, after) in THEN.items():
        value = then.format(formula).replace("DTYPE", f"'{dtype}'")
        function = helve.parse(f"""
@T.prim_func
def main(A: T.Tensor(({a.size},), "{dtype}"), B: T.Tensor(({a.size},), "{dtype}"), C: T.Tensor(({a.size},), "{dtype}")):
    with T.Kernel(T.ceildiv({a.size}, 256)) as k:
        for j in T.Parallel(256):
            i = k * 256 + j
            C[i] = {value}
""")
        wanted = np.where(middle < b, a, b) if after is None else after(middle, b)
        tensors = [torch.from_numpy(x.copy()).cuda() for x in (a, b, np.zeros_like(a))]
        helve.compile(function, target="cuda")(*tensors)
        np.testing.assert_array_equal(tensors[2].cpu().numpy(), wanted, err_msg=name)
        found = [x.copy() for x in (a, b, np.zeros_like(a))]
        helve.compile(function, target="interp")(*found)
        np.testing.assert_array_equal(found[2], wanted, err_msg=name)
