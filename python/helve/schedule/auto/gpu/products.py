"""Products of matrices on a GPU: a block computes a tile of the result in registers, from tiles in shared memory.

    for i, j: C = 0; for k: C += A[i, k] * B[k, j]
    ->
    for io, jo (blocks): R = 0; for ko (pipelined): X = A[io, ko]; Y = B[ko, jo]; T.gemm(X, Y, R)
        C[tile] = R
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.access import Access
from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.steps import attempt, split_exactly
from helve.schedule.auto.tiles import bytes_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_TILES = ((128, 64), (64, 64), (64, 32), (32, 32))  # rows and columns, largest first
_LEAST = 8  # rows, columns and terms of what is a product at all
_ROW_BYTES = 64  # of a tile of A: four copies of 16 bytes
_STAGES = 3


@dataclass(frozen=True)
class Product:
    """The loops of a product C[m, n] += A[m, k] * B[k, n], of which there may be several."""

    row: Loop
    column: Loop
    term: Loop
    others: list[Loop]


def product_of(nest: Nest) -> Product | None:
    """The product that a nest is; None if it is none, or only a call knows how large it is."""
    if len(nest.loads) != 2 or str(nest.store.stmt.mode) != "add" or nest.grid != 1:
        return None
    if any(loop.extent is None for loop in nest.loops + nest.terms):
        return None

    def moves(access: Access, loop: Loop) -> bool:
        return access.stride(loop.var) != 0

    a, b = nest.loads
    of_a = [loop for loop in nest.loops if moves(a, loop) and not moves(b, loop)]
    of_b = [loop for loop in nest.loops if moves(b, loop) and not moves(a, loop)]
    terms = [loop for loop in nest.terms if moves(a, loop) and moves(b, loop)]
    if not of_a or not of_b or not terms:
        return None
    one, other = (max(group, key=lambda loop: loop.size) for group in (of_a, of_b))
    row, column = (other, one) if nest.target.stride(one.var) == 1 else (one, other)
    term = max(terms, key=lambda loop: loop.size)
    if min(row.size, column.size, term.size) < _LEAST:
        return None
    return Product(row, column, term, [loop for loop in nest.loops if loop not in (row, column)])


def multiply_tiles(s: Schedule, nest: Nest, machine: _core.Machine,
                   cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Tiles a product; returns the launches of what is left over, or None if the nest is none."""
    product = product_of(nest)
    if product is None:
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_multiply(s, nest, product, machine, cut))) else None


def _tile(product: Product, machine: _core.Machine, cut: frozenset[str]) -> tuple[int, int]:
    """Rows and columns of a tile: the largest one that leaves a block for each multiprocessor."""
    several = math.prod(loop.size for loop in product.others)

    def blocks(tile: tuple[int, int]) -> int:
        return several * max(product.row.size // tile[0], 1) * max(product.column.size // tile[1], 1)

    rows, columns = next((tile for tile in _TILES if blocks(tile) >= machine.processors), _TILES[-1])
    return _dividing(product.row.size, rows, bool(cut)), _dividing(product.column.size, columns, bool(cut))


def _dividing(extent: int, most: int, cut: bool) -> int:
    """A multiple of 4 that divides the extent, at least half of `most`; `most` if there is none. What is left over of
    larger tiles is one tile."""
    if extent <= (max(most, _TILES[0][1]) if cut else most):
        return extent
    return next((n for n in range(most, most // 2 - 1, -4) if extent % n == 0), most)


def _multiply(s: Schedule, nest: Nest, product: Product, machine: _core.Machine,
              cut: frozenset[str]) -> list[tuple[Cursor, str]]:
    rows, columns = _tile(product, machine, cut)
    rest: list[tuple[Cursor, str]] = []
    around, inside = [loop.at for loop in product.others], []
    for loop, factor, kind in ((product.row, rows, "rows"), (product.column, columns, "lanes")):
        outer, inner, more = split_exactly(s, loop.at, factor)
        around.append(outer)
        inside.append(inner)
        rest += [(more, kind)] if more is not None else []
    terms = [loop.at for loop in nest.terms if loop is not product.term] + [product.term.at]
    if nest.first is None:
        s.reorder(*around, *terms, *inside)
    else:
        s.reorder(*around, *inside)
    around[-1], whole = s.split(around[-1], 1, tail="exact")  # what holds the initial values and the terms
    initial = None
    if nest.first is not None:
        later = []
        for _ in inside:
            initial, last = s.fission(s.now(nest.terms[0].at) if not later else later[0])
            later.insert(0, last)
        s.reorder(*terms, *later)
    depth = max(_ROW_BYTES // bytes_of(nest.target.buffer.dtype), 1)
    parts = [product.term.at]
    pipelined = None
    if product.term.size > depth:
        pipelined, inner, *few = s.split(product.term.at, depth, tail="cut")
        parts = [inner, *few]
    before, *_, after = s.cache_write(whole, nest.target.buffer.name, "fragment")
    for part in parts:
        for access in nest.loads:
            copy, _ = s.cache_read(part, access.buffer.name, "shared")
            s.tensorize(copy, "copy")
        s.tensorize(part, "gemm")
    s.tensorize(after, "copy")
    if initial is not None:
        s.tensorize(initial, "fill")
    else:
        s.tensorize(before, "copy")
    if pipelined is not None:
        attempt(s, lambda: _pipeline(s, pipelined))
    s.unroll(whole)
    for loop in around:
        s.bind(loop)
    return rest


def _pipeline(s: Schedule, loop: Cursor) -> None:
    """Copies of later iterations overlap with the products of one."""
    for buffer in [each.buffer.name for each in s.now(loop).stmt.body.stmts if isinstance(each, _core.Alloc)]:
        s.lift(buffer, loop)
    s.pipeline(loop, _STAGES)
