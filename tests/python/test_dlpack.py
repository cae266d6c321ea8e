"""Arrays of other libraries, through DLPack.

A capsule is read by the layout that its version promises, so a version that is not known must not be read at all.
"""

import ctypes
import sys
from types import SimpleNamespace

import helve
import numpy as np
import pytest
from helve import T


class Exporter:
    """An array that only DLPack can read; `major` replaces the version that its capsule states, None gives one without
    a version.
    """

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


@pytest.fixture
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


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                    ("deleter", DELETER),
                    ("flags", ctypes.c_uint64), ("tensor", DLTensor)]
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    pass


Exchange._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev_api", ctypes.POINTER(Exchange)),
                     ("allocator", ctypes.c_void_p), ("from_object", FROM_OBJECT), ("to_object", ctypes.c_void_p),
                     ("borrow", ctypes.c_void_p), ("stream", STREAM)]


def exchanging_type(device=(1, 0), flags=0, major=1, prev=None):
    """A type that hands its arrays over by DLPack's C exchange alone, and a list of what was asked of it."""
    asked = []

    class Array:
        def __init__(self, array):
            self.array = array
            self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            self.managed = None

    @DELETER
    def delete(managed):
        asked.append("deleted")

    @FROM_OBJECT
    def from_object(value, out):
        asked.append("exchanged")
        data = value.array.ctypes.data
        value.managed = Managed(1, 1, None, delete, flags,
                                DLTensor(data, *device, value.array.ndim, 2, 32, 1, value.shape, None, 0))
        out[0] = ctypes.pointer(value.managed)
        return 0

    @STREAM
    def stream(device_type, device_id, out):
        asked.append(("stream", device_type, device_id))
        out[0] = 0x1234
        return 0

    table = Exchange(major, 3, prev, None, from_object, None, None, stream)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    Array.__dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)
    Array.kept = (table, delete, from_object, stream)
    return Array, asked


def test_the_c_exchange_is_preferred_and_gives_back(double):
    Array, asked = exchanging_type()
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    double(Array(a), Array(b))
    np.testing.assert_array_equal(b, a * 2)
    assert asked == ["exchanged", "exchanged", "deleted", "deleted"]


def test_an_older_table_of_a_known_version_is_found(double):
    first, asked = exchanging_type()
    Array, newer = exchanging_type(major=2, prev=ctypes.pointer(first.kept[0]))
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    double(Array(a), Array(b))
    np.testing.assert_array_equal(b, a * 2)
    assert asked.count("exchanged") == 2 and newer == []


def test_a_table_of_no_known_version_is_not_used(double):
    Array, asked = exchanging_type(major=2)
    with pytest.raises(helve.Error) as caught:
        double(Array(np.zeros(5, np.float32)), np.zeros(5, np.float32))
    assert caught.value.code == "HV0631" and caught.value.message.endswith("it has no __dlpack__")
    assert asked == []


def test_read_only_flags_of_the_exchange_count(double):
    Array, _ = exchanging_type(flags=1)
    array = np.zeros(5, np.float32)
    double(Array(array), array.copy())
    with pytest.raises(helve.Error) as caught:
        double(array, Array(array.copy()))
    assert caught.value.code == "HV0610"


def test_arrays_of_a_device_tell_their_stream_once(double):
    Array, asked = exchanging_type(device=(2, 3))
    with pytest.raises(helve.Error) as caught:
        double(Array(np.zeros(5, np.float32)), Array(np.zeros(5, np.float32)))
    assert caught.value.code == "HV0609" and "cuda:3" in caught.value.message
    assert asked == ["exchanged", "exchanged", ("stream", 2, 3), "deleted", "deleted"]


def test_exporters_on_a_device_are_told_the_stream(double):
    class OnDevice(Exporter):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None, max_version=None):
            streams.append(stream)
            return super().__dlpack__(max_version)

    streams = []
    double(OnDevice(np.zeros(5, np.float32), 1), np.zeros(5, np.float32))
    assert streams == [1]  # the legacy default stream
    Array, _ = exchanging_type(device=(2, 0))
    with pytest.raises(helve.Error):
        double(OnDevice(np.zeros(5, np.float32), 1), Array(np.zeros(5, np.float32)))
    assert streams == [1, 0x1234]


def test_torch_tensors_are_read_where_they_are(double):
    torch = pytest.importorskip("torch")
    whole = torch.arange(10, dtype=torch.float32)
    out = torch.zeros(5)
    double(whole[5:], out)
    assert out.tolist() == [10, 12, 14, 16, 18]
    double(torch.nn.Parameter(torch.ones(5)), out)
    assert out.tolist() == [2.0] * 5
    with pytest.raises(helve.Error) as caught:
        double(whole[::2], out)
    assert caught.value.code == "HV0608"
    with pytest.raises(helve.Error) as caught:
        double(torch.zeros(5).to_sparse(), out)
    assert caught.value.code == "HV0631"


def test_cupy_arrays_are_ordered_on_cupys_stream(double, monkeypatch):
    class ndarray(Exporter):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None, max_version=None):
            streams.append(stream)
            return super().__dlpack__(max_version)

    ndarray.__module__ = "cupy._core.core"
    streams = []
    cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=77))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    double(ndarray(np.zeros(5, np.float32), 1), np.zeros(5, np.float32))
    assert streams == [77]


class Mute:
    """An exporter of which every part can be replaced."""

    def __init__(self, device=(1, 0), capsule=None):
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self):
        return answer(self.device)

    def __dlpack__(self, **asked):
        return answer(self.capsule)


def answer(value):
    """The value, or what it raises."""
    if isinstance(value, type) and issubclass(value, BaseException):
        raise value("of the exporter")
    return value


@pytest.mark.parametrize("device", [None, (), (1,), ("1", "0"), "cpu", (1, 0, 0), [1, 0], (2**40, 0), (None, None), 7])
def test_a_device_that_is_none_is_refused(double, device):
    with pytest.raises(helve.Error) as caught:
        double(Mute(device), np.zeros(5, np.float32))
    assert caught.value.code == "HV0631"
    assert caught.value.message.endswith("its __dlpack_device__ gives no pair of integers")


@pytest.mark.parametrize("capsule", [None, (), "capsule", 5, object()])
def test_a_capsule_that_is_none_is_refused(double, capsule):
    with pytest.raises(helve.Error) as caught:
        double(Mute(capsule=capsule), np.zeros(5, np.float32))
    assert caught.value.message.endswith("its DLPack capsule is of an unknown kind")


@pytest.mark.parametrize("parts", [{"device": RuntimeError}, {"capsule": BufferError}, {"capsule": TypeError}])
def test_what_an_exporter_raises_is_the_reason(double, parts):
    with pytest.raises(helve.Error) as caught:
        double(Mute(**parts), np.zeros(5, np.float32))
    assert caught.value.code == "HV0631" and caught.value.message.endswith("of the exporter")


def test_an_interrupt_in_an_exporter_is_an_interrupt(double):
    with pytest.raises(KeyboardInterrupt):
        double(Mute(capsule=KeyboardInterrupt), np.zeros(5, np.float32))


@pytest.mark.parametrize("major", [None, pytest.param(1, marks=needs_versions)])
def test_a_capsule_is_taken_so_that_nobody_else_can(double, major):
    kept = []

    class Keeping(Exporter):
        def __dlpack__(self, max_version=None):
            kept.append(super().__dlpack__(max_version))
            return kept[-1]

    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    before = sys.getrefcount(a), sys.getrefcount(b)
    double(Keeping(a, major), Keeping(b, major))
    np.testing.assert_array_equal(b, a * 2)
    used = b"used_dltensor" if major is None else b"used_dltensor_versioned"
    assert [name_of(capsule) for capsule in kept] == [used, used]
    kept.clear()
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before  # given back, once


def test_an_exchange_may_change_the_arguments_before_it(double):
    Array, asked = exchanging_type()

    class Resizing(Array):
        @property
        def array(self):
            first.resize(1 << 20, refcheck=False)
            first[:5] = 7
            first.resize(5, refcheck=False)
            return out

        @array.setter
        def array(self, value):
            pass

    first, out = np.zeros(5, np.float32), np.zeros(5, np.float32)
    double(first, Resizing(out))
    np.testing.assert_array_equal(out, np.full(5, 14, np.float32))
    assert asked == ["exchanged", "deleted"]


def test_an_exporter_may_change_the_arguments_before_it(double):
    class Resizing(Exporter):
        def __dlpack__(self, max_version=None):
            first.resize(1 << 20, refcheck=False)  # its memory is elsewhere now
            first[:5] = 7
            first.resize(5, refcheck=False)
            return super().__dlpack__(max_version)

    first = np.zeros(5, np.float32)
    out = np.zeros(5, np.float32)
    double(first, Resizing(out, 1))
    np.testing.assert_array_equal(out, np.full(5, 14, np.float32))


def test_a_number_may_change_the_arguments_before_it():
    class Number:
        def __index__(self):
            first.resize(1 << 20, refcheck=False)
            first[:] = 3
            first.resize(5, refcheck=False)
            return 10

    @T.prim_func
    def scale(A: T.Tensor((5,), "float32"), k: T.int32, B: T.Tensor((5,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(5):
                B[i] = A[i] * T.cast(k, "float32")

    first, out = np.zeros(5, np.float32), np.zeros(5, np.float32)
    helve.compile(scale, target="interp")(first, Number(), out)
    np.testing.assert_array_equal(out, np.full(5, 30, np.float32))
