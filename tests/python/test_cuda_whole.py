"""Tile kernels as CUDA C, all the way: divided among threads, printed, compiled for the CPU and run.

What they compute has to be what the interpreter computes from the user's text.
"""

import kernel_cases
import ml_dtypes
import numpy as np
import pytest
from cuda_on_host import HostKernels, aligned, blocks_and_extents, interpret
from nvrtc import assert_compiles, needs_nvrtc
from test_cuda_lowering import PROGRAMS, softmax, thread_form

from helve import _core

SOFTMAX = [
    (64, 8, 128, "float32", 20),
    (7, 3, 32, "float32", 8),
    (1001, 2, 96, "float16", 5),
    (96, 2, 256, "bfloat16", 7),
    (1024, 1, 512, "float32", 3),
    (4096, 1, 128, "bfloat16", 2),
]
LIBRARY = [
    (make, rows, columns, dtype)
    for make in [*kernel_cases.BY_ROWS, kernel_cases.rope, kernel_cases.swiglu, kernel_cases.swiglu_backward,
                 kernel_cases.transpose]
    for rows, columns, dtype in [(3, 256, "bfloat16"), (5, 77, "float32")]
]
BLOCKS = {"products": 2, "reversed": 1, "counted": 1, "columns": 1, "softmax": 2}


def softmax_name(case):
    return f"softmax_{'_'.join(str(part) for part in case)}"


def functions():
    named = {name: function for name, (function, _) in PROGRAMS.items()}
    return named | {softmax_name(case): softmax(*case[:4]) for case in SOFTMAX}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    named = functions()
    forms = [thread_form(function) for function in named.values()]
    return HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=list(named))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_whole_numbers(kernels, name):
    function, make = PROGRAMS[name]
    wanted, given = make(), [aligned(array) for array in make()]
    interpret(function, *wanted)
    arrays = dict(zip([p.name for p in function.function.params], given))
    kernels.run(name, BLOCKS[name], arrays, {"M": given[0].shape[0]})
    for got, expected in zip(given, wanted):
        np.testing.assert_allclose(got, expected, rtol=1e-5 if name == "softmax" else 0)


@pytest.mark.parametrize("case", SOFTMAX, ids=softmax_name)
def test_softmax(kernels, case):
    columns, rows, _, dtype, height = case
    element = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.random.default_rng(columns).standard_normal((height, columns)).astype(element)
    wide = x.astype(np.float64)
    wanted = np.exp(wide - wide.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    out = aligned(np.zeros_like(x))
    kernels.run(softmax_name(case), -(-height // rows), {"X": aligned(x), "Y": out}, {"M": height})
    tolerance = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    np.testing.assert_allclose(out.astype(np.float64), wanted, rtol=tolerance, atol=1e-7)


def library_name(case):
    make, rows, columns, dtype = case
    return f"{make.__name__}_{rows}_{columns}_{dtype}"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Name -> call of a kernel of helve.kernels, and all of them compiled."""
    calls = {library_name(case): case[0](*case[1:]) for case in LIBRARY}
    forms = [thread_form(call.function) for call in calls.values()]
    return calls, HostKernels(forms, tmp_path_factory.mktemp("cuda"), names=list(calls))


@pytest.mark.parametrize("case", LIBRARY, ids=library_name)
def test_the_kernels_of_the_library(library, case):
    calls, kernels = library
    call = calls[library_name(case)]
    arguments = [aligned(array) for array in call.arguments()]
    form = thread_form(call.function)
    arrays = dict(zip([p.name for p in form.params], arguments))
    blocks, extents = blocks_and_extents(form, arguments)
    kernels.run(library_name(case), blocks, arrays, extents)
    call.check(arguments)


@needs_nvrtc
@pytest.mark.parametrize("name", functions())
def test_registers_hold_everything(name):
    """No spills; a division's slow path may keep a few bytes in memory."""
    assert_compiles(_core.cuda_source(thread_form(functions()[name]))[0], in_registers=False)
