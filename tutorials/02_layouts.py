"""Layouts: one matrix on a mesh of devices, in shared memory, in the registers of warps and in tensor memory.

A layout maps the index of an element to all places where it is stored. This tutorial shards a matrix over devices,
finds a swizzle for a tile of it, distributes the tile over the lanes of a warp, builds the tile of four warps from
that, and places an accumulator in a memory of lanes and columns; every step is checked against NumPy.

Run it: ``python tutorials/02_layouts.py``
"""

# %% A matrix on a mesh
import numpy as np

import helve
from helve.dist import distribution
from helve.layout import S, TCol, TLane, bank_conflicts, choose_swizzle, laneid, m, outer_of, reg, tile, warpid


def scatter(matrix, placement):
    """The blocks of every device, as one array of shape mesh + block. Padding stays 0."""
    rows, columns = np.indices(matrix.shape)
    index = rows * placement.domain[1] + columns  # the flat index in the domain: whole blocks
    where = placement.layout.apply_many(index)
    axes = [helve.axis(name, "device") for name in placement.mesh.names]
    blocks = np.zeros((*placement.mesh.shape, int(np.prod(placement.block))), matrix.dtype)
    copies = max(array.ndim for array in where.values()) - matrix.ndim  # 1 when there are replicas
    values = matrix[..., None] if copies else matrix
    blocks[(*(where[axis] for axis in axes), where[m])] = values
    return blocks.reshape(*placement.mesh.shape, *placement.block)


def spread_over_devices():
    matrix = np.arange(1, 7 * 10 + 1).reshape(7, 10)
    mesh = helve.Mesh((2, 3))
    for notation in ("ij -> i j", "ij -> j i", "ij -> i *", "ij -> * 0"):
        placement = distribution(notation, matrix.shape, mesh)
        blocks = scatter(matrix, placement)
        for device in np.ndindex(mesh.shape):
            begin, extents = placement.local_begin(device), placement.local_shape(device)
            if begin is None or extents is None:
                assert not blocks[device].any(), "a device off coordinate 0 holds nothing"
                continue
            (i, j), (m, n) = begin, extents
            assert (blocks[device][:m, :n] == matrix[i : i + m, j : j + n]).all()
        print(f"{notation:10} {placement.layout}")


# %% A tile in shared memory
def avoid_bank_conflicts():
    rows, columns = 16, 40  # 2-byte elements, read 8 (16 bytes) a lane by ldmatrix
    plain = S[(rows, columns) : (columns, 1)]
    choice = choose_swizzle(rows, columns, element_bytes=2, width=8)
    tile = plain ^ choice.swizzle if choice.swizzle else plain
    column = [row * columns + 8 for row in range(rows)]
    print(f"rows of {columns}: {choice}")
    assert bank_conflicts(tile, column, element_bytes=2, width=8).depth == 1

    columns = 64
    plain = S[(rows, columns) : (columns, 1)]
    choice = choose_swizzle(rows, columns, element_bytes=2, width=8)
    print(f"rows of {columns}: {choice}")
    tile = plain ^ choice.swizzle
    addresses = tile.apply_many(np.arange(tile.size()))[m]
    assert sorted(addresses) == list(range(tile.size())), "the swizzle permutes the addresses of the tile"
    column = [row * columns + 8 for row in range(8)]
    print(bank_conflicts(tile, column, element_bytes=2, width=8))


# %% A tile in registers
def deal_out_to_lanes():
    """The accumulator of mma.m16n8: lane 4 * (row % 8) + column // 2 holds four elements."""
    fragment = S[(2, 8, 4, 2) : (2@reg, 4@laneid, 1@laneid, 1@reg)]  # fmt: skip
    where = fragment.apply_many(np.arange(16 * 8).reshape(16, 8))
    rows, columns = np.indices((16, 8))
    assert (where[laneid] == rows % 8 * 4 + columns // 2).all()
    assert (where[reg] == rows // 8 * 2 + columns % 2).all()
    for lane in range(32):
        held = [fragment.inverse({laneid: lane, reg: register}, (16, 8)) for register in range(4)]
        assert all(where[laneid][at] == lane for at in held)
    print(f"fragment   {fragment}")
    print(f"lane 5     {[fragment.inverse({laneid: 5, reg: register}, (16, 8)) for register in range(4)]}")


# %% Tiles of tiles
def tile_over_warps():
    """Four warps, 2 x 2, each with two of these fragments side by side: a 32 x 32 tile."""
    fragment = S[(2, 8, 4, 2) : (2@reg, 4@laneid, 1@laneid, 1@reg)]  # fmt: skip
    pair = tile(S[2 : 1@reg], (1, 2), fragment, (16, 8))  # fmt: skip
    warps = S[(2, 2) : (2@warpid, 1@warpid)]  # fmt: skip
    whole = tile(warps, (2, 2), pair, (16, 16))
    where = whole.apply_many(np.arange(32 * 32).reshape(32, 32))
    rows, columns = np.indices((32, 32))
    assert (where[warpid] == rows // 16 * 2 + columns // 16).all()
    assert (where[laneid] == rows % 8 * 4 + columns % 8 // 2).all()
    assert (where[reg] == columns % 16 // 8 * 4 + rows % 16 // 8 * 2 + columns % 2).all()
    assert outer_of(whole, (32, 32), pair, (16, 16)) == warps, "the outer layout is recovered"
    print(f"tile       {whole}")


# %% A memory of lanes and columns
def place_in_tensor_memory():
    """A 256 x 112 accumulator: 128 rows on the lanes, the other 128 in the columns beside them."""
    accumulator = S[(2, 128, 112) : (112@TCol, 1@TLane, 1@TCol)]  # fmt: skip
    where = accumulator.apply_many(np.arange(256 * 112).reshape(256, 112))
    rows, columns = np.indices((256, 112))
    assert (where[TLane] == rows % 128).all() and (where[TCol] == rows // 128 * 112 + columns).all()
    lower = accumulator.slice([(128, 256), (0, 112)], (256, 112))
    print(f"lower half {lower}, {accumulator.span(TCol)} columns in all")


# %% All of it
def main():
    spread_over_devices()
    avoid_bank_conflicts()
    deal_out_to_lanes()
    tile_over_warps()
    place_in_tensor_memory()


if __name__ == "__main__":
    main()
