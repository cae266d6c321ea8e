"""The site of the documentation: every page stands in it once, every link leads somewhere, a phone can show it.

It is built with the packages of `helve[docs]`, and looked at in Chromium; without them those tests skip themselves.
"""

import functools
import html.parser
import http.server
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
PHONE = 390  # pixels
NEEDED = ("sphinx", "myst_parser", "furo")


def load(name):
    """A module of the site's folder."""
    sys.path.insert(0, str(SITE))
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[0]


def test_every_page_stands_in_the_navigation_once():
    pages = load("navigation").pages()
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").glob("*.py"), *ROOT.glob("*.md")]
    assert Counter(pages) == Counter(set(pages))
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(pages)
    names = [load("navigation").name(page) for page in pages]
    assert len(set(names)) == len(names)


def test_pictures_are_drawn_where_they_are_asked_for():
    generate = load("assemble").generate
    text = ("```python\nfrom helve.layout import S\ntile = S[(2, 4) : (4, 1)]\n```\n\n"
            "<!-- picture: tile.show((2, 4)) -->\nend\n")
    drawn = generate.with_pictures(text, "page.md")
    assert drawn.startswith(text[:40]) and '<div class="picture"><svg' in drawn
    assert re.search(r"</svg>\s*</div>\nend\n$", drawn)
    assert generate.with_pictures("no picture\n", "page.md") == "no picture\n"
    with pytest.raises(NameError):
        generate.with_pictures("```python\n1\n```\n<!-- picture: other.show() -->\n", "page.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip("the packages of helve[docs] are not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, str(SITE / "build.py"), str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(html.parser.HTMLParser):
    """The anchors of a page and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        # Within an SVG, `href` of other tags is a reference of the drawing itself.
        self.targets += [given[name] for name in ("href", "src") if given.get(name) and tag != "use"]


def broken(folder):
    """Page and target of every link of a site that leads nowhere, or out to a file over the network."""
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for target in page.targets:
            link = urllib.parse.urlsplit(target)
            if link.scheme or link.netloc:
                continue
            other = (path.parent / urllib.parse.unquote(link.path)).resolve() if link.path else path
            known = other.exists() and (not link.fragment or other not in pages or urllib.parse.unquote(link.fragment)
                                        in pages[other].anchors)
            if not known:
                yield path.relative_to(folder).as_posix(), target


def test_no_link_is_broken(site):
    assert list(broken(site)) == []


def test_a_broken_link_of_a_site_is_seen(tmp_path):
    links = '<a id="x" href="#x"></a><a href="b.html#y"></a><a href="b.html#z"></a><img src="c.png">'
    (tmp_path / "a.html").write_text(links)
    (tmp_path / "b.html").write_text('<h1 id="z"><a href="https://example.org"></a></h1>')
    assert list(broken(tmp_path)) == [("a.html", "b.html#y"), ("a.html", "c.png")]


def test_nothing_is_loaded_from_elsewhere(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]*)"|<link[^>]*\shref="([^"]*)"',
                            path.read_text())
        assert not [each for pair in loaded for each in pair if re.match(r"(https?:)?//", each)], path


def test_programs_stand_with_their_output(site):
    text = (site / "tutorials" / "00_first_kernel.html").read_text()
    assert "First kernels: vector add and softmax" in text and "equal to NumPy" in text and 'id="output"' in text
    assert (site / "layouts.html").read_text().count('<div class="picture"><svg') >= 1


WIDTHS = """<!doctype html><meta charset="utf-8"><style>iframe {{ width: {width}px; height: 800px; border: 0 }}</style>
{frames}
<pre id="widths"></pre>
<script>
addEventListener("load", () => {{
  const widths = [...document.querySelectorAll("iframe")].map(
      (frame) => frame.getAttribute("src") + " " + frame.contentDocument.documentElement.scrollWidth);
  document.getElementById("widths").textContent = widths.join("\\n");
}});
</script>
"""


def too_wide(folder, chromium, profile):
    """Page and width of every page of a site that is wider than a phone, as Chromium lays it out."""
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    frames = "\n".join(f'<iframe src="{page}"></iframe>' for page in pages)
    outer = folder / "widths-of-pages.html"
    outer.write_text(WIDTHS.format(width=PHONE, frames=frames))
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom",
             f"http://127.0.0.1:{server.server_port}/{outer.name}"],
            capture_output=True, text=True, timeout=240)  # fmt: skip
        server.shutdown()
    outer.unlink()
    listed = re.search(r'<pre id="widths">(.*?)</pre>', done.stdout, re.S)
    assert listed, done.stderr[-2000:]
    widths = dict(line.rsplit(" ", 1) for line in listed[1].splitlines())
    assert sorted(widths) == pages
    return [(page, int(width)) for page, width in widths.items() if int(width) > PHONE]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    def log_message(self, *arguments):
        pass


@pytest.fixture
def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or pytest.skip("Chromium is not installed")


def test_no_page_is_wider_than_a_phone(site, chromium, tmp_path):
    assert too_wide(site, chromium, tmp_path) == []


def test_a_page_that_is_too_wide_is_seen(chromium, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text("<p>fine")
    (site / "b.html").write_text('<body style="margin: 0"><div style="width: 500px">wide</div>')
    assert too_wide(site, chromium, tmp_path / "profile") == [("b.html", 500)]
