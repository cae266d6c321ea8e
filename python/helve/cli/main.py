"""The commands, one function each.

They parse text, call the library and print; what they know, the library knows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import helve

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
) -> None:
    """helve, a tensor compiler."""
    if version:
        typer.echo(helve.__version__)
        raise typer.Exit()


@app.command()
def layout(
    notation: Annotated[str, typer.Argument(help='The layout, for example "S[(8, 16) : (4@laneid, 1)]".')],
    shape: Annotated[str | None, typer.Option(help="Extents of the picture, for example 8,16.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture to this file.")] = None,
) -> None:
    """Say what a layout is, and draw it."""
    try:
        _describe(helve.Layout.parse(notation), _extents(shape), svg)
    except helve.Error as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(1) from None


def _describe(layout: helve.Layout, shape: list[int] | None, svg: Path | None) -> None:
    picture = helve.viz.draw_layout(layout, shape)
    typer.echo(str(layout))
    canonical = layout.canonicalize()
    if canonical != layout:
        typer.echo(f"canonical  {canonical}")
    typer.echo(f"size       {layout.size()}")
    for axis in layout.axes:
        typer.echo(f"span       {layout.span(axis)}@{axis.name}")
    typer.echo(f"injective  {'yes' if layout.is_injective() else 'no'}")
    if svg is not None:
        try:
            picture.save(svg)
        except OSError as fault:
            raise typer.BadParameter(f"cannot write '{svg}': {fault.strerror}", param_hint="--svg") from None
    else:
        typer.echo(picture.text())


def _extents(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no list of numbers such as 8,16", param_hint="--shape") from None
