"""Private memory of iterations and scalars of the grid, on a CUDA device, against NumPy.

Skips itself where PyTorch finds no device. The programs are those that the CPU checks on every stage.
"""

import numpy as np
import pytest
from test_scalar_extents import TEXT, USES, WANTED, arguments
from test_scratch_of_iterations import CASES

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def run(function, given):
    """What the arguments hold afterwards."""
    given = [torch.from_numpy(each.copy()).cuda() if isinstance(each, np.ndarray) else each for each in given]
    helve.compile(function, target="cuda", verify=True)(*given)
    return [each.cpu().numpy() if isinstance(each, torch.Tensor) else each for each in given]


@pytest.mark.parametrize("name", CASES)
def test_iterations_stay_apart(name):
    function, given, expected = CASES[name]
    got = run(function, given)
    for place, wanted in expected.items():
        np.testing.assert_array_equal(got[place], wanted)


@pytest.mark.parametrize("dtype", ["uint64", "int32"])
@pytest.mark.parametrize("use", USES)
def test_a_scalar_that_only_the_grid_or_a_declaration_needs(use, dtype):
    tensor, columns = USES[use]
    _, got = run(helve.parse(TEXT.format(dtype=dtype, tensor=tensor, columns=columns)), arguments())
    np.testing.assert_array_equal(got, WANTED)
