"""Too few blocks for all multiprocessors: parts of the terms are reduced by blocks of their own, in a first launch.

    for j: C[j] = 0; for k: C[j] += A[k, j]
    ->
    for ko: for j: P[ko, j] = 0; for ki: P[ko, j] += A[ko, ki, j]     (a launch that other rules go on with)
    for j: C[j] = 0; for v: C[j] += P[v, j]                           (and another one)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.gpu.columns import columns_of
from helve.schedule.auto.gpu.products import product_of, tile_of
from helve.schedule.auto.gpu.rows import rows_of
from helve.schedule.auto.nest import Loop, Nest, child
from helve.schedule.auto.rows import REDUCTIONS
from helve.schedule.auto.steps import BLOCKS, Declined, attempt, outermost
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_PRODUCT_PART = 64  # terms of a part of a product, at least
_FEW_ROWS = 32  # of a tile
_STEPS = 8  # of a block without parts, that take longer than a second launch
_MOST_PARTS = 512  # what one block merges at once
_THREADS = 128


def reduce_parts(s: Schedule, nest: Nest, machine: _core.Machine,
                 cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Divides the terms of a nest into parts; returns the launches to go on with, or None if the nest has enough
    blocks without them."""
    if "parts" in cut or nest.grid != 1 or not nest.terms or str(nest.store.stmt.mode) not in REDUCTIONS:
        return None
    if any(loop.extent is None for loop in nest.loops):
        return None
    plan = _without_parts(nest, machine)
    if math.prod(loop.size for loop in nest.terms) < _STEPS * plan.least:
        return None
    needed = -(-plan.wanted * machine.processors // max(plan.blocks, 1))
    if plan.blocks * 2 >= min(plan.wanted, BLOCKS) * machine.processors:
        return None
    steps = [(min(needed, loop.size // least), loop, least) for loop in nest.terms
             for least in [plan.least if loop is plan.term else 1]]
    parts, term, least = max(steps, key=lambda each: each[0])
    parts = min(parts, _MOST_PARTS)
    if parts < 2 or (plan.is_product and term.extent is None):
        return None
    each = least if term.extent is None else _even(term.size, -(-term.size // parts), least)
    if term.extent is not None:
        parts = -(-term.size // each)
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_divide(s, nest, term, each, parts))) else None


def _even(terms: int, each: int, least: int) -> int:
    """About `each` terms, in whole steps of `least`: a number that leaves no part shorter, if there is one nearby."""
    each = -(-each // least) * least
    near = range(max(each // 2 // least, 1) * least, 2 * each, least)
    return min((n for n in near if terms % n == 0), key=lambda n: abs(n - each), default=each)


@dataclass(frozen=True)
class _Plan:
    """The blocks that another rule would make, and how many each processor should have; the loop whose terms are
    parts of a block's work, and how many of these a part has at least."""

    blocks: int
    wanted: int
    term: Loop
    least: int
    is_product: bool = False


def _without_parts(nest: Nest, machine: _core.Machine) -> _Plan:
    elements = math.prod(loop.size for loop in nest.loops)
    product, rows, columns = product_of(nest), rows_of(nest, machine), columns_of(nest)
    if product is not None:
        tile = tile_of(product, machine)
        blocks = -(-product.row.size // tile[0]) * -(-product.column.size // tile[1])
        wanted = 2 if min(tile) >= _FEW_ROWS else BLOCKS  # where loads take longer than products
        blocks *= math.prod(loop.size for loop in product.others)
        return _Plan(blocks, wanted, product.term, _PRODUCT_PART, is_product=True)
    if rows is not None:
        return _Plan(elements // rows.together, BLOCKS, rows.lane, rows.lanes)
    if columns is not None:
        return _Plan(elements // columns.lanes, 2 * BLOCKS, columns.term, columns.rows)
    longest = max(nest.terms, key=lambda loop: loop.size)
    return _Plan(elements // _THREADS, BLOCKS, longest, _THREADS)


def _divide(s: Schedule, nest: Nest, term: Loop, each: int, parts: int) -> list[tuple[Cursor, str]]:
    loops = [loop.at for loop in nest.loops]
    if nest.first is not None and loops:
        later = nest.terms[0].at
        for _ in loops:
            _, later = s.fission(s.now(later))
        loops = [later]
        while len(loops) < len(nest.loops):
            loops.append(child(s.now(loops[-1])))
    outer, inner = s.split(term.at, each)
    others = [loop.at for loop in nest.terms if loop is not term]
    if term.extent is None:  # parts take turns
        turns, outer = s.split(outer, parts)
        others += [turns, inner]
    outermost(s, outer, [*loops, *others, outer])
    *fill, main, merge = s.rfactor(outer, scope="global")
    if not fill:
        raise Declined
    first, around = fill[0], main
    for _ in range(len(loops) + 1):
        around = s.join(first, around)
        first, around = child(s.now(around), 0), child(s.now(around), 1)
    elements = [s.now(merge)]
    for _ in loops:
        elements.append(child(elements[-1]))
    if loops:
        s.reorder(*elements[1:], merge)
        behind = elements[1]
    else:
        behind, _ = s.split(merge, parts)  # a loop of one iteration, which the initial value goes to
    if nest.first is not None:
        made = s.compute_at(nest.first, elements[-1] if loops else behind)
        while isinstance(s.now(made).stmt, _core.For):
            made, *_ = s.unroll(made)
    if not loops:
        behind, *_ = s.unroll(behind)
    return [(launch, "parts") for launch in s.fission(behind)]
