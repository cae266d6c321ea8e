"""Tiles of attention for a machine.

A block keeps a tile of queries, with their sums in registers, and reads keys and values tile by tile. More keys a tile
are longer products; what bounds them is the registers of scores and sums, and shared memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from helve import _core
from helve.kernels.rows import check_arguments

DTYPES = ("bfloat16", "float16")
HEADS = (64, 128, 256)
QUERIES = 128  # two warpgroups of 64
THREADS = 256
KEYS = {64: 128, 128: 128, 256: 64}  # by head, for products of warpgroups
KEYS_OF_WARPS = {64: 64, 128: 64, 256: 16}
STAGES = 2


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """A division of attention among blocks.

    Attributes:
        queries: rows of a tile of queries.
        keys: rows of a tile of keys and of one of values.
        threads: threads per block.
        stages: tiles of keys and of values in shared memory; the compiler takes fewer where there is no room.
        blocks: blocks that take tiles of queries in turn.
        registers: do weights stay in registers between the two products? Products of warps need them in shared memory.
    """

    queries: int
    keys: int
    threads: int
    stages: int
    blocks: int
    registers: bool


def plan_attention(head: int, *, arch: str = "sm_90a", queries: int | None = None, keys: int | None = None,
                   threads: int | None = None, stages: int | None = None, blocks: int | None = None) -> AttentionPlan:
    """The division for heads of `head` elements.

    Args:
        head: elements of a query.
        arch: the architecture that is planned for; what is planned for "sm_80" runs on later ones too.
        queries: rows of a tile of queries, a multiple of 64.
        keys: rows of a tile of keys, a multiple of 16.
        threads: threads per block, a multiple of 128.
        stages: tiles of keys and of values in shared memory, 2 by default.
        blocks: blocks that take tiles in turn, by default one a multiprocessor.

    Raises:
        ValueError: an argument is out of its range.
    """
    machine = _core.gpu_machine(arch)
    if machine is None:
        raise ValueError(f"arch is an architecture such as 'sm_90a', not {arch!r}")
    check_arguments(queries=queries, keys=keys, threads=threads, stages=stages, blocks=blocks)
    registers = bool(machine.group_products)
    keys = keys or (KEYS if registers else KEYS_OF_WARPS)[head]
    return AttentionPlan(queries or QUERIES, keys, threads or THREADS, stages or STAGES, blocks or machine.processors,
                         registers)


def check_attention(heads: int, heads_kv: int | None, head: int, dtype: str, scale: float | None) -> None:
    """Raises a ValueError for what no attention of the library is."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    if head not in HEADS:
        raise ValueError(f"head is one of {', '.join(map(str, HEADS))}, not {head!r}")
    check_arguments(heads=heads, heads_kv=heads_kv)
    if heads_kv is not None and heads % heads_kv:
        raise ValueError(f"heads is a multiple of heads_kv, and {heads} is none of {heads_kv}")
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is a positive number, not {scale!r}")
