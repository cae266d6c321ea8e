"""Where the text of a decorated function comes from.

Python keeps no source with a function; linecache has it for files, notebook cells and whatever registered its text.
"""

from __future__ import annotations

import inspect
import linecache
from types import FunctionType


def capture(function: FunctionType) -> tuple[str, int, list[str]] | None:
    """(file name, number of the first line, lines) of a function's definition, decorators included.

    Files, notebook cells and every text registered in linecache are found; None where the source cannot be had.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    first = code.co_firstlineno
    if not 0 < first <= len(lines):
        return None
    try:
        block = inspect.getblock(lines[first - 1 :])
    except SyntaxError:
        return None
    return code.co_filename, first, block
