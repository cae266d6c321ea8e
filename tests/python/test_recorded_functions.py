"""Functions that C++ tests build survive printing and parsing, as those of Python tests do.

The C++ test programs record what they verify, source functions and stages of the pipeline alike, when `make test` runs
them first. HELVE_TEST_LONG=1 takes all of them, else every eighth, by the hash of its text.
"""

import os
from pathlib import Path

import pytest

from helve import _core
from helve.script.entry import parse

FOLDER = os.environ.get("HELVE_RECORD_FUNCTIONS")


@pytest.mark.skipif(FOLDER is None, reason="the C++ tests did not run before (make test runs them)")
def test_recorded_functions_parse_back():
    records = sorted(Path(FOLDER).glob("*.py"))
    assert len(records) >= 500, "the C++ tests recorded too little; is `verify` still wrapped?"
    share = 1 if os.environ.get("HELVE_TEST_LONG") else 8
    for record in records:
        if int(record.stem, 16) % share:
            continue
        text = record.read_text()
        function = parse(text).function
        assert f"{_core.structural_hash(function):016x}" == record.stem, f"another function after a round trip:\n{text}"
        assert _core.print(function) == text
