"""Pictures of layouts, as SVG and as text, without third-party packages.

Every function returns a `Picture`: notebooks show it, `save(path)` writes it, `text()` prints it.
"""

from helve.viz.banks import draw_banks
from helve.viz.grid import Cell, Grid
from helve.viz.mesh import draw_mesh
from helve.viz.offsets import draw_offsets, draw_swizzle, draw_tv
from helve.viz.ownership import draw_layout
from helve.viz.picture import Picture
from helve.viz.redistribution import draw_redistribution

__all__ = ["Cell", "Grid", "Picture", "draw_banks", "draw_layout", "draw_mesh", "draw_offsets",
           "draw_redistribution", "draw_swizzle", "draw_tv"]
