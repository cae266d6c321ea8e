"""Programs pass checkers of types: the examples of all pages, and the tutorials, by mypy.

Left out is what a page says in the place of a program, names that later examples define anew, and the annotations of
kernels, which are calls (docs/language.md says how a checker is told).
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Calls as annotations; names of one page; optional results of other libraries.
LEFT_OUT = ("valid-type", "no-redef", "union-attr")


def checked(folder):
    """The lines of faults that mypy finds in the folder's files."""
    options = [f"--disable-error-code={code}" for code in LEFT_OUT]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--check-untyped-defs", "--allow-redefinition", "--ignore-missing-imports",
         "--no-error-summary", f"--cache-dir={folder / 'cache'}", *options, *map(str, sorted(folder.glob("*.py")))],
        capture_output=True, text=True, cwd=folder, timeout=250)  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module", autouse=True)
def mypy():
    pytest.importorskip("mypy")


def test_examples_and_tutorials(tmp_path):
    for page in PAGES:
        name = re.sub(r"\W", "_", page.stem)
        text = "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S))
        (tmp_path / f"page_{name}.py").write_text(text)
    for program in (ROOT / "tutorials").glob("*.py"):
        (tmp_path / f"tutorial_{program.name}").write_text(program.read_text())
    assert checked(tmp_path) == []


def test_a_wrong_type_is_seen(tmp_path):
    (tmp_path / "program.py").write_text("""
import helve
from helve import T

@T.prim_func
def main(A: T.Tensor((4,), "float32")):
    with T.Kernel(4, threds=32) as b:
        A[b] = T.exp(A[b])

helve.compile(main, out=2.0)
helve.bench(main, rounds="many")
i, j = helve.indices("i j")
helve.function(helve.tensor("A", 4))
""")
    found = [line.partition(": ")[0] for line in checked(tmp_path) if ": error: " in line]
    assert found == ["program.py:7", "program.py:10", "program.py:11", "program.py:13"]
