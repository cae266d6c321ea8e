"""Pictures as PNG and PDF, by Matplotlib.

The measures and marks are those of the SVG document, so that a figure in a paper is the picture of the notebook.
"""

from __future__ import annotations

from pathlib import Path

from helve.errors import error
from helve.viz.grid import Sheet
from helve.viz.svg import Line, Rectangle, Text, layout

_PIXELS = 96  # an inch of SVG
_POINT = 72 / _PIXELS


def save(sheet: Sheet, path: Path, kind: str) -> None:
    """Writes the sheet to `path` as "png" or "pdf".

    Raises:
        helve.Error: HV0588 where Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        reason = f"a {kind.upper()} is drawn by Matplotlib, which is missing"
        raise error("PictureFormat", name=path.name, reason=reason,
                    remedy='install it, as pip install "helve[plot]", or save an SVG file') from None
    width, height, marks = layout(sheet)
    figure = Figure(figsize=(width / _PIXELS, height / _PIXELS), dpi=2 * _PIXELS)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for mark in marks:
        _draw(axes, mark)
    # Without a date, so that equal pictures give equal files.
    figure.savefig(path, format=kind, metadata={"CreationDate": None} if kind == "pdf" else None)


def _draw(axes, mark: Rectangle | Line | Text) -> None:
    from matplotlib.patches import Rectangle as Patch

    if isinstance(mark, Rectangle):
        axes.add_patch(Patch((mark.x, mark.y), mark.width, mark.height, facecolor=mark.fill,
                             edgecolor=mark.stroke or "none", linewidth=_POINT))
    elif isinstance(mark, Line):
        axes.plot((mark.x1, mark.x2), (mark.y1, mark.y2), color="#000000", linewidth=2.5 * _POINT,
                  solid_capstyle="butt")
    else:
        side = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
        # No text is a formula, whatever dollars it has.
        axes.text(mark.x, mark.y, mark.text, ha=side, va="baseline", fontsize=12 * _POINT, family="monospace",
                  color=mark.color, weight="bold" if mark.bold else "normal", parse_math=False)
