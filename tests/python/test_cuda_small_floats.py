"""The small floats in CUDA C: every pattern widened, hard values narrowed, one by one and in vectors.

The prelude is compiled for the CPU; its PTX instructions are those of cuda_on_host.h.
"""

import helve
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from test_small_floats import FORMATS, assert_same_bits, decoded, hard_values, kind_of, patterns, rounded

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BLOCK = 1024
WIDE = ["float32", "float64"]


def padded(values):
    return np.concatenate([values, np.zeros(-len(values) % BLOCK, values.dtype)])


def conversion(name, source, target, count):
    return helve.parse(
        f"""
@T.prim_func
def {name}(X: T.Tensor(({count},), "{source}"), Y: T.Tensor(({count},), "{target}"),
    Z: T.Tensor(({count},), "{target}")):
    with T.Kernel({count // BLOCK}, threads=128) as b:
        for tx in T.threads(128):
            for v in T.vectorized(8):
                Y[b * {BLOCK} + tx * 8 + v] = T.cast(X[b * {BLOCK} + tx * 8 + v], "{target}")
            for r in T.serial(8):
                Z[b * {BLOCK} + tx * 8 + r] = T.cast(X[b * {BLOCK} + tx * 8 + r], "{target}")
"""
    )


def cases():
    with np.errstate(over="ignore"):
        return list(all_cases())


def all_cases():
    for name in FORMATS:
        for wide in WIDE:
            yield f"widen_{name}_{wide}", name, wide, padded(patterns(name))
            yield f"narrow_{wide}_{name}", wide, name, padded(hard_values(name, np.dtype(wide).type))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    functions = [conversion(name, source, target, len(values)) for name, source, target, values in cases()]
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=True)


@pytest.mark.parametrize(("name", "source", "target", "values"), cases(), ids=[case[0] for case in cases()])
def test_conversions_are_exact_or_nearest_even(kernels, name, source, target, values):
    count = len(values)
    arrays = {"X": aligned(values), "Y": aligned(np.zeros(count, kind_of(target))),
              "Z": aligned(np.zeros(count, kind_of(target)))}
    kernels.run(name, count // BLOCK, arrays)
    for out in (arrays["Y"], arrays["Z"]):
        if target in WIDE:
            known = len(decoded(source))
            np.testing.assert_array_equal(out[:known].astype("float64"), decoded(source))
        else:
            assert_same_bits(out, rounded(values, target), target, name)
