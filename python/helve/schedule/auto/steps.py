"""Steps that auto takes as one, or not at all.

The checker refuses what is not proved; then the program is what it was, and the next option is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from helve import _core
from helve.errors import Error
from helve.schedule.auto.nest import Nest, child, cursor_at
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule


BLOCKS = 4  # a processor, so that none waits long for the others


class Declined(Exception):
    """A rule finds, between its steps, that the rest would not pay."""


def is_gpu(machine: _core.Machine) -> bool:
    """Is it one whose blocks have threads?"""
    return machine.is_gpu


def attempt(s: Schedule, steps: Callable[[], None]) -> bool:
    """Takes all the steps, or none if one of them is refused."""
    before = len(s)
    try:
        steps()
    except (Error, Declined):
        while len(s) > before:
            s.undo()
        return False
    return True


def isolate(s: Schedule, rest: Cursor) -> Cursor:
    """Takes a statement out of all loops around it, and out of its launch, into ones of its own; returns the launch."""
    while not isinstance(s.now(rest).stmt, _core.Kernel):
        _, rest = s.fission(rest)
    return rest


def apart(s: Schedule, rest: Cursor, below: Cursor) -> tuple[Cursor, Cursor]:
    """Takes a statement out of all loops and branches below a loop, away from what stands in front of it there: (what
    that is then, the statement with its loops)."""
    front = rest
    while parent(s.now(rest)) != s.now(below):
        front, rest = s.fission(s.now(rest))
    return front, rest


def split_exactly(s: Schedule, loop: Cursor, factor: int) -> tuple[Cursor, Cursor, Cursor | None]:
    """Divides a loop into blocks, and iterations left over into a launch of their own: (outer, inner, that launch)."""
    outer, inner, *rest = s.split(loop, factor, tail="cut")
    return outer, inner, isolate(s, rest[0]) if rest else None


def fitting(extent: int | None, most: int, least: int) -> int:
    """A number of rows that divides the extent, of `least` to `most`; `most` if none does."""
    if extent is not None and extent <= most:
        return extent
    return next((n for n in range(most, least - 1, -1) if extent is not None and extent % n == 0), most)


def blocks(s: Schedule, nest: Nest, machine: _core.Machine, loops: list[Cursor]) -> None:
    """Binds the outermost loops to blocks, until there are enough for the processors."""
    wanted = BLOCKS * machine.processors if nest.grid == 1 else 0
    for loop in loops:
        if wanted <= 1:
            break
        extent = s.now(loop).stmt.extents[0]
        s.bind(loop)
        wanted = -(-wanted // max(extent.value, 1)) if isinstance(extent, _core.IntImm) else 0


def outermost(s: Schedule, loop: Cursor, loops: list[Cursor]) -> None:
    """Makes a loop the first one of its nest."""
    if s.now(loops[0]) != s.now(loop):
        s.reorder(loop, *(each for each in loops if s.now(each) != s.now(loop)))


def body(s: Schedule, loop: Cursor, position: int = 0) -> Cursor:
    """A statement of the loop's body, as it is now."""
    return child(s.now(loop), position)


def parent(cursor: Cursor) -> Cursor:
    """The statement around one."""
    return cursor_at(cursor.version, str(cursor.path).rpartition(".")[0])
