"""Rewrites the reference parts of the documentation from the tables of the compiler, and runs its examples.

Names, parameters, defaults and messages stand once, in the tables; a test fails when a page is older than they are.

Run it: ``python docs/generate.py``. With ``--outputs`` it also runs the examples and writes what they print into the
pages; look at the difference before you keep it. With ``--tutorials`` it runs the tutorials and stores what they print.
With ``--check`` it writes nothing and fails when a page would change.
"""

import argparse
import contextlib
import datetime
import io
import linecache
import os
import platform
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from collections.abc import Iterator

from helve import T, _core
from helve.language.constructs import Construct, HostConstruct, MacroMaker, Operator, TileOperation

FOLDER = Path(__file__).resolve().parent

# What the kinds of parameters in the table of tile operations mean to a caller.
KINDS = {
    "In": "region, read",
    "Out": "region, written",
    "InOut": "region, read and written",
    "Source": "region or scalar, read",
    "Value": "scalar",
    "Coord": "list of indices",
    "Index": "index expression",
    "Map": "function of one index",
    "Integer": "integer constant",
    "Flag": "True or False",
    "Text": "string constant",
    "Axes": "name of an axis, or a tuple of them",
    "Layout": "layout, or its text",
    "Barriers": "array of mbarriers, whole",
}

# How operators that are no calls are written; precedence is that of Python.
FORMS = {"Infix": "a {text} b", "Prefix": "{text}x"}

# Ranges of diagnostic numbers: (first, last, subject).
RANGES = [
    (1, 99, "Source capture"),
    (100, 199, "Names and syntax"),
    (200, 299, "Types and shapes"),
    (300, 339, "Loops and tiles"),
    (340, 359, "Index notation"),
    (400, 499, "Meshes and collectives"),
    (500, 599, "Layouts"),
    (600, 699, "Calls of a kernel"),
    (700, 799, "Running"),
    (800, 899, "Targets and compiling"),
    (900, 999, "CUDA"),
    (1000, 1099, "Schedules"),
]


def code(text: str) -> str:
    """Text as code inside a table cell."""
    return "`" + text.replace("|", "\\|") + "`"


def prose(text: str) -> str:
    """Text as prose inside a table cell: outside backquotes, Markdown's own signs stay what they are."""
    parts = re.split(r"(`[^`]*`)", text)
    escaped = (code(part[1:-1]) if i % 2 else re.sub(r"([|*_<>\[\]])", r"\\\1", part) for i, part in enumerate(parts))
    return "".join(escaped)


def wrapped(paragraph: str) -> str:
    """A paragraph in lines of the width that all pages have."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def construct_table() -> str:
    """The names below T that are neither tile operations, operators nor element types."""
    rows = []
    members = [*T.NAMES.values(), *T.comm.members.values()]
    for item in members:
        if isinstance(item, (Construct, MacroMaker)) and not isinstance(item, (TileOperation, Operator)):
            about = " ".join(item.documentation.split())
            about += " Also callable outside kernels." if isinstance(item, HostConstruct) else ""
            parameters = "" if item.parameter_text == "none" else item.parameter_text
            rows.append([code(f"{item.text}({parameters})"), prose(about)])
    return table(["name", "meaning"], rows)


def operation_sections() -> str:
    """One section a tile operation, with its parameters."""
    parts = []
    for _, python, collective, params, documentation in _core.tile_op_rows():
        signature = ", ".join(p if required else f"{p}={default!r}" for _, p, required, default in params)
        place = "In a host body or a kernel of a mesh function." if collective else "In a kernel."
        rows = [
            [code(p), KINDS[kind], "required" if required else code(repr(default))]
            for kind, p, required, default in params
        ]
        parts.append(
            f"#### `T.{python}({signature})`\n\n{wrapped(f'{prose(documentation)} {place}')}\n\n"
            + table(["parameter", "takes", "default"], rows)
        )
    return "\n\n".join(parts)


def operator_table() -> str:
    """The scalar operators, as they are written."""
    rows = []
    for name, text, arity, form in _core.operator_rows():
        if form == "Call":
            item = T.NAMES[text]
            written = f"T.{text}({item.parameter_text})"
        else:
            written = FORMS[form].format(text=text)
        rows.append([code(written), name, str(arity)])
    return table(["written", "operator", "operands"], rows)


def dtype_table() -> str:
    """The element types by kind."""
    kinds: dict[str, list[str]] = {}
    for name in _core.dtype_names():
        stem = re.match(r"[a-z]+", name).group()
        kind = {
            "index": "index: sizes, loop variables, subscripts",
            "bool": "bool",
            "int": "signed integers, wrap",
            "uint": "unsigned integers, wrap",
        }.get(stem, "floats")
        kinds.setdefault(kind, []).append(code(name))
    kinds["other names"] = [f"{code(name)} of {code(dtype)}" for name, dtype in _core.dtype_aliases()]
    return table(["kind", "names"], [[kind, ", ".join(names)] for kind, names in kinds.items()])


def plural(template: str) -> str:
    """A template with its counted words in the plural: `{n:index/indices}` is `{n} indices`."""
    return re.sub(r"\{(\w+):(?:[^}/]*/)?([^}]*)\}", lambda m: f"{{{m[1]}}} {m[2]}" + ("" if "/" in m[0] else "s"),
                  template)


def diagnostic_sections() -> str:
    """Every code, by range of numbers."""
    parts, listed = [], 0
    for first, last, subject in RANGES:
        rows = [
            [f"`HV{number:04}`", name, severity, code(plural(message)), prose(plural(remedy))]
            for name, number, severity, message, remedy in _core.diagnostic_rows()
            if first <= number <= last
        ]
        listed += len(rows)
        parts.append(f"### {subject}\n\n" + table(["code", "name", "kind", "message", "remedy"], rows))
    if listed != len(_core.diagnostic_rows()):
        raise ValueError("a diagnostic stands outside the ranges of docs/generate.py")
    return "\n\n".join(parts)


SECTIONS = {
    "constructs": construct_table,
    "operations": operation_sections,
    "operators": operator_table,
    "dtypes": dtype_table,
    "diagnostics": diagnostic_sections,
}
PAGES = [FOLDER.parent / "README.md", *sorted(FOLDER.rglob("*.md"))]

_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.S)


def updated(text: str) -> str:
    """A page's text with its marked sections made anew."""
    return _MARKED.sub(lambda m: f"{m[1]}\n{SECTIONS[m[2]]()}\n\n{m[3]}", text)


# -- examples ---------------------------------------------------------------------------------------------------------

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Example:
    """One ```python block of a page.

    Attributes:
        line: its first line, counted from 1.
        code: its text.
        output: where the text of the ```text block right after it stands in the page; None where no output is stated.
    """

    line: int
    code: str
    output: tuple[int, int] | None


def examples(text: str) -> Iterator[Example]:
    """The examples of a page, in order."""
    blocks = list(FENCE.finditer(text))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] == "python":
            adjacent = following and following[1] == "text" and not text[block.end() : following.start()].strip()
            yield Example(text.count("\n", 0, block.start()) + 2, block[2], following.span(2) if adjacent else None)


def run(example: Example, page: str, namespace: dict) -> str:
    """What the example prints. A first line like `# kernel.py` is the file name that errors show."""
    named = re.match(r"# (\w+\.py)\n", example.code)
    filename = named[1] if named else f"{page}:{example.line}"
    linecache.cache[filename] = (len(example.code), None, example.code.splitlines(keepends=True), filename)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.code, filename, "exec"), namespace)
    lines = printed.getvalue().strip("\n").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def with_outputs(text: str, page: str) -> str:
    """The page with every stated output as the examples print it, run from top to bottom in one namespace."""
    namespace: dict = {"__name__": "page"}
    parts, done = [], 0
    for example in examples(text):
        printed = run(example, page, namespace)
        if example.output is not None:
            start, end = example.output
            parts += [text[done:start], printed]
            done = end
    return "".join(parts) + text[done:]


# -- pictures ---------------------------------------------------------------------------------------------------------

PICTURE = re.compile(r"^<!-- picture: (.+) -->$", re.M)


def with_pictures(text: str, page: str) -> str:
    """The page with the drawing of each `<!-- picture: expression -->` in its place.

    The expression gives a picture of `helve.viz`, in the namespace of the examples above it. They run only on a page
    that has one.
    """
    namespace: dict = {"__name__": "page"}
    parts, done = [], 0
    ahead = list(examples(text)) if PICTURE.search(text) else []
    for mark in PICTURE.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        while ahead and ahead[0].line < line:
            run(ahead.pop(0), page, namespace)
        svg = " ".join(eval(mark[1], namespace).svg().split("\n")).strip()
        parts += [text[done : mark.start()], f'<div class="picture">{svg}</div>']
        done = mark.end()
    return "".join(parts) + text[done:]


# -- tutorials --------------------------------------------------------------------------------------------------------


def output_file(program: Path) -> Path:
    """Where the output of a tutorial is stored; its first line says the machine and the date."""
    return program.parent / "outputs" / f"{program.stem}.txt"


def machine() -> str:
    """This machine and this day; also that it is busy, if it is."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    name = model[1].strip() if model else platform.machine()
    cores = len(os.sched_getaffinity(0))
    busy = " with other work" if os.getloadavg()[0] > cores / 2 else ""
    return f"{cores} cores of {name}{busy}, {datetime.date.today()}"


def record_tutorials() -> None:
    """Runs every tutorial and stores what it prints."""
    for program in sorted((FOLDER.parent / "tutorials").glob("*.py")):
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
        output = output_file(program)
        output.parent.mkdir(exist_ok=True)
        output.write_text(f"# {machine()}\n{done.stdout}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    parser.add_argument("--outputs", action="store_true", help="run the examples and write what they print")
    parser.add_argument("--tutorials", action="store_true", help="run the tutorials and store what they print")
    arguments = parser.parse_args()
    if arguments.tutorials:
        record_tutorials()
        return 0
    check = arguments.check
    stale = 0
    for path in PAGES:
        old = path.read_text()
        new = updated(old)
        if arguments.outputs:
            new = with_outputs(new, path.name)
        if new != old:
            stale += 1
            print(f"{path.name}: {'stale' if check else 'rewritten'}")
            if not check:
                path.write_text(new)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
