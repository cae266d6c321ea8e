"""Reductions whose elements share operands, such as products of matrices: tiles of accumulators in registers.

A tile is some rows of some vectors. Each operand that all rows of a tile read is loaded once for them; where it is
read again and again from far rows, it is copied to a panel whose rows are neighbours.

    for i, j: C = 0; for k: C += A[i, k] * B[k, j]
    ->
    for jo (blocks): W = B[:, panel jo]; for io: R = 0; for k: R += A[tile io, k] * W[k, :]; C[tile io, panel jo] = R
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.access import Access
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import BLOCKS, Declined, attempt, blocks, body, fitting, split_exactly
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_REUSE = 16  # reads of an element of a panel that pay for its copy


@dataclass(frozen=True)
class Tile:
    """How many elements of the loops of rows and of lanes are computed at once; `row` is None without such a loop."""

    row: Loop | None
    lane: Loop
    rows: int
    lanes: int


def bytes_of(dtype: str) -> int:
    """The bytes of an element, at least 1."""
    bits = "".join(filter(str.isdigit, dtype.partition("_")[0]))
    return max(int(bits or 8) // 8, 1)


def _shared(nest: Nest, lane: Loop) -> list[Access]:
    return [access for access in nest.loads if access.stride(lane.var) != 0]


def tile_of(nest: Nest, machine: _core.Machine, cut: frozenset[str] = frozenset()) -> Tile | None:
    """The tile for a nest; None if it is no reduction with lanes. Loops of "rows" or "lanes" that are what a division
    left over (`cut`) are not divided again."""
    lane = nest.lanes() or nest.lanes_of_copies()
    if lane is None or not nest.terms:
        return None
    vector = max(machine.vector_bytes // bytes_of(nest.target.buffer.dtype), 1)
    registers = 32 if machine.vector_bytes >= 64 else 16
    shared = _shared(nest, lane)
    rows = [loop for loop in nest.loops if loop is not lane and any(a.stride(loop.var) == 0 for a in shared)]
    if "rows" in cut:
        rows = [loop for loop in rows if loop.extent is not None]
    row = max(rows, key=lambda loop: (loop.size, nest.loops.index(loop)), default=None)
    if "lanes" in cut and rows:
        row = rows[-1]  # which is divided already
    if row is None and nest.turned(lane):
        return None  # a copy would be read once
    vectors = 2 if row is not None else 8
    lanes = lane.extent if lane.extent is not None and lane.extent <= vectors * vector else vectors * vector
    if "lanes" in cut and lanes != lane.extent:
        return None
    if row is not None and lanes <= vector:
        vectors = 1
    most = min(max((registers - 1 - vectors * len(shared)) // vectors, 1), 12)
    count = fitting(row.extent, most, max(most - 2, 1)) if row is not None else 1
    return Tile(row, lane, count, lanes)


@dataclass(frozen=True)
class Around:
    """A loop around a tile, its extent, and the loop of the nest that it is a part of."""

    at: Cursor
    extent: int
    of: Loop


class _Tiling:
    """The steps of one nest."""

    def __init__(self, s: Schedule, nest: Nest, tile: Tile, machine: _core.Machine):
        self.s, self.nest, self.tile, self.machine = s, nest, tile, machine
        self.rest: list[tuple[Cursor, str]] = []  # launches of what is left over of "rows" or "lanes"
        self.outer: list[Around] = []  # loops around a tile, outermost first
        self.row: Cursor | None = None
        self.lane: Cursor = tile.lane.at

    def divide(self) -> None:
        """Divides the loops of rows and lanes, and decides the order of those around a tile."""
        tile = self.tile
        batch = [Around(loop.at, loop.size, loop) for loop in self.nest.loops if loop not in (tile.row, tile.lane)]
        rows = []
        if tile.row is not None:
            rows, self.row = self._blocks(tile.row, tile.rows, "rows")
        panels, self.lane = self._blocks(tile.lane, tile.lanes, "lanes")
        # Rows stay inside of panels, which are copied for them; if panels are too few, each is for a part of the rows.
        parts = self._parts(rows, math.prod(each.extent for each in batch + panels))
        self.outer = batch + panels + rows if parts is None else [parts[0], *batch, *panels, parts[1]]

    def _parts(self, rows: list[Around], others: int) -> tuple[Around, Around] | None:
        """Divides the loop over tiles of rows: (parts, tiles of one part); None where there are blocks enough."""
        missing = -(-BLOCKS * self.machine.processors // others)
        if not rows or self.nest.grid != 1 or missing < 2 or rows[0].extent < 2:
            return None
        tiles = rows[0].extent
        even = (n for n in range(min(missing, tiles), min(4 * missing, tiles) + 1) if tiles % n == 0)
        each = tiles // next(even, min(missing, tiles))
        outer, inner, rest = split_exactly(self.s, rows[0].at, each)
        if rest is not None:
            self.rest.append((rest, "rows"))
        return Around(outer, tiles // each, rows[0].of), Around(inner, each, rows[0].of)

    def _blocks(self, loop: Loop, factor: int, kind: str) -> tuple[list[Around], Cursor]:
        if loop.extent is not None and loop.extent <= factor:
            return [], loop.at
        outer, inner, rest = split_exactly(self.s, loop.at, factor)
        if rest is not None:
            self.rest.append((rest, kind))
        return [Around(outer, loop.size // factor, loop)], inner

    def run(self) -> None:
        """Takes all steps; raises the refusal of one that is refused."""
        s, nest = self.s, self.nest
        self.divide()
        inside = [each for each in (self.row, self.lane) if each is not None]
        around = [each.at for each in self.outer]
        whole = nest.terms[0].at
        if nest.first is None:
            s.reorder(*around, *(loop.at for loop in nest.terms), *inside)
        else:
            s.reorder(*around, *inside)
        if nest.first is not None and around:  # a loop around the initial values and the terms, to keep them together
            around[-1], whole = s.split(around[-1], 1, tail="exact")
        blocks(s, nest, self.machine, around[:-1] or around)
        initial = self._separate(inside)
        copies = []
        for access in _shared(nest, self.tile.lane):
            copy = self._panel(access, around, whole)
            if access not in nest.turned(self.tile.lane):
                copies.append(copy)
            elif copy is None:
                raise Declined
        before, *_, after = s.cache_write(whole, nest.target.buffer.name)
        copies += [before, after]
        for copy in copies:
            if copy is not None and isinstance(s.now(copy).stmt, _core.For) and s.now(copy) != s.now(whole):
                self._vectorize(copy)
        for row, lane in [*initial, (self.row, self.lane)]:
            s.vectorize(lane)
            if row is not None:
                s.unroll(row)

    def _separate(self, inside: list[Cursor]) -> list[tuple[Cursor | None, Cursor]]:
        """Takes the initial values out of the loops of a tile, and puts the terms around these."""
        s, terms = self.s, [loop.at for loop in self.nest.terms]
        if self.nest.first is None:
            return []
        before, later, last = [], [], terms[0]
        for _ in inside:
            a, last = s.fission(s.now(last))
            before.insert(0, a)
            later.insert(0, last)
        s.reorder(*terms, *later)
        self.row, self.lane = (later[0] if len(later) == 2 else None), later[-1]
        return [(before[0] if len(before) == 2 else None, before[-1])]

    def _panel(self, access: Access, around: list[Cursor], whole: Cursor) -> Cursor | None:
        """Copies an operand that rows share; returns the copy, if that pays."""
        s, nest, tile = self.s, self.nest, self.tile
        if sum(each.buffer is access.buffer for each in nest.loads) != 1 or access.buffer is nest.target.buffer:
            return None
        used = [loop for loop in nest.terms if access.stride(loop.var) != 0]
        if any(loop.extent is None for loop in nest.terms) or not used:
            return None
        turned = access in nest.turned(tile.lane)
        near = all(abs(access.stride(loop.var) or 0) <= tile.lanes for loop in used)
        size = math.prod(loop.size for loop in used) * tile.lanes * bytes_of(access.buffer.dtype)
        reads = math.prod(loop.size for loop in nest.terms) // math.prod(loop.size for loop in used) * tile.rows
        at, extent = whole, 1
        last = self.outer[-1] if nest.grid != 1 or len(around) > 1 else None  # where the loop around a tile is no grid
        if last is not None and access.stride(last.of.var) == 0:
            at, extent = around[-1], last.extent
        if size > self.machine.second_cache // 2 or reads * extent < _REUSE or (near and not turned):
            return None
        copy: list[Cursor] = []

        def steps() -> None:
            copy[:] = [s.cache_read(at, access.buffer.name)[0]]
            if turned:
                order = ", ".join(str(d) for d in reversed(range(len(access.indices))))
                s.set_layout(_innermost(s, copy[0]).stmt.buffer.name, f"order({order})")

        if not attempt(s, steps):
            return None
        return copy[0]

    def _vectorize(self, copy: Cursor) -> None:
        s = self.s
        attempt(s, lambda: s.vectorize(_innermost(s, copy, of_loops=True)))


def _innermost(s: Schedule, copy: Cursor, of_loops: bool = False) -> Cursor:
    """The store of a copy, or the innermost of its loops."""
    inner = s.now(copy)
    while isinstance(inner.stmt, _core.For):
        below = body(s, inner)
        if of_loops and not isinstance(below.stmt, _core.For):
            return inner
        inner = below
    return inner


def tile_products(s: Schedule, nest: Nest, machine: _core.Machine,
                  cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Tiles a nest; returns the launches of what is left over, or None if the nest is none for tiles."""
    tile = tile_of(nest, machine, cut)
    if tile is None:
        return None
    tiling = _Tiling(s, nest, tile, machine)
    return tiling.rest if attempt(s, tiling.run) else None
