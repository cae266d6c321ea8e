"""Reductions across rows on a GPU, such as sums of columns: threads take neighbouring elements of several rows at once.

    for j: C[j] = 0; for i: C[j] += A[i, j]
    ->
    for jo (blocks): C[panel jo] = 0; P[:, :] = 0; for io: for ii, ji in Parallel: P[ii, ji] += A[io, ii, jo, ji]
        T.reduce_sum(P, C[panel jo], dim=0, clear=False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.rows import REDUCTIONS
from helve.schedule.auto.steps import attempt, blocks, split_exactly
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

PANEL = 64  # columns of a block
_ROWS = 8  # rows that its threads read at once


def reduce_columns(s: Schedule, nest: Nest, machine: _core.Machine,
                   _: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Gives panels of columns to blocks; returns the launches of what is left over, or None if the nest has none."""
    lane = nest.lanes()
    operation = REDUCTIONS.get(str(nest.store.stmt.mode))
    if lane is None or not nest.terms or operation is None:
        return None
    if any(loop.extent is None for loop in nest.loops + nest.terms):
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_reduce(s, nest, lane, operation, machine))) else None


def _reduce(s: Schedule, nest: Nest, lane: Loop, operation: str,
            machine: _core.Machine) -> list[tuple[Cursor, str]]:
    rest: list[tuple[Cursor, str]] = []
    around, at = [loop.at for loop in nest.loops if loop is not lane], lane.at
    if lane.size > PANEL or not around:
        outer, at, more = split_exactly(s, lane.at, min(PANEL, lane.size))
        around.append(outer)
        rest += [(more, "lanes")] if more is not None else []
    term = max(nest.terms, key=lambda loop: loop.size)
    terms = [loop.at for loop in nest.terms if loop is not term] + [term.at]
    first: Cursor | None = None
    if nest.first is None:
        s.reorder(*around, *terms, at)
    else:
        s.reorder(*around, at)
        first, at = s.fission(s.now(nest.terms[0].at))
        s.reorder(*terms, at)
    inner = term.at
    if term.size > _ROWS:
        _, inner = s.split(term.at, _ROWS)
    *fill, _, merge = s.rfactor(inner, scope="fragment")
    for loop in fill:
        s.tensorize(loop, "fill")
    s.tensorize(merge, operation)
    for loop in (inner, at, *([] if first is None else [first])):
        s.parallel(loop)
    blocks(s, nest, machine, around)
    return rest
