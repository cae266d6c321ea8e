"""Makes the fuzzer's modules importable from its tests, and leaves out machine code that the build cannot make.

They are plain modules of this folder, so that `run.py` works as a script as well.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _a_build_without_llvm_is_judged_by_its_stages(monkeypatch, targets):
    import engines

    if "llvm" not in targets:
        monkeypatch.setattr(engines, "TARGETS", [target for target in engines.TARGETS if target != "llvm"])
