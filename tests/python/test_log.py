"""The log of compiles: what HELVE_LOG shows, and that a program can set the logger up itself."""

import logging
import os
import subprocess
import sys

import helve
import pytest
from helve import T

PROGRAM = """
import helve
from helve import T

@T.prim_func
def double(A: T.Tensor((64,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(64):
            A[i] = A[i] * 2.0

try:
    helve.compile(double)
except helve.Error as error:
    print(error)
"""


def run(tmp_path, value):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return subprocess.run([sys.executable, str(file)], env=os.environ | {"HELVE_LOG": value}, capture_output=True,
                          text=True, check=True)


@pytest.mark.parametrize("value", ["", "info", "debug"])
def test_lines_of_a_compile(tmp_path, value):
    lines = run(tmp_path, value).stderr.splitlines()
    assert len(lines) == 0 if not value else lines[0].startswith("helve: compiled 'double' for llvm in ")
    assert any("ms  verify" in line for line in lines[1:]) == (value == "debug")
    assert len(lines) <= 1 or value == "debug"


def test_another_value_is_refused(tmp_path):
    out = run(tmp_path, "loud").stdout
    assert out.startswith("error[HV0818]: HELVE_LOG is 'loud'\n")
    assert "help: set it to info or debug, or unset it" in out


def test_a_program_sets_the_logger_up(caplog, monkeypatch):
    monkeypatch.delenv("HELVE_LOG", raising=False)

    @T.prim_func
    def halve(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(64):
                A[i] = A[i] / 2.0

    with caplog.at_level(logging.INFO, logger="helve"):
        helve.compile(halve, target="interp")
    assert [record.getMessage().startswith("compiled 'halve' for interp in ") for record in caplog.records] == [True]
