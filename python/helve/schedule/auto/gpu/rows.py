"""Reductions along neighbours on a GPU: the threads of a block reduce a row, or several short ones, to partial results.

    for i: C[i] = 0; for k: C[i] += A[i, k] * x[k]
    ->
    for io (blocks): R[:] = 0; P[:, :] = 0; for ko: for ii, ki in Parallel: P[ii, ki] += A[io, ii, ko, ki] * x[ko, ki]
        T.reduce_sum(P, R, clear=False); C[rows io] = R
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.gpu.partials import Partials, reduce_to_partials
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.rows import REDUCTIONS, row_lane
from helve.schedule.auto.steps import attempt
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_LANES = 512  # partial results of a row: four for each of the threads of a block
_MOST_LANES = 2048  # of a long row: where blocks are few, loads of one thread must overlap
_MANY_BLOCKS = 16  # a multiprocessor
_SHORT_LANES = 128  # of a shorter one: four for each thread of a warp, whose threads then merge them by themselves
_TERMS = 4096  # of all rows of a block, about
_MOST_ROWS = 32


@dataclass(frozen=True)
class Rows:
    """A block reduces `together` rows, each to partial results in `lanes`; `row` is None where it reduces one."""

    row: Loop | None
    together: int
    lane: Loop
    lanes: int


def rows_of(nest: Nest, machine: _core.Machine) -> Rows | None:
    """How the rows of a nest are reduced; None if it has none."""
    lane = row_lane(nest)
    if lane is None or lane.size < 2 or str(nest.store.stmt.mode) not in REDUCTIONS:
        return None
    lanes = min(_LANES if lane.size >= _LANES else _SHORT_LANES, 1 << (lane.size.bit_length() - 1))
    terms = math.prod(loop.size for loop in nest.terms)
    elements = math.prod(loop.size for loop in nest.loops)
    while lanes < _MOST_LANES and lane.size >= 8 * lanes and elements < _MANY_BLOCKS * machine.processors:
        lanes *= 2
    together = min(_TERMS // max(terms, 1), elements // (4 * machine.processors), _MOST_ROWS)
    together = max(together, _LANES // lanes)  # which have work for all threads
    row = nest.loops[-1] if nest.loops and together > 1 else None
    return Rows(row, min(together, row.size) if row is not None else 1, lane, lanes)


def reduce_rows(s: Schedule, nest: Nest, machine: _core.Machine,
                _: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Gives the rows of a nest to blocks; None if the nest has none."""
    rows = rows_of(nest, machine)
    if rows is None:
        return None
    plan = Partials(rows.row, rows.together, rows.lane, rows.lanes, across=False)
    return [] if attempt(s, lambda: reduce_to_partials(s, nest, plan)) else None
