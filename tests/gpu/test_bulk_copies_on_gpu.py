"""TMA bulk copies on a CUDA device, against the interpreter and NumPy.

Skips itself where PyTorch finds no device of Hopper or later. Small programs meet every kind of tail; the large ones
run on all of the device at once, many times, so that a missing wait, fence or barrier has its chance to show.
"""

import numpy as np
import pytest
from on_device import agrees, needs_tma, torch
from test_bulk_copies import PROGRAMS, arguments, copied_back, line, rows_ahead, tiles

import helve
from helve import T

pytestmark = needs_tma


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_the_interpreter(name, offset):
    agrees(PROGRAMS[name][0], arguments(name), offset)


@pytest.mark.parametrize("seed", range(24))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    dtype = rng.choice(["float32", "float16", "int8"])
    unit = 16 // np.dtype(dtype).itemsize
    width, height, stages = unit * int(rng.integers(1, 40)), int(rng.integers(1, 6)), int(rng.integers(2, 5))

    def numbers(*shape):
        return rng.integers(-4, 5, shape).astype(dtype)

    if seed % 3 == 0:
        rows, columns = int(rng.integers(1, height + 1)), unit * int(rng.integers(1, 200))
        agrees(tiles(rows, columns, height, width, stages, dtype),
               [numbers(rows, columns), np.zeros((height, width), "float32")])
    elif seed % 3 == 1:
        size = int(rng.integers(1, 9 * width))
        agrees(line(size, width, stages, dtype), [numbers(size), numbers(width)])
    else:
        rows = int(rng.integers(1, 40))
        agrees(rows_ahead(rows, width, dtype, stages, dispatch="tma"), [numbers(rows, width), numbers(rows, width)])


def doubled_rows(rows, columns, blocks, stages):
    """Every block has rows in flight while it doubles one, and copies it back while it goes on."""
    turns = -(-rows // blocks)

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(blocks, threads=256) as b:
            x = T.alloc_shared((columns,), "float32")
            y = T.alloc_shared((columns,), "float32")
            for k in T.Pipelined(turns, num_stages=stages):
                T.copy(A[k * blocks + b, :], x)
                for i in T.Parallel(columns):
                    y[i] = x[columns - 1 - i] * 2.0
                T.copy(y, B[k * blocks + b, :], dispatch="tma")

    return main


@pytest.mark.parametrize("stages", [2, 3])
def test_rows_on_the_whole_device(stages):
    rows, columns, blocks = 5000, 4096, 264
    kernel = helve.compile(doubled_rows(rows, columns, blocks, stages), target="cuda")
    rng = np.random.default_rng(stages)
    a = torch.from_numpy(rng.standard_normal((rows, columns)).astype("float32")).cuda()
    wanted = a.flip(1) * 2.0
    for _ in range(20):
        b = torch.full_like(a, -1.0)
        kernel(a, b)
        assert torch.equal(b, wanted)


def test_blocks_of_rows_on_the_whole_device():
    rows, columns = 30001, 1020
    kernel = helve.compile(copied_back(rows, columns, 8), target="cuda")
    a = torch.randn(rows, columns, device="cuda")
    for _ in range(20):
        b = torch.full_like(a, -1.0)
        kernel(a, b)
        assert torch.equal(b, a * 2.0)
