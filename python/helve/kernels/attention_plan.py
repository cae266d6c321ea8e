"""Tiles of attention for a machine.

A block keeps a tile of queries, with their sums in registers, and reads keys and values tile by tile. More keys a tile
are longer products; what bounds them is the registers of scores and sums, and shared memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from helve import _core
from helve.kernels.rows import check_arguments

DTYPES = ("bfloat16", "float16", "float32")
HEADS = (64, 128, 256)
QUERIES = 128  # two warpgroups of 64
QUERIES_OF_THREADS = 64
THREADS = 256
STAGES = 2
# Keys of a tile by head, for products of warpgroups, of warps, and of threads without tensor cores (float32).
KEYS = {"warpgroups": {64: 128, 128: 128, 256: 64}, "warps": {64: 64, 128: 64, 256: 16},
        "threads": {64: 32, 128: 32, 256: 16}}
# Of gradients by head, for tiles of queries and for tiles of keys: rows of the tile whose gradient is summed, rows of
# the tiles that it is summed over, threads, stages. Larger ones spill registers.
BACKWARD = {"warpgroups": {64: {"queries": (128, 128, 256, 2), "keys": (192, 32, 384, 2)},
                           128: {"queries": (128, 128, 256, 2), "keys": (128, 48, 256, 3)}},
            "warps": {64: dict.fromkeys(("queries", "keys"), (64, 32, 128, 2)),
                      128: dict.fromkeys(("queries", "keys"), (64, 32, 256, 2))},
            "threads": {64: dict.fromkeys(("queries", "keys"), (64, 16, 256, 2)),
                        128: dict.fromkeys(("queries", "keys"), (64, 16, 256, 2))}}


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
        dispatch: of the products: tensor cores, but for float32, of which they would leave out 13 bits.
    """

    queries: int
    keys: int
    threads: int
    stages: int
    blocks: int
    registers: bool
    dispatch: str


@dataclass(frozen=True, slots=True)
class BackwardPlan:
    """A division among blocks of the gradient of queries, or of that of keys and values.

    Attributes:
        rows: of the tile whose gradient a block sums.
        columns: rows of the tiles that it sums over.
        threads: threads per block.
        stages: of those tiles in shared memory.
        registers: as in `AttentionPlan`.
        dispatch: as in `AttentionPlan`.
    """

    rows: int
    columns: int
    threads: int
    stages: int
    registers: bool
    dispatch: str


def plan_attention(head: int, dtype: str = "bfloat16", *, arch: str = "sm_90a", queries: int | None = None,
                   keys: int | None = None, threads: int | None = None, stages: int | None = None,
                   blocks: int | None = None) -> AttentionPlan:
    """The division for heads of `head` elements.

    Args:
        head: elements of a query.
        dtype: of queries, keys and values.
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
    by = _multiplied_by(machine, dtype)
    return AttentionPlan(queries or (QUERIES_OF_THREADS if by == "threads" else QUERIES), keys or KEYS[by][head],
                         threads or THREADS, stages or STAGES, blocks or machine.processors, by == "warpgroups",
                         _dispatch(by))


def plan_attention_backward(head: int, dtype: str = "bfloat16", of: str = "queries", *, arch: str = "sm_90a",
                            rows: int | None = None, columns: int | None = None, threads: int | None = None,
                            stages: int | None = None) -> BackwardPlan:
    """The division of a gradient for heads of `head` elements.

    Args:
        head: elements of a query, 64 or 128.
        dtype: of queries, keys and values.
        of: whose gradient, "queries" or "keys" (and values).
        arch: as in `plan_attention`.
        rows: of the tile whose gradient a block sums, a multiple of 64.
        columns: rows of the tiles that it sums over, a multiple of 16.
        threads: threads per block, a multiple of 128.
        stages: of those tiles in shared memory.

    Raises:
        ValueError: an argument is out of its range.
    """
    machine = _core.gpu_machine(arch)
    if machine is None:
        raise ValueError(f"arch is an architecture such as 'sm_90a', not {arch!r}")
    by = _multiplied_by(machine, dtype)
    if head not in BACKWARD[by]:
        raise ValueError(f"head is one of {', '.join(map(str, BACKWARD[by]))} for gradients, not {head!r}")
    check_arguments(rows=rows, columns=columns, threads=threads, stages=stages)
    division = zip((rows, columns, threads, stages), BACKWARD[by][head][of])
    return BackwardPlan(*(asked or chosen for asked, chosen in division), by == "warpgroups", _dispatch(by))


def _multiplied_by(machine: _core.Machine, dtype: str) -> str:
    """What makes one product: "warpgroups", "warps", or "threads", since tensor cores would round float32."""
    if dtype == "float32":
        return "threads"
    return "warpgroups" if machine.group_products else "warps"


def _dispatch(by: str) -> str:
    return "" if by == "threads" else "tensor_cores"


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
