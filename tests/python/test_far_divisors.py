"""Divisors beyond 32 bits in text whose indices have 32 bits."""

import helve
import helve.testing
import numpy as np
import pytest
from cuda_on_host import HostKernels
from helve import T

DIVISORS = [2**31, 2**33, 2**40, -(2**33)]
NUMBERS = np.arange(80) - 40


def quotients(divisor):
    @T.prim_func
    def main(Q: T.Tensor((80,), "int64"), R: T.Tensor((80,), "int64")):
        with T.Kernel(1):
            for i in T.Parallel(80):
                Q[i] = T.cast((i - 40) // divisor, "int64")
                R[i] = T.cast((i - 40) % divisor, "int64")

    return main


@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_and_remainders(tmp_path, divisor):
    form = helve.testing.lowering_stages(quotients(divisor), target="cuda", arch="sm_80")[-1][1]
    q, r = np.zeros(80, "int64"), np.zeros(80, "int64")
    HostKernels([form], tmp_path).run("main", 1, {"Q": q, "R": r})
    np.testing.assert_array_equal(q, NUMBERS // divisor)
    np.testing.assert_array_equal(r, NUMBERS % divisor)
