"""The licences: what a wheel carries of others has a notice, and the notices travel in the wheel.

3rdparty/README.md is the list. It is held against the build's CMake files, the installed package and the metadata that
the build back end writes.
"""

import re
from email import message_from_string
from pathlib import Path

import pytest

import helve

ROOT = Path(__file__).resolve().parents[2]
BUILD_FILES = ["3rdparty/Dependencies.cmake", "3rdparty/HelveLLVM.cmake", "python/bindings/CMakeLists.txt"]
ABSENT = {"Threads", "Python"}  # of the system or of the user's machine, never in a wheel


def rows():
    """Library -> (what of it the wheel carries, its notices) of the table in 3rdparty/README.md."""
    found = {}
    for line in (ROOT / "3rdparty/README.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| library", "| ---")):
            library, _, _, carried, notices = (cell.strip() for cell in line.strip("|").split("|"))
            found[library] = (carried, re.findall(r"\]\(([^)]*)\)", notices))
    return found


def without_notice(sonames):
    """Of the names of shared libraries those that no row with a notice names."""
    named = {name for carried, notices in rows().values() if notices for name in re.findall(r"`(\w+\.so)`", carried)}
    return [soname for soname in sonames if re.sub(r"\.so.*", ".so", soname) not in named]


def test_every_shared_library_of_the_package_has_a_notice():
    folder = Path(helve.__file__).parent
    bundled = [path.name for path in folder.glob("lib*.so*")]
    if not bundled:
        pytest.skip("the package is not installed from a wheel")
    assert without_notice(bundled) == []
    assert without_notice(["libgmp.so.10", "libother.so.3"]) == ["libother.so.3"]


@pytest.mark.parametrize("file", BUILD_FILES)
def test_every_library_that_the_build_finds_has_a_row(file):
    found = set(re.findall(r"find_package\((\w+)", (ROOT / file).read_text())) - ABSENT
    assert {name.lower() for name in found} <= {name.lower() for name in rows()}


def test_every_row_with_code_in_the_wheel_has_notices_that_exist():
    for library, (carried, notices) in rows().items():
        assert bool(notices) != carried.startswith("no:"), library
        for notice in notices:
            assert (ROOT / "3rdparty" / notice).stat().st_size > 500, notice
    named = {notice for _, notices in rows().values() for notice in notices}
    assert len(named) > 5
    assert named == {f"notices/{path.name}" for path in (ROOT / "3rdparty/notices").iterdir()}


def test_the_wheel_carries_licence_and_notices(tmp_path, monkeypatch):
    back_end = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    folder = tmp_path / back_end.prepare_metadata_for_build_wheel(str(tmp_path))
    metadata = message_from_string((folder / "METADATA").read_text())
    assert metadata["License-Expression"] == "Apache-2.0"
    carried = {path.relative_to(folder / "licenses").as_posix() for path in (folder / "licenses").rglob("*.*")}
    notices = {f"3rdparty/{notice}" for _, notices in rows().values() for notice in notices}
    assert notices | {"3rdparty/README.md"} == carried
    assert set(metadata.get_all("License-File")) == carried | {"LICENSE", "NOTICE"}
    assert (folder / "licenses/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
