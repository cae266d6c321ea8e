"""Nests that read along other rows than they store, such as a transpose: square tiles that pass through a copy.

What is read is copied along its own rows, one line of the cache at a time; the tile is small enough to stay next to
the processor while it is read across.

    for i, j: C[i, j] = A[j, i]
    ->
    for io (blocks), jo: W = A[tile jo, tile io] (lanes along its rows); for ii: for ji in lanes: C[i, j] = W[ji, ii]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import attempt, blocks, body, split_exactly
from helve.schedule.auto.tiles import bytes_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

LINE = 64  # bytes of a line of the cache


def turned_loops(nest: Nest) -> tuple[Loop, Loop] | None:
    """(the loop along what is stored, the loop along what is read across); None unless they are two."""
    if nest.terms or nest.lanes() is not None:
        return None
    along = next((loop for loop in nest.loops if nest.target.stride(loop.var) == 1), None)
    if along is None:
        return None
    for access in nest.loads:
        for loop in nest.loops:
            if loop is not along and access.stride(loop.var) == 1 and access.stride(along.var) not in (0, 1):
                return along, loop
    return None


def turn_tiles(s: Schedule, nest: Nest, machine: _core.Machine,
               cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Tiles a nest; returns the launches of what is left over, or None if the nest is none for that."""
    loops = turned_loops(nest)
    if loops is None:
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_turn(s, nest, *loops, machine, cut))) else None


def _turn(s: Schedule, nest: Nest, along: Loop, across: Loop, machine: _core.Machine,
          cut: frozenset[str]) -> list[tuple[Cursor, str]]:
    side = max(LINE // max(bytes_of(access.buffer.dtype) for access in (nest.target, *nest.loads)), 1)
    rest: list[tuple[Cursor, str]] = []
    outer, inside = [loop.at for loop in nest.loops if loop not in (along, across)], []
    for loop, kind in ((across, "rows"), (along, "lanes")):
        if kind in cut or (loop.extent is not None and loop.extent <= side):
            inside.append(loop.at)
            continue
        tiles, at, more = split_exactly(s, loop.at, side)
        outer.append(tiles)
        inside.append(at)
        rest += [(more, kind)] if more is not None else []
    s.reorder(*outer, *inside)
    for buffer in {access.buffer.name for access in nest.loads if access.stride(along.var) not in (0, 1)}:
        copy = s.now(s.cache_read(inside[0], buffer)[0])
        while isinstance((below := body(s, copy)).stmt, _core.For):
            copy = below
        s.vectorize(copy)
    s.vectorize(inside[1])
    blocks(s, nest, machine, outer)
    return rest
