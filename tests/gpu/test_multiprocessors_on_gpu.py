"""T.multiprocessors() on a CUDA device: a launch has as many blocks as the device has multiprocessors.

Skips itself where PyTorch finds no device. The programs are those that the CPU runs.
"""

import numpy as np
import pytest
from test_multiprocessors import column_sums, doubled, number, rows

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def test_it_is_that_of_the_device():
    n = torch.zeros(1, dtype=torch.int64, device="cuda")
    helve.compile(number, target="cuda")(n)
    assert int(n[0]) == torch.cuda.get_device_properties(0).multi_processor_count


@pytest.mark.parametrize("count", [0, 1, 5, 133, 1000])
def test_blocks_share_the_work(count):
    x = torch.from_numpy(rows(count, "float32")).cuda()
    y = torch.full_like(x, 7)
    helve.compile(doubled, target="cuda")(x, y)
    np.testing.assert_array_equal(y.cpu().numpy(), x.cpu().numpy() * 2)
    given = rows(count, "int32")
    sums = torch.full((40,), 7, dtype=torch.int32, device="cuda")
    helve.compile(column_sums, target="cuda")(torch.from_numpy(given).cuda(), sums)
    np.testing.assert_array_equal(sums.cpu().numpy(), given.sum(axis=0))
