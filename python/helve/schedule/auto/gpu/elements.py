"""Nests without reductions on a GPU: rows to blocks, neighbours to threads, transposes by tiles in shared memory.

    for j, i: C[j, i] = A[i, j]
    ->
    for jo, io (blocks): X = A[tile io, tile jo]; for ji, ii in Parallel: C[jo, ji, io, ii] = X[ii, ji]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import attempt, blocks
from helve.schedule.auto.turns import turned_loops
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_SIDE = 64  # rows and columns of a tile
_ROW = 1024  # elements of a row that one block takes


def turn_tiles(s: Schedule, nest: Nest, machine: _core.Machine,
               _: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Turns a nest tile by tile; None if it reads along the rows that it stores."""
    loops = turned_loops(nest)
    if loops is None:
        return None
    return [] if attempt(s, lambda: _turn(s, nest, *loops, machine)) else None


def _turn(s: Schedule, nest: Nest, along: Loop, across: Loop, machine: _core.Machine) -> None:
    around, inside = [loop.at for loop in nest.loops if loop not in (along, across)], []
    for loop in (across, along):
        outer, inner = s.split(loop.at, _SIDE)
        around.append(outer)
        inside.append(inner)
    s.reorder(*around, *inside)
    for buffer in {access.buffer.name for access in nest.loads if access.stride(along.var) not in (0, 1)}:
        copy, _ = s.cache_read(inside[0], buffer, "shared")
        s.tensorize(copy, "copy", "whole")
    for loop in inside:
        s.parallel(loop)
    if nest.grid == 1:
        for loop in around:
            s.bind(loop)


def order_elements(s: Schedule, nest: Nest, machine: _core.Machine,
                   _: frozenset[str]) -> list[tuple[Cursor, str]]:
    """Gives the innermost loop of neighbours to threads, and the others to blocks."""
    lane = nest.lanes() or (nest.loops[-1] if nest.loops else None)
    if lane is not None and lane.size > 1:
        attempt(s, lambda: _divide(s, nest, lane, machine))
    return []


def _divide(s: Schedule, nest: Nest, lane: Loop, machine: _core.Machine) -> None:
    around, at = [loop.at for loop in nest.loops if loop is not lane], lane.at
    if lane.size > _ROW or not around:
        outer, at = s.split(lane.at, min(_ROW, lane.size))
        around.append(outer)
    s.reorder(*around, at)
    s.parallel(at)
    blocks(s, nest, machine, around)
