"""Pictures of layouts and their renderings: SVG, text, LaTeX, and files of other formats by Matplotlib.

The data is in grid.py, which the renderings read; this file knows the renderings, and they do not know it. A rendering
is imported when it is asked for, so that `import helve` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helve.errors import error
from helve.viz.grid import Sheet


@dataclass(frozen=True, slots=True)
class Picture(Sheet):
    """Grids side by side in rows, under a title. Notebooks show it as it is; `save` writes it."""

    def svg(self) -> str:
        """The picture as one self-contained SVG document; equal pictures give equal text."""
        from helve.viz.svg import render

        return render(self)

    def text(self) -> str:
        """The picture for a terminal: cells in frames, without colours."""
        from helve.viz.text import render

        return render(self)

    def latex(self) -> str:
        """The picture as a LaTeX document of its own, drawn with TikZ."""
        from helve.viz.latex import render

        return render(self)

    def save(self, path: str | Path) -> None:
        """Writes the picture to `path`, in the format of its suffix: ".svg", or by Matplotlib ".png" and ".pdf".

        Raises:
            helve.Error: HV0588 for another suffix, and for the latter two where Matplotlib is missing.
        """
        path = Path(path)
        kind = path.suffix.lower().removeprefix(".")
        if kind == "svg":
            path.write_text(self.svg(), encoding="utf-8")
        elif kind in ("png", "pdf"):
            from helve.viz.plot import save

            save(self, path, kind)
        else:
            reason = f"'.{kind}' is no format of pictures" if kind else "it has no suffix, which says the format"
            raise error("PictureFormat", name=path.name, reason=reason, remedy="name it .svg, .png or .pdf")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg()
