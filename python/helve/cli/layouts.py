"""`helve layout`: what a layout is, and its picture.

As text for a terminal, or as an SVG file.
"""

from __future__ import annotations

import argparse

import helve
from helve.cli.mistakes import Mistake


def _parsed(notation: str) -> helve.Layout:
    """The layout; one in CuTe's notation, "(8, 4):(4, 1)", as the Axe layout that it is."""
    if not notation.lstrip().startswith(("(", *"0123456789")):
        return helve.Layout.parse(notation)
    return helve.Layout.from_cute(helve.cute.Layout.parse(notation))


def command(chosen: argparse.Namespace) -> None:
    """Prints the facts of a layout and its table, or writes its picture."""
    layout = _parsed(chosen.notation)
    picture = helve.viz.draw_layout(layout, chosen.shape)
    print(layout)
    canonical = layout.canonicalize()
    if canonical != layout:
        print(f"canonical  {canonical}")
    print(f"size       {layout.size()}")
    for axis in layout.axes:
        print(f"span       {layout.span(axis)}@{axis.name}")
    print(f"injective  {'yes' if layout.is_injective() else 'no'}")
    if chosen.svg is None:
        print(picture.text())
        return
    try:
        picture.save(chosen.svg)
    except OSError as fault:
        raise Mistake(f"cannot write '{chosen.svg}': {fault.strerror}", "name a file that can be written") from None
