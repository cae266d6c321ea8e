"""The kept failures: files of a program text under a head that says how to call it and what must come out.

A file parses as the language, so it can be read, run and debugged by hand. `expected` in its head names a failure that
is known and not mended yet; everything else must pass.
"""

import json
from dataclasses import asdict
from pathlib import Path

from engines import Call

FOLDER = Path(__file__).parent / "corpus"
MARK = "#: "


def write(path, call, note, expected=None):
    """Writes a call; `note` says in a sentence what was wrong."""
    head = {"note": note, **asdict(call)}
    text = head.pop("text")
    if expected:
        head["expected"] = expected
    lines = [f"{MARK}{key} = {json.dumps(value)}" for key, value in head.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n" + text)


def read(path):
    """(call, note, expected failure or None)."""
    head, lines = {}, []
    for line in path.read_text().splitlines():
        if line.startswith(MARK):
            key, _, value = line.removeprefix(MARK).partition(" = ")
            head[key] = json.loads(value)
        else:
            lines.append(line)
    note, expected = head.pop("note"), head.pop("expected", None)
    return Call(text="\n".join(lines) + "\n", **head), note, expected


def files():
    return sorted(FOLDER.glob("*.py-text"))
