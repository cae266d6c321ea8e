"""Tiles of a product with weights of four bits.

Few rows of X: time is that of reading the weights, and of converting them, which all multiprocessors have to share; so
a sum is split where there are few tiles. Many rows: that of the products, and tiles are as large as registers allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

from helve.kernels.gemm_plan import check_cluster, check_tile, distinct, machine_of
from helve.kernels.rows import check_arguments

DTYPES = ("bfloat16", "float16")
UNIT = 32  # weights of a row that fill 16 bytes, the least that TMA copies
MANY = 8192  # rows that are not known count as
# Rows of W, and rows of X, of a tile of C^T; a warpgroup has 64 of the former in registers.
TILES = [(64, 8), (64, 16), (64, 32), (128, 32), (128, 64), (128, 128), (128, 256)]
# What a row of W and one of X cost beside their products, in elements of the tile: the former's weights are converted
# by threads, the latter's bytes are four times as many.
WEIGHT, ROW = 50, 80
SEVERAL = 64  # rows of X from which on a tile may have fewer than there are
FEW_ROWS = (8, 16, 32, 64, 128, 256, 512)  # up to which there are kernels for rows of the call
DEPTHS = (256, 128, 64, 32)  # terms that are multiplied at a time
WARPGROUP = 128
LEAST_STAGES, MOST_STAGES = 2, 8
PADDING = 8  # elements of 16 bits between rows of shared memory, for which neighbours have other banks
RESERVED = 2 * 1024  # bytes of a block that rings and the driver take
SMALL_BLOCKS = 3  # of one warpgroup, that run side by side
STAGED = 64  # rows of X from which on C leaves through shared memory
PART = 12  # bytes that an element of a part of a sum is written, read and stored with, over those of a weight
FEW_TURNS = 4  # tiles of K below which a part of a sum does not fill its ring
BOX = 1024  # rows of X times terms of a tile: so many bytes has each half of it, and no ring is filled with fewer
DEEPEST = 128 * 128  # the most of these of which several tiles fit shared memory
WIDEST_OF_WARPS = 128  # rows of X where warps keep their factors in registers beside the sums


@dataclass(frozen=True, slots=True)
class W4A16Plan:
    """A division of C^T = W @ X^T among blocks.

    Attributes:
        rows: rows of a tile of W.
        columns: rows of a tile of X.
        depth: terms of each sum that a block has at a time.
        threads: threads per block.
        stages: tiles of the factors in shared memory; the compiler takes fewer where there is no room.
        split: parts of a sum, which a second launch adds.
        blocks: blocks that take tiles in turn.
        cluster: of these, neighbours with different rows of W, which copy tiles of X for each other.
        registers: do converted weights stay in registers?
        scales: has each half of the terms one scale a row, which registers hold?
        staged: does C leave through shared memory?
    """

    rows: int
    columns: int
    depth: int
    threads: int
    stages: int
    split: int
    blocks: int
    cluster: int
    registers: bool
    scales: bool
    staged: bool

    @property
    def half(self) -> int:
        """Terms that are converted while as many are multiplied."""
        return self.depth // 2


def plan_w4a16(M: int | None, N: int, K: int, group: int = 128, *, arch: str = "sm_90a",
               tile: tuple[int, int] | None = None, depth: int | None = None, threads: int | None = None,
               stages: int | None = None, split: int | None = None, blocks: int | None = None,
               cluster: int | None = None) -> W4A16Plan:
    """The division for C of (M, N).

    Args:
        M: rows of X; None for many.
        N: rows of W.
        K: terms of a sum.
        group: weights that share a scale.
        arch: the architecture that is planned for; what is planned for "sm_80" runs on later ones too.
        tile: rows of W, a multiple of 64, and rows of X, a multiple of 8, of a tile.
        depth: terms of which a half is multiplied while the other is converted, 32 to 256; by default the largest that
            divides K, and divides `group` or is a multiple of it, up to 256 for tiles of up to 64 rows of X.
        threads: threads per block, a multiple of 128; by default two for a row of W.
        stages: tiles of the factors in shared memory; by default as many as fit, up to 8.
        split: parts of a sum, a divisor of the tiles of K; by default 1, or as many as the multiprocessors have room
            for where there are few tiles.
        blocks: blocks that take tiles in turn; by default as many as run at the same time, and no more than tiles.
        cluster: blocks that copy tiles of X for each other, a divisor of `blocks`; 1 by default.

    Raises:
        ValueError: an argument is out of its range.
    """
    machine = machine_of(arch)
    check_arguments(threads=threads, stages=stages, blocks=blocks, cluster=cluster, split=split, depth=depth)
    check_tile(tile)
    groups = machine.group_products  # are there products of warpgroups?
    high = MANY if M is None else M

    def tiles(rows: int, columns: int) -> int:
        return -(-N // rows) * -(-high // columns)

    def resident(rows: int, columns: int) -> int:
        return 1 if (threads or 2 * rows) > WARPGROUP else SMALL_BLOCKS - (columns >= STAGED)

    def most_parts(rows: int, columns: int) -> int:
        room = machine.processors * resident(rows, columns)
        return max(1, min(room // tiles(rows, columns), K // (PART * min(high, columns))))

    def cost(shape: tuple[int, int]) -> float:
        parts = most_parts(*shape) if shape[1] >= SEVERAL else 1
        term = shape[0] * shape[1] + WEIGHT * shape[0] + ROW * shape[1]
        return -(-tiles(*shape) * parts // machine.processors) * term / parts

    depths = [each for each in DEPTHS[not groups :] if fits(each, K, group)] if depth is None else [depth]
    check_depth(depths[0] if depths else 0, K, group)
    fitting = [each for each in TILES if each[1] * depths[0] >= BOX and (groups or each[1] <= WIDEST_OF_WARPS)]
    wide = next((columns for _, columns in fitting if columns >= high), fitting[-1][1])
    several = [each for each in fitting if each[1] == wide or each[1] >= SEVERAL < high]
    rows, columns = tile or min(several, key=cost)
    check_shape(rows, columns, threads)
    threads = threads or 2 * rows
    depth = next((each for each in depths if each * columns <= DEEPEST), depths[-1])
    slot = rows * depth // 2 + columns * depth * 2
    staged = columns >= STAGED and N % 8 == 0
    memory = machine.shared_bytes // resident(rows, columns) - RESERVED - staged * columns * (rows + PADDING) * 2
    memory -= 0 if groups else rows * depth * 2  # converted weights
    stages = stages or max(LEAST_STAGES, min(MOST_STAGES, memory // slot))
    turns = K // depth
    most = max(1, min(most_parts(rows, columns), turns // FEW_TURNS))
    split = split or next(each for each in range(most, 0, -1) if turns % each == 0)
    if turns % split:
        raise ValueError(f"split is a divisor of the {turns} tiles of K, not {split}")
    cluster = cluster or 1
    check_cluster(cluster, blocks, machine, arch)
    room = machine.processors * resident(rows, columns)
    blocks = blocks or -(-min(split * tiles(rows, columns), room) // cluster) * cluster
    return W4A16Plan(rows, columns, depth, threads, stages, split, blocks, cluster, groups,
                     group % (depth // 2) == 0, staged)


def plans_by_rows(M: int | None, N: int, K: int, group: int, **tuning) -> list[tuple[int | None, W4A16Plan]]:
    """Plans, and the rows of X up to which each is the right one: of as few as there are tiles for them, and of many
    last.

    Args:
        M: rows of X; None for as many as a call has. Known rows have one plan.
        N: rows of W.
        K: terms of a sum.
        group: weights that share a scale.
        tuning: other parameters of `plan_w4a16`. A tile that is given is that of all rows.

    Raises:
        ValueError: an argument is out of its range.
    """
    steps = (None,) if M is not None or "tile" in tuning else (*FEW_ROWS, None)
    return distinct(steps, lambda most: plan_w4a16(M if most is None else most, N, K, group, **tuning),
                    lambda plan: replace(plan, blocks=0))


def check_shape(rows: int, columns: int, threads: int | None) -> None:
    """Raises a ValueError for a tile that no product of warpgroups has."""
    if rows % 64 or not 64 <= rows <= 512:
        raise ValueError(f"tile has a multiple of 64 rows of W, up to 512, not {rows!r}")
    if threads and (threads % WARPGROUP or threads > 2 * rows):
        raise ValueError(f"threads is a multiple of {WARPGROUP} up to two for each of {rows} rows of W, not {threads}")
    if columns % 8 or not 8 <= columns <= 256:
        raise ValueError(f"tile has a multiple of 8 rows of X, up to 256, not {columns!r}")


def fits(depth: int, K: int, group: int) -> bool:
    """Does a sum consist of whole tiles of K, and a tile of whole groups, or a group of whole tiles?"""
    return K % depth == 0 and (group % depth == 0 or depth % group == 0)


def check_depth(depth: int, K: int, group: int) -> None:
    """Raises a ValueError for tiles of K that do not fit."""
    if depth not in DEPTHS or not fits(depth, K, group):
        raise ValueError(f"depth is 32, 64, 128 or 256, divides K, {K}, and divides or is a multiple of group, "
                         f"{group}, not {depth!r}")


def check_w4a16(N: int, K: int, dtype: str, group: int, scales: str | None) -> None:
    """Raises a ValueError for what no product of the library is."""
    check_arguments(N=N, K=K)
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    if scales not in (None, dtype, "float32"):
        raise ValueError(f"scales is {dtype} or float32, not {scales!r}")
    if not isinstance(group, Integral) or group < UNIT or group % UNIT:
        raise ValueError(f"group is a multiple of {UNIT}, not {group!r}")
    if K % group:
        raise ValueError(f"K is a multiple of group, {group}, not {K}")
