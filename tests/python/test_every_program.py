"""The programs of the whole suite mean the same everywhere: docs, tutorials, tests, kernels of the library, benchmarks.

These tests run last, on every function that the tests before them have built (conftest.py records them) and on those
that C++ tests recorded. What is left out is counted by reason, and the counts have bounds.
HELVE_TEST_LONG=1 also takes programs that differ from others in numbers alone.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
import stage_check
from stage_check import Program, check_all, chosen

PARTS = 6
RECORDED = os.environ.get("HELVE_RECORD_FUNCTIONS")
EACH = 0 if os.environ.get("HELVE_TEST_LONG") else 2

OUTCOMES = {}  # by text, of all parts


def programs():
    recorded = sorted(Path(RECORDED).glob("*.py")) if RECORDED else []
    texts = {path.read_text(): path.name for path in recorded}
    of_cpp = [Program(text, None, f"C++ tests, {name}") for text, name in texts.items()]
    own = stage_check.PROGRAMS
    return chosen([*own.values(), *(program for program in of_cpp if program.text not in own)], EACH)


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_mean_the_same_at_every_stage(part):
    outcomes = check_all(programs()[part::PARTS])
    OUTCOMES.update({outcome.program.text: outcome for outcome in outcomes})
    failed = [outcome for outcome in outcomes if outcome.kind == "failed"]
    for outcome in failed[:5]:
        print(f"# {outcome.program.test}, mesh {outcome.program.mesh}\n{outcome.program.text}\n{outcome.detail}\n")
    assert not failed, f"{len(failed)} of {len(outcomes)} programs"
