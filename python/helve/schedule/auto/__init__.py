"""A default order for programs: blocks for all processors, lanes, tiles.

Auto decides; every step that it takes is an ordinary primitive, proved and printed as if a user had written it.
`nest` and `access` say what there is, and each other file is one rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto.elements import order_elements
from helve.schedule.auto.nest import Nest, child, launches, loop_of, nest_of
from helve.schedule.auto.parts import reduce_parts
from helve.schedule.auto.rows import reduce_rows, row_lane
from helve.schedule.auto.steps import attempt
from helve.schedule.auto.streams import stream_terms
from helve.schedule.auto.tiles import tile_of, tile_products
from helve.schedule.auto.turns import turn_tiles, turned_loops
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

__all__ = ["has_order", "order"]

_SMALL = 1 << 14  # a launch that runs its statement less often stays as it is


# The first rule that a nest fits takes it.
_RULES = (reduce_parts, stream_terms, tile_products, reduce_rows, turn_tiles)


def order(s: Schedule, version: _core.ScheduleVersion) -> None:
    """Takes the steps for the launches of a schedule, which is at the given version."""
    machine = _core.host_machine()
    todo = [(launch, frozenset()) for launch in reversed(launches(version))]
    while todo:
        launch, cut = todo.pop()
        rest = _order_launch(s, s.now(launch), cut, machine)
        todo += [(each, cut | {kind}) for each, kind in reversed(rest)]


def _order_launch(s: Schedule, launch: Cursor, cut: frozenset[str],
                  machine: _core.Machine) -> list[tuple[Cursor, str]]:
    nest = nest_of(launch)
    if nest is None:
        loop = loop_of(child(launch)) if launch.stmt.body is not None else None
        if loop is not None and loop.size > 1:
            attempt(s, lambda: s.bind(loop.at))
        return []
    if nest.work < _SMALL and not cut:
        return []
    for rule in _RULES:
        rest = rule(s, nest, machine, cut)
        if rest is not None:
            return rest
    return order_elements(s, nest)


def has_order(version: _core.ScheduleVersion) -> bool:
    """Is there a launch for which auto has more than blocks and lanes along rows?"""
    machine = _core.host_machine()
    nests = [nest_of(launch) for launch in launches(version)]
    return any(nest is not None and nest.work >= _SMALL and _has_rule(nest, machine) for nest in nests)


def _has_rule(nest: Nest, machine: _core.Machine) -> bool:
    return any(found for found in (tile_of(nest, machine), row_lane(nest), turned_loops(nest)))
