"""Arrays of other libraries, through DLPack.

A capsule is read by the layout that its version promises, so a version that is not known must not be read at all.
"""

import ctypes

import helve
import numpy as np
import pytest
from helve import T


class Exporter:
    """An array that only DLPack can read; `major` replaces the version that its capsule states, None gives one without a version."""

    def __init__(self, array, major):
        self.array = array
        self.major = major

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, max_version=None):
        if self.major is None:
            return self.array.__dlpack__()
        capsule = self.array.__dlpack__(max_version=(1, 0))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(ctypes.c_uint32))[0] = self.major
        return capsule


@pytest.fixture(scope="module")
def double():
    @T.prim_func
    def main(A: T.Tensor((5,), "float32"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(5):
                B[i] = A[i] * 2.0

    return helve.compile(main)


needs_versions = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy exports no versions")


@pytest.mark.parametrize("major", [None, pytest.param(1, marks=needs_versions)])
def test_known_versions_are_read(double, major):
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    double(Exporter(a, major), Exporter(b, major))
    np.testing.assert_array_equal(b, a * 2)


@needs_versions
@pytest.mark.parametrize("major", [0, 2])
def test_another_major_version_is_refused(double, major):
    with pytest.raises(helve.Error) as caught:
        double(Exporter(np.zeros(5, np.float32), major), np.zeros(5, np.float32))
    assert caught.value.code == "HV0631"
    assert caught.value.message.endswith("its DLPack capsule is of another major version")
