"""Random kernels in thread form: generated CUDA C, run on the CPU, against the interpreter; a part of them through
NVRTC.

HELVE_CUDA_SEEDS=begin:end tries other programs.
"""

import os

import helve
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, assert_same, interpret, slot_of
from cuda_programs import RandomKernel
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_operators import INTS, kind_of

from helve import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BEGIN, END = (int(part) for part in os.environ.get("HELVE_CUDA_SEEDS", "0:60").split(":"))
SEEDS = range(BEGIN, END)


def kernel_of(seed):
    return RandomKernel(f"program_{seed}", seed)


def values(shape, dtype, rng):
    if dtype in INTS:
        info = np.iinfo(kind_of(dtype))
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(kind_of(dtype))
    return (rng.standard_normal(shape) * 4).astype(kind_of(dtype))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    programs = {seed: kernel_of(seed) for seed in SEEDS}
    functions = {seed: helve.parse(program.text) for seed, program in programs.items()}
    return programs, functions, HostKernels(list(functions.values()), tmp_path_factory.mktemp("cuda"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_text_means_what_the_interpreter_says(compiled, seed):
    programs, functions, kernels = compiled
    program = programs[seed]
    rng = np.random.default_rng(seed)
    a = values((program.extent,), program.inputs[0], rng)
    b = values((program.size,), program.inputs[1], rng)
    rows = program.blocks * program.threads
    out = aligned(np.zeros((rows, program.width + program.pad), kind_of(program.output)))
    wanted = out.copy()
    n = int(rng.integers(0, 7))
    s = values((), program.work, rng)
    scalar = int(s) if program.work in INTS else float(s)
    interpret(functions[seed], a, b, wanted[:, : program.width], n, scalar)
    widened = aligned(np.zeros_like(wanted))
    interpret(kernels.forms[program.name], a, b, widened[:, : program.width], n, scalar)
    assert_same(widened, wanted, f"vector accesses of\n{program.text}")
    slots = {"n": n, "s": slot_of(s, program.work), "M": program.extent}
    kernels.run(program.name, program.blocks, {"A": aligned(a), "B": aligned(b), "O": out}, slots)
    assert_same(out, wanted, program.text)


@needs_nvrtc
@pytest.mark.parametrize("seed", SEEDS[::5])
def test_the_text_compiles(seed):
    form = _core.widen_accesses(_core.allocate_shared(helve.parse(kernel_of(seed).text).function))
    assert_compiles(_core.cuda_source(form)[0], in_registers=False)
