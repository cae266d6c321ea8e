"""What holds for every test of the suite.

Each kernel function that any test builds must survive printing and parsing; tests need not ask for it. A build without
LLVM skips what needs it.
"""

import helve
import helve.testing
import pytest
from helve import _core
from helve.script.prim_func import PrimFunc


@pytest.fixture(autouse=True)
def _functions_survive_a_round_trip(monkeypatch):
    """parse(print(f)) == f for all functions built during the test."""
    built = []
    construct = PrimFunc.__init__

    def remember(self, function):
        construct(self, function)
        built.append(function)

    with monkeypatch.context() as patch:
        patch.setattr(PrimFunc, "__init__", remember)
        yield
    for function in built:
        helve.testing.assert_round_trip(function)


REASON = "this build has no LLVM, which machine code needs"


@pytest.fixture(autouse=True)
def _machine_code_needs_llvm(monkeypatch):
    """In a build without LLVM, whatever test compiles machine code ends there, skipped."""
    compile_function = _core.compile

    def compile_or_skip(*args, **kwargs):
        try:
            return compile_function(*args, **kwargs)
        except helve.Error as problem:
            if problem.code == "HV0803" and "'llvm'" in problem.message:
                pytest.skip(REASON)
            raise

    monkeypatch.setattr(_core, "compile", compile_or_skip)


NOTHING = "@T.prim_func\ndef main():\n    pass\n"


@pytest.fixture
def llvm():
    """For tests whose programs run in another process: skipped in a build without LLVM."""
    helve.compile(helve.parse(NOTHING))


@pytest.fixture
def targets():
    """For tests that go through targets themselves: those for the CPU that the build has."""
    try:
        helve.compile(helve.parse(NOTHING))
    except pytest.skip.Exception:
        return ["interp"]
    return ["interp", "llvm"]
