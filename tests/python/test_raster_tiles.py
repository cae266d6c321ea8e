"""The order of tiles of Persistent loops: the same set of tiles, of which those that run at one time read less."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import helve
import helve.testing
from helve import T, _core

BLOCKS = 132


def product(bm=16, bn=32, bk=8, blocks=BLOCKS, shape=None, swapped=False, kind="Persistent"):
    """C = A @ B^T by blocks that take tiles in turn."""
    M, N, K = shape or (T.dyn("M"), T.dyn("N"), T.dyn("K"))

    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(blocks, threads=32):
            a = T.alloc_shared((bm, bk), "float32")
            b = T.alloc_shared((bn, bk), "float32")
            c = T.alloc_fragment((bm, bn), "float32")
            if swapped:
                for i, j in T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)]):
                    T.clear(c)
                    for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                        T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                        T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                        T.gemm(a, b, c, transpose_B=True)
                    T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])
            else:
                for j, i in T.Persistent([T.ceildiv(N, bn), T.ceildiv(M, bm)]):
                    T.clear(c)
                    for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                        T.copy(A[i * bm : i * bm + bm, k * bk : k * bk + bk], a)
                        T.copy(B[j * bn : j * bn + bn, k * bk : k * bk + bk], b)
                        T.gemm(a, b, c, transpose_B=True)
                    T.copy(c, C[i * bm : i * bm + bm, j * bn : j * bn + bn])

    return main


def stages(function, arch="sm_90a", mesh=None):
    return dict(helve.testing.lowering_stages(function, mesh, target="cuda", arch=arch))


def rastered(function, **options):
    return _core.print(stages(function, **options)["raster_tiles"])


def order_of(text, **extents):
    """The pairs (i, j) in the order of the loop, by its text."""
    names = {"T": SimpleNamespace(max=max, min=min), **extents}
    count = re.search(r"for tile in T\.Persistent\(\[(.*)\]\):", text)[1]
    values = re.findall(r"^ +(first|wide|[ij]) = (.*)$", text, re.MULTILINE)[:4]
    values = values[: 1 + max(n for n, (name, _) in enumerate(values) if name in "ij")]
    out = []
    for tile in range(eval(count, names)):
        known = {**names, "tile": tile}
        for name, value in values:
            known[name] = eval(value, known)
        out.append((known["i"], known["j"]))
    return out


@pytest.mark.parametrize("swapped", [False, True])
def test_each_tile_once(swapped):
    text = rastered(product(swapped=swapped))
    for m, n in [(16, 32), (0, 64), (100, 0), (160, 1000), (170, 33), (1000, 90), (640, 640), (16 * 7, 32 * 17)]:
        found = order_of(text, M=m, N=n)
        wanted = {(i, j) for i in range(-(-m // 16)) for j in range(-(-n // 32))}
        assert len(found) == len(wanted) and set(found) == wanted, (m, n)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shape", [None, (16 * 64, 32 * 32, 8), (16 * 61, 32 * 30, 8)])
def test_tiles_of_one_time_read_less(swapped, shape):
    """Rows of A and B that 132 tiles which follow each other need: about the fewest that so many tiles can have."""
    m, n, _ = shape or (16 * 64, 32 * 32, 8)
    text = rastered(product(swapped=swapped, shape=shape))
    order = order_of(text, M=m, N=n)
    in_rows = sorted(order) if swapped else sorted(order, key=lambda tile: tile[::-1])

    def rows_read(tiles):
        parts = [tiles[at : at + BLOCKS] for at in range(0, len(tiles) - BLOCKS, BLOCKS)]
        return [16 * len({i for i, _ in part}) + 32 * len({j for _, j in part}) for part in parts]

    least = 2 * (16 * 32 * BLOCKS) ** 0.5
    assert np.mean(rows_read(order)) < 1.2 * least < 0.7 * np.mean(rows_read(in_rows))


def test_the_group_follows_from_the_tiles():
    """Of narrow tiles more make up a group, and of a machine with fewer processors fewer."""
    groups = [re.search(r"tile // \(.* \* (\d+)\)", rastered(product(bm, bn), arch=arch))[1]
              for bm, bn, arch in [(16, 32, "sm_90a"), (32, 16, "sm_90a"), (16, 16, "sm_90a"), (16, 16, "sm_86")]]
    assert groups == ["8", "16", "11", "11"]
    assert "* 8)" in rastered(product(16, 16, blocks=66))


def test_every_stage():
    function = product()
    for m, n, k in [(160, 330, 16), (16, 700, 9), (0, 32, 8)]:
        rng = np.random.default_rng(m)
        a, b = (rng.integers(-3, 4, shape).astype("float32") for shape in [(m, k), (n, k)])
        for name, form in stages(function).items():
            if name not in ("raster_tiles", "lower_block_loops", "widen_accesses"):
                continue
            helve.testing.assert_round_trip(form)
            c = np.full((m, n), 7, "float32")
            helve.testing.interpret(form, a, b, c, check="all" if name == "raster_tiles" else "fences")
            np.testing.assert_array_equal(c, a @ b.T, err_msg=f"{name} {m, n, k}")


def causal(blocks=BLOCKS, bm=16):
    """Turns of unequal work, whose order may be one that balances it."""
    N = T.dyn("N")

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((64, N), "float32")):
        with T.Kernel(blocks, threads=32):
            a = T.alloc_shared((bm, bm), "float32")
            for i, h in T.Persistent([T.ceildiv(N, bm), 64]):
                for j in T.serial(i + 1):
                    T.copy(A[i * bm : i * bm + bm, j * bm : j * bm + bm], a)
                    for k in T.Parallel(bm):
                        B[h, i * bm + k] = a[k, 0]

    return main


def cores():
    @T.prim_func(mesh=T.Mesh((1, 2)))
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, 2, threads=32) as (r, c):
            x = T.alloc_shared((8, 8), "float32")
            for i, j in T.Persistent([8, 4]):
                T.copy(A[i * 8 : i * 8 + 8, c * 32 + j * 8 : c * 32 + j * 8 + 8], x)
                T.copy(x, B[i * 8 : i * 8 + 8, c * 32 + j * 8 : c * 32 + j * 8 + 8])

    return main


def test_what_keeps_its_order():
    unchanged = [causal(), product(blocks=32), product(shape=(16, 1024, 8), swapped=True)]
    for function in unchanged:
        assert "for tile in" not in rastered(function)
    assert "for tile in" not in rastered(cores(), mesh=helve.Mesh((1, 2)))

    @T.prim_func
    def copied(A: T.Tensor((512, 512), "float32"), B: T.Tensor((512, 512), "float32")):
        with T.Kernel(BLOCKS, threads=32):
            x = T.alloc_shared((16, 16), "float32")
            for i, j in T.Persistent([32, 32]):  # nothing is read twice
                T.copy(A[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16], x)
                T.copy(x, B[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16])

    assert "for tile in" not in rastered(copied)


def test_it_is_told():
    kernel = helve.compile(product(), target="cuda", arch="sm_90a")
    assert "tiles in groups of 8" in [each.schedule for each in kernel.schedules() if each.operation == "T.Persistent"]
