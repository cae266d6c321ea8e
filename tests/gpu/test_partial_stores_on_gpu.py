"""Stores to elements that the variables of their loop do not all select, on a CUDA device, against NumPy.

Skips itself where PyTorch finds no device. The programs are those that the CPU checks on the text.
"""

import numpy as np
import pytest
import test_partial_stores as names
from partial_store_programs import CASES

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def run(function, arguments):
    tensors = [torch.from_numpy(a).cuda() for a in arguments]
    helve.compile(function, target="cuda", verify=True)(*tensors)
    return tensors[-1].cpu().numpy()


@pytest.mark.parametrize("name", CASES)
def test_no_store_is_lost(name):
    function, wanted, arguments = CASES[name]
    given = arguments()
    np.testing.assert_array_equal(run(function, given), wanted(given[0].copy()))


def test_a_function_with_a_name_beyond_ascii():
    given = [np.arange(40, dtype="int32"), np.zeros(40, "int32")]
    np.testing.assert_array_equal(run(names.größe_日本, given), np.arange(1, 41))
