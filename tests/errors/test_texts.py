"""The exact text of every diagnostic.

Cases stand in `*.cases` files beside this one; whoever adds a diagnostic adds a case, in a file of the subject:

    === what the case shows
    the kernel's text, given to helve.parse as file "kernel.py"
    ---
    the whole rendered text

A title that ends in `[python]` marks a text that is run as a Python program instead (file "kernel.py", with `helve` and
`T` at hand): for what decorators, compiling and calling report.
"""

import linecache
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import helve
import pytest
from helve import _core

FOLDER = Path(__file__).parent
FILENAME = "kernel.py"

ROOT = FOLDER.parent.parent
# Diagnostics that no Python program can provoke on every machine, with the C++ test that states their exact text.
# A folder stands for its rooms: rows that only `src/<folder>` raises, of which Python has no door.
OF_CPP = {
    # Python counts tensors and scalars together (CallArgumentCount); an extent below 0, no data of one, memory of
    # another device: of what NumPy makes, nothing is like that.
    # What drivers, devices and compilers of CUDA lack differs by machine; the tests bring a driver of their own.
    "runtime": {
        "ArgumentCount", "ScalarArgumentCount", "NegativeArgumentExtent", "MissingData", "ArgumentDevice",
        "CudaDriverMissing", "CudaDriverOutdated", "CudaCallFailed", "CudaDeviceMissing", "NvrtcMissing",
        "RegisterSpills", "LocalArrays", "NvccMissing", "NvdisasmMissing", "CacheUnusable", "CacheLimit",
        "CudaArchitectureMismatch",
        "DeviceArgument", "MixedDevices", "GridSize", "BlockThreads", "ResidentBlocks",
        "ForbiddenInCapture", "ClusterSize",
        # What processes do differently takes several of them; the tests have threads that stand for processes.
        "ProcessCount", "ProcessesDiffer", "ProcessLate", "ProcessLost", "ProcessesBroken", "ProcessRefused",
        "NcclCallFailed", "DeviceStepLate",
    },
}
# Those of programs that take several processes, or NVRTC; tests beside those of processes state the exact text.
OF_PROCESSES = {"ArgumentDistribution", "NotOfOwnPart", "ProcessesUnmet", "NcclMissing", "PartDevice", "SharedDevice",
                "CallText"}
# Of results for PyTorch, and of its compiler; tests/python/test_torch_tensors.py states the exact text.
OF_PYTORCH = {"GradientIsLost", "CallInGraph"}


@dataclass(frozen=True)
class Case:
    title: str
    program: str
    expected: str
    is_python: bool


def read_cases(text):
    """The cases of a file's text."""
    for part in re.split(r"^=== ", text, flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        program, separator, expected = rest.partition("\n---\n")
        assert separator, f"'{title}' has no line '---'"
        yield Case(title.strip(), program + "\n", expected.strip("\n"), title.rstrip().endswith("[python]"))


CASES = [
    pytest.param(case, id=f"{path.stem}: {case.title}")
    for path in sorted(FOLDER.glob("*.cases"))
    for case in read_cases(path.read_text())
]


def outcome(case):
    """The error that the case's program ends with, or else the first warning of helve."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if case.is_python:
                lines = case.program.splitlines(keepends=True)
                linecache.cache[FILENAME] = (len(case.program), None, lines, FILENAME)
                exec(compile(case.program, FILENAME, "exec"), {"helve": helve, "T": helve.T, "__name__": "kernel"})
            else:
                helve.parse(case.program, filename=FILENAME)
        except helve.Error as error:
            return error
        finally:
            linecache.cache.pop(FILENAME, None)
    return next((entry.message for entry in caught if isinstance(entry.message, helve.Warning)), None)


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    found = outcome(case)
    assert found is not None, "the program has no fault"
    assert str(found) == case.expected


def codes_with_a_case():
    texts = [case.values[0].expected for case in CASES]
    return {int(code) for text in texts for code in re.findall(r"^(?:error|warning)\[HV(\d+)\]", text)}


def uncovered():
    """(number, name) of the diagnostics without a case here or in C++, in table order."""
    covered = codes_with_a_case()
    elsewhere = set().union(*OF_CPP.values(), OF_PROCESSES, OF_PYTORCH)
    rows = [(number, name) for name, number, *_ in _core.diagnostic_rows() if number not in covered]
    return [(number, name) for number, name in rows if name not in elsewhere]


def test_every_diagnostic_has_a_case():
    assert uncovered() == []


@pytest.mark.parametrize("folder", OF_CPP)
def test_what_is_left_to_cpp_is_stated_there_and_needs_to_be(folder):
    """Each has its exact text in a C++ test of its folder, no case here, and nobody else who raises it."""
    numbers = {name: number for name, number, *_ in _core.diagnostic_rows()}
    texts = "".join(path.read_text() for path in (ROOT / "tests/cpp" / folder).glob("*.cc"))
    assert [name for name in OF_CPP[folder]
            if not re.search(rf'"(?:error|warning)\[HV{numbers[name]:04}\]: ', texts)] == []
    assert [name for name in OF_CPP[folder] if numbers[name] in codes_with_a_case()] == []
    python = "".join(path.read_text() for path in (ROOT / "python").rglob("*.py"))
    assert [name for name in OF_CPP[folder] if f'error("{name}"' in python] == []
    sources = [*(ROOT / "src").rglob("*.cc"), *(ROOT / "python/bindings").glob("*.cc")]
    rooms = (folder, "interp", "plan")  # these check arguments that C++ gives them, and run steps on GPUs
    others = "".join(path.read_text() for path in sources if path.relative_to(ROOT).parts[1] not in rooms)
    assert [name for name in OF_CPP[folder] if f"Code::{name}," in others] == []


def test_what_takes_processes_is_stated_by_tests_of_them():
    numbers = {name: number for name, number, *_ in _core.diagnostic_rows()}
    texts = "".join(path.read_text() for path in (ROOT / "tests/multi").glob("*.py"))
    assert [name for name in OF_PROCESSES if f'"error[HV{numbers[name]:04}]: ' not in texts] == []


def test_every_primitive_of_schedules_has_a_refusal_of_its_own():
    """By the form of the program (HV1006) or by what is proved of it (HV1007, HV1008), not by an argument alone."""
    heads = [case.values[0].expected.partition("\n")[0] for case in CASES]
    refused = [head for head in heads if re.match(r"error\[HV100[678]\]", head)]
    assert [name for name, _ in _core.primitive_rows() if not any(f"'{name}'" in head for head in refused)] == []


def test_cases_are_of_the_table():
    assert codes_with_a_case() <= {number for _, number, *_ in _core.diagnostic_rows()}


def test_a_wrong_text_is_seen():
    """The comparison itself: a case with another text, and one whose program has no fault, do not pass."""
    text = "=== a\n@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    A[0, 0] = 1.0\n---\nerror[HV0201]: else\n"
    (case,) = read_cases(text)
    with pytest.raises(AssertionError):
        test_text(case)
    (sound,) = read_cases("=== a [python]\nx = 1\n---\nnothing\n")
    with pytest.raises(AssertionError, match="no fault"):
        test_text(sound)


if __name__ == "__main__":
    print("\n".join(f"HV{number:04} {name}" for number, name in uncovered()))
