"""The text of the site's pages, made from the files of the repository.

Markdown pages get their links and pictures, programs become pages of text, code and stored output. Sphinx then sees one
folder of Markdown and nothing else.
"""

import ast
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(FOLDER)]

import navigation

_spec = importlib.util.spec_from_file_location("docs_generate", FOLDER.parent / "generate.py")
generate = importlib.util.module_from_spec(_spec)  # other folders have modules of that name
_spec.loader.exec_module(generate)

LINK = re.compile(r"`[^`\n]*`|(?<!\\)(?:\[([^\[\]`\\]*)|)\]\(([^)\s]+)\)")  # or code, which has no link
FILE = re.compile(r"[\w/.-]+\.(?:md|py|cc)")


def outside_code(text: str, change) -> str:
    """The text with `change` applied to what stands between its blocks of code."""
    parts, done = [], 0
    for block in generate.FENCE.finditer(text):
        parts += [change(text[done : block.start()]), block[0]]
        done = block.end()
    return "".join(parts) + change(text[done:])


def program(page: str) -> str:
    """A program as a page: its docstring or head comment, its cells, and what it printed when it was last recorded."""
    text = (ROOT / page).read_text()
    if not page.endswith(".py"):
        head = re.match(r"(?:// .*\n)+", text)[0]
        title, _, rest = re.sub(r"^// ", "", head, flags=re.M).strip().partition("\n")
        return f"# {title.rstrip('.:')}\n\n{rest}\n\n```cpp\n{text[len(head) :].strip()}\n```\n"
    title, _, rest = ast.get_docstring(ast.parse(text)).partition("\n")
    body = text.split('"""', 2)[2]
    parts = [f"# {title.rstrip('.:')}", rest.strip().replace("``", "`")]
    for cell in re.split(r"^# %%", "\n" + body, flags=re.M):
        head, newline, code = cell.partition("\n")
        parts += [f"## {head.strip()}"] if head.strip() else []
        parts += [f"```python\n{code.strip()}\n```"] if code.strip() else []
    output = generate.output_file(ROOT / page)
    if output.exists():
        where, _, printed = output.read_text().partition("\n")
        parts += ["## Output", f"On {where.removeprefix('# ')}:", f"```text\n{printed.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


class Assembly:
    """One folder of Markdown pages.

    Attributes:
        folder: where the pages are written.
        files: other files of the repository that pages link to; they are copied to `files/`.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.names = {page: navigation.name(page) for page in navigation.pages()}
        self.files: set[str] = set()

    def link(self, page: str, target: str) -> str:
        """A link of a page, relative to the file of the page in the repository, as it is on the site."""
        path, mark, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        other = os.path.relpath((ROOT / page).parent / path, ROOT)
        if other in self.names:
            goal = f"{self.names[other]}.md"
        else:
            self.files.add(other)
            goal = f"files/{other}"
        start = os.path.dirname(self.names[page]) or "."
        return os.path.relpath(goal, start) + mark + anchor

    def text(self, page: str) -> str:
        text = (ROOT / page).read_text() if page.endswith(".md") else program(page)
        if page.endswith(".md"):
            text = generate.with_pictures(text, Path(page).name)
        return outside_code(text, lambda part: LINK.sub(lambda m: self.rewritten(page, m), part))

    def rewritten(self, page: str, match: re.Match) -> str:
        """A link as it is on the site; one that is named like its file gets the title of what it leads to."""
        text, target = match.groups()
        if target is None:
            return match[0]
        goal = self.link(page, target)
        named = text is not None and FILE.fullmatch(text) and ".md" in goal and "files/" not in goal
        return f"{'' if text is None else '[' if named else '[' + text}]({goal})"

    def write(self) -> None:
        """Writes all pages anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for page, name in self.names.items():
            text = self.text(page)
            if page == navigation.FRONT:
                text += "".join(self.contents(title, listed) for title, listed in navigation.PARTS)
            path = self.folder / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for file in self.files:
            copy = self.folder / "files" / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy)

    def contents(self, title: str, listed: list[str]) -> str:
        """The directive that gives a part its place in the navigation."""
        names = "\n".join(self.names[page] for page in listed)
        return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{names}\n```\n"
