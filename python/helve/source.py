"""The text that kernels were written in.

Errors quote the lines that were parsed, so they are kept from the definition on: a file may change and a notebook cell
be run again before a fault is found.
"""

from __future__ import annotations

import ast
import linecache
import os
import threading
from collections import OrderedDict
from types import FrameType

from helve import _core

_LIMIT = 256  # texts; the least recently defined go first
_lock = threading.Lock()
_texts: OrderedDict[str, dict[int, str]] = OrderedDict()


def register(filename: str, first_line: int, lines: list[str]) -> None:
    """Keeps `lines`, the first of which is line `first_line` of `filename`, for the rendering of errors."""
    with _lock:
        known = _texts.pop(filename, {})
        known.update({first_line + i: line.rstrip("\r\n") for i, line in enumerate(lines)})
        _texts[filename] = known
        while len(_texts) > _LIMIT:
            _texts.popitem(last=False)


def replace(filename: str, lines: list[str]) -> None:
    """Keeps `lines` as the whole text of `filename`, in place of what was known of it."""
    with _lock:
        _texts.pop(filename, None)
    register(filename, 1, lines)


def line_of(filename: str, line: int) -> str | None:
    """The text of a line (counted from 1), without its end; None if it is not available."""
    with _lock:
        text = _texts.get(filename, {}).get(line)
    if text is not None:
        return text
    found = linecache.getline(filename, line)
    return found.rstrip("\r\n") if found else None


def shown_path(filename: str) -> str:
    """A file's name as messages show it: relative to the working directory where it lies below that."""
    try:
        folder = os.path.join(os.getcwd(), "")
    except OSError:  # the working directory is gone
        return filename
    return filename.removeprefix(folder)


_inner = (os.path.join(os.path.dirname(os.path.abspath(__file__)), ""),)


def add_inner(folder: str) -> None:
    """Lets the code below a folder count as helve's own: that of a library which calls helve for a user."""
    global _inner
    _inner = tuple(dict.fromkeys((*_inner, os.path.join(os.path.abspath(folder), ""))))


def is_inner(filename: str) -> bool:
    """Is it a file of helve's own code?"""
    return filename.startswith(_inner)


def outside(frame: FrameType) -> tuple[FrameType, int]:
    """The nearest frame from `frame` on that is not helve's own code, and how many frames lie between.

    Code of helve calls its own interface too; errors and warnings name the line of a user.
    """
    found, steps = frame, 0
    while found.f_code.co_filename.startswith(_inner) and found.f_back is not None:
        found, steps = found.f_back, steps + 1
    return found, steps


def span_of_call(frame: FrameType, argument: int | str | None = None) -> _core.Span:
    """The call that a Python frame is executing, or one argument of it: by position or by keyword.

    The line, whole, where Python does not keep the places of calls.
    """
    whole = span_of_frame(frame)
    code = frame.f_code
    place = list(code.co_positions())[frame.f_lasti // 2] if hasattr(code, "co_positions") else (None,)
    if None in place:
        return whole
    first, last, start, end = place
    lines = [linecache.getline(code.co_filename, n, frame.f_globals).rstrip("\r\n") for n in range(first, last + 1)]
    if not all(lines[:1] + lines[-1:]):
        return whole
    register(code.co_filename, first, lines)
    encoded = [line.encode() for line in lines]
    found = _argument(encoded, start, end, argument) or (0, start, len(lines) - 1, end)
    column, end_column = (len(encoded[n][:c].decode(errors="replace")) + 1 for n, c in (found[:2], found[2:]))
    return _core.Span(code.co_filename, first + found[0], column, first + found[2], end_column)


def _argument(lines: list[bytes], start: int, end: int, wanted: int | str | None) -> tuple[int, int, int, int] | None:
    """(line, column, end line, end column), in bytes from the first of `lines`, of an argument of the call in them."""
    if wanted is None:
        return None
    text = [*lines]
    text[-1] = text[-1][:end]
    text[0] = b"(" + text[0][start:]
    try:
        call = ast.parse(b"\n".join(text) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call) or any(isinstance(node, ast.Starred) for node in call.args):
        return None
    if isinstance(wanted, str):
        node = next((k for k in call.keywords if k.arg == wanted), None)
    else:
        node = call.args[wanted] if wanted < len(call.args) else None
    if node is None:
        return None
    shift = start - 1  # of the first line: what was cut off, less the parenthesis
    return (node.lineno - 1, node.col_offset + (shift if node.lineno == 1 else 0),
            node.end_lineno - 1, node.end_col_offset + (shift if node.end_lineno == 1 else 0))


def span_of_frame(frame: FrameType) -> _core.Span:
    """The line that a Python frame is executing, whole; its text is kept as it is now."""
    filename, line = frame.f_code.co_filename, frame.f_lineno
    linecache.checkcache(filename)
    text = linecache.getline(filename, line, frame.f_globals).rstrip()
    if text:
        register(filename, line, [text])
    return _core.Span(filename, line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1)
