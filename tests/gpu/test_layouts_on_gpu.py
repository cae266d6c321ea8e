"""Layouts on buffers of a kernel, on a CUDA device: swizzled memory, placed fragments, matrices.

Skips itself where PyTorch finds no device. The programs are those that the CPU checks on the text.
"""

import numpy as np
import pytest
import test_buffer_layouts as programs
import test_threads as threads

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def check(function, make_arguments, mesh=None):
    """The device gives what the interpreter gives."""
    wanted = make_arguments()
    helve.compile(function, target="interp", mesh=mesh)(*wanted)
    got = [torch.from_numpy(a).cuda() for a in make_arguments()]
    helve.compile(function, target="cuda", mesh=mesh)(*got)
    for g, w in zip(got, wanted, strict=True):
        assert np.array_equal(g.cpu().numpy(), w)


@pytest.mark.parametrize("layout", programs.LAYOUTS, ids=str)
def test_fragments(layout):
    check(programs.twice(layout), programs.two((16, 64)))


@pytest.mark.parametrize("layout", [None, *programs.MEMORY], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_block_memory(layout, dtype):
    check(programs.transposed(layout, dtype=dtype), programs.two((32, 32), dtype))


@pytest.mark.parametrize("layout, shape, threads, count, transpose", programs.MATRICES, ids=str)
def test_matrices(layout, shape, threads, count, transpose):
    rows, columns = shape
    check(programs.by_matrices(layout, shape, threads, pitch=columns + 8),
          programs.filled(rows, columns + 8, columns))


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("layout", [None, *programs.MEMORY], ids=str)
def test_asynchronous_copies(layout, stages):
    check(programs.column_sums(stages, layout), programs.summed())


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_asynchronous_copies_of_narrow_elements(dtype):
    check(programs.column_sums(3, dtype=dtype, tile=64), programs.summed(64, dtype=dtype))


@pytest.mark.parametrize("layout", programs.LAYOUTS, ids=str)
def test_scans_and_atomic_updates(layout):
    check(programs.scanned(layout), programs.scan_arguments)


@pytest.mark.parametrize("layout", [None, *programs.MEMORY], ids=str)
def test_other_cores(layout):
    check(programs.exchanged(layout), programs.exchange_arguments, mesh=helve.Mesh((1, 4)))


@pytest.mark.parametrize("seed", range(12))
def test_random_layouts(seed):
    check(*programs.random_program(seed))


@pytest.mark.parametrize("store", threads.STORES_OF_ONE_ROW)
@pytest.mark.parametrize(("memory", "layout"), threads.PLACES_OF_ONE_ROW)
def test_any_subscript_of_a_dimension_of_one(memory, layout, store):
    function = helve.parse(threads.ONE_ROW.format(memory=memory, layout=layout, store=store))
    check(function, lambda: [threads.ROWS_OF_ONE.copy(), threads.KEYS_OF_ONE.copy(), np.zeros((4, 1, 8), np.float32)])
