"""Writes the golden texts anew, and removes those that no test asks for: python tests/golden/rewrite.py

Runs the tests that call `check_golden`, in files named test_golden_*.py. Prints the names of texts that changed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
TESTS = GOLDEN.parent / "python"
sys.path.insert(0, str(TESTS))

from golden import REWRITE  # noqa: E402 - beside the tests, which are no package


def kept() -> dict[str, str]:
    """Name -> text of what tests keep."""
    return {
        path.relative_to(GOLDEN).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(GOLDEN.glob("*/*"))
        if path.suffix in (".cu", ".svg")
    }


def main() -> int:
    before = kept()
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "written"
        files = map(str, sorted(TESTS.glob("test_golden_*.py")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not kept", *files]
        outcome = subprocess.run(command, cwd=GOLDEN.parents[1], env={**os.environ, REWRITE: str(record)})
        written = set(record.read_text(encoding="utf-8").split()) if record.exists() else set()
    if outcome.returncode != 0 or not written:
        print("rewrite: the tests failed; nothing was removed", file=sys.stderr)
        return 1
    for name in sorted(kept().keys() - written):
        (GOLDEN / name).unlink()
    after = kept()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            print("removed" if name not in after else "changed" if name in before else "new", name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
