"""What auto knows of a launch: its loops, its statements, and how each access moves with each loop.

Decisions are made of these facts only, so that they say nothing of names or of where a program comes from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from helve import _core
from helve.schedule.auto.access import Access, loads
from helve.schedule.cursor import Cursor, find

UNKNOWN = 1 << 12  # what an extent counts that only a call knows


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of one variable.

    Attributes:
        at: the statement.
        var: its variable.
        extent: the number of its iterations; None unless it is constant.
    """

    at: Cursor
    var: _core.Var
    extent: int | None

    @property
    def size(self) -> int:
        """The extent, or what one counts that is not known."""
        return UNKNOWN if self.extent is None else self.extent


@dataclass(eq=False)
class Nest:
    """A launch that holds one nest of loops and nothing else.

    Attributes:
        launch: the launch.
        grid: the number of its blocks; None where that is not constant.
        loops: loops that hold nothing but each other, outermost first; none where one element is computed.
        terms: the loops around the update of a reduction that the innermost one of `loops` holds.
        first: the statement that gives an element its initial value; None if there is none.
        store: the statement that stores an element, or updates it.
        target: the element that it stores.
        loads: the elements that it reads.
    """

    launch: Cursor
    grid: int | None
    loops: list[Loop]
    terms: list[Loop]
    first: Cursor | None
    store: Cursor
    target: Access
    loads: list[Access]

    @property
    def work(self) -> int:
        """The number of times that the statement runs."""
        return math.prod(loop.size for loop in self.loops + self.terms)

    def may_be_lanes(self, loop: Loop) -> bool:
        """Are all accesses, in neighbouring iterations of the loop, of neighbours or of one element?"""
        if self.target.stride(loop.var) != 1:
            return False
        return all(access.stride(loop.var) in (0, 1) for access in self.loads)

    def lanes(self) -> Loop | None:
        """The innermost loop over elements that may be one of lanes."""
        return next((loop for loop in reversed(self.loops) if self.may_be_lanes(loop)), None)

    def turned(self, lane: Loop) -> list[Access]:
        """The reads that are no neighbours in the lanes."""
        return [access for access in self.loads if access.stride(lane.var) not in (0, 1)]

    def lanes_of_copies(self) -> Loop | None:
        """The loop that may be one of lanes if what it reads from far apart is copied with turned dimensions."""
        others = [loop.var for loop in self.terms]
        for loop in reversed(self.loops):
            if self.target.stride(loop.var) == 1 and all(a.turned(loop.var, others) for a in self.turned(loop)):
                return loop
        return None


def _block(s: _core.Stmt | None) -> list[_core.Stmt]:
    if s is None:
        return []
    return list(s.stmts) if isinstance(s, _core.Seq) else [s]


def _parts(s: _core.Stmt) -> list[tuple[str, list[_core.Stmt]]]:
    names = [name for name in ("body", "then_body", "else_body") if name in type(s).fields]
    return [(name, _block(getattr(s, name))) for name in names]


def launches(version: _core.ScheduleVersion) -> list[Cursor]:
    """The launches of a program, in order."""

    def visit(around: str, block: list[_core.Stmt]) -> Iterator[str]:
        for position, s in enumerate(block):
            path = f"{around}[{position}]"
            if isinstance(s, _core.Kernel):
                yield path
                continue
            for name, part in _parts(s):
                yield from visit(f"{path}.{name}", part)

    paths = list(visit("body", _block(version.function.body)))
    return [cursor_at(version, path) for path in paths]


def cursor_at(version: _core.ScheduleVersion, path: str) -> Cursor:
    """The statement at a path, which must have one."""
    return find(version, "path", path, None, None, _core.Span())


def child(cursor: Cursor, position: int = 0, field: str = "body") -> Cursor:
    """A statement of the block that a statement holds."""
    return cursor_at(cursor.version, f"{cursor.path}.{field}[{position}]")


def loop_of(cursor: Cursor) -> Loop | None:
    """The loop at a place, if it is one whose iterations a schedule may divide."""
    s = cursor.stmt
    if not isinstance(s, _core.For) or s.loop not in ("serial", "Parallel") or len(s.vars) != 1:
        return None
    extent = s.extents[0]
    return Loop(cursor, s.vars[0], extent.value if isinstance(extent, _core.IntImm) else None)


def _chain(cursor: Cursor) -> tuple[list[Loop], Cursor]:
    """The loops from a statement inwards that hold nothing but each other, and the statement in which that ends."""
    loops = []
    while (loop := loop_of(cursor)) is not None:
        loops.append(loop)
        if len(_block(cursor.stmt.body)) != 1:
            break
        cursor = child(cursor)
    return loops, cursor


def _below_guards(cursor: Cursor) -> Cursor:
    """The statement that branches hold, which compare indices and have nothing else to do."""
    while isinstance(s := cursor.stmt, _core.If) and s.else_body is None and not loads(s.condition):
        if len(_block(s.then_body)) != 1:
            break
        cursor = child(cursor, 0, "then_body")
    return cursor


def nest_of(launch: Cursor, guards: bool = False) -> Nest | None:
    """The nest that a launch holds; None if it holds something else. With `guards`, branches may stand around the
    statement."""
    s = launch.stmt
    extents = [e.value if isinstance(e, _core.IntImm) else None for e in s.extents]
    grid = None if None in extents else math.prod(extents)
    count = len(_block(s.body))
    loops, inside = _chain(child(launch)) if count == 1 else ([], launch)
    terms: list[Loop] = []
    first = None
    if isinstance(inside.stmt, (_core.For, _core.Kernel)):
        if len(_block(inside.stmt.body)) != 2 or (loops and loops[-1].at is not inside):
            return None
        first, rest = child(inside, 0), child(inside, 1)
        terms, inside = _chain(rest)
        if not terms or not isinstance(first.stmt, _core.Store) or loads(first.stmt.value):
            return None
    if guards:
        inside = _below_guards(inside)
    store = inside.stmt
    if not isinstance(store, _core.Store):
        return None
    target = Access(store.buffer, tuple(store.indices))
    if first is not None and (first.stmt.buffer is not store.buffer or store.mode == "set"):
        return None
    if first is None and store.mode != "set":  # loops whose iterations update one element are those of terms
        terms = [loop for loop in loops if target.stride(loop.var) == 0]
        loops = [loop for loop in loops if loop not in terms]
    return Nest(launch, grid, loops, terms, first, inside, target, loads(store.value))
