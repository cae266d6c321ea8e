"""NVRTC and the driver, for kernels that are texts: compile, load, launch, tensor maps.

helve's runtime does all of this for kernels that helve makes; here it is apart from it, so that what is compared with
helve owes helve nothing.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util

import torch

DTYPES = {torch.bfloat16: 9, torch.float16: 6, torch.float32: 7}  # CUtensorMapDataType
SWIZZLE_128B = 3


def _library(name: str) -> ctypes.CDLL:
    """NVRTC of the system or of pip's wheel."""
    places = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        places += glob.glob(f"{folder}/**/{name}*.so*", recursive=True)
    places += [*glob.glob(f"/usr/local/cuda*/lib64/{name}.so*"), f"{name}.so"]
    for place in places:
        if "builtins" in place:
            continue
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise SystemExit(f"{name} was not found")


def compile_text(text: str, arch: str = "sm_90a") -> bytes:
    """The cubin of a text.

    Raises:
        RuntimeError: the text does not compile; the message is NVRTC's log.
    """
    nvrtc = _library("libnvrtc")
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if failed:
        raise RuntimeError(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


class Driver:
    """The CUDA driver with every result checked."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name: str, *arguments) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")


class TextKernel:
    """A kernel of a text: compiled at once, launched on PyTorch's stream.

    Args:
        text: CUDA C.
        name: of the kernel in it.
        shared_bytes: dynamic shared memory.
        threads: of a block.
    """

    def __init__(self, text: str, name: str, shared_bytes: int, threads: int):
        torch.cuda.init()
        torch.empty(1, device="cuda")
        self.driver = Driver()
        self.shared_bytes, self.threads = shared_bytes, threads
        self.cubin = compile_text(text)
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver("cuModuleLoadData", ctypes.byref(module), self.cubin)
        self.driver("cuModuleGetFunction", ctypes.byref(self.function), module, name.encode())
        self.driver("cuFuncSetAttribute", self.function, 8, shared_bytes)  # MAX_DYNAMIC_SHARED_SIZE_BYTES

    def launcher(self, blocks: int, *arguments):
        """A call without arguments that launches the kernel; arguments are int32, float32, or bytes of tensor maps."""
        kept = []
        for argument in arguments:
            if isinstance(argument, ctypes.Array):
                kept.append(argument)
            else:
                kept.append((ctypes.c_float if isinstance(argument, float) else ctypes.c_int)(argument))
        pointers = (ctypes.c_void_p * len(kept))(*[ctypes.addressof(each) for each in kept])

        def launch(keep=kept):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.driver("cuLaunchKernel", self.function, blocks, 1, 1, self.threads, 1, 1, self.shared_bytes, stream,
                        pointers, None)

        return launch


def tensor_map(tensor: torch.Tensor, box: tuple[int, ...], dims: tuple[int, ...] | None = None) -> ctypes.Array:
    """A tensor map with the 128-byte swizzle and zeros past the end.

    Args:
        tensor: on the device, its last dimension contiguous, other strides multiples of 16 bytes.
        box: extents of what a copy moves, in the order of `dims`.
        dims: the tensor's dimensions from the innermost out; by default all, the last one first.
    """
    dims = dims or tuple(reversed(range(tensor.dim())))
    rank = len(dims)
    storage = ctypes.create_string_buffer(128 + 64)
    begin = (ctypes.addressof(storage) + 63) // 64 * 64
    out = (ctypes.c_char * 128).from_address(begin)
    out.storage = storage
    size = tensor.element_size()
    extents = (ctypes.c_uint64 * rank)(*[tensor.shape[d] for d in dims])
    strides = (ctypes.c_uint64 * (rank - 1))(*[tensor.stride(d) * size for d in dims[1:]])
    boxes = (ctypes.c_uint32 * rank)(*box)
    steps = (ctypes.c_uint32 * rank)(*[1] * rank)
    address = ctypes.c_void_p(tensor.data_ptr())
    Driver()("cuTensorMapEncodeTiled", ctypes.byref(out), DTYPES[tensor.dtype], rank, address, extents,
             strides, boxes, steps, 0, SWIZZLE_128B, 3, 0)  # no interleaving, level 2 in 256 bytes, zeros
    return out


