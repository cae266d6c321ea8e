"""Few elements of many terms, such as a dot product: parts of the terms are reduced by blocks of their own.

    C[0] = 0; for k: C[0] += A[k] * B[k]
    ->
    C[0] = 0; P[:] = 0
    for ko: for ki: P[ko] += A[ko, ki] * B[ko, ki]     (a launch that other rules go on with)
    for v: C[0] += P[v]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.nest import Loop, Nest, nest_of
from helve.schedule.auto.rows import REDUCTIONS
from helve.schedule.auto.steps import BLOCKS, Declined, attempt, isolate, outermost, parent
from helve.schedule.auto.tiles import tile_of
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

_PART = 1 << 14  # terms of a part, at least


def has_parts(nest: Nest, machine: _core.Machine) -> bool:
    """Are there too few elements for the processors, and enough terms for several parts?"""
    if nest.grid != 1 or not nest.terms or any(loop.extent is None for loop in nest.loops + nest.terms):
        return False
    if str(nest.store.stmt.mode) not in REDUCTIONS:
        return False
    if _units(nest, machine) >= machine.processors or _terms(nest) < 2 * _PART:
        return False
    return _outer_term(nest, machine).size > 1


def _terms(nest: Nest) -> int:
    return math.prod(loop.size for loop in nest.terms)


def _units(nest: Nest, machine: _core.Machine) -> int:
    """About how many blocks the elements are for."""
    tile = tile_of(nest, machine)
    at_once = tile.lanes if tile is not None else 1
    return math.prod(loop.size for loop in nest.loops) // at_once


def _outer_term(nest: Nest, machine: _core.Machine) -> Loop:
    """The outermost loop of terms that gives enough parts, or the longest one."""
    enough = (loop for loop in nest.terms if loop.size >= BLOCKS * machine.processors)
    return next(enough, max(nest.terms, key=lambda loop: loop.size))


def reduce_parts(s: Schedule, nest: Nest, machine: _core.Machine,
                 cut: frozenset[str]) -> list[tuple[Cursor, str]] | None:
    """Divides the terms of a nest into parts; returns the launches to go on with, or None if the nest is none for
    that."""
    if "parts" in cut or not has_parts(nest, machine):
        return None
    rest: list[tuple[Cursor, str]] = []
    return rest if attempt(s, lambda: rest.extend(_divide(s, nest, machine))) else None


def _divide(s: Schedule, nest: Nest, machine: _core.Machine) -> list[tuple[Cursor, str]]:
    term = _outer_term(nest, machine)
    wanted = -(-BLOCKS * machine.processors // max(_units(nest, machine), 1))
    parts = min(wanted, _terms(nest) // _PART, term.size)
    if parts < 2:
        raise Declined
    if nest.first is not None:
        found = nest_of(s.now(isolate(s, nest.terms[0].at)))
        if found is None:
            raise Declined
        nest, term = found, _outer_term(found, machine)
    even = (n for n in (*range(parts, parts // 2, -1), *range(parts + 1, 2 * parts)) if term.size % n == 0)
    factor = max(term.size // next(even, parts), 1)
    outer, _, *few = s.split(term.at, factor, tail="cut")
    rest = [(isolate(s, few[0]), "parts")] if few else []
    outermost(s, outer, [loop.at for loop in nest.loops] + [outer])
    *_, main, merge = s.rfactor(outer, scope="global")
    isolate(s, main)
    launches = [parent(s.now(main)), isolate(s, merge)]
    return [*((launch, "parts") for launch in launches), *rest]
