"""Reductions along neighbours on a GPU: the threads of a block reduce a row, or several short ones, to partial results.

    for i: C[i] = 0; for k: C[i] += A[i, k] * x[k]
    ->
    for i (blocks): C[i] = 0; P[:] = 0; for ko: for ki in Parallel: P[ki] += A[i, ko, ki] * x[ko, ki]
        T.reduce_sum(P, C[i], clear=False)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.rows import REDUCTIONS, row_lane
from helve.schedule.auto.steps import attempt, blocks, fitting, split_exactly
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_LANES = 512  # partial results of a block: four for each of its threads
_TERMS = 4096  # of all rows of a block, about


def reduce_rows(s: Schedule, nest: Nest, machine: _core.Machine,
                cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Gives the rows of a nest to blocks; returns the launches of what is left over, or None if the nest has none."""
    lane = row_lane(nest)
    operation = REDUCTIONS.get(str(nest.store.stmt.mode))
    if lane is None or operation is None or lane.extent is None or lane.size < 2:
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_reduce(s, nest, lane, operation, machine, cut))) else None


def _reduce(s: Schedule, nest: Nest, lane: Loop, operation: str, machine: _core.Machine,
            cut: frozenset[str]) -> list[tuple[Cursor, str]]:
    rest: list[tuple[Cursor, str]] = []
    around = [loop.at for loop in nest.loops]
    terms = [loop.at for loop in nest.terms if loop is not lane] + [lane.at]
    row = nest.loops[-1] if nest.loops else None
    rows = _together(nest, lane, machine) if "rows" not in cut else 1
    inside: list[Cursor] = []
    first: Cursor | None = None
    if row is not None and row.extent is not None and rows > 1:
        around[-1], inner, more = split_exactly(s, row.at, fitting(row.extent, rows, max(rows // 2, 1)))
        rest += [(more, "rows")] if more is not None else []
        if nest.first is not None:
            first, inner = s.fission(s.now(nest.terms[0].at))
        inside = [inner]
    if nest.first is None:
        s.reorder(*around, *terms, *inside)
    elif inside or len(terms) > 1:
        s.reorder(*terms, *inside)
    at = lane.at
    lanes = min(_LANES, 1 << (lane.size.bit_length() - 1))
    if lane.size > lanes:
        _, at = s.split(lane.at, lanes)
    if inside:
        s.reorder(*inside, at)
    *fill, _, merge = s.rfactor(at, scope="fragment")
    for loop in fill:
        s.tensorize(loop, "fill")
    s.tensorize(merge, operation)
    for loop in (*inside, at, *([] if first is None else [first])):
        s.parallel(loop)
    blocks(s, nest, machine, around)
    return rest


def _together(nest: Nest, lane: Loop, machine: _core.Machine) -> int:
    """How many rows a block reduces: several short ones, if enough blocks are left."""
    terms = math.prod(loop.size for loop in nest.terms)
    elements = math.prod(loop.size for loop in nest.loops)
    return max(min(_TERMS // terms, elements // (4 * machine.processors), 16), 1)
