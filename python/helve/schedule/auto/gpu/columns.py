"""Reductions across rows on a GPU, such as sums of columns: threads take neighbouring elements of several rows at once.

    for j: C[j] = 0; for i: C[j] += A[i, j]
    ->
    for jo (blocks): R[:] = 0; P[:, :] = 0; for io: for ii, ji in Parallel: P[ii, ji] += A[io, ii, jo, ji]
        T.reduce_sum(P, R, dim=0, clear=False); C[panel jo] = R
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.gpu.partials import Partials, reduce_to_partials
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.rows import REDUCTIONS
from helve.schedule.auto.steps import attempt
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_PANEL = 128  # columns of a block: four for each thread of a warp
_AT_ONCE = 4096  # elements that the threads of a block read at once: 32 each, in loads of four
_MOST_ROWS = 256
_FEW_ROWS = 16  # which are enough to prefer them to as many as a call says


@dataclass(frozen=True)
class Columns:
    """A block reduces `lanes` columns, the elements of `rows` rows at once."""

    lane: Loop
    term: Loop
    lanes: int
    rows: int


def columns_of(nest: Nest) -> Columns | None:
    """How the columns of a nest are reduced; None if it has none."""
    lane = nest.lanes()
    if lane is None or not nest.terms or str(nest.store.stmt.mode) not in REDUCTIONS:
        return None
    lanes = min(_PANEL, lane.size)
    known = [loop for loop in nest.terms if loop.extent is not None and loop.size >= _FEW_ROWS]
    term = max(known or nest.terms, key=lambda loop: loop.size)
    rows = min(_AT_ONCE // lanes, _MOST_ROWS, max(term.size, 1))
    return Columns(lane, term, lanes, 1 << (rows.bit_length() - 1))


def reduce_columns(s: Schedule, nest: Nest, machine: _core.Machine,
                   _: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Gives panels of columns to blocks; None if the nest has none."""
    columns = columns_of(nest)
    if columns is None:
        return None
    plan = Partials(columns.lane, columns.lanes, columns.term, columns.rows, across=True)
    return [] if attempt(s, lambda: reduce_to_partials(s, nest, plan)) else None
