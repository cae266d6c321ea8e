"""Redistributions as pictures: a grid a step, senders in rows and receivers in columns.

A cell is the box of elements that goes from the one to the other: what a plan says of all devices at once, seen device
by device.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from helve.mesh import Mesh
from helve.viz.elements import refusal, wrong_argument
from helve.viz.grid import Cell, Grid, color
from helve.viz.picture import Picture

_MAX_DEVICES = 64
_KEPT = "#eeeeee"

Box = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # the other device, first element, extents


class Moving(Protocol):
    """What a step of a redistribution knows."""

    @property
    def op(self) -> str | None: ...
    def received(self, device: Sequence[int]) -> list[Box]: ...


class Placed(Protocol):
    """What its ends know."""

    @property
    def mesh(self) -> Mesh: ...


@runtime_checkable
class Planned(Protocol):
    """What a `helve.dist.Redistribution` knows; its text has a line for the whole and one for each step."""

    @property
    def source(self) -> Placed: ...
    @property
    def element_bytes(self) -> int: ...
    @property
    def steps(self) -> tuple[Moving, ...]: ...


def draw_redistribution(plan: Planned) -> Picture:
    """Who sends what to whom in each step.

    Args:
        plan: a redistribution over a mesh of at most 64 devices.

    Returns:
        One grid a step: a row for each sender, a column for each receiver, devices by coordinates, row-major. A cell
        shows the box of elements that is sent, of several boxes the first and how many more; on hover all of them, and
        their bytes. The fill tells the sender; what a device has already is grey.

    Raises:
        UnsupportedError: a mesh of more than 64 devices.
        LayoutError: it is no redistribution (HV0507).
    """
    if not isinstance(plan, Planned):
        raise wrong_argument(plan, "redistribution", "make one by helve.dist.redistribution")
    extents = plan.source.mesh.shape
    if math.prod(extents) > _MAX_DEVICES:
        raise refusal("draw_redistribution", f"of a mesh of {' x '.join(map(str, extents))}",
                      f"a picture shows at most {_MAX_DEVICES} devices", "ask the steps for received(device)")
    title, *captions = str(plan).splitlines()
    grids = tuple((_step(step, caption, extents, plan.element_bytes),)
                  for step, caption in zip(plan.steps, captions, strict=False))
    return Picture(title, grids or ((Grid((), caption=captions[0]),),), ((_KEPT, "is on the device already"),))


def _step(step: Moving, caption: str, extents: tuple[int, ...], element_bytes: int) -> Grid:
    devices = list(itertools.product(*map(range, extents)))
    rows: list[list[Cell]] = [[Cell()] * len(devices) for _ in devices]
    numbers = {device: rank for rank, device in enumerate(devices)}
    for receiver in devices:
        by_sender: dict[tuple[int, ...], list[Box]] = {}
        for box in step.received(receiver):
            if math.prod(box[2]):
                by_sender.setdefault(tuple(box[0]), []).append(box)
        for sender, boxes in by_sender.items():
            rank = numbers[sender]
            fill = _KEPT if sender == receiver else color(rank)
            rows[rank][numbers[receiver]] = _cell(sender, receiver, boxes, fill, step.op, element_bytes)
    labels = tuple(" ".join(map(str, device)) for device in devices)
    return Grid(tuple(map(tuple, rows)), caption=caption, row_labels=labels, column_labels=labels,
                row_step=extents[-1] if len(extents) > 1 else 0, column_step=extents[-1] if len(extents) > 1 else 0)


def _cell(sender: tuple[int, ...], receiver: tuple[int, ...], boxes: list[Box], fill: str, op: str | None,
          element_bytes: int) -> Cell:
    texts = [" ".join(f"{b}:{b + n}" for b, n in zip(first, size, strict=True)) or "all" for _, first, size in boxes]
    moved = sum(math.prod(size) for _, _, size in boxes) * element_bytes
    what = f"terms of a {op}, " if op else ""
    title = f"{sender} to {receiver}: {what}{moved} bytes, elements {', '.join(texts)}"
    return Cell((texts[0] + (f" +{len(texts) - 1}" if len(texts) > 1 else ""),), fill, title)
