"""What a call takes for a scalar parameter: one rule for Python, NumPy, ml_dtypes and PyTorch."""

import fractions
import warnings

import helve
import ml_dtypes
import numpy as np
import pytest
from helve import T

try:
    import torch
except ImportError:
    torch = None

TARGETS = ("interp", "llvm")
DTYPES = (T.bool, T.int8, T.int32, T.uint64, T.index, T.float32)


def make(dtype, target):
    if dtype == "bool":

        @T.prim_func
        def main(x: T.bool, Y: T.Tensor((1,), "float64")):
            with T.Kernel(1):
                Y[0] = 1.0 if x else 0.0

    else:

        @T.prim_func
        def main(x: dtype, Y: T.Tensor((1,), "float64")):
            with T.Kernel(1):
                Y[0] = T.cast(x, "float64")

    return helve.compile(main, target=target)


KERNELS = {(str(dtype), target): make(dtype, target) for dtype in DTYPES for target in TARGETS}


def taken(dtype, target, x):
    """The value that the kernel sees, or the code of the refusal."""
    y = np.full(1, np.nan)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning of NumPy is a number that lost a part
            KERNELS[dtype, target](x, y)
    except helve.Error as error:
        return error.code
    return y[0]


INTEGERS = [3, np.int8(3), np.int64(3), np.uint64(3), np.array(3), np.array(3, "uint8"), ml_dtypes.int4(3),
            np.array(3, ml_dtypes.int4)]
FLOATS = [2.5, np.float32(2.5), np.float16(2.5), np.float64(2.5), np.longdouble(2.5), ml_dtypes.bfloat16(2.5),
          ml_dtypes.float8_e5m2(2.5), np.array(2.5, "float32"), np.array(2.5, ml_dtypes.bfloat16),
          fractions.Fraction(5, 2)]
BOOLS = [True, np.bool_(True), np.array(True)]
NONE = [1j, np.complex64(2), np.array(2j), "3", np.str_("3"), np.array("3"), None, [3], np.datetime64(3, "s"),
        np.timedelta64(3, "ns"), np.array(3, "m8[ns]"), np.array(3, "M8[ns]"), np.array(3, object), np.ma.masked,
        np.ma.array(3, mask=True), np.ma.array(3), np.zeros(1, "int32"), np.zeros((1, 1)), np.zeros(3), np.zeros(0)]
if torch is not None:
    INTEGERS += [torch.tensor(3), torch.tensor(3, dtype=torch.uint8)]
    FLOATS += [torch.tensor(2.5), torch.tensor(2.5, dtype=torch.bfloat16), torch.tensor(2.5, requires_grad=True)]
    BOOLS += [torch.tensor(True)]
    NONE += [torch.tensor([3]), torch.tensor([2.5]), torch.tensor([[True]]), torch.tensor([1, 2]), torch.tensor(1j)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [str(dtype) for dtype in DTYPES])
def test_one_rule_for_all_libraries(dtype, target):
    for x in INTEGERS:
        assert taken(dtype, target, x) == ("HV0615" if dtype == "bool" else 3), repr(x)
    for x in FLOATS:
        assert taken(dtype, target, x) == (2.5 if dtype == "float32" else "HV0614"), repr(x)
    for x in BOOLS:
        assert taken(dtype, target, x) == 1, repr(x)
    for x in NONE:
        assert taken(dtype, target, x) == "HV0632", repr(x)


@pytest.mark.parametrize("target", TARGETS)
def test_ranges(target):
    assert taken("int8", target, np.int64(200)) == taken("int8", target, np.array(200)) == "HV0615"
    assert taken("uint64", target, np.uint64(2**63 + 2048)) == taken("uint64", target, np.array(2**63 + 2048)) == (
        2.0**63 + 2048)
    for huge in (10**400, -(10**400)):
        assert {taken(str(dtype), target, huge) for dtype in DTYPES} == {"HV0615"}


def test_the_kind_that_is_named_is_the_parameter_s():
    for target in TARGETS:
        with pytest.raises(helve.Error, match="'x' is index, the argument 2.5 is a float"):
            KERNELS["index", target](2.5, np.zeros(1))


class Number:
    """A number by a method of Python that changes the array of the other argument."""

    def __init__(self, grow):
        self.grow = grow

    ndim = 0

    def item(self):
        self.grow()
        return 4


def test_a_method_of_python_that_changes_another_argument():
    y = [np.zeros(1)]

    def grow():
        y[0][0] = 7

    for target in TARGETS:
        KERNELS["int32", target](Number(grow), y[0])
        assert y[0][0] == 4


class Strange:
    """What looks like an array and is none."""

    def __init__(self, **members):
        self.__dict__.update(members)

    def item(self):
        raise ValueError("no")


@pytest.mark.parametrize("members", [{"ndim": 0}, {"ndim": "x"}, {"ndim": 1}, {"ndim": 1, "shape": 3},
                                     {"ndim": 2, "shape": (None, 1)}, {"ndim": None, "shape": []}])
def test_objects_that_pretend(members):
    for target in TARGETS:
        assert taken("int32", target, Strange(**members)) == "HV0632"


def test_masked_arrays_are_no_tensors():
    @T.prim_func
    def double(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4) as b:
            B[b] = A[b] * 2.0

    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    masked = np.ma.array(a, mask=[0, 1, 0, 0])

    class Own(np.ma.MaskedArray):
        """A class that derives from it."""

    for target in TARGETS:
        kernel = helve.compile(double, target=target)
        for first, second in ((masked, b), (a, np.ma.array(b)), (masked.view(Own), b)):
            with pytest.raises(helve.Error) as refused:
                kernel(first, second)
            assert refused.value.code == "HV0631" and ".filled(value)" in refused.value.help
        kernel(masked.filled(9), b)
        assert b.tolist() == [0, 18, 4, 6]
        kernel(masked.data, b)
        assert b.tolist() == [0, 2, 4, 6]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_other_classes_of_arrays_are_their_memory():
    class Own(np.ndarray):
        """A class without a meaning of its own."""

    @T.prim_func
    def double(A: T.Tensor((2, 2), "float32"), B: T.Tensor((2, 2), "float32")):
        with T.Kernel(2, 2) as (i, j):
            B[i, j] = A[i, j] * 2.0

    a = np.arange(4, dtype="float32").reshape(2, 2)
    for target in TARGETS:
        for array in (a.view(Own), np.asmatrix(a)):
            b = np.zeros((2, 2), "float32").view(type(array))
            helve.compile(double, target=target)(array, b)
            assert np.asarray(b).tolist() == [[0, 2], [4, 6]]
