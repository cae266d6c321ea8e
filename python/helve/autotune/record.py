"""What was measured, on disk: a line of JSON for each candidate.

A line is written whole as soon as it is known, and one that a killed process left unfinished is passed over, so that
whoever comes next goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from helve import _core

_FOLDER = "autotune"


class Record:
    """The candidates that were measured under the same circumstances.

    Args:
        circumstances: what a time depends on besides the source; JSON.

    Attributes:
        path: the file.
    """

    def __init__(self, circumstances: dict[str, Any]):
        text = json.dumps(circumstances, sort_keys=True)
        self.path = Path(_core.cache_folder()) / _FOLDER / f"{digest(text)}.jsonl"
        self._circumstances = circumstances
        self._known: dict[str, dict[str, Any]] = {}

    def load(self) -> None:
        """Reads what is there."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # there is nothing yet, or nothing that can be read
            return
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:  # its process was killed while it wrote
                continue
            if _is_entry(found):
                self._known[found["source"]] = found

    def find(self, source: str) -> dict[str, Any] | None:
        """The entry of a source's digest: "seconds" and "spread"."""
        return self._known.get(source)

    def add(self, source: str, point: str, seconds: float, spread: float) -> None:
        """Keeps a time, in memory and on disk.

        Raises:
            OSError: the file cannot be written.
        """
        self._known[source] = {"source": source, "point": point, "seconds": seconds, "spread": spread}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begin = b""
        if not self.path.exists():
            begin = json.dumps({"circumstances": self._circumstances}).encode() + b"\n"
        elif not self.path.read_bytes().endswith(b"\n"):
            begin = b"\n"
        place = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(place, begin + json.dumps(self._known[source]).encode() + b"\n")
        finally:
            os.close(place)


def digest(text: str) -> str:
    """Of a source's text, or of circumstances."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _is_entry(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("source"), str):
        return False
    return all(isinstance(found.get(name), float) and found[name] >= 0 for name in ("seconds", "spread"))
