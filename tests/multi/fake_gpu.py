"""Arrays that say they are on a GPU, in memory of the host, where the fake driver has that of GPUs."""

import ctypes

import numpy as np

DEVICE = 0
_AT_DEVICE = 40  # bytes of DLManagedTensorVersioned before the device

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Array:
    """An array of NumPy under another name."""

    def __init__(self, array, device=DEVICE):
        self.array, self.number = array, device

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    device = property(lambda self: f"fake:{self.number}")

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, stream=None, max_version=None):
        assert stream == 1
        capsule = self.array.__dlpack__(max_version=(1, 0))
        device = ctypes.cast(_pointer(capsule, b"dltensor_versioned") + _AT_DEVICE, ctypes.POINTER(ctypes.c_int32))
        device[0], device[1] = 2, self.number
        return capsule

    def __array_namespace__(self):
        import fake_gpu

        return fake_gpu

    def __getitem__(self, index):
        return Array(self.array[index], self.number)

    def __setitem__(self, index, value):
        self.array[index] = value.array if isinstance(value, Array) else value


def empty(shape, dtype="float32", device=None):
    number = DEVICE if device is None else int(str(device).rpartition(":")[2])
    return Array(np.full(shape, 77).astype(dtype), number)


def __getattr__(name):
    """Dtypes, as namespaces of arrays have them."""
    if name.startswith("_"):
        raise AttributeError(name)
    return np.dtype(name)
