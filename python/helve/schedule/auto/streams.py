"""Reductions whose lanes are neighbours and whose terms are far apart, such as a vector times a matrix: whole rows of
the operand are streamed, and the elements stay in the cache near the processor.

    for j: C[j] = 0; for i: C[j] += x[i] * A[i, j]
    ->
    for jo (blocks): C[panel jo] = 0; for io: for ji in lanes: for ii (written out): C[j] += x[i] * A[i, j]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Nest
from helve.schedule.auto.steps import Declined, attempt, blocks, body, split_exactly
from helve.schedule.auto.tiles import bytes_of, tile_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_TOGETHER = 4  # rows that are added at a time


def stream_terms(s: Schedule, nest: Nest, machine: _core.Machine,
                 cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Streams the terms of a nest; returns the launches of what is left over, or None if the nest is none for that."""
    tile = tile_of(nest, machine, cut)
    if tile is None or tile.row is not None or tile.lane.extent is None or tile.lane.extent <= tile.lanes:
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_stream(s, nest, machine))) else None


def _panel(extent: int, others: int, vector: int, machine: _core.Machine, size: int) -> int:
    """The elements of a panel: in the first cache, but so that there is one for each processor."""
    most = max(machine.first_cache // (4 * size), vector)
    panels = max(-(-extent // most), -(-machine.processors // max(others, 1)))
    return min(max(-(-extent // panels), 16 * vector) // vector * vector, extent)


def _stream(s: Schedule, nest: Nest, machine: _core.Machine) -> list[tuple[Cursor, str]]:
    lane = nest.lanes()
    term = nest.terms[-1]
    if lane is None or len(nest.terms) != 1 or nest.first is None:
        raise Declined
    size = bytes_of(nest.target.buffer.dtype)
    vector = max(machine.vector_bytes // size, 1)
    others = [loop for loop in nest.loops if loop is not lane]
    panel = _panel(lane.size, math.prod(loop.size for loop in others), vector, machine, size)
    rest: list[tuple[Cursor, str]] = []
    around, at = [loop.at for loop in others], lane.at
    if panel < lane.size:
        outer, at, more = split_exactly(s, at, panel)
        around.append(outer)
        rest += [(more, "lanes")] if more is not None else []
    s.reorder(*around, at)
    first, at = s.fission(s.now(term.at))
    s.reorder(term.at, at)
    together = min(_TOGETHER, term.size)
    _, inner, *few = s.split(term.at, together, tail="cut")
    s.reorder(at, inner)
    s.unroll(inner)
    for each in (first, at, *(body(s, loop) for loop in few)):
        s.vectorize(each)
    blocks(s, nest, machine, around)
    return rest
