"""The house rules that a machine can check: sizes, heads, includes, imports, words.

Every rule is a function from a source tree to its violations, run on this tree and on a small planted one, so that a
rule that stopped seeing anything would be noticed.
"""

import ast
import importlib.util
import re
from pathlib import Path

import helve
import pytest

ROOT = Path(__file__).resolve().parents[2]

CAPS = {".cc": 800, ".h": 400, ".py": 700}
WIDTH = 120

# The package's layers, lowest first: a module imports only what stands above it in this list. FRONT is the package
# itself (`import helve`), for the parts that are written as a user would write them.
FRONT = "helve"
LAYERS = [
    "_core",
    "source",
    "errors",
    "caller",
    "untraced",
    "spellings",
    "arguments",
    "breakpoints",
    "arrays",
    "signature",
    "outputs",
    "mesh",
    "viz",
    "layout",
    "cute",
    "findings",
    "log",
    "language",
    "script",
    "notation",
    "schedule",
    "dist",
    "target",
    "einsum",
    "jit",
    "bench",
    "autotune",
    FRONT,
    "kernels",
    "torch",
    "testing",
    "cli",
]

# Uses that the order of the rooms alone would allow: (room or folder of rooms, what it never reaches, why).
BANS = [
    ("codegen", "transform", "a code generator prints what the passes made"),
    ("codegen", "schedule", "a code generator prints what the passes made"),
    ("interp", "transform", "the reference must not share the passes that it judges"),
    ("interp", "codegen", "the reference must not share the code generators that it judges"),
    ("runtime", "ir", "a compiled module runs without the compiler"),
    ("runtime", "arith", "a compiled module runs without the compiler"),
]

# Third-party headers and the only folders that may include them.
PRIVATE_HEADERS = {"isl/": "src/arith/", "llvm/": "src/codegen/llvm/", "pybind11/": "python/bindings/"}

FORBIDDEN_WORDS = re.compile(
    r"[/]work[/]|[/]root[/]|[/]opt[/](?:wheels|pypi)|[/]home[/]\w|\b(?:issue|ticket)s? ?#?\d+|\bseed 0\d\d\b|\bseeds[/]"
)


def files(root, folders, suffixes):
    """Paths below `folders` of `root` that end in one of `suffixes`, sorted."""
    found = (path for folder in folders for path in (root / folder).rglob("*"))
    return sorted(path for path in found if path.suffix in suffixes and "__pycache__" not in path.parts)


def cpp_files(root):
    return files(root, ["src", "include", "python/bindings"], {".cc", ".h"})


def python_files(root):
    return files(root, ["python/helve"], {".py"})


def includes(path):
    """(line number, text between the marks) of each #include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line):
            yield number, match.group(1)


def declared_rooms(root):
    """Room -> keyword -> the rooms named after it, in the order of src/CMakeLists.txt."""
    text = re.sub(r"#.*", "", (root / "src/CMakeLists.txt").read_text())
    declared = {}
    for body in re.findall(r"helve_room\(([^)]*)\)", text):
        room, *words = body.split()
        lists, keyword = {}, None
        for word in words:
            if word.isupper() or "_" in word and word.replace("_", "").isupper():
                keyword = word
            else:
                lists.setdefault(keyword, []).append(word)
        declared[room] = lists
    return declared


def rooms(root, keywords=("USES", "MAY_USE")):
    """Room -> the rooms that it reaches; `USES` and `MAY_USE` are transitive."""
    reached = {}
    for room, lists in declared_rooms(root).items():
        named = [name for keyword in keywords for name in lists.get(keyword, [])]
        reached[room] = set(named).union(*(reached.get(name, set()) for name in named))
    return reached


def rooms_of_tests(root):
    """Room -> the rooms that its tests reach: also those of `TEST_USES`, wherever they stand in the list."""
    reached = rooms(root)
    return {
        room: reached[room].union(*({name} | reached.get(name, set()) for name in lists.get("TEST_USES", [])))
        for room, lists in declared_rooms(root).items()
    }


def room_of(relative, names):
    """The room that a path below src/ or include/helve/ belongs to, None if it stands in no room."""
    return max((name for name in names if f"{relative}/".startswith(f"{name}/")), key=len, default=None)


def oversized(root):
    for path in cpp_files(root) + python_files(root):
        if path.stem.endswith("_table"):
            continue
        lines = len(path.read_text().splitlines())
        if lines > CAPS[path.suffix]:
            yield f"{path.relative_to(root)}: {lines} lines, at most {CAPS[path.suffix]}"


def inside_raw_strings(lines):
    """The numbers of lines of C++ that begin inside a raw string: a text that is compared as it stands."""
    inside, found = None, set()
    for number, line in enumerate(lines, 1):
        if inside is not None:
            found.add(number)
        for mark in re.finditer(r'R"(\w*)\(|\)(\w*)"', line):
            if inside is None and mark.group(1) is not None:
                inside = mark.group(1)
            elif inside is not None and mark.group(2) == inside:
                inside = None
    return found


def too_wide(root):
    """Lines beyond the width, tables and the inner lines of raw strings aside."""
    folders = ["src", "include", "python", "tests", "tutorials", "benchmarks", "docs", ".ci"]
    for path in files(root, folders, {".cc", ".h", ".py"}):
        if path.stem.endswith("_table"):
            continue
        lines = path.read_text().splitlines()
        wide = [number for number, line in enumerate(lines, 1) if len(line) > WIDTH]
        exempt = inside_raw_strings(lines) if wide and path.suffix != ".py" else set()
        for number in wide:
            if number not in exempt:
                yield f"{path.relative_to(root)}:{number}: {len(lines[number - 1])} columns, at most {WIDTH}"


def too_wide_prose(root):
    """Lines of Markdown beyond the width, headings, rows of tables, printed output and the targets of links aside."""
    folders = ["tests", "tutorials", "benchmarks", "docs", "3rdparty"]
    for path in sorted(root.glob("*.md")) + files(root, folders, {".md"}):
        block = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if fence := re.match(r"```(\w*)", line):
                block = fence.group(1) if block is None else None
            columns = len(re.sub(r"\]\([^)]*\)", "]", line))
            if columns > WIDTH and block != "text" and not line.startswith(("|", "#")):
                yield f"{path.relative_to(root)}:{number}: {columns} columns, at most {WIDTH}"


def headless(root):
    """Files without a head: two comment lines in C++ and CMake, one in a list, a docstring of two sentences in Python.
    """
    lists = files(root, ["include", "src"], {".inc"}) + files(root, ["cmake", "3rdparty"], {".cmake"})
    for path in cpp_files(root) + lists:
        mark = "#" if path.suffix == ".cmake" else "//"
        least = 1 if path.suffix == ".inc" else 2
        if not all(line.startswith(f"{mark} ") for line in (path.read_text().splitlines() + ["", ""])[:least]):
            yield f"{path.relative_to(root)}: does not begin with comment lines, what and why"
    for path in python_files(root):
        head = ast.get_docstring(ast.parse(path.read_text())) or ""
        if len(re.findall(r"[.:;](?:\s|$)", head)) < 2:
            yield f"{path.relative_to(root)}: does not begin with a docstring of two sentences, what and why"


def badly_named(root):
    for path in cpp_files(root) + python_files(root):
        if re.search(r"util|helper|misc|common", path.stem):
            yield f"{path.relative_to(root)}: name the subject"


def climbing_includes(root):
    for path in cpp_files(root) + files(root, ["tests/cpp"], {".cc", ".h"}):
        for number, name in includes(path):
            if ".." in name.split("/"):
                yield f"{path.relative_to(root)}:{number}: includes {name}"


def misplaced_includes(root):
    """Includes of rooms that are not reached, and third-party headers outside their folder."""
    by_source, by_test = rooms(root), rooms_of_tests(root)
    # What stands in tests/cpp itself serves the tests that reach the printer.
    by_test = {**by_test, None: by_test.get("print", set()) | {"print"}}
    for path in cpp_files(root) + files(root, ["tests/cpp"], {".cc", ".h"}):
        relative = path.relative_to(root).as_posix()
        reached = by_test if relative.startswith("tests/cpp/") else by_source
        room = room_of(re.sub(r"^(src|include/helve|tests/cpp)/", "", relative), reached)
        for number, name in includes(path):
            for prefix, home in PRIVATE_HEADERS.items():
                if name.startswith(prefix) and not relative.startswith((home, home.replace("src/", "tests/cpp/"))):
                    yield f"{relative}:{number}: {prefix} stays inside {home}"
            if name.startswith("helve/") and not relative.startswith("python/"):
                used = room_of(name.removeprefix("helve/"), reached)
                if used != room and used not in reached.get(room, set()):
                    yield f"{relative}:{number}: room {room} does not use {used or name}"


def unlisted_rooms(root):
    """Source files that stand in no room of src/CMakeLists.txt."""
    names = rooms(root)
    for folder in ("src", "include/helve"):
        for path in files(root, [folder], {".cc", ".h", ".inc"}):
            if room_of(path.parent.relative_to(root / folder).as_posix(), names) is None:
                yield f"{path.relative_to(root)}: stands in no room of src/CMakeLists.txt"


def banned_uses(root):
    for room, used in rooms(root).items():
        for above, below, why in BANS:
            for name in used:
                if f"{room}/".startswith(f"{above}/") and f"{name}/".startswith(f"{below}/"):
                    yield f"src/CMakeLists.txt: {room} reaches {name}: {why}"


def bare_asserts(root):
    for path in cpp_files(root):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"(?<![\w.])assert\(|<cassert>", line.partition("//")[0]):
                yield f"{path.relative_to(root)}:{number}: HELVE_CHECK, not assert"


def imports_of(tree, package):
    """(line, module, names) of each import in a module of `package`: `import a.b` is ("a.b", []), `from .a import b` is
    (its package's "a", ["b"]). Imports for type checkers do not count, those inside of functions do.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*base, node.module] if node.module else base)
            yield node.lineno, origin, [alias.name for alias in node.names]


def imported_layers(tree, package):
    """(line, layer) of each import of helve in a module of `package`."""
    for line, origin, names in imports_of(tree, package):
        for name in [f"helve.{each}" for each in names] if origin == "helve" and names else [origin]:
            parts = name.split(".")
            if parts[0] == "helve":
                yield line, parts[1] if len(parts) > 1 and parts[1] in LAYERS else FRONT


def upward_imports(root):
    """Imports that go up in LAYERS, and modules that have no layer yet."""
    base = root / "python/helve"
    for path in python_files(root):
        relative = path.relative_to(base)
        layer = relative.parts[0].removesuffix(".py")
        if layer in ("__init__", "__main__"):
            continue
        if layer not in LAYERS:
            yield f"{path.relative_to(root)}: give {layer} a place in LAYERS of tests/python/test_house.py"
            continue
        for line, used in imported_layers(ast.parse(path.read_text()), ("helve", *relative.parts[:-1])):
            if LAYERS.index(used) > LAYERS.index(layer):
                yield f"{path.relative_to(root)}:{line}: {layer} imports {used}"


def modules(root):
    """Name -> path of every Python module of the package."""
    base = root / "python/helve"
    found = {}
    for path in python_files(root):
        parts = path.relative_to(base).with_suffix("").parts
        found[".".join(["helve", *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return found


def imported_modules(path, name, known):
    """The modules of `known` that the module `name` names in an import."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for _, origin, names in imports_of(ast.parse(path.read_text()), package):
        # A package also gives what is no module of it; its own modules and the core stand for themselves.
        inner = [f"{origin}.{each}" for each in names]
        named = [each if each in known or each == "helve._core" else origin for each in inner] or [origin]
        yield from (each for each in named if each in known)


def import_circles(root):
    """Modules that reach themselves by imports; an import inside of a function only hides a circle."""
    known = modules(root)
    uses = {name: set(imported_modules(path, name, known)) - {name} for name, path in known.items()}
    for start in sorted(known):
        seen, ahead = set(), [start]
        while ahead:
            for used in uses[ahead.pop()] - seen:
                seen.add(used)
                ahead.append(used)
        if start in seen:
            yield f"{known[start].relative_to(root)}: {start} imports itself by way of others"


def forbidden_words(root):
    """Words about the place where a file was written; the project speaks of itself only."""
    folders = ["src", "include", "python", "tests", "tutorials", "benchmarks", "docs", "cmake", "3rdparty", ".ci"]
    suffixes = {".cc", ".h", ".inc", ".py", ".pyi", ".md", ".txt", ".cmake", ".toml", ".sh", ".ipynb", ""}
    top = [path for path in sorted(root.glob("*")) if path.suffix in suffixes and path.name != ".git"]
    for path in filter(Path.is_file, top + files(root, folders, suffixes)):
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:  # no text: a compiled object or an archive
            continue
        for number, line in enumerate(lines, 1):
            if match := FORBIDDEN_WORDS.search(line):
                yield f"{path.relative_to(root)}:{number}: {match.group()}"


def unskipped_compiles(root):
    """Tests that compile CUDA text and do not skip themselves where NVRTC is not installed."""
    for path in files(root, ["tests/python", "tests/fuzz", "tests/errors"], {".py"}):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.Assign) and "needs_nvrtc" in ast.unparse(node) for node in tree.body):
            continue  # all of the file's
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            called = {ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
            skips = any("needs_nvrtc" in ast.unparse(each) for each in node.decorator_list)
            if called & {"assert_compiles", "compile_cubin"} and not skips:
                yield f"{path.relative_to(root)}:{node.lineno}: {node.name} needs @needs_nvrtc"


# rule -> (a file that breaks it, its text, how often it is broken there). The planted tree has three rooms: low, high
# (which uses low) and codegen/c.
HEAD = "// What.\n// Why.\n"
RULES = {
    oversized: ("src/low/long.cc", HEAD + "\n" * 799, 1),
    too_wide: (
        "tests/cpp/low/wide_test.cc",
        HEAD + f"{'x' * 120}\n{'x' * 121}\nf(R\"(a\n{'x' * 121}\n)\"); // {'x' * 121}\nint a;  // {'x' * 121}\n",
        2,
    ),
    too_wide_prose: (
        "docs/wide.md",
        f"{'x' * 120}\n{'x' * 121}\n[{'x' * 110}](wide.md#a-part)\n| {'x' * 120} |\n```text\n{'x' * 121}\n```\n"
        f"{'y ' * 61}\n```python\n{'x' * 121}\n```\n",
        3,
    ),
    headless: ("include/helve/low/bald.h", "// What.\n#pragma once\n", 1),
    badly_named: ("src/low/string_utils.cc", HEAD, 1),
    climbing_includes: ("src/low/climb.cc", HEAD + '#include "../high/a.h"\n#include "helve/../x.h"\n', 2),
    misplaced_includes: ("src/low/up.cc", HEAD + '#include "helve/high/a.h"\n#include <isl/cpp.h>\n', 2),
    unlisted_rooms: ("src/attic/a.cc", HEAD, 1),
    banned_uses: (
        "src/CMakeLists.txt",
        "helve_room(low)\nhelve_room(transform USES low)\nhelve_room(mid USES transform)\n"
        "helve_room(codegen/c USES mid)\n",
        1,
    ),
    bare_asserts: ("src/high/assert.cc", HEAD + "void f(int x) { assert(x); }  // assert(y)\n", 1),
    upward_imports: (
        "python/helve/language/ops.py",
        '"""What. Why."""\nfrom helve import _core\nfrom .. import jit\nfrom ..script.parse import f\nimport helve\n',
        3,
    ),
    import_circles: (
        "python/helve/script/parse.py",
        '"""What. Why."""\nfrom helve import _core\nimport numpy\n\n\ndef f():\n    from . import tree\n',
        2,
    ),
    unskipped_compiles: (
        "tests/python/test_text.py",
        "@needs_nvrtc\ndef test_a():\n    assert_compiles(1)\n\n\ndef test_b():\n    assert_compiles(1)\n",
        1,
    ),
    forbidden_words: ("docs/a.md", "see /wo" + "rk/notes\nfine\nfor issue" + " #12\n", 2),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule):
    assert list(rule(ROOT)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_sees_a_planted_breach(rule, tmp_path):
    """The planted tree is clean for the rule before the breach and has exactly the planted violations after it."""
    clean = {
        "src/CMakeLists.txt": "helve_room(low LIBRARIES fmt::fmt)\nhelve_room(high\n  USES low  # below\n)\n"
        "helve_room(codegen/c USES high)\n",
        "src/high/a.cc": HEAD + '#include "helve/low/a.h"\nstatic_assert(true);\n',
        "include/helve/low/a.h": HEAD,
        "src/low/ops_table.cc": HEAD + "\n" * 2000,
        "python/helve/script/parse.py": '"""What. Why."""\nfrom ..language import ops\nimport numpy\n',
        "python/helve/script/tree.py": '"""What. Why."""\nfrom helve.script.parse import g\n',
        "python/helve/__init__.py": '"""What. Why."""\nfrom helve import _core, script\n',
        "python/helve/cli/main.py": '"""What. Why."""\nimport helve\n',
        "docs/b.md": "layouts and work\n",
    }
    for name, text in clean.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(rule(tmp_path)) == []
    name, text, count = RULES[rule]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert len(list(rule(tmp_path))) == count


def test_every_module_is_installed():
    """Patterns of files that an archive leaves out must not match those of the package."""
    source, installed = ROOT / "python" / "helve", Path(helve.__file__).parent
    missing = [path for path in source.rglob("*.py") if not (installed / path.relative_to(source)).exists()]
    assert not missing


def test_mutants_of_the_checker_of_schedules_have_their_lines():
    """tests/cpp/schedule/mutants.py breaks lines that it finds by their text."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests/cpp/schedule/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = module.mutants()
    assert len(listed) > 90 and module.misplaced(ROOT, listed) == []
    assert len(module.misplaced(ROOT, [(file, f"{line} not there", "") for file, line, _ in listed])) == len(listed)
