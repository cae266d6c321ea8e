"""Generated CUDA C on the CPU: g++ compiles the kernels' text after cuda_on_host.h, which says what CUDA is.

Functions are compiled many at a time, since a start of the compiler costs more than a kernel. What is the same for all
of them, the header and what it declares, is compiled once for all tests and kept in the folder for temporary files.
"""

import ctypes
import functools
import getpass
import hashlib
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import helve
from helve import _core
from helve.arguments import MULTIPROCESSORS
from helve.testing import evaluate, numpy_dtype

HEADER = Path(__file__).with_name("cuda_on_host.h")
MACHINE = Path(__file__).with_name("cuda_on_host.cc")
LIBRARY = "libcuda_on_host.so"
OPTIONS = ["-std=c++17", "-O1", "-fPIC", "-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing"]
PRELUDE = ["-DHELVE_PRELUDE"]
FAULTS = ["", "threads wait for one another", "a vector access is misaligned", "a bad shuffle",
          "shared memory beyond its size",
          "asynchronous copies or products are left at the end, or sums are touched too early",
          "a product takes registers without a fence"]


def lines_of(modes):
    """Of wgmma's last operands: are rows in memory of A and of B along M and N? A in registers has no such operand."""
    flags = [each == "1" for each in modes.split(", ")[3:]]
    return ", ".join(str(int(flag)) for flag in [False] * (2 - len(flags)) + flags)


def without_ptx(text):
    """`asm("op %0, %1;" : "=f"(r) : "f"(x));` becomes `r = ptx_op(x);`, what has effects and no result `ptx_op(x);`."""
    out = re.sub(
        r'asm\("([\w.:]+) %[^"]*" : "=\w"\(([\w.]+)\) : (.*)\);',
        lambda m: f"{m[2]} = ptx_{re.sub('[.:]+', '_', m[1])}({re.sub(chr(34) + '[a-z]' + chr(34), '', m[3])});",
        text,
    )
    out = re.sub(
        r'asm volatile\("([\w.:]+)[^"]*"(?:\s*"[^"]*")*\s*: : ([^;]*?)\s*: "memory"\);',
        lambda m: f"ptx_{re.sub('[.:]+', '_', m[1])}({re.sub(chr(34) + '[a-z]' + chr(34), '', m[2])});",
        out,
    )
    out = re.sub(  # a predicate as a number
        r'asm volatile\("\{[^"]*"\s*"([\w.:]+) p, [^"]*"\s*"selp[^"]*"\s*: "=r"\((\w+)\) : (.*) : "memory"\);',
        lambda m: f"{m[2]} = ptx_{re.sub('[.:]+', '_', m[1])}({re.sub(chr(34) + '[a-z]' + chr(34), '', m[3])});",
        out,
    )
    out = re.sub(  # several results, which go in front
        r'asm(?: volatile)?\("([\w.:]+) \{[^"]*"(?:\s*"[^"]*")*\s*: ((?:"[=+]\w"\([^)]*\),?\s*)+): '
        r'((?:"\w"\([^)]*\),?\s*)+)(?:: "memory")?\);',
        lambda m: f"ptx_{re.sub('[.:]+', '_', m[1])}({re.sub(chr(34) + '[=+]?[a-z]' + chr(34), '', m[2])}, "
                  f"{re.sub(chr(34) + '[a-z]' + chr(34), '', m[3])});",
        out,
    )
    out = re.sub(r'asm volatile\("" : "\+[fr]"\(([^)]*)\)[^;]*;', r"host_hold(\1);", out)  # what the compiler sees
    out = re.sub(  # sums of a warpgroup, which begin at the first of many
        r'asm volatile\("\{[^"]*setp[^"]*"\s*"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k\d+\.\w+\.(\w+)\.\w+ "'
        r'\s*"\{[^"]*"\s*"[^"]*, p((?:, \d)*); \}"\s*: "\+[fr]"\(([^)]*)\)[^:]*: '
        r'((?:"[rl]"\([^)]*\), )+"r"\(\w+\))\);',
        lambda m: f"ptx_wgmma<{m[1]}, host_{m[2]}, {lines_of(m[3])}>"
                  f"({m[4]}, {re.sub(chr(34) + '[rl]' + chr(34), '', m[5])});",
        out,
    )
    negated = r'asm\("[^"]*not\.b32 t, %1;[^"]*" : "=r"\((\w+)\) : "r"\((\w+)\)\);'
    out = re.sub(negated, r"\1 = (T)(0u - (unsigned int)\2);", out)
    out = re.sub(r'asm volatile\("barrier\.cluster\.[^"]*" ::: "memory"\);', "host_sync_cluster();", out)
    assert "asm" not in out, out[out.index("asm") :][:80]
    return out


def compiled(arguments):
    done = subprocess.run(["g++", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


@functools.cache
def shared_part():
    """The folder of the header, precompiled with the prelude and without, and of the library of what it declares."""
    version = subprocess.run(["g++", "-v"], capture_output=True, text=True).stderr
    texts = [HEADER.read_text(), MACHINE.read_text(), *OPTIONS, version]
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    home = Path(tempfile.gettempdir()) / f"helve-cuda-on-host-{getpass.getuser()}"
    folder = home / key
    if folder.exists():
        return folder
    home.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as made:
        made = Path(made) / key
        (made / f"{HEADER.name}.gch").mkdir(parents=True)
        shutil.copy(HEADER, made)
        for name, defined in [("plain", []), ("prelude", PRELUDE)]:
            compiled([*OPTIONS, *defined, "-x", "c++-header", "-o", made / f"{HEADER.name}.gch" / name,
                      made / HEADER.name])
        compiled([*OPTIONS, "-shared", "-Wl,-soname," + str(folder / LIBRARY), "-o", made / LIBRARY, MACHINE])
        try:
            os.rename(made, folder)
        except OSError:  # another process was faster
            assert folder.exists()
    for other in home.iterdir():  # of texts of days before
        if time.time() - other.stat().st_mtime > 86400:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def build_library(source, library, prelude):
    """Compiles a file that includes the header."""
    shared = shared_part()
    compiled([*OPTIONS, *PRELUDE * prelude, f"-I{shared}", "-shared", "-o", library, source, shared / LIBRARY])


class HostKernels:
    """The kernels of functions in thread form. Functions launch one kernel each, or one of two by a condition, and have
    names of their own, unless `names` gives them.

    The prelude is the header's; with `prelude` it is that of the text, for each function in a namespace of its own.
    `cluster_blocks` is what the functions were lowered for; `unaligned` kernels take tensors that are aligned as one
    element is.
    """

    def __init__(self, functions, folder, prelude=False, names=None, cluster_blocks=8, unaligned=False):
        texts, self.kernels, self.forms = [], {}, {}
        for place, function in enumerate(functions):
            form = _core.allocate_shared(getattr(function, "function", function))
            form = _core.widen_accesses(_core.narrow_accesses(form) if unaligned else form)
            text, kernels = _core.cuda_source(form, prelude=prelude, cluster_blocks=cluster_blocks)
            assert len(kernels) == len(versions(form))
            name = names[place] if names else kernels[0]["name"].removesuffix("_0")
            assert name not in self.kernels
            self.kernels[name], self.forms[name] = kernels, form
            for number, kernel in enumerate(kernels):
                text = re.sub(rf"\b{kernel['name']}\(", f"{name}_{number}(", text)
                kernel["name"] = f"{name}_{number}"
            texts.append(f"namespace of_{name} {{\n{without_ptx(text)}}}\n" if prelude else text)
            scope = f"of_{name}::" if prelude else ""
            for kernel in kernels:
                texts.append(
                    f'extern "C" int run_{kernel["name"]}(const long long* args, unsigned blocks) {{ '
                    f"return host::launch({scope}{kernel['name']}, args, blocks, {kernel['threads']}, "
                    f"{kernel['shared_bytes']}, {'blocks' if kernel['cooperative'] else kernel['cluster']}); }}\n"
                )
        source = f'#include "{HEADER.name}"\n' + "\n".join(texts)
        stem = Path(folder) / hashlib.sha256(source.encode()).hexdigest()[:16]
        stem.with_suffix(".cc").write_text(source)
        build_library(stem.with_suffix(".cc"), stem.with_suffix(".so"), prelude)
        self.library = ctypes.CDLL(str(stem.with_suffix(".so")))

    def run(self, name, blocks, arrays, scalars=None):
        """Runs all blocks; `arrays` by the parameters' names, `scalars` as the 64-bit slots of theirs. A global buffer
        that is not given has memory for this run. Gives the fault that a thread left, its number and its values, or
        None.
        """
        scalars = scalars or {}
        kernel = self.kernels[name][version(self.forms[name], scalars)]
        strides = {b: -(-bytes // 64) * 64 for b, bytes in kernel["instances"].items()}
        words = np.zeros(4096, np.uint32)
        own = {b: aligned(np.full(stride * blocks, 0xA5, np.uint8)) for b, stride in strides.items()}
        slots = [(own | arrays)[b].ctypes.data for b in kernel["buffers"]] + [scalars[s] for s in kernel["scalars"]]
        slots += [strides[b] for b in kernel["buffers"] if b in strides]
        slots += [0] * kernel["mesh"]  # the first core
        slots += [words.ctypes.data] * kernel["cooperative"]
        fault = np.zeros(2 + 32, np.int64)
        slots += [fault.ctypes.data] * kernel["faults"]
        maps = [tensor_map(arrays[b], box, swizzle) for b, box, swizzle in kernel["maps"]]
        slots += [each.ctypes.data for each in maps]
        args = (ctypes.c_longlong * max(len(slots), 1))(*slots)
        ended = getattr(self.library, f"run_{kernel['name']}")(args, blocks)
        assert ended == 0, f"{name}: {FAULTS[ended]}"
        return None if fault[0] == 0 else tuple(fault[1:].tolist())


def versions(form):
    """The kernels of a function of which a call launches one."""
    (launch,) = (node for node in [form.body, *getattr(form.body, "stmts", [])]
                 if isinstance(node, (_core.Kernel, _core.If)))
    return [launch.then_body, launch.else_body] if isinstance(launch, _core.If) else [launch]


def version(form, known):
    """The number of the one that a call with these extents and scalars launches."""
    return int(len(versions(form)) == 2 and not evaluate(form.body.condition, known))


def one_launch_each(text):
    """Functions of one launch each of a program's text, between which memory is a parameter."""
    head, *launches = re.split(r"^(?=    with T.Kernel)", re.sub(r"    \w+ = T.alloc_global.*\n", "", text), flags=re.M)
    memory = re.findall(r"(\w+) = T.alloc_global\((.*), (\"\w+\")\)", text)
    more = "".join(f", {name}: T.Tensor({shape}, {dtype})" for name, shape, dtype in memory)
    return [helve.parse(head.replace("):\n", f"{more}):\n") + launch) for launch in launches]


def launches_once(form):
    """Is the body of the host a kernel, or a choice of two, with grids that do not depend on memory?"""
    if not isinstance(form.body, (_core.Kernel, _core.If)):
        return False
    kernels = versions(form)
    if not all(isinstance(each, _core.Kernel) for each in kernels):
        return False
    decides = [extent for each in kernels for extent in each.extents]
    if len(kernels) == 2:
        decides.append(form.body.condition)
    return not any("[" in str(each) for each in decides)


def blocks_and_extents(form, arguments):
    """The number of blocks that a call launches, and the values of its extents and scalars, for arguments in the order
    of the parameters.
    """
    extents = {"multiprocessors": MULTIPROCESSORS}
    for param, argument in zip(form.params, arguments, strict=True):
        if isinstance(param, _core.Var):
            extents[param.name] = int(argument)
            continue
        for extent, size in zip(param.shape, argument.shape):
            extents[str(extent)] = size
    kernel = versions(form)[version(form, extents)]
    return math.prod(evaluate(extent, extents) for extent in kernel.extents), extents


def slot_of(value, dtype):
    """The 64-bit slot of a scalar: an integer itself, a float as its bits."""
    kind = numpy_dtype(dtype)
    if kind.kind in "iub":
        return int(value)
    array = np.array(value, kind)
    return int(array.view(f"u{array.itemsize}"))


def aligned(array, offset=0):
    """A copy with the same strides whose first element stands `offset` elements after a multiple of 64 bytes."""
    ends = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape)] if array.size else []
    before = -sum(end for end in ends if end < 0)  # bytes in front of the first element
    offset = offset * array.itemsize
    memory = np.zeros(before + sum(end for end in ends if end > 0) + array.itemsize + offset + 64, np.uint8)
    begin = before + (offset - memory.ctypes.data - before) % 64
    out = np.ndarray(array.shape, array.dtype, memory, begin, array.strides)
    out[...] = array
    return out


def tensor_map(array, box, swizzle):
    """What cuda_on_host.h takes for a tensor map of the array."""
    rest = [0] * (5 - array.ndim)
    fields = [array.ctypes.data, *array.shape, *rest, *array.strides, *rest]
    small = [*box, *rest, array.ndim, array.itemsize, swizzle]
    return aligned(np.frombuffer(struct.pack("<11q8h24x", *fields, *small), np.uint8))


def assert_same(got, wanted, message):
    """Equal bits, any NaN for any NaN, zeros of either sign."""
    bits = np.dtype(f"u{got.itemsize}")
    equal = got.view(bits) == wanted.view(bits)
    if got.dtype.kind not in "iub":
        wide_got, wide_wanted = got.astype("float64"), wanted.astype("float64")
        equal |= (np.isnan(wide_got) & np.isnan(wide_wanted)) | (wide_got == wide_wanted)
    if equal.all():
        return
    place = np.unravel_index(int(np.argmin(equal)), got.shape)
    raise AssertionError(f"{message} at {place}: {got[place]!r}, the interpreter has {wanted[place]!r}")


def interpret(function, *arguments):
    helve.compile(function, target="interp", check=None)(*arguments)
