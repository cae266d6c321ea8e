"""Errors at the line of a user's program that calls helve.

What is wrong with a call is often found far inside; nobody but its caller can mend it.
"""

from __future__ import annotations

import sys
import warnings

from helve import _core, source
from helve.errors import Error, error, from_diagnostic, warning_from


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


def warn_caller(name: str, depth: int = 2, **args: str) -> None:
    """A warning at the call of helve that it concerns, given once for each place as Python's filters say."""
    frame, _ = source.outside(sys._getframe(depth))
    located = at_caller(error(name, **args), depth=depth + 1)
    warnings.warn_explicit(warning_from(located.diagnostic), None, frame.f_code.co_filename, frame.f_lineno,
                           registry=frame.f_globals.setdefault("__warningregistry__", {}))
