"""Programs that compilers of CUDA C get wrong when they are written down plainly, on a CUDA device.

Skips itself where PyTorch finds no device.
"""

import numpy as np
import pytest
from compiler_faults import PROGRAMS

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name):
    function, case = PROGRAMS[name]
    given, expected = case()
    helve.compile(function, target="cuda")(*given)
    for got, wanted in zip(given, expected, strict=True):
        assert np.array_equal(got, wanted)
