"""Statements of a scheduled program, and how they are found.

A cursor belongs to the version of the program in which it was made; a schedule carries it to later ones.
"""

from __future__ import annotations

from helve import _core
from helve.errors import error


class Cursor:
    """One statement of a version of a schedule.

    Attributes:
        version: the version.
        path: the way to the statement.
    """

    __slots__ = ("path", "version")

    def __init__(self, version: _core.ScheduleVersion, path: _core.Cursor):
        self.version = version
        self.path = path

    @property
    def stmt(self) -> _core.Stmt:
        """The statement, as it is in the version in which the cursor was made."""
        return _core.statement_at(self.version.function, self.path)

    @property
    def text(self) -> str:
        """The lines of the statement."""
        return _core.print_stmt(self.stmt).rstrip("\n")

    @property
    def lineno(self) -> int | None:
        """The line of the statement in the kernel's source; None when unknown."""
        return self.stmt.span.line if self.stmt.span.known else None

    def parent(self) -> Cursor | None:
        """The statement around this one; None if that is the function."""
        path = self.path.parent
        return None if path is None else Cursor(self.version, path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cursor):
            return NotImplemented
        return self.version is other.version and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"<{self.path}: {self.text.splitlines()[0].strip()}>"


def _head(function: _core.Function, path: _core.Cursor) -> str:
    """The first line of a statement, less the colon at its end."""
    return _core.print_stmt(_core.statement_at(function, path)).splitlines()[0].removesuffix(":")


def carried(cursor: Cursor, version: _core.ScheduleVersion, place: _core.Span) -> _core.Cursor:
    """The path in `version` of a cursor of this version or of one before it.

    Raises:
        helve.Error: the cursor is of none of them (HV1003), or its statement is gone, or another loop (HV1004).
    """
    related, path, gone_by = _core.carry(cursor.path, cursor.version, version)
    if not related:
        raise error("ScheduleForeignCursor", place)
    if gone_by:
        notes = [_core.Note("the statement", cursor.stmt.span)] if cursor.stmt.span.known else []
        if path is not None:
            notes.append(_core.Note(f"in its place is '{_head(version.function, path)}'"))
        raise error("ScheduleGoneCursor", place, notes=notes, primitive=gone_by)
    return path


def find(version: _core.ScheduleVersion, kind: str, name: object, index: int | None, within: _core.Cursor | None,
         place: _core.Span) -> Cursor:
    """The statement that a name of a kind fits.

    Raises:
        helve.Error: there is none (HV1001), or there are several and `index` chooses none (HV1002).
    """
    function = version.function
    found = _core.find_all(function, kind, str(name), within) if isinstance(name, (str, int)) else []
    what = f"{kind} '{name}'"
    if within is not None:
        what += f" inside '{_head(function, within)}'"
    if index is None and len(found) > 1:
        notes = []
        for number, path in enumerate(found):
            span = _core.statement_at(function, path).span
            notes.append(_core.Note(f"number {number}: {_head(function, path)}", span))
        raise error("ScheduleAmbiguous", place, notes=notes, what=what, count=len(found), function=function.name)
    if not found or not 0 <= (index or 0) < len(found):
        if found:
            what = f"{what} with number {index}"
        known = ", ".join(_core.names_of(function, kind)) or "none"
        raise error("ScheduleNothingFound", place, what=what, function=function.name, known=known)
    return Cursor(version, found[index or 0])
