"""The documentation: every example runs, every stated output is what is printed, every link leads somewhere.

A page's ```python blocks run from top to bottom in one namespace; a ```text block right after one is what it prints.
"""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import helve
import helve.testing
from helve import T, _core
from nvrtc import library

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "3rdparty" / "README.md"]


def load_generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_generator()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples(path):
    text = path.read_text()
    if any('target="cuda", arch=' in example.code for example in make.examples(text)) and library() is None:
        pytest.skip("an example compiles for a GPU, and libnvrtc is not installed")
    if any(re.search(r"^import torch$", example.code, re.M) for example in make.examples(text)):
        pytest.importorskip("torch")
    assert list(make.examples(text)), "a page without an example"
    assert make.with_outputs(text, path.name) == text, "look at what python docs/generate.py --outputs changes"


def test_each_example_of_the_readme_stands_alone():
    for example in make.examples((ROOT / "README.md").read_text()):
        assert example.output is not None and make.run(example, "README.md", {"__name__": "page"})


def test_a_wrong_output_is_seen():
    page = "```python\nx = 2\nprint(x)\n```\n\n```text\n2\n```\n\n```python\nprint(x + 1)\n```\n```text\n{}\n```\nend\n"
    assert make.with_outputs(page.format("3"), "page.md") == page.format("3")
    assert make.with_outputs(page.format("4"), "page.md") == page.format("3")


def test_an_example_that_fails_is_seen():
    with pytest.raises(ZeroDivisionError):
        make.with_outputs("```python\n1 / 0\n```\n", "page.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_text_block_is_the_output_of_an_example(path):
    text = path.read_text()
    stated = sum(example.output is not None for example in make.examples(text))
    assert stated == sum(block[1] == "text" for block in make.FENCE.finditer(text))


@pytest.mark.parametrize("name", ["language.md", "diagnostics.md"])
def test_reference_is_made_from_the_tables(name):
    text = (ROOT / "docs" / name).read_text()
    assert "<!-- generated: " in text
    assert make.updated(text) == text, "stale; run python docs/generate.py"


def test_a_stale_reference_is_seen():
    text = (ROOT / "docs" / "diagnostics.md").read_text()
    stale = text.replace("`HV0101`", "`HV0100`")
    assert stale != text
    assert make.updated(stale) == text


def test_reference_holds_every_name():
    text = (ROOT / "docs" / "language.md").read_text()
    for name in [*T.NAMES, *(f"comm.{name}" for name in T.comm.members)]:
        if name not in ("comm", "prim_func"):
            assert f"`T.{name}(" in text or f"`{name}`" in text, name


def anchors(text):
    """The anchors of a page's headings."""
    without_code = make.FENCE.sub("", text)
    heads = re.findall(r"^#+ (.*)$", without_code, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken_links(path):
    """Relative links of a page to files or headings that are not there."""
    text = re.sub(r"`[^`\n]*`", "", make.FENCE.sub("", path.read_text()))
    for target in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        other = (path.parent / file).resolve() if file else path
        if not other.exists() or (anchor and anchor not in anchors(other.read_text())):
            yield target


@pytest.mark.parametrize("path", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links(path):
    assert list(broken_links(path)) == []


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# Some head\n[a](a.md) [b](b.md) [c](#some-head) [d](a.md#none) [e](https://example.org/x)\n")
    assert list(broken_links(page)) == ["b.md", "a.md#none"]


def sections_of(text):
    """(heading, text) of the third-level sections of a page."""
    parts = re.split(r"^#{2,3} (.*)$", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def undocumented(text):
    """Primitives without a section of the page on schedules that shows a call and what becomes of a program."""
    for name, _ in _core.primitive_rows():
        sections = [part for head, part in sections_of(text) if name in re.findall(r"\w+", head)]
        shown = [example for part in sections for example in make.examples(part) if f"s.{name}(" in example.code]
        if len(sections) != 1 or not any(example.output for example in shown) or f"`s.{name}(" not in sections[0]:
            yield name


def test_every_primitive_of_schedules_is_shown():
    """With its rule, a program in front of it and what becomes of that."""
    text = (ROOT / "docs" / "schedule.md").read_text()
    assert list(undocumented(text)) == []
    assert list(undocumented(text.replace("s.sink(", "s.lift("))) == ["sink"]
    assert list(undocumented(re.sub(r"### divide\n.*?(?=###)", "", text, flags=re.S))) == ["divide"]


def test_architecture_names_every_room_and_pass():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"helve_room\(([\w/]+)", (ROOT / "src" / "CMakeLists.txt").read_text())
    assert len(rooms) > 10
    assert [room for room in rooms if f"`{room}`" not in text] == []

    @T.prim_func
    def nothing(A: T.Tensor((1,), "float32")):
        with T.Kernel(1) as b:
            A[b] = 0.0

    passes = [name for name, _ in helve.testing.lowering_stages(nothing)][1:]
    assert [name for name in passes if f"`{name}`" not in text] == []
    stages = set(helve.compile(nothing).stages) - set(passes)
    assert stages and [stage for stage in stages if f'`"{stage}"`' not in text] == []
