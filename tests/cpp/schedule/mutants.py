"""Mutants of the checker of schedules: `python tests/cpp/schedule/mutants.py FOLDER` breaks one line of it at a time.

Each mutant takes a condition away on which proofs rest. The C++ tests of the room have to notice; what they let pass
is counted at the end: a test to write, or code that decides nothing. Not part of the usual tests, as each mutant is
compiled: FOLDER gets a copy of the sources and a build of its own. test_house.py looks whether every line of the list,
checker.mutants, is still there.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LIST = Path(__file__).with_name("checker.mutants")


def mutants():
    """(file, line, what stands in its place), as the list has them: a file, and "- " and "+ " below it."""
    found, file, line = [], None, None
    for text in filter(None, LIST.read_text().splitlines()):
        if text.startswith("- "):
            line = text[2:]
        elif text.startswith("+"):
            found.append((file, line, text[2:]))
        else:
            file = text
    return found


def misplaced(root, listed):
    """Mutants whose line is not once in its file."""
    return [(file, line) for file, line, _ in listed if (root / file).read_text().count(line) != 1]


def command(words, folder):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=1800)


def fate(source, build, mutant, tests):
    """What becomes of a mutant: "caught by" tests, "does not compile", or "survives"."""
    file, line, instead = mutant
    path = source / file
    text = path.read_text()
    try:
        path.write_text(text.replace(line, instead))
        made = command(["ninja", "-C", str(build), *tests], source)
        if made.returncode:
            return f"does not compile: {made.stdout[-800:]}"
        for test in tests:
            ran = command([str(build / "src" / test), "--gtest_brief=1"], source)
            if ran.returncode:
                failed = [each.split()[3] for each in ran.stdout.splitlines() if each.startswith("[  FAILED  ]")]
                return f"caught by {failed[0] if failed else f'the end of {test}'}"
        return "survives"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the copy and its build")
    parser.add_argument("--only", default="", help="part of the names of files to break")
    parser.add_argument("--tests", default="test_schedule,test_analysis", help="that have to notice")
    given = parser.parse_args()
    source, build = given.folder / "source", given.folder / "build"
    files = command(["git", "ls-files"], ROOT).stdout.split()
    for name in files:
        if not (source / name).exists() or (source / name).read_bytes() != (ROOT / name).read_bytes():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    tests = given.tests.split(",")
    options = ["-DHELVE_PYTHON=OFF", "-DHELVE_LLVM=OFF", "-DHELVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug",
               "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -Wno-maybe-uninitialized"]
    for words in (["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), *options],
                  ["ninja", "-C", str(build), *tests]):
        made = command(words, source)
        if made.returncode:
            sys.exit(made.stdout + made.stderr)
    survivors = []
    for mutant in mutants():
        if given.only not in mutant[0]:
            continue
        found = fate(source, build, mutant, tests)
        print(f"{mutant[0]}: {mutant[1]}\n    {found}", flush=True)
        if not found.startswith("caught"):
            survivors.append(mutant)
    print(f"{len(survivors)} of them not caught")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
