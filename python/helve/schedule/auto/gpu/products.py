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
from helve.schedule.auto.nest import Loop, Nest, child
from helve.schedule.auto.steps import apart, attempt
from helve.schedule.auto.tiles import bytes_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

# Rows and columns of a tile, largest first, and the part of the multiplications per second that such tiles reach of
# those of the largest.
_TILES = ((128, 64, 1.0), (64, 64, 0.95), (64, 32, 0.75), (32, 32, 0.5))
_LEAST = 8  # rows, columns and terms of what is a product at all
_ROW_BYTES = 64  # of a tile of A: four copies of 16 bytes
_ONCE_BYTES = 256  # of rows of A that are copied as a whole
_STAGES = 3
_BANK_BYTES = 16  # that a thread reads of shared memory at once


@dataclass(frozen=True)
class Product:
    """The loops of a product C[m, n] += A[m, k] * B[k, n], of which there may be several."""

    row: Loop
    column: Loop
    term: Loop
    others: list[Loop]


def product_of(nest: Nest) -> Product | None:
    """The product that a nest is; None if it is none."""
    if len(nest.loads) != 2 or str(nest.store.stmt.mode) != "add" or nest.grid != 1:
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


def tile_of(product: Product, machine: _core.Machine) -> tuple[int, int]:
    """Rows and columns of a tile: the one with the least time for all, what is past the ends included, of those that
    leave a block for each multiprocessor; the smallest where none does."""
    several = math.prod(loop.size for loop in product.others)
    choices = []
    for rows, columns, speed in _TILES:
        tile = min(product.row.size, rows), min(product.column.size, columns)
        blocks = several * -(-product.row.size // tile[0]) * -(-product.column.size // tile[1])
        turns = -(-blocks // machine.processors)  # of the multiprocessor that has most
        choices.append((blocks < machine.processors, turns * math.prod(tile) / speed, tile))
    if all(few for few, *_ in choices):
        return choices[-1][-1]
    return min(choices, key=lambda choice: choice[:2])[-1]


def multiply_tiles(s: Schedule, nest: Nest, machine: _core.Machine,
                   _: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Tiles a product; None if the nest is none."""
    product = product_of(nest)
    if product is None:
        return None
    return [] if attempt(s, lambda: _multiply(s, nest, product, machine)) else None


def _multiply(s: Schedule, nest: Nest, product: Product, machine: _core.Machine) -> None:
    around, inside = [loop.at for loop in product.others], []
    for loop, factor in zip((product.row, product.column), tile_of(product, machine), strict=True):
        outer, inner = s.split(loop.at, factor)
        around.append(outer)
        inside.append(inner)
    terms = [loop.at for loop in nest.terms if loop is not product.term] + [product.term.at]
    if nest.first is None:
        s.reorder(*around, *terms, *inside)
    else:
        s.reorder(*around, *inside)
    around[-1], whole = s.split(around[-1], 1, tail="exact")  # what holds the initial values and the terms
    initial = None
    if nest.first is not None:
        initial, later = apart(s, nest.terms[0].at, whole)
        s.reorder(*terms, later, child(s.now(later)))
    size = bytes_of(nest.target.buffer.dtype)
    parts = [product.term.at]
    pipelined = None
    if product.term.extent is None or product.term.size * size > _ONCE_BYTES:
        pipelined, inner, *few = s.split(product.term.at, max(_ROW_BYTES // size, 1), tail="cut")
        parts = [inner, *few]
    before, *_, after = s.cache_write(whole, nest.target.buffer.name, "fragment")
    if initial is not None:
        s.tensorize(initial, "fill", "whole")
    else:
        s.tensorize(before, "copy", "whole")
    for part in parts:
        for access in nest.loads:
            copy, _ = s.cache_read(part, access.buffer.name, "shared")
            if not _has_vectors(access, machine):
                _pad_rows(s, copy)
            s.tensorize(copy, "copy", "whole")
        s.tensorize(part, "gemm", "whole")
    s.tensorize(after, "copy", "whole")
    if pipelined is not None:
        attempt(s, lambda: _pipeline(s, pipelined))
    s.unroll(whole)
    for loop in around:
        s.bind(loop)


def _has_vectors(access: Access, machine: _core.Machine) -> bool:
    """Do rows of the operand begin at multiples of what a thread loads at once? Else a tile is copied element by
    element, and its banks would be chosen for that, which are not those to read vectors from."""
    vector = max(machine.vector_bytes // bytes_of(access.buffer.dtype), 1)
    last = access.buffer.shape[-1]
    return isinstance(last, _core.IntImm) and last.value % vector == 0


def _pad_rows(s: Schedule, copy: Cursor) -> None:
    """Rows of the tile that is copied begin at multiples of 16 bytes, at other banks than their neighbours."""
    store = s.now(copy)
    while isinstance(store.stmt, _core.For):
        store = child(store)
    buffer = store.stmt.buffer
    vector = max(_BANK_BYTES // bytes_of(buffer.dtype), 1)
    row = buffer.shape[-1].value
    s.pad(buffer.name, len(buffer.shape) - 1, vector - row % vector)


def _pipeline(s: Schedule, loop: Cursor) -> None:
    """Copies of later iterations overlap with the products of one."""
    for buffer in [each.buffer.name for each in s.now(loop).stmt.body.stmts if isinstance(each, _core.Alloc)]:
        s.lift(buffer, loop)
    s.pipeline(loop, _STAGES)
