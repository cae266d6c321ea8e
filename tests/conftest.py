"""What holds for every test of the suite.

Each kernel function that any test builds must survive printing and parsing, and is a program that
test_every_program.py checks at the end; tests need not ask for it. A build without LLVM skips what needs it.
"""

import gc
import os

import helve
import helve.testing
import pytest
import stage_check
from helve import _core
from helve.script.prim_func import PrimFunc

_core.sample_conditions(True)  # whatever a compile asks of its calls is also tried out, point by point


# Functions that were built and not looked at yet, those of test modules' own top level included.
BUILT = []
construct = PrimFunc.__init__


def remember(self, function, *doc):
    construct(self, function, *doc)
    BUILT.append(function)


PrimFunc.__init__ = remember


@pytest.fixture(autouse=True)
def _functions_survive_a_round_trip(request):
    """parse(print(f)) == f for all functions built up to the end of the test."""
    yield
    built = BUILT.copy()
    BUILT.clear()
    for function in built:
        helve.testing.assert_round_trip(function)
        if not is_judged_elsewhere(request) and not request.node.get_closest_marker("wrong_programs"):
            stage_check.record(function, test=request.node.nodeid)


def is_judged_elsewhere(request):
    """The fuzzer takes its programs through every engine by itself."""
    return request.path.parent.name == "fuzz"


def pytest_sessionfinish(session):
    """A process of several leaves its programs to the one that checks all."""
    folder = os.environ.get("HELVE_RECORD_FUNCTIONS")
    if folder and not session.config.option.collectonly:
        stage_check.write_programs(folder)


def pytest_collection_finish():
    """Thousands of tests and modules live to the end; the collector of garbage need not look at them each time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    """What checks the programs of all tests runs after them."""
    items.sort(key=lambda item: item.path.name == "test_every_program.py")


REASON = "this build has no LLVM, which machine code needs"


@pytest.fixture(autouse=True)
def _machine_code_needs_llvm(request, monkeypatch):
    """In a build without LLVM, whatever test compiles machine code ends there, skipped."""
    compile_function = _core.compile

    def compile_or_skip(function, target, mesh, *args, **kwargs):
        if mesh is not None and not is_judged_elsewhere(request):
            stage_check.record(function, mesh)
        try:
            return compile_function(function, target, mesh, *args, **kwargs)
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
