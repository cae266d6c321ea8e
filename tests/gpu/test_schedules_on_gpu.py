"""Random schedules that use threads, blocks and their memory, on a CUDA device, against the interpreter.

Skips itself where PyTorch finds no device. The programs are those whose stages the CPU checks
(tests/python/test_schedule_accepted.py); HELVE_TEST_LONG=1 takes more of them.
"""

import os

import helve
import helve.testing
import numpy as np
import pytest
from schedule_nests import NOT_ON_DEVICE, for_device

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

PARTS, SEEDS = (40, 20) if os.environ.get("HELVE_TEST_LONG") else (5, 6)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part):
    refused = []
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        s = for_device(seed)
        wanted = helve.testing.make_arguments(s.version(0))
        helve.testing.interpret(s.version(0).function, *wanted)
        try:
            kernel = helve.compile(s, target="cuda")
        except helve.Error as error:
            assert error.code in NOT_ON_DEVICE, f"seed {seed}: {error}\n{s.trace()}\n{s.script()}"
            refused.append((seed, error.code))
            continue
        tensors = [torch.from_numpy(array).cuda() for array in helve.testing.make_arguments(s)]
        kernel(*tensors)
        for got, array in zip(tensors, wanted, strict=True):
            np.testing.assert_array_equal(got.cpu().numpy(), array, err_msg=f"seed {seed}\n{s.trace()}\n{s.script()}")
    assert len(refused) <= SEEDS / 2, refused
