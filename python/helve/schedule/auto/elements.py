"""Nests without a tile: rows to blocks, lanes on the loop whose elements are neighbours.

    for i, j: C[i, j] = A[i, j] + x[j]
    ->
    with T.Kernel(M) as i: for j in T.vectorized(N): C[i, j] = A[i, j] + x[j]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import attempt, outermost, split_exactly
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_BLOCK = 4096  # times that a block runs its statement, at least
_LANES = 64  # of a loop whose extent only a call knows


def order_elements(s: Schedule, nest: Nest, _: _core.Machine, __: frozenset[str]) -> list[tuple[Cursor, str]]:
    """Makes blocks of the outermost loop that has no order, and lanes of the loop of neighbours; returns the launches
    of what is left over."""
    rest: list[tuple[Cursor, str]] = []
    lane = None if nest.terms else nest.lanes()
    inside = None if lane is None else lane.at
    if nest.grid == 1:
        for loop in sorted(nest.loops, key=lambda each: each is lane):
            found: list[Cursor | None] = []
            if loop.size > 1 and attempt(s, lambda: found.extend(_blocks(s, nest, loop))):
                inner, more = found
                inside = inner if loop is lane else inside
                rest += [(more, "rows")] if more is not None else []
                break
    if inside is not None:
        attempt(s, lambda: _lanes(s, nest, lane, inside))
    return rest


def _blocks(s: Schedule, nest: Nest, loop: Loop) -> tuple[Cursor, Cursor | None]:
    """Binds a loop, in blocks of enough iterations: (the iterations of a block, the launch of those left over)."""
    each = nest.work // max(loop.size, 1)
    at = inner = loop.at
    rest = None
    if each < _BLOCK:
        count = -(-_BLOCK // max(each, 1))
        if loop.extent is not None and loop.extent < 2 * count:
            return at, None  # one block is enough
        at, inner, rest = split_exactly(s, at, count)
    outermost(s, at, [at if each is loop else each.at for each in nest.loops])
    s.bind(at)
    return inner, rest


def _lanes(s: Schedule, nest: Nest, lane: Loop, at: Cursor) -> None:
    loops = [each.at for each in nest.loops if each is not lane]
    if nest.loops[-1] is not lane and at is lane.at:
        s.reorder(*(each for each in loops if _is_loop(s, each)), at)
    extent = s.now(at).stmt.extents[0]
    if not isinstance(extent, _core.IntImm):
        _, at, *_ = s.split(at, _LANES, tail="cut")
    s.vectorize(at)


def _is_loop(s: Schedule, at: Cursor) -> bool:
    return isinstance(s.now(at).stmt, _core.For)
