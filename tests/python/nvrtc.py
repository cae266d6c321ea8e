"""NVRTC for tests: generated CUDA C becomes a cubin, no GPU needed.

The library comes from pip's wheels or the system; a test that needs it skips itself where there is none.
"""

import ctypes
import glob
import os
import re
import site
import sys
from functools import cache

import pytest

ARCHITECTURES = ("sm_80", "sm_90a")


@cache
def library():
    folders = [*site.getsitepackages(), *(path for path in sys.path if path.endswith("site-packages"))]
    patterns = [f"{folder}/nvidia/*/lib/libnvrtc.so*" for folder in folders] + ["/usr/local/cuda*/lib64/libnvrtc.so*"]
    candidates = [os.environ.get("HELVE_NVRTC", "")] + [path for pattern in patterns
                                                        for path in sorted(glob.glob(pattern))]
    for path in candidates:
        if path and os.path.exists(path):
            return ctypes.CDLL(path)
    return None


needs_nvrtc = pytest.mark.skipif(library() is None, reason="libnvrtc is not installed")


def compile_cubin(text, arch):
    """The cubin's bytes and the log of NVRTC and ptxas; an AssertionError with text and log when it does not compile.
    """
    nvrtc = library()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={arch}", "--fmad=false", "--ptxas-options=-v", "--std=c++17"]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    message = log.value.decode()
    assert status == 0, f"{message}\n{text}"
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, message


def assert_fits_registers(text, arch, kernel=None):
    """NVRTC has nothing to say about products of warpgroups, and the kernel, or each, needs no stack and no spills."""
    _, log = compile_cubin(text, arch)
    assert not re.search(r"\bC7[56]\d\d\b", log), log
    own = log
    if kernel is not None:
        own = log.partition(f"Compiling entry function '{kernel}'")[2].partition("Compiling entry function")[0]
    assert {*re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", own)} == {"0"}, log


def assert_compiles(text, in_registers=True, architectures=ARCHITECTURES):
    """For each architecture, without spills or warnings, and without memory of a thread's own where all is said to fit
    registers.
    """
    for arch in architectures:
        cubin, log = compile_cubin(text, arch)
        assert cubin[:4] == b"\x7fELF"
        warnings = [line for line in log.split("\n") if "warning #" in line
                    and "set but never used" not in line]  # the program's own
        assert not warnings, log
        kinds = "stack frame|spill stores|spill loads" if in_registers else "spill stores|spill loads"
        for count in re.findall(rf"(\d+) bytes (?:{kinds})", log):
            assert count == "0", f"{log}\n{text}"
