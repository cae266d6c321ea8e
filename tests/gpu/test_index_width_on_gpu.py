"""What a call must satisfy so that index values fit 64 bits, where threads divide the loops that compute them.

Skips itself where PyTorch finds no device.
"""

import pytest
import test_index_width as widths

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def test_a_divided_loop_asks_no_more_than_the_loop():
    widths.check_powers(helve.compile(helve.parse(widths.POWERS), target="cuda"), 62)
