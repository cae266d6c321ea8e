"""The installed package: its version and its extension module.

What is tested is the wheel's content in the environment, not the source tree.
"""

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import helve
from helve import _core

ROOT = Path(__file__).resolve().parents[2]


def test_version_is_the_same_everywhere():
    stated = re.search(r"project\(helve VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert helve.__version__ == _core.__version__ == importlib.metadata.version("helve") == stated


def test_tests_run_against_the_installed_package():
    assert ROOT / "python" not in Path(helve.__file__).resolve().parents


def test_diagnostic_rows_are_those_of_the_table():
    """Every row of the table file arrives, in order, with its texts unchanged."""
    text = (ROOT / "include/helve/support/diagnostic_table.inc").read_text()
    text = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    string = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    row = re.compile(rf"HELVE_DIAGNOSTIC\((\w+),\s*(\d+),\s*(\w+),\s*{string},\s*{string}\)")

    def unquote(literal):
        return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)).replace('\\"', '"').replace("\\\\", "\\")

    stated = [
        (name, int(number), severity.lower(), unquote(message), unquote(help_text))
        for name, number, severity, message, help_text in row.findall(text)
    ]
    assert len(stated) == text.count("HELVE_DIAGNOSTIC(")
    assert _core.diagnostic_rows() == stated


def test_libraries_come_from_the_package():
    """Nothing outside the package is loaded but the system's base libraries.

    What a bare Linux with a C++ run time has is the base; anything else must travel in the wheel.
    """
    base = r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z))\.so\.\d+"
    folder = Path(helve.__file__).resolve().parent
    binaries = [path for path in folder.iterdir() if ".so" in path.name]
    assert Path(_core.__file__).resolve() in binaries
    outside = set()
    for binary in binaries:
        dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        outside |= {name for name in needed if not re.fullmatch(base, name) and not (folder / name).exists()}
    assert outside == set()

    program = "import helve; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    bundled = {path.name for path in binaries if path != Path(_core.__file__).resolve()}
    assert bundled
    for line in maps.split("\n"):
        path = Path(line.rpartition(" ")[2])
        assert not any(path.name.startswith(name) for name in bundled) or path.parent == folder, path


def test_module_exports_its_entry_point_only():
    """Symbols of LLVM or isl wrappers inside the module would clash with another copy in the same process."""
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", _core.__file__], capture_output=True, text=True, check=True
    ).stdout
    defined = set()
    for line in symbols.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK", "UNIQUE") and fields[6] != "UND":
            defined.add(fields[7].partition("@")[0])
    assert "PyInit__core" in defined
    assert {name for name in defined if "llvm" in name or "helve" in name} == set()


def test_import_is_light():
    """`import helve` touches neither torch nor TVM-FFI."""
    program = "import sys, helve; print([m for m in ('torch', 'tvm_ffi') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_the_stub_names_everything():
    """_core.pyi declares each public name of the extension module and each member of its classes, and nothing else."""
    tree = ast.parse((Path(helve.__file__).parent / "_core.pyi").read_text())
    declared = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    constants = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    names = set(declared) | {name for name in constants if not name.startswith("_")}
    assert names == {name for name in vars(_core) if not name.startswith("_")}
    for name, node in declared.items():
        if isinstance(node, ast.ClassDef):
            members = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            members |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            present = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
            assert {member for member in members if not member.startswith("_")} == present, name
