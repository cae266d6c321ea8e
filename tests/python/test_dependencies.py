"""The requirements of pyproject.toml: each is used by what asks for it, and nothing outside the list is imported.

A requirement that nothing imports is a download for nothing; an import that no list names works on the author's
machine only.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Requirements that are used without an import: the file that uses it, and the text that shows it.
USED_OTHERWISE = {
    "nvidia-cuda-nvrtc": ("src/runtime/cuda/nvrtc.cc", "nvidia"),  # a library that is loaded by its path
    "openmpi": ("python/helve/cli/launch.py", '"mpirun"'),  # a program, and a library that is loaded by its path
    "pytest-timeout": ("pyproject.toml", "\ntimeout = "),
    "pytest-xdist": ("tests/run.py", '"--dist"'),
}
# Libraries that are used where the user's program brings them, never required.
OPTIONAL = {"cupy", "distributed", "ray", "torch"}


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0]


def module_of(distribution):
    return distribution.replace("-", "_").lower()


def imported(folder):
    """Top-level names, in lower case, that the Python files below `folder` import, by statement or by importorskip."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("importorskip", "find_spec")):
                found |= {part.value for part in node.args if isinstance(part, ast.Constant)}
    return {name.partition(".")[0].lower() for name in found if name}


def unused(requirements, folder):
    """The requirements that nothing below `folder` imports and that are not used otherwise."""
    modules = imported(folder)
    for requirement in map(name_of, requirements):
        file, text = USED_OTHERWISE.get(requirement, (None, None))
        shown = file is not None and text in (ROOT / file).read_text()
        if module_of(requirement) not in modules and not shown:
            yield requirement


LISTS = [
    (PROJECT["dependencies"], "python/helve"),
    (PROJECT["optional-dependencies"]["plot"], "python/helve"),
    (PROJECT["optional-dependencies"]["cuda"], "python/helve"),
    (PROJECT["optional-dependencies"]["dev"], "tests"),
]


@pytest.mark.parametrize("requirements, folder", LISTS)
def test_every_requirement_is_used(requirements, folder):
    assert list(unused(requirements, folder)) == []


def test_an_unused_requirement_is_seen():
    assert list(unused(["numpy>=1", "left-pad", "pytest-timeout"], "python/helve")) == ["left-pad"]


def test_the_package_imports_only_what_it_requires():
    extras = PROJECT["optional-dependencies"]
    required = {module_of(name_of(part)) for part in PROJECT["dependencies"] + extras["plot"] + extras["tune"]}
    own = {"helve"} | OPTIONAL | {name.lower() for name in sys.stdlib_module_names}
    assert imported("python/helve") - own <= required
    assert len(imported("python/helve") - own) >= 3


def test_every_tool_of_lint_is_run():
    text = (ROOT / "Makefile").read_text() + (ROOT / ".pre-commit-config.yaml").read_text()
    tools = [name_of(tool) for tool in PROJECT["optional-dependencies"]["lint"]]
    assert tools and [tool for tool in tools if f"bin/{tool}" not in text] == []
