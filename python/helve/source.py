"""The text that kernels were written in.

Errors quote the lines that were parsed, so they are kept from the definition on: a file may change and a notebook cell
be run again before a fault is found.
"""

from __future__ import annotations

import linecache
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
    """The text of a line (counted from 1), without its end; None where it cannot be had."""
    with _lock:
        text = _texts.get(filename, {}).get(line)
    if text is not None:
        return text
    found = linecache.getline(filename, line)
    return found.rstrip("\r\n") if found else None


def span_of_frame(frame: FrameType) -> _core.Span:
    """The line at which a Python frame stands, whole; its text is kept as it is now."""
    filename, line = frame.f_code.co_filename, frame.f_lineno
    linecache.checkcache(filename)
    text = linecache.getline(filename, line, frame.f_globals).rstrip()
    if text:
        register(filename, line, [text])
    return _core.Span(filename, line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1)
