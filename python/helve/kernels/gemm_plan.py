"""Tiles of a product for a machine.

A tile of C costs its multiplications, and the loading of its factors, which grows with its edges; tiles are taken in
waves of as many as there are multiprocessors. The plan is that of the least sum of both over all waves. Where K is
known, it may be divided among several blocks for each tile, if what that saves is more than what their sums cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from helve import T, _core
from helve.kernels.rows import check_arguments

FACTORS = {"bfloat16": 2, "float16": 2, "float8_e4m3": 1, "float8_e5m2": 1}  # bytes of an element
OUTPUTS = ("bfloat16", "float16", "float32")
# Rows and columns of C. A warpgroup has 64 rows in registers, or 128 of the tile of 256.
TILES = [(128, 256), (256, 128), (128, 192), (128, 128), (64, 256), (128, 64), (64, 128), (64, 64)]
LARGEST = TILES[:2]
# Of one product with more rows than few: where the others would leave much of the last wave empty.
BETWEEN = [(192, 128), (128, 160)]
# What a call with such a number of rows compares with the largest.
COMPARED = [(192, 128), (128, 128)]
LEAST = 128 * 128  # of its area
LEAST_ROWS = 64
EDGE = 48  # what an element of an edge costs, in elements of the area
# Of few rows, factors come from memory and not from the cache that multiprocessors share: a term of a tile then costs
# as much at least, and more for each row and column.
FEW = 256
WAIT, READ = 12_500, 160
# What else decides how K is divided, in the same measure: of 16 bits, about four elements of the area a picosecond.
LAUNCH = 16_000_000  # the launch that adds the parts
PART = 28  # an element of a part, stored and loaded
LOAD = 2  # an element of a factor, which all multiprocessors together load no faster
MOST_PARTS = 16
LARGE = 8192  # what an extent that is not known counts as
# Up to which results of a number of rows that is not known have tiles of their own.
FEW_ROWS = (64, 128, 256, 384, 512, 1024)
# Where products are those of warps, of 64 x 64 results each: a tile of four, two blocks a multiprocessor, so that the
# products of one go on while the other copies and waits.
OF_WARPS = (128, 128)
RESIDENT_OF_WARPS = 2
FEWEST_STAGES = 3
SUMS = 128  # of a thread, in registers
STAGES = 4
MOST_STAGES = 8
IN_FLIGHT = 144 * 1024  # bytes of factors under way that hide the latency of memory, for a block that runs alone
LEAST_DEPTH = 32  # bytes of a row of a factor that a product of the hardware takes
ROW_BYTES = 128  # of a tile of a factor, which a swizzle covers
RESERVED = 2 * 1024  # bytes of a block that factors leave to others
WARPGROUP = 128
PAIR = 2  # blocks of a cluster


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """A division of products among blocks.

    Attributes:
        rows: rows of a tile of C.
        columns: columns of a tile of C.
        depth: terms of each sum that are multiplied at a time.
        threads: threads per block.
        stages: tiles of the factors in shared memory; the compiler takes fewer where there is no room.
        blocks: blocks that take tiles in turn.
        cluster: of these, neighbours whose tiles have the same columns, so that each copies a part of B for all.
        split: parts of K, which blocks sum for themselves.
        why: what decided: how the tiles fill the machine, and how much more the next best division costs.
    """

    rows: int
    columns: int
    depth: int
    threads: int
    stages: int
    blocks: int
    cluster: int
    split: int = 1
    why: str = field(default="", compare=False)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns


def plan_gemm(M: int | None, N: int | None, dtype: str, count: int | None = 1, *, K: int | None = None,
              arch: str = "sm_90a", tile: tuple[int, int] | None = None, depth: int | None = None,
              threads: int | None = None, stages: int | None = None, blocks: int | None = None,
              cluster: int | None = None, split: int | None = None) -> GemmPlan:
    """The division for results of (M, N).

    Args:
        M: rows of C; None, here and for others: many.
        N: columns of C.
        dtype: of the factors.
        count: products of a batch.
        K: terms of a sum, where they are known; what it decides is `cluster` and `split`.
        arch: the architecture that is planned for; the kernel runs on others too.
        tile: rows and columns of a tile of C, multiples of 16.
        depth: terms that are multiplied at a time, a multiple of 32 bytes; by default 128 bytes.
        threads: threads per block, a multiple of 32.
        stages: tiles of the factors in shared memory; by default 4, or up to 8 of small tiles where no other block
            shares the multiprocessor.
        blocks: blocks that take tiles in turn; by default as many as run at the same time, and no more than tiles.
        cluster: blocks that copy tiles of B for each other, a divisor of `blocks`. The default is 1, or 2 where that is
            faster as measured: where rows of K terms begin between lines of 128 bytes, so that copies read more than
            they bring, tiles of B are no smaller than those of A, the tiles of C fill the machine, and at most a tenth
            of them is lost to pairs, on an architecture with clusters and products of warpgroups.
        split: parts of K, each of whole steps of `depth` terms, which blocks sum for themselves in scratch memory of
            (split, M, N) float32; 1 for a batch. The default is 1 where K is not known or tiles of C fill the machine,
            else that of the least cost, up to 16.

    Raises:
        ValueError: an argument is out of its range.
    """
    machine = machine_of(arch)
    check_arguments(threads=threads, stages=stages, blocks=blocks, cluster=cluster, split=split, depth=depth)
    check_tile(tile)
    if depth and depth * FACTORS[dtype] % LEAST_DEPTH:
        raise ValueError(f"depth is a multiple of {LEAST_DEPTH // FACTORS[dtype]}, not {depth}")
    if count != 1 and split not in (None, 1):
        raise ValueError(f"split is 1 for a batch, not {split}")
    rows_of_all, columns_of_all, products = (LARGE if each is None else each for each in (M, N, count))

    def tiles(rows: int, columns: int) -> int:
        return products * -(-rows_of_all // rows) * -(-columns_of_all // columns)

    shared_by = RESIDENT_OF_WARPS if not machine.group_products else 1  # blocks that a multiprocessor is to hold
    room = machine.shared_bytes // shared_by - RESERVED
    if depth is None:
        depth = ROW_BYTES // FACTORS[dtype]
        if shared_by > 1 and FEWEST_STAGES * sum(tile or OF_WARPS) * ROW_BYTES > room:
            depth //= 2
    steps = max(1, -(-(LARGE if K is None else K) // depth))

    def work(shape: tuple[int, int], parts: int) -> int:
        waves = -(-tiles(*shape) * parts // machine.processors)
        term = term_of(*shape)
        if rows_of_all <= FEW:
            term = max(term, WAIT + READ * (min(shape[0], rows_of_all) + shape[1]))
        return waves * -(-steps // parts) * depth * term

    def cost(choice: tuple[int, tuple[int, int]]) -> int:
        parts, shape = choice
        least = LOAD * (rows_of_all + columns_of_all) * steps * depth
        added = LAUNCH + PART * parts * rows_of_all * columns_of_all if parts > 1 else 0
        return max(work(shape, parts), least) + added * FACTORS["bfloat16"] // FACTORS[dtype]

    def usual(rows: int, columns: int) -> int:
        if not machine.group_products:
            return WARPGROUP * -(-rows * columns // (OF_WARPS[0] * OF_WARPS[1]))
        return WARPGROUP * (2 if rows % 128 == 0 else 3 if rows % 192 == 0 else 1)

    def is_held(rows: int, columns: int) -> bool:
        return rows * columns <= SUMS * (usual(rows, columns) if machine.group_products else WARPGROUP)

    known = (BETWEEN if count == 1 and rows_of_all > FEW else []) + TILES
    fit = [tile] if tile else [each for each in known if is_held(*each) and each[0] < rows_of_all + LEAST_ROWS]
    divisions = range(1, 1 + (1 if K is None or count != 1 else min(MOST_PARTS, steps))) if split is None else [split]
    choices = sorted(((parts, shape) for parts in divisions for shape in fit),
                     key=lambda each: (cost(each), work(each[1], each[0])))
    split, (rows, columns) = choices[0]
    why = (_filling(tiles(rows, columns) * split, machine.processors)
           + _against([(each, cost(each)) for each in choices]))
    threads = threads or usual(rows, columns)
    slot = (rows + columns) * depth * FACTORS[dtype]
    alone = tiles(rows, columns) * split <= machine.processors
    hidden = max(STAGES, min(MOST_STAGES, IN_FLIGHT // slot)) if alone else STAGES
    most = machine.shared_bytes - RESERVED if alone else room
    stages = stages or max(1, min(hidden, most // slot))
    slots = stages * slot + RESERVED
    resident = max(1, machine.shared_bytes // slots)
    high = -(-rows_of_all // rows)
    can = machine.group_products and machine.cluster_blocks >= PAIR
    between_lines = K is not None and K * FACTORS[dtype] % ROW_BYTES != 0
    pairs = can and between_lines and rows <= columns and not alone and 10 * (high % PAIR) <= high
    cluster = cluster or (PAIR if pairs and (blocks is None or blocks % PAIR == 0) else 1)
    check_cluster(cluster, blocks, machine, arch)
    at_a_time = max(1, machine.processors * resident // cluster) * cluster
    wanted = split * products * -(-high // cluster) * cluster * -(-columns_of_all // columns)
    blocks = blocks or (at_a_time if None in (M, N, count) else min(wanted, at_a_time))
    return GemmPlan(rows, columns, depth, threads, stages, blocks, cluster, split, why)


def _filling(tiles: int, processors: int) -> str:
    waves = -(-tiles // processors)
    return (f"{tiles} tile{'' if tiles == 1 else 's'} for {processors} multiprocessors: {waves} for the busiest, "
            f"{tiles / processors:.1f} in the mean")


def _against(choices: list[tuple[tuple[int, tuple[int, int]], int]]) -> str:
    """What the best choice costs that costs more than the first one, if there is one."""
    best = choices[0][1]
    for (parts, (rows, columns)), cost in choices:
        if cost > best > 0:
            divided = f", K in {parts} parts," if parts > 1 else ""
            return f"; tiles of {rows} x {columns}{divided} would take {cost / best:.2f} times as long"
    return ""


def plans_by_rows(M: int | None, N: int | None, dtype: str, **tuning) -> list[tuple[int | None, GemmPlan]]:
    """Plans, and the rows up to which each is the right one: of as few as there are tiles for them, and of many last.

    Args:
        M: rows of C; None for as many as a call has, where N is known. Known rows have one plan.
        N: columns of C.
        dtype: of the factors.
        tuning: other parameters of `plan_gemm`. A tile that is given is that of all rows.

    Raises:
        ValueError: an argument is out of its range.
    """
    steps = (None,) if M is not None or N is None or "tile" in tuning else (*FEW_ROWS, None)
    return distinct(steps, lambda most: plan_gemm(M if most is None else most, N, dtype, **tuning),
                    lambda plan: (plan.tile, plan.split))


def choices_by_rows(M: int | None, N: int | None, dtype: str, **tuning) -> list[tuple[Callable, GemmPlan]]:
    """The plans of `plans_by_rows`, each with a condition on a call's rows, of which the first that holds decides.

    Between few rows and very many, tiles of the largest area may leave much of the last wave empty. There the call
    compares tiles, by the waves that its rows take. Arguments and errors are those of `plans_by_rows`.
    """
    *few, (_, many) = plans_by_rows(M, N, dtype, **tuning)
    compared = [many]
    if few and many.tile in LARGEST and many.cluster == many.split == 1 and tuning.get("count", 1) == 1:
        few = [(most, plan) for most, plan in few if most <= FEW or plan.split > 1 or plan.rows * plan.columns < LEAST]
        compared = [*(plan_gemm(None, N, dtype, **{**tuning, "tile": tile}) for tile in COMPARED), many]
    choices = [(functools.partial(at_most, most), plan) for most, plan in few]
    following = zip(compared, [*compared[1:], many])
    return choices + [(functools.partial(is_soonest, plan, next_one, many, N), plan) for plan, next_one in following]


def at_most(most: int, M):
    """Is a call of M rows one of as few?"""
    return M <= most


def is_soonest(plan: GemmPlan, one: GemmPlan, other: GemmPlan, N: int | None, M):
    """Do the tiles of a plan take no more than those of two others, for M rows?"""
    return waves_of(plan, N, M) <= waves_of(one, N, M) and waves_of(plan, N, M) <= waves_of(other, N, M)


def waves_of(plan: GemmPlan, N: int, M):
    """What all tiles take, as `plan_gemm` counts: a number or an expression, as M is."""
    waves = T.ceildiv(T.ceildiv(M, plan.rows) * T.ceildiv(N, plan.columns), plan.blocks)
    return waves * term_of(plan.rows, plan.columns)


def term_of(rows: int, columns: int) -> int:
    """What a term of the sums of a tile takes, in multiplications: its own, and the loading of its factors."""
    return rows * columns + EDGE * (rows + columns)


def distinct(steps: Iterable[int | None], plan_of: Callable, key: Callable) -> list[tuple[int | None, Any]]:
    """The plans of ascending steps; of neighbours with one key the last, which serves the others as well."""
    plans: list[tuple[int | None, Any]] = []
    for most in steps:
        plan = plan_of(most)
        if plans and key(plan) == key(plans[-1][1]):
            del plans[-1]
        plans.append((most, plan))
    return plans


def machine_of(arch: str) -> _core.Machine:
    """The machine of an architecture; a ValueError if it is none."""
    machine = _core.gpu_machine(arch)
    if machine is None:
        raise ValueError(f"arch is an architecture such as 'sm_90a', not {arch!r}")
    return machine


def check_cluster(cluster: int, blocks: int | None, machine: _core.Machine, arch: str) -> None:
    """Raises a ValueError for clusters that the machine does not have, or that do not divide the blocks."""
    if cluster > machine.cluster_blocks:
        raise ValueError(f"cluster is at most {machine.cluster_blocks} on {arch}, not {cluster}")
    if blocks and blocks % cluster != 0:
        raise ValueError(f"blocks is a multiple of cluster, {cluster}, not {blocks}")


def check_tile(tile: object) -> None:
    """Raises a ValueError for what is no tile of a product: None, or rows and columns."""
    good = tile is None or (isinstance(tile, tuple | list) and len(tile) == 2
                            and all(isinstance(each, Integral) and each >= 1 for each in tile))
    if not good:
        raise ValueError(f"tile is rows and columns, two whole numbers of 1 or more, not {tile!r}")


def check_gemm(dtype: str, out: str | None, transpose_A: bool, transpose_B: bool, activation: str | Callable | None,
               known: Iterable[str | None]) -> None:
    """Raises a ValueError for what no product of the library is."""
    if dtype not in FACTORS:
        raise ValueError(f"dtype is one of {', '.join(FACTORS)}, not {dtype!r}")
    if out is not None and out not in OUTPUTS:
        raise ValueError(f"out is one of {', '.join(OUTPUTS)}, not {out!r}")
    if FACTORS[dtype] == 1 and (transpose_A or not transpose_B):
        raise ValueError(f"factors of {dtype} have K as their last dimension: transpose_B, and not transpose_A")
    if not callable(activation) and activation not in known:
        names = ", ".join(repr(name) for name in known if name)
        raise ValueError(f"activation is {names}, a function or None, not {activation!r}")
