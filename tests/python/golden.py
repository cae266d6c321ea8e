"""Golden texts: an output is compared with the file of tests/golden that keeps it.

One function for all of them and one command, tests/golden/rewrite.py, which runs the same tests with
HELVE_REWRITE_GOLDEN naming a file: then each text is written, and its name noted there.
"""

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
REWRITE = "HELVE_REWRITE_GOLDEN"
COMMAND = "python tests/golden/rewrite.py"


def check_golden(name, text):
    """Compares `text` with tests/golden/<name>, or writes it there where the command asks for it."""
    path = GOLDEN / name
    if record := os.environ.get(REWRITE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        with open(record, "a", encoding="utf-8") as names:
            names.write(f"{name}\n")
    assert path.exists(), f"tests/golden/{name} is not there: {COMMAND}"
    assert text == path.read_text(encoding="utf-8"), f"if the change of {name} is meant: {COMMAND}"
