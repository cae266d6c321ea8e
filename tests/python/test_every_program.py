"""The programs of the whole suite mean the same everywhere: docs, tutorials, tests, kernels of the library, benchmarks.

These tests run last, on every function that the tests before them have built (conftest.py records them), in other
processes too if tests/run.py began those, and on those that C++ tests recorded. What is left out is printed with its
reason, and its number has a bound. HELVE_TEST_LONG=1 takes all; else of programs that differ in numbers alone one is
taken, and of those every twentieth, by the hash of its text.
"""

import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
import stage_check
from stage_check import Program, check_all, chosen

ROOT = Path(__file__).resolve().parents[2]
RECORDED = os.environ.get("HELVE_RECORD_FUNCTIONS")
EACH, SHARE = (0, 1) if os.environ.get("HELVE_TEST_LONG") else (1, 32)
PARTS = 1 if SHARE > 1 else 6  # the processes of each end together
SECONDS = 900 if SHARE > 1 else 3000  # for a part; the long run takes all programs, and other tests run beside it

# The share of programs that may be left out, by kind. Whoever needs more than these has written programs that nothing
# judges: smaller extents, or arguments that recipes can find, are the remedy before a larger bound is.
BOUNDS = {"large": 0.12, "refused": 0.3}

# Builders of functions that no test calls on a machine without a GPU.
ELSEWHERE = [
    ("benchmarks/cpu.py", "rms_norm", (77,)),
    ("benchmarks/cpu.py", "layer_norm", (77, 2)),
    ("benchmarks/cpu.py", "chain", (13, 50, 4, 16)),
    ("benchmarks/cpu.py", "row_copy", (5, 77)),
    ("benchmarks/cpu.py", "row_sums", (5, 77)),
    ("benchmarks/gemm.py", "tiles", (33, 20, 17, 16, 16, 8)),
    ("benchmarks/gemm.py", "regions", (33, 20, 17, 16, 16)),
    ("tests/gpu/test_barriers_on_gpu.py", "one_writes_for_all", ("int32",)),
    ("tests/gpu/test_barriers_on_gpu.py", "all_write_for_all", ("float16",)),
    ("tests/gpu/test_bulk_copies_on_gpu.py", "doubled_rows", (9, 64, 2, 2)),
    ("tests/gpu/test_box_copies_on_gpu.py", "pipelined_sums", (20, 64, 8, 16, 2)),
]  # fmt: skip

OUTCOMES = {}  # by text, of all parts


@pytest.mark.parametrize(("file", "name", "arguments"), ELSEWHERE)
def test_what_only_other_machines_build_is_built(file, name, arguments, monkeypatch):
    """Recorded like any other, it is checked below."""
    path = ROOT / file
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"elsewhere_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # skips itself without PyTorch, where it is a test for a GPU
    assert getattr(module, name)(*arguments).function.params


def is_stage(text):
    """C++ tests verify functions on their way down; those are met again as stages of where they began."""
    return "T.threads(" in text or "T.vectorized(" in text


def programs():
    own = stage_check.read_programs(RECORDED) if RECORDED else stage_check.PROGRAMS
    recorded = {path.read_text(): path.name for path in sorted(Path(RECORDED).glob("*.py"))} if RECORDED else {}
    of_cpp = [Program(text, None, f"C++ tests, {name}") for text, name in recorded.items()
              if text not in own and not is_stage(text)]
    return [each for each in chosen([*own.values(), *of_cpp], EACH) if int(each.name, 16) % SHARE == 0]


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_mean_the_same_at_every_stage(part):
    outcomes = check_all(programs()[part::PARTS])
    OUTCOMES.update({outcome.program.text: outcome for outcome in outcomes})
    failed = [outcome for outcome in outcomes if outcome.kind == "failed"]
    for outcome in failed[:5]:
        print(f"# {outcome.program.test}, mesh {outcome.program.mesh}\n{outcome.program.text}\n{outcome.detail}\n")
    assert not failed, f"{len(failed)} of {len(outcomes)} programs"


def test_what_is_left_out_stays_bounded(capsys):
    left_out = sorted((each.kind, each.detail, each.program.test) for each in OUTCOMES.values() if each.kind in BOUNDS)
    with capsys.disabled():
        kinds = Counter(outcome.kind for outcome in OUTCOMES.values())
        print(f"\n{len(OUTCOMES)} programs: {dict(kinds)}; of those left out")
        for (kind, detail), count in sorted(Counter(row[:2] for row in left_out).items()):
            named = sorted({test.partition("[")[0] for *row, test in left_out if row == [kind, detail]})
            print(f"  {count:4} {kind}: {detail} ({', '.join(named[:6])}{', ...' * (len(named) > 6)})")
    for kind, bound in BOUNDS.items():
        assert sum(row[0] == kind for row in left_out) <= bound * max(len(OUTCOMES), 100), kind
