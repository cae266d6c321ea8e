"""Errors and warnings as Python shows them.

The data (code, span, message, notes, help) comes from the core; here it becomes exceptions whose text quotes the source
with a caret under the operation at fault.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from helve._core import Diagnostic, Note, Span, builtin_axes
from helve import source


class Error(Exception):
    """A fault of a program given to helve. `str()` is the rendered text.

    Attributes:
        code: the code, "HV0123".
        name: the name of its row in the table of diagnostics.
        filename, lineno, column, end_lineno, end_column: where; None when unknown. Lines and columns count from 1.
        message: the text of the first line, without the code.
        notes: further remarks, a string each.
        help: the remedy, empty when there is none.
    """

    def __init__(self, diagnostic: Diagnostic):
        if not isinstance(diagnostic, Diagnostic):
            raise TypeError(f"{type(self).__name__}: a diagnostic is wanted, not a value of type "
                            f"'{type(diagnostic).__name__}'")
        super().__init__(render(diagnostic))
        self.diagnostic = diagnostic
        self.code: str = diagnostic.code
        self.name: str = diagnostic.name
        self.message: str = diagnostic.message
        self.notes: list[str] = [note.text for note in diagnostic.notes]
        self.help: str = diagnostic.help
        span = diagnostic.span
        self.filename = span.file if span.known else None
        self.lineno = span.line if span.known else None
        self.column = span.column if span.known else None
        self.end_lineno = span.end_line if span.known else None
        self.end_column = span.end_column if span.known else None

    def __reduce__(self):
        return _rebuild, (type(self), self.args, {k: v for k, v in self.__dict__.items() if k != "diagnostic"})


class LayoutError(Error, ValueError):
    """A refused operation on a layout."""


class ShapeError(LayoutError):
    """Extents that do not fit the layout."""


class DivisibilityError(LayoutError):
    """Extents that are not divisible as the operation requires."""


class InjectivityError(LayoutError):
    """A layout that maps two indices to one point where it must not."""


class BoundsError(LayoutError):
    """A coordinate outside the shape."""


class UnsupportedError(LayoutError):
    """An operation without a result of the required form."""


class UnknownNameError(Error, AttributeError):
    """A name that does not exist, looked up by Python itself: below T in annotations and decorators, of a schedule."""


class Warning(UserWarning):  # noqa: A001 - the public name is helve.Warning
    """A remark that never stops a compile; the same data as an Error.

    Its arguments are all of it and plain values, so that it crosses to other processes as any exception does.
    """

    def __init__(self, text: str, code: str, message: str, notes: list[str], help: str):  # noqa: A002
        super().__init__(text, code, message, notes, help)
        self.code = code
        self.message = message
        self.notes = notes
        self.help = help

    def __str__(self) -> str:
        return self.args[0]


class InternalError(Exception):
    """A defect of helve, never of the program given to it."""


for _class in (Error, LayoutError, ShapeError, DivisibilityError, InjectivityError, BoundsError, UnsupportedError,
               UnknownNameError, Warning, InternalError):
    _class.__module__ = "helve"  # the public name, as tracebacks show it

# The numbers of the table of diagnostics, by tens.
_LAYOUT_CLASSES = {51: ShapeError, 52: DivisibilityError, 53: InjectivityError, 54: BoundsError, 55: UnsupportedError,
                   56: UnsupportedError}


def from_diagnostic(diagnostic: Diagnostic) -> Error:
    """The exception of the class that the code belongs to."""
    if diagnostic.name == "LayoutUnknownAxis":  # the core compares no spellings
        near = suggestion(dict(diagnostic.args)["name"], [axis.name for axis in builtin_axes()])
        diagnostic = Diagnostic(diagnostic.name, diagnostic.span, diagnostic.args, diagnostic.notes,
                                [*near, diagnostic.help])
    if 500 <= diagnostic.number < 600:
        return _LAYOUT_CLASSES.get(diagnostic.number // 10, LayoutError)(diagnostic)
    return Error(diagnostic)


def warning_from(diagnostic: Diagnostic) -> Warning:
    """The warning with the data of a diagnostic."""
    notes = [note.text for note in diagnostic.notes]
    return Warning(render(diagnostic), diagnostic.code, diagnostic.message, notes, diagnostic.help)


# As the core writes it above a reproducer.
ASK_FOR_REPORT = "This is a fault of helve, not of your program. Please report it together with this text:"


def from_internal(text: str) -> InternalError:
    """The exception for a broken invariant of the core."""
    return InternalError(text)


def error(name: str, span: Span | None = None, /, *, notes: list[Note] = (), fixes: list[str] = (), **args) -> Error:
    """The exception for the row `name` of the table, ready to be raised. `args` fill the places of its templates."""
    pairs = [(key, _plain(value)) for key, value in args.items()]
    return from_diagnostic(Diagnostic(name, span or Span(), pairs, list(notes), [_plain(fix) for fix in fixes]))


def _plain(value: object) -> int | float | str:
    """The value as a diagnostic keeps it: integers of 64 bits, floats, and text that UTF-8 can write."""
    if isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    try:
        text = integer_text(value) if isinstance(value, int) else str(value)
    except Exception as fault:  # a __str__ of the user
        text = f"<{type(value).__name__}: {fault}>"
    return text.encode("utf-8", "backslashreplace").decode()


def integer_text(value: int) -> str:
    """An integer in digits; one that fills lines, of which Python refuses to write some, by its size."""
    return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"


def shown(value: object) -> str:
    """A value as Python writes it, shortened; its type where it has no text."""
    try:
        text = integer_text(value) if type(value) is int else repr(value)
    except Exception:  # noqa: BLE001 - an object of the user's, whatever it does
        text = f"a value of type '{type(value).__name__}'"
    return text if len(text) <= 80 else f"{text[:77]}..."


def suggestion(name: object, known: Iterable[str], prefix: str = "") -> list[str]:
    """"did you mean 'T.Kernel'?", for the name below `prefix` that is nearest by spelling, as a list of fixes."""
    if not isinstance(name, str):
        return []
    candidates = {text.lower(): text for text in known}
    near = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.7)
    return [f"did you mean '{prefix}{candidates[near[0]]}'?"] if near else []


def _rebuild(kind: type, args: tuple, state: dict) -> Error:
    exception = kind.__new__(kind)
    exception.args = args
    exception.__dict__.update(state)
    return exception


def render(diagnostic: Diagnostic) -> str:
    """The text of a diagnostic: message, quoted source with a caret, notes, help."""
    parts = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    parts += _excerpt(diagnostic.span)
    for note in diagnostic.notes:
        parts.append(f"note: {note.text}")
        parts += _excerpt(note.span)
    if diagnostic.help:
        first, *rest = diagnostic.help.split("\n")
        parts.append(f"help: {first}")
        parts += [f"      {line}" for line in rest]
    return "\n".join(parts)


def _excerpt(span: Span) -> list[str]:
    if not span.known:
        return []
    number = str(span.line)
    margin = " " * len(number)
    place = f"{margin}--> {source.shown_path(span.file)}:{span.line}:{span.column}"
    text = source.line_of(span.file, span.line)
    if text is None:
        return [place]
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(text)
    # A tab stays a tab and a wide character takes two columns, so that the caret stands below its text.
    lead = "".join("\t" if c == "\t" else " " * _width(c) for c in text[:start])
    carets = "^" * max(1, sum(_width(c) for c in text[start:end]))
    return [place, f"{margin} |", f"{number} | {text}".rstrip(), f"{margin} | {lead}{carets}"]


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
