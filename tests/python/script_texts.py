"""Modules whose text only linecache knows, so that a test says what messages quote."""

import linecache
import textwrap

import helve
from helve import T


def registered(text, filename, names=None):
    """The names of a module run from a text that only linecache knows."""
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {"T": T, "helve": helve, "__name__": "registered", **(names or {})}
    exec(compile(text, filename, "exec"), names)
    return names
