"""Reductions along neighbours, such as sums of rows: lanes that reduce to partial results, which are merged at the end.

Some rows go together where they share an operand, since an element of that is then loaded once for all of them.

    for i: C[i] = 0; for k: C[i] += A[i, k] * x[k]
    ->
    for io (blocks): C[rows io] = 0; P[:, :] = 0
        for ko: for ki in lanes: for ii: P[ii, ki] += A[io * 8 + ii, ko * 16 + ki] * x[ko * 16 + ki]
        C[rows io] += sums of P[:, :] over lanes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import attempt, blocks, fitting, split_exactly
from helve.schedule.auto.tiles import bytes_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

REDUCTIONS = {"add": "reduce_sum", "mul": "reduce_prod", "max": "reduce_max", "min": "reduce_min"}
_TOGETHER = 8  # rows, each with one vector of partial results
_APART = 4  # vectors of partial results of a single row


def row_lane(nest: Nest) -> Loop | None:
    """The loop over terms whose elements are neighbours wherever they move at all; None if there is none."""
    for loop in reversed(nest.terms):
        strides = [access.stride(loop.var) for access in nest.loads]
        if 1 in strides and all(stride in (0, 1) for stride in strides):
            return loop
    return None


def reduce_rows(s: Schedule, nest: Nest, machine: _core.Machine,
                cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Gives a nest lanes of partial results; returns the launches of what is left over, or None if the nest is none
    for that."""
    lane = row_lane(nest)
    operation = REDUCTIONS.get(str(nest.store.stmt.mode))
    if lane is None or operation is None:
        return None
    rest: list[tuple[Cursor, str]] = []
    if attempt(s, lambda: _as_operation(s, nest, lane, operation, machine)):
        return rest
    return rest if attempt(s, lambda: rest.extend(_in_lanes(s, nest, lane, operation, machine, cut))) else None


def _as_operation(s: Schedule, nest: Nest, lane: Loop, operation: str, machine: _core.Machine) -> None:
    """Rows of one operand: the operation of the target's own."""
    s.tensorize(lane.at, operation)
    blocks(s, nest, machine, [loop.at for loop in nest.loops])


def _shared_row(nest: Nest, cut: frozenset[str]) -> Loop | None:
    """The innermost loop whose rows read an operand together."""
    if "rows" in cut:
        return None
    inner = nest.loops[-1] if nest.loops else None
    strides = [access.stride(inner.var) for access in nest.loads] if inner is not None else []
    return inner if 0 in strides and any(stride != 0 for stride in strides) else None


def _in_lanes(s: Schedule, nest: Nest, lane: Loop, operation: str, machine: _core.Machine,
              cut: frozenset[str]) -> list[tuple[Cursor, str]]:
    vector = max(machine.vector_bytes // bytes_of(nest.target.buffer.dtype), 1)
    rest: list[tuple[Cursor, str]] = []
    around = [loop.at for loop in nest.loops]
    terms = [loop.at for loop in nest.terms if loop is not lane] + [lane.at]
    row = _shared_row(nest, cut)
    row = row if row is not None and row.size > 1 else None
    inner: Cursor | None = None
    if row is not None:
        count = fitting(row.extent, _TOGETHER, _TOGETHER // 2)
        if row.extent is None or row.extent > count:
            outer, inner, more = split_exactly(s, row.at, count)
            around[-1] = outer
            rest += [(more, "rows")] if more is not None else []
        else:
            inner = around.pop()
        if nest.first is not None:
            _, inner = s.fission(s.now(nest.terms[0].at))
    inside = [] if inner is None else [inner]
    if nest.first is None:
        s.reorder(*around, *terms, *inside)
    elif inside or terms != [loop.at for loop in nest.terms]:
        s.reorder(*terms, *inside)
    lanes = vector if row is not None or lane.size < _APART * vector else _APART * vector
    at = lane.at
    if lane.extent is None or lane.extent > lanes:
        _, at, *_ = s.split(lane.at, lanes, tail="cut")
    if inner is not None:
        s.reorder(inner, at)
    *fill, _, merge = s.rfactor(at)
    s.tensorize(merge, operation)
    if inner is None and lanes > vector:
        inner, at = s.split(at, vector)
    s.vectorize(at)
    for loop in fill if row is None else []:
        s.vectorize(loop)
    if inner is not None:
        s.unroll(inner)
    blocks(s, nest, machine, around)
    return rest
