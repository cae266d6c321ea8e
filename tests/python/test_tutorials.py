"""The tutorials run as they stand.

What a newcomer runs first must not break; the large cases are left to the tutorials themselves.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"


def load(name):
    spec = importlib.util.spec_from_file_location(f"tutorial_{name}", TUTORIALS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def forms(text):
    """The lines of an output without its numbers, which depend on the machine."""
    return [" ".join(re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", line).split()) for line in text.splitlines()]


def check_stored(name, printed):
    """The stored output of a tutorial, which its page shows, has a machine, a date, and the lines that it prints."""
    where, *lines = (TUTORIALS / "outputs" / f"{name}.txt").read_text().splitlines()
    assert re.fullmatch(r"# \d+ cores of .+, \d{4}-\d\d-\d\d", where)
    stale = set(forms(printed)) - set(forms("\n".join(lines)))
    assert not stale, "record it anew: python docs/generate.py --tutorials"


def test_a_stale_output_is_seen():
    check_stored("03_pytorch", "step  40: loss 0.125")
    with pytest.raises(AssertionError, match="record it anew"):
        check_stored("03_pytorch", "epoch 40: loss 0.125")


def test_first_kernel(capsys):
    load("00_first_kernel").main()
    out = capsys.readouterr().out
    check_stored("00_first_kernel", out)
    assert "vector add of 100001 elements: equal to NumPy" in out
    assert re.findall(r"softmax of (\d+) x 777: largest error \d\.\de-\d\d", out) == ["1", "5", "1000"]
    # The program that is shown is one that helve reads back.
    import helve

    assert helve.parse(out.partition("as helve reads it:\n")[2]).name == "add"


def test_first_kernel_as_a_script(llvm):
    """The file itself, in a process of its own, as the tutorial says."""
    search = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run([sys.executable, str(TUTORIALS / "00_first_kernel.py")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": search}, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "@T.prim_func" in done.stdout


CASES = [
    ("interp", (40, 50), (2, 2)),
    ("interp", (50, 77), (2, 3)),
    ("llvm", (256, 512), (1, 1)),
    ("llvm", (100, 77), (2, 3)),
]


def test_rms_norm(capsys):
    load("01_rms_norm").main(cases=CASES)
    out = capsys.readouterr().out
    check_stored("01_rms_norm", out)
    head, *rows = out.splitlines()
    assert head.split() == ["target", "shape", "mesh", "ms", "GB/s", "largest", "error"]
    assert len(rows) == len(CASES)
    for row, (target, (m, n), (rows_of_mesh, columns)) in zip(rows, CASES, strict=True):
        words = row.split()
        assert words[:5] == [target, str(m), "x", str(n), f"{rows_of_mesh}x{columns}"]
        assert 0.0 <= float(words[-1]) < 1e-5


@pytest.mark.parametrize(
    ("stage", "expected"),
    [("script", "@T.prim_func"), ("lowered", "T.vectorized"), ("plan", "all_gather over (y)"), ("llvm", "define "),
     ("asm", "ret")],
)  # fmt: skip
def test_rms_norm_shows_a_stage(stage, expected, capsys):
    load("01_rms_norm").main(cases=[("llvm", (100, 77), (2, 3))], show=stage)
    assert expected in capsys.readouterr().out


def test_pytorch(capsys):
    pytest.importorskip("torch")
    load("03_pytorch").main(steps=20)
    out = capsys.readouterr().out
    check_stored("03_pytorch", out)
    operator, gradient, checked, *losses = out.splitlines()
    assert operator == "the operator: tutorial::signed_square(Tensor X) -> Tensor"
    assert float(gradient.rpartition(" ")[2]) <= 1e-5 and checked == "opcheck: SUCCESS"
    before, after = (float(line.rpartition(" ")[2]) for line in losses)
    assert after < 0.8 * before


def test_layouts(capsys):
    load("02_layouts").main()
    out = capsys.readouterr().out
    check_stored("02_layouts", out)
    assert "ij -> i j  S[(2, 4, 3, 4) : (1@x, 4, 1@y, 1)]" in out
    assert "rows of 40: no swizzle: proved" in out and "rows of 64: Swizzle(3, 3, 3): proved" in out
    assert "lane 5     [(1, 2), (1, 3), (9, 2), (9, 3)]" in out
