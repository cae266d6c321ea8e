"""`helve cache`: the folder of compiled kernels and of what was measured, its size, and how to empty it.

The compiler keeps to its limit by itself; this is for those who want to see it, or want the space now. What an entry is
follows the compiler's own cache.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from helve import _core
from helve.cli.mistakes import Mistake
from helve.errors import Error

_MAGIC = b"HELVEC"
_ENTRY = re.compile(r"[0-9a-f]{64}")
_RECORD = b'{"circumstances"'
_UNFINISHED = re.compile(r"\.new-[0-9-]+")


def folder() -> Path:
    """The cache folder of this user."""
    return Path(_core.cache_folder())


def limit() -> int:
    """Bytes that it may have; 0 if it is turned off.

    Raises:
        Mistake: HELVE_CACHE_LIMIT is no number.
    """
    try:
        return _core.cache_limit()
    except Error as fault:
        raise Mistake(fault.message, fault.help) from None


def entries() -> list[Path]:
    """The files that the compiler stored, entries that a write left unfinished included, and the records of
    helve.autotune; nothing else.
    """
    found = []
    for path in folder().glob("v*/*"):
        if path.is_symlink() or not path.is_file():
            continue
        if _UNFINISHED.fullmatch(path.name):
            found.append(path)
        elif _ENTRY.fullmatch(path.name):
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) == _MAGIC:
                    found.append(path)
    for path in folder().glob("autotune/*.jsonl"):
        if not path.is_symlink() and path.is_file():
            with path.open("rb") as file:
                if file.read(len(_RECORD)) == _RECORD:
                    found.append(path)
    return found


def size_text(size: int) -> str:
    """Bytes in the largest unit that leaves a whole part."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.1f} {unit}"
    return f"{size} bytes"


def summary() -> str:
    """"3 entries, 1.5 MiB of at most 1.0 GiB"."""
    most = limit()
    held = _counted(entries())
    return f"{held} of at most {size_text(most)}" if most else f"{held}; turned off by HELVE_CACHE_LIMIT"


def _counted(found: list[Path]) -> str:
    count = f"{len(found)} {'entry' if len(found) == 1 else 'entries'}"
    return f"{count}, {size_text(sum(path.stat().st_size for path in found))}"


def command(chosen: argparse.Namespace) -> None:
    """Prints where the cache is and what it holds, or removes its entries."""
    try:
        print(folder())
        if chosen.action == "show":
            print(summary())
            return
        found = entries()
        text = _counted(found)
        for path in found:
            path.unlink(missing_ok=True)
        print(f"removed {text}")
    except OSError as fault:
        raise Mistake(f"the cache folder {folder()} cannot be used: {fault.strerror}",
                      "set HELVE_CACHE_DIR to a folder that this user may read and write") from None
