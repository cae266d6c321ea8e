"""What compilers of CUDA C get wrong does not stand in the text; the programs compute what NumPy does elsewhere."""

import re

import numpy as np
import pytest
from compiler_faults import PROGRAMS, branches, narrow

import helve
from helve import T, _core


def text_of(function):
    return _core.cuda_source(helve.testing.lowering_stages(function, target="cuda")[-1][1], prelude=False)[0]


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name, target):
    function, case = PROGRAMS[name]
    given, expected = case()
    helve.compile(function, target=target)(*given)
    for got, wanted in zip(given, expected, strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_stages(name):
    function, case = PROGRAMS[name]
    helve.testing.check_stages(function, lambda: case()[0])
    helve.testing.check_stages(function, lambda: case()[0], target="cuda", check="all")


def test_pointers_are_restricted_where_the_kernel_reads_nothing_that_it_writes():
    assert "restrict" not in text_of(branches)

    @T.prim_func
    def apart(C: T.Tensor((128,), "int8"), G: T.Tensor((128,), "int8")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                C[i] = G[i] + T.int8(1)

    assert "const signed char* __restrict__ G" in text_of(apart)


def test_no_condition_in_a_loop_is_decided_by_its_variable():
    text = text_of(narrow)
    assert re.search(r"\bv(_\d+)? \+ 1\b", text) and not re.search(r"&& v(_\d+)? < 1\b", text)
