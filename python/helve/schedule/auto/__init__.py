"""A default order for programs: blocks for all processors, lanes, tiles.

Auto decides; every step that it takes is an ordinary primitive, proved and printed as if a user had written it.
`nest` and `access` say what there is, and each other file is one rule; those for a GPU are in `gpu`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helve import _core
from helve.schedule.auto import gpu
from helve.schedule.auto.elements import order_elements
from helve.schedule.auto.nest import Nest, child, launches, loop_of, nest_of
from helve.schedule.auto.parts import reduce_parts
from helve.schedule.auto.rows import reduce_rows, row_lane
from helve.schedule.auto.steps import attempt, is_gpu
from helve.schedule.auto.streams import stream_terms
from helve.schedule.auto.tiles import tile_of, tile_products
from helve.schedule.auto.turns import turn_tiles, turned_loops
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule

__all__ = ["has_order", "machine_of", "order"]

_SMALL = 1 << 14  # a launch that runs its statement less often stays as it is


# The first rule that a nest fits takes it.
_CPU_RULES = (reduce_parts, stream_terms, tile_products, reduce_rows, turn_tiles, order_elements)
_GPU_RULES = (gpu.reduce_parts, gpu.multiply_tiles, gpu.reduce_rows, gpu.reduce_columns, gpu.turn_tiles,
              gpu.order_elements)


def machine_of(target: str, arch: str | None = None) -> _core.Machine | None:
    """What programs for a target are planned for; None if auto has no plan for it, or there is no such architecture."""
    if target == "llvm":
        return _core.host_machine()
    return _core.gpu_machine(arch or "sm_80") if target == "cuda" else None


def order(s: Schedule, version: _core.ScheduleVersion, machine: _core.Machine) -> None:
    """Takes the steps for the launches of a schedule, which is at the given version."""
    todo = [(launch, frozenset()) for launch in reversed(launches(version))]
    while todo:
        launch, cut = todo.pop()
        rest = _order_launch(s, s.now(launch), cut, machine)
        todo += [(each, cut | {kind}) for each, kind in reversed(rest)]


def _order_launch(s: Schedule, launch: Cursor, cut: frozenset[str],
                  machine: _core.Machine) -> list[tuple[Cursor, str]]:
    nest = nest_of(launch, guards=is_gpu(machine))
    if nest is None:
        loop = loop_of(child(launch)) if launch.stmt.body is not None else None
        if loop is not None and loop.size > 1:
            attempt(s, lambda: s.bind(loop.at))
        return []
    if nest.work < _SMALL and not cut:
        return []
    if is_gpu(machine):
        nest = _without_single_loops(s, nest)
    for rule in _GPU_RULES if is_gpu(machine) else _CPU_RULES:
        rest = rule(s, nest, machine, cut)
        if rest is not None:
            return rest
    return []


def _without_single_loops(s: Schedule, nest: Nest) -> Nest:
    """The nest without loops of one iteration, which are no rows or columns of anything."""
    for loop in nest.loops + nest.terms:
        if loop.extent == 1:
            s.unroll(loop.at)
    return nest_of(s.now(nest.launch), guards=True) or nest


def has_order(version: _core.ScheduleVersion, machine: _core.Machine) -> bool:
    """Is there a launch for which auto has more than blocks, and lanes or threads along rows?"""
    nests = [nest_of(launch) for launch in launches(version)]
    return any(nest is not None and nest.work >= _SMALL and _has_rule(nest, machine) for nest in nests)


def _has_rule(nest: Nest, machine: _core.Machine) -> bool:
    if is_gpu(machine):
        return bool(nest.terms) or turned_loops(nest) is not None
    return any(found for found in (tile_of(nest, machine), row_lane(nest), turned_loops(nest)))
