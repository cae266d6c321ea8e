"""What reductions over nothing leave, for every operation and element type, in every way of running them.

A maximum begins with the least value of its result's type: -infinity where the type has it, the greatest negative
number otherwise. What is cleared holds that; what is not keeps what stood there.
"""

import helve
import ml_dtypes
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned
from differential import FLOATS, INTS, check
from test_small_floats import kind_of

SMALL = ["float8_e4m3", "float8_e5m2"]
NUMBERS = [*FLOATS, *SMALL, *INTS]
OPERATIONS = ["sum", "prod", "max", "min", "absmax"]


def dtype_of(name):
    return kind_of(name) if name in SMALL else np.dtype(getattr(ml_dtypes, name, name))


def limits(name):
    """The least and the greatest value of a type."""
    if name == "bool":
        return False, True
    if name in INTS:
        return np.iinfo(name).min, np.iinfo(name).max
    return (-448.0, 448.0) if name == "float8_e4m3" else (-np.inf, np.inf)


def identity(operation, name):
    least, greatest = limits(name)
    return {"sum": 0, "prod": 1, "max": least, "min": greatest, "absmax": 0, "any": False, "all": True}[operation]


def program(name, clear, shape=(3, 0), function="main", threads=""):
    operations = ["any", "all"] if name == "bool" else OPERATIONS
    params = ", ".join(f'R{op}: T.Tensor((3,), "{name}")' for op in operations)
    lines = "".join(f"        T.reduce_{op}(A, R{op}, dim=1, clear={clear})\n" for op in operations)
    extents = ", ".join(map(str, shape))
    return helve.parse(f'M = T.dyn("M")\n@T.prim_func\ndef {function}(A: T.Tensor(({extents}), "{name}"), {params}):\n'
                       f"    with T.Kernel(1{threads}) as b:\n{lines}"), operations


@pytest.mark.parametrize("shape", [(3, 0), (3, "M")], ids=["constant", "dynamic"])
@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("name", [*NUMBERS, "bool"])
def test_over_nothing(name, clear, shape):
    function, operations = program(name, clear, shape)
    kind = dtype_of(name)
    before = np.array([0, 1, 1] if name == "bool" else [2, 0, 7 if name.startswith("u") else -5]).astype(kind)
    wanted = {1 + i: np.full(3, identity(op, name)).astype(kind) if clear else before
              for i, op in enumerate(operations)}
    arrays = [np.zeros((3, 0), kind), *[before.copy() for _ in operations]]
    check(function, arrays, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("wide", ["float32", "float16", "bfloat16"])
def test_a_maximum_of_another_type_begins_with_the_least_of_its_own(wide):
    """Of float8_e4m3, which has no infinity, it is never less than -448; a sum overflows to NaN."""
    function = helve.parse(
        f'@T.prim_func\ndef main(A: T.Tensor((2, 3), "{wide}"), H: T.Tensor((2,), "float8_e4m3"), '
        'L: T.Tensor((2,), "float8_e4m3")):\n'
        "    with T.Kernel(1) as b:\n        T.reduce_max(A, H, dim=1)\n        T.reduce_min(A, L, dim=1)\n")
    a = np.array([[-1000, -2000, -600], [600, 1000, 7]]).astype(dtype_of(wide))
    kind = dtype_of("float8_e4m3")
    check(function, [a, np.zeros(2, kind), np.zeros(2, kind)],
          {1: np.array([-448.0, np.nan]).astype(kind), 2: np.array([np.nan, 7.0]).astype(kind)}, rtol=0, atol=0)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    functions = []
    for name in [*NUMBERS, "bool"]:
        function, _ = program(name, True, (3, "M"), f"of_{name}", ", threads=32")
        functions.append(helve.testing.lowering_stages(function, target="cuda")[-1][1])
    return HostKernels(functions, tmp_path_factory.mktemp("cuda"), prelude=True)


@pytest.mark.parametrize("name", [*NUMBERS, "bool"])
def test_cuda_text_over_nothing(kernels, name):
    operations = ["any", "all"] if name == "bool" else OPERATIONS
    kind = dtype_of(name)
    arrays = {"A": aligned(np.zeros((3, 1), kind))} | {f"R{op}": aligned(np.zeros(3, kind)) for op in operations}
    kernels.run(f"of_{name}", 1, arrays, {"M": 0})
    for op in operations:
        wanted = np.full(3, identity(op, name)).astype(kind)
        assert arrays[f"R{op}"].tobytes() == wanted.tobytes(), op
