"""Errors at the line of a user's program that calls helve.

What is wrong with a call is often found far inside; nobody but its caller can mend it.
"""

from __future__ import annotations

import sys

from helve import _core, source
from helve.errors import Error, from_diagnostic


def at_caller(fault: Error, argument: int | str | None = None, notes: list[_core.Note] = (), depth: int = 2) -> Error:
    """The fault at the call of helve that it concerns, unless it has a location already.

    `argument` names the argument at fault, by position or by keyword; `depth` is the number of frames to that call.
    """
    if fault.filename is not None:
        return fault.with_traceback(None)  # what happened inside tells a user nothing
    data = fault.diagnostic
    fixes = data.help.split("\n") if data.help else []
    frame, inside = source.outside(sys._getframe(depth))
    # Of a call in helve the argument is another call's, which it need not have by the same place.
    span = source.span_of_call(frame, argument if isinstance(argument, str) or not inside else None)
    return from_diagnostic(_core.Diagnostic(data.name, span, data.args, [*data.notes, *notes], fixes))
