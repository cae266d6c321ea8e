"""Runs the C++ and the Python tests and sums them up: a line and a time for each suite, the counts last.

ctest counts binaries and pytest counts functions; both write JUnit files, from which the same table is made.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Suite:
    """Counts of one suite; `seconds` is the sum over its cases."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def add(self, case: ElementTree.Element) -> None:
        """Counts one JUnit case; a case of ctest or GoogleTest that did not run counts as skipped."""
        tags = {child.tag for child in case}
        if tags & {"failure", "error"} or case.get("status") == "fail":
            self.failed += 1
        elif "skipped" in tags or case.get("status") in ("notrun", "disabled"):
            self.skipped += 1
        else:
            self.passed += 1
        self.seconds += float(case.get("time") or 0.0)


# The folder to which tests write the functions that they build, and from which the last Python test reads them back.
RECORD = "HELVE_RECORD_FUNCTIONS"
# The test of all programs that the others have built: it runs after them, and has processes of its own.
LAST = "tests/python/test_every_program.py"


def recorded_functions(results: Path) -> Path:
    return results / "functions"


def run_cpp(build: Path, results: Path, suites: dict[str, Suite]) -> bool:
    """Runs ctest over `build`; True when every test of it passed."""
    cases = results / "gtest"
    cases.mkdir()
    report = results / "ctest.xml"
    jobs = os.cpu_count() or 1
    recorded = recorded_functions(results)
    recorded.mkdir()
    command = ["ctest", "--test-dir", str(build), "-j", str(jobs), "--output-on-failure", "--no-tests=error"]
    # A trailing slash makes GoogleTest write one file a binary.
    outcome = subprocess.run(
        [*command, "--output-junit", str(report)],
        cwd=ROOT,
        env={
            **os.environ,
            "GTEST_OUTPUT": f"xml:{cases}/",
            RECORD: str(recorded),
            # Where pip's wheel of NVRTC stands, if it is installed.
            "HELVE_TEST_SITE_PACKAGES": sysconfig.get_path("purelib"),
        },
    )
    if not report.exists():
        suites["cpp"] = Suite(failed=1)
        return False
    for test in ElementTree.parse(report).getroot().iter("testcase"):
        kind, _, room = test.get("name", "").partition(".")
        suite = suites.setdefault(f"cpp/{room}" if kind == "cpp" else kind, Suite())
        detail = cases / f"test_{room}.xml"
        before = suite.failed
        if kind == "cpp" and detail.exists():
            for case in ElementTree.parse(detail).getroot().iter("testcase"):
                suite.add(case)
            # A binary that died after its cases, or between them, is a failure of its own.
            if test.get("status") == "fail" and suite.failed == before:
                suite.failed += 1
        else:
            suite.add(test)
    return outcome.returncode == 0


def run_python(results: Path, arguments: list[str], suites: dict[str, Suite]) -> bool:
    """Runs pytest over its configured folders, a process a core, then the test of all programs; True when all passed.

    With arguments for pytest it runs once, on what they name.
    """
    # Neighbours stay together, so that what a module makes once is made once, until a process has nothing left to do.
    shared = ["-n", str(os.cpu_count() or 1), "--dist", "worksteal", f"--ignore={LAST}"]
    runs = [arguments] if arguments else [shared, [LAST]]
    passed = [pytest_run(results / f"pytest{n}.xml", run, results, suites) for n, run in enumerate(runs)]
    return all(passed)


def pytest_run(report: Path, arguments: list[str], results: Path, suites: dict[str, Suite]) -> bool:
    """Runs pytest once and counts its cases."""
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    outcome = subprocess.run(command, cwd=ROOT, env={**os.environ, RECORD: str(recorded_functions(results))})
    if not report.exists():
        suites["python"] = Suite(failed=1)
        return False
    total = Suite()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        parts = (case.get("classname") or "collection").split(".")
        name = "/".join(parts[:2]) if parts[0] == "tests" else parts[0]
        suites.setdefault(name.removeprefix("tests/"), Suite()).add(case)
        total.add(case)
    if outcome.returncode != 0 and total.failed == 0:
        suites["pytest"] = Suite(failed=1)
    return outcome.returncode == 0


def print_table(suites: dict[str, Suite], wall: float) -> None:
    """One line a suite, then the wall time, then the counts."""
    print("\nsuite                       passed  failed  skipped  seconds")
    for name, suite in suites.items():
        print(f"{name:<26} {suite.passed:>7} {suite.failed:>7} {suite.skipped:>8} {suite.seconds:>8.1f}")
    print(f"total: {wall:.1f} s")
    passed = sum(suite.passed for suite in suites.values())
    failed = sum(suite.failed for suite in suites.values())
    print(f"{passed} passed, {failed} failed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="the CMake build folder")
    parser.add_argument("--only-cpp", action="store_true", help="leave the Python tests out")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    arguments = parser.parse_args()

    build = (ROOT / arguments.build).resolve()
    results = build / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    suites: dict[str, Suite] = {}
    start = time.monotonic()
    good = run_cpp(build, results, suites)
    if not arguments.only_cpp:
        good = run_python(results, arguments.pytest, suites) and good
    sys.stdout.flush()
    print_table(suites, time.monotonic() - start)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
