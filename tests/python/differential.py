"""One program, every way of running it, against NumPy.

A test states arguments and what they hold afterwards; this runs the interpreter on the function and on each lowered
stage, machine code, and the printer against the parser. Arrays stand between guard elements, so that a store outside of
them is seen.
"""

import functools

import ml_dtypes  # noqa: F401 - makes bfloat16 and float8 known to NumPy
import numpy as np

import helve
import helve.testing
from helve import _core
from helve.testing.stages import is_parsed_back

_GUARD = 64
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
FLOATS = ["float64", "float32", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def dtype_of(name):
    """The NumPy dtype of a helve dtype."""
    return np.dtype(getattr(ml_dtypes, name, name))


def sample(shape, dtype="float32", seed=0):
    """Values whose sums are exact enough to compare: small integers for integer types, a normal sample for floats."""
    rng = np.random.default_rng(seed)
    kind = dtype_of(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTS:
        low = 0 if dtype.startswith("u") else -9
        return rng.integers(low, 10, shape).astype(kind)
    return np.asarray(rng.standard_normal(shape)).astype(kind)


class _Guarded:
    """A copy of an array with guard elements around its memory."""

    def __init__(self, array):
        span = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize if array.size else 0
        margin = _GUARD * array.itemsize
        self.memory = np.full(span + 2 * margin, 0xA5, np.uint8)
        self.before = self.memory.copy()
        strides = array.strides
        self.array = np.ndarray(array.shape, array.dtype, self.memory, margin, strides)
        self.array[...] = array
        self.touched = np.zeros_like(self.memory, dtype=bool)
        element = np.dtype(f"V{array.itemsize}")
        touched = np.ndarray(array.shape, element, self.touched.view(np.uint8), margin, strides)
        touched[...] = np.frombuffer(b"\1" * array.itemsize, element)

    def check_guards(self, message):
        outside = (self.memory != self.before) & ~self.touched
        first = int(np.argmax(outside)) - _GUARD * self.array.itemsize
        assert not outside.any(), f"{message}: a store outside the array, at byte {first}"


def _compare(got, wanted, message, rtol, atol):
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted, err_msg=message)
        return
    tolerance = TOLERANCE.get(got.dtype.name, 0.2)
    np.testing.assert_allclose(
        got.astype(np.float64), np.asarray(wanted).astype(np.float64), rtol=tolerance if rtol is None else rtol,
        atol=tolerance if atol is None else atol, err_msg=message,
    )


@functools.lru_cache(maxsize=1)
def _ways(program, mesh, chunk):
    """(name, callable) for each way of running the program; stages that a pass leaves as they were count once."""
    options = {"mesh": mesh, "persistent_chunk": chunk, "verify": True}
    ways = [("interp", helve.compile(program, target="interp", **options))]
    (pipeline, *_) = helve.testing.PIPELINES
    _, *stages = helve.testing.distinct_stages({pipeline: helve.testing.lowering_stages(program, mesh, chunk)})
    for name, stage, _ in stages:
        if is_parsed_back(_core.print(stage)):
            helve.testing.assert_round_trip(stage)
        ways.append((f"interp after {name}", functools.partial(helve.testing.interpret, stage)))
    return [*ways, ("llvm", helve.compile(program, target="llvm", **options))]


def check(program, args, expected, mesh=None, rtol=None, atol=None, chunk=1):
    """Runs `program` every way on copies of `args`.

    Args:
        program: the function.
        args: arrays and numbers, in order.
        expected: {place: array}: what these arguments hold afterwards; all other arrays must be unchanged.
        mesh: the mesh, for a mesh function.
        rtol, atol: tolerance for floats, by dtype when not given.
        chunk: iterations of a Persistent loop that share a collective.
    """

    def run(name, call):
        guarded = {i: _Guarded(a) for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        call(*[guarded[i].array if i in guarded else a for i, a in enumerate(args)])
        for i, g in guarded.items():
            message = f"argument {i}, {name}"
            g.check_guards(message)
            if i in expected:
                _compare(g.array, expected[i], message, rtol, atol)
            else:
                assert g.array.tobytes() == args[i].tobytes(), f"{message}: an input was changed"

    for name, call in _ways(program, mesh, chunk):
        run(name, call)
