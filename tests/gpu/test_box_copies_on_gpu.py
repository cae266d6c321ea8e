"""Copies by tensor maps on a CUDA device, against the interpreter and NumPy.

Skips itself where PyTorch finds no device of Hopper or later. Small programs meet every kind of end; the large ones run
on all of the device at once, many times, so that a missing wait, fence or barrier has its chance to show.
"""

import numpy as np
import pytest
from on_device import agrees, needs_tma, torch
from test_box_copies import PROGRAMS, arguments, doubled_tiles, many_dimensions, mirrored_tiles, strided, transposed

import helve
from helve import T

pytestmark = needs_tma


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_the_interpreter(name, offset):
    agrees(PROGRAMS[name][0], arguments(name), offset)


@pytest.mark.parametrize("seed", range(30))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float16", "int8"]))
    unit = 16 // np.dtype(dtype).itemsize

    def numbers(*shape):
        return rng.integers(-4, 5, shape).astype(dtype)

    rows, columns = int(rng.integers(1, 100)), unit * int(rng.integers(1, 30))
    height, width = int(rng.integers(1, 40)), unit * int(rng.integers(1, 9))
    if seed % 3 == 0:
        agrees(doubled_tiles(rows, columns, height, width, dtype), [numbers(rows, columns), numbers(rows, columns)])
    elif seed % 3 == 1:
        height, width = 8 * int(rng.integers(1, 9)), unit * int(rng.choice([2, 4, 8]))
        agrees(transposed(rows, columns, height, width, dtype), [numbers(rows, columns), numbers(columns, rows)])
    else:  # every stage of a ring begins at a multiple of 128 bytes
        first, height = unit * int(rng.integers(0, columns // unit)), 8 * int(rng.integers(1, 5))
        agrees(mirrored_tiles(rows, columns, height, width, int(rng.integers(2, 5)), dtype, first),
               [numbers(rows, columns), np.zeros((height, width), "float32")])


@pytest.mark.parametrize("seed", range(20))
def test_random_boxes_of_any_rank(seed):
    rng = np.random.default_rng(seed)
    rank = seed % 5 + 1
    shape = [int(rng.integers(1, 6)) for _ in range(rank - 1)] + [4 * int(rng.integers(1, 9))]
    begin = [int(rng.integers(0, extent)) for extent in shape]
    begin[-1] -= begin[-1] % 4
    extents = [int(rng.integers(1, 5)) for _ in range(rank - 1)] + [4 * int(rng.integers(1, 9))]
    a, b = (rng.integers(-9, 9, shape).astype("int32") for _ in range(2))
    agrees(many_dimensions(shape, begin, extents), [a, b])


def test_rows_with_a_stride():
    memory = torch.randn(9, 64, device="cuda")
    out = torch.empty(8, 16, device="cuda")
    a = memory[:, :40]
    helve.compile(strided(9, 40, 64), target="cuda")(a, out)
    assert torch.equal(out, a[1:9, 8:24].flip(0))


def test_rows_that_are_one_row_in_memory():
    row, out = torch.randn(40, device="cuda"), torch.empty(8, 16, device="cuda")
    a = row.expand(9, 40)
    helve.compile(strided(9, 40, 0), target="cuda")(a, out)
    assert torch.equal(out, a[1:9, 8:24])


def test_one_kernel_takes_many_tensors():
    """Maps are made anew for other addresses and other extents."""
    M = T.dyn("M")

    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 32), threads=64) as b:
            x = T.alloc_shared((32, 64), "float32")
            T.copy(A[b * 32:b * 32 + 32, 0:64], x, dispatch="tma_tensor")
            for i, j in T.Parallel(32, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, B[b * 32:b * 32 + 32, 0:64], dispatch="tma_tensor")

    kernel = helve.compile(main, target="cuda")
    tensors = [torch.randn(rows, 64, device="cuda") for rows in (1, 31, 32, 33, 1000, 0, 77)]
    for _ in range(3):
        for a in tensors:
            b = torch.full_like(a, -1.0)
            kernel(a, b)
            assert torch.equal(b, a * 2.0)
    a, b = torch.randn(96, 64, device="cuda"), torch.zeros(96, 64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    kernel(a, b)
    with torch.cuda.graph(graph):
        kernel(a, b)
    a.copy_(torch.randn_like(a))
    graph.replay()
    assert torch.equal(b, a * 2.0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_transposes_on_the_whole_device(dtype):
    rows, columns = 8190, 4104
    width = 64 if dtype == "float16" else 32
    kernel = helve.compile(transposed(rows, columns, 64, width, dtype), target="cuda")
    a = torch.randn(rows, columns, device="cuda").to(getattr(torch, dtype))
    for _ in range(20):
        b = torch.full((columns, rows), -1.0, dtype=a.dtype, device="cuda")
        kernel(a, b)
        assert torch.equal(b, a.t())


def pipelined_sums(rows, columns, height, width, stages):
    """Every block sums the tiles of its rows, from both ends at once; the next ones are on their way."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, width), "float32")):
        with T.Kernel(T.ceildiv(rows, height), threads=128) as b:
            x = T.alloc_shared((height, width), "float32")
            s = T.alloc_fragment((height, width), "float32")
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(columns, width), num_stages=stages):
                T.copy(A[b * height:b * height + height, k * width:k * width + width], x, dispatch="tma_tensor")
                for i, j in T.Parallel(height, width):
                    s[i, j] = s[i, j] + x[i, width - 1 - j]
            T.copy(s, B[b * height:b * height + height, :])

    return main


@pytest.mark.parametrize("stages", [2, 4])
def test_pipelines_on_the_whole_device(stages):
    rows, columns, width = 20001, 1000, 32
    kernel = helve.compile(pipelined_sums(rows, columns, 32, width, stages), target="cuda")
    a = torch.randint(-4, 5, (rows, columns), device="cuda").float()
    padded = torch.nn.functional.pad(a, (0, -columns % width))
    wanted = padded.view(rows, -1, width).flip(2).sum(1)
    for _ in range(20):
        b = torch.full((rows, width), -1.0, device="cuda")
        kernel(a, b)
        assert torch.equal(b, wanted)
