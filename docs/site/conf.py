"""What Sphinx is told; the pages are those that assemble.py writes."""

import re
from pathlib import Path

_cmake = (Path(__file__).resolve().parents[2] / "CMakeLists.txt").read_text()

project = "helve"
author = "the helve authors"
copyright = author
version = release = re.search(r"project\(helve VERSION ([0-9.]+)", _cmake)[1]

extensions = ["myst_parser"]
exclude_patterns = ["files"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # printed assembly and IR are no Python

html_theme = "furo"
html_title = f"helve {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
