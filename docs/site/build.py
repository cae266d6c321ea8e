"""Builds the site: the pages of docs/, the tutorials and the README, as static HTML.

``make docs`` runs it. Sphinx reads Markdown by MyST and Furo is the theme; a link or anchor that leads nowhere is an
error.

    python docs/site/build.py [folder]      default folder: build/site; the front page is html/index.html in it
"""

import sys
from pathlib import Path

from sphinx.cmd.build import build_main

sys.path.insert(0, str(Path(__file__).resolve().parent))

import assemble


def build(folder: Path) -> int:
    """Builds the site below `folder`; 0 if nothing is wrong."""
    pages = folder / "pages"
    assemble.Assembly(pages).write()
    return build_main(["-q", "-W", "--keep-going", "-c", str(assemble.FOLDER), "-d", str(folder / "trees"), str(pages),
                       str(folder / "html")])


def main() -> int:
    folder = Path(sys.argv[1] if sys.argv[1:] else assemble.ROOT / "build" / "site").resolve()
    status = build(folder)
    if status == 0:
        print(f"the site: {folder / 'html' / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
