"""Redistributions: what has to move for a tensor to be distributed otherwise, and by which collectives.

The derivation and its proofs are the core's (room `plan`); here are the values that users look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from helve import _core, viz
from helve.dist.distribution import Distribution, of_core
from helve.dist.moves import Moves
from helve.errors import error


@dataclass(frozen=True)
class Step:
    """One collective of a redistribution.

    Attributes:
        form: "local", "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute", "broadcast", "scatter",
            "gather", "reduce"; or "exchange", in which pairs of devices send each other what is needed.
        axes: the axes of the mesh over which its groups extend.
        root: the member of a group that sends or receives alone, row-major over `axes`; None for forms without one.
        op: the operator that terms are reduced by; None where none are.
        source, destination: the distributions before and after it.
    """

    form: str
    axes: tuple[str, ...]
    root: int | None
    op: str | None
    source: Distribution
    destination: Distribution
    _core: _core.CollectiveStep = field(repr=False, compare=False, hash=False)

    @cached_property
    def moves(self) -> Moves:
        """What it moves if all devices are parts of this process; listed at the first use."""
        return Moves(self.source, self.destination, self.op)

    def received(self, device: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """The boxes that a device receives, from itself too: (sender, first element, extents).

        Args:
            device: its coordinate in the mesh.

        Raises:
            helve.ShapeError, helve.BoundsError: no device of the mesh.
        """
        _core.flatten_index(device, self.source.mesh.shape)
        return self._core.received(device)

    def sent(self, device: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """The boxes that a device sends, to itself too: (receiver, first element, extents). Raises as `received`."""
        _core.flatten_index(device, self.source.mesh.shape)
        return self._core.sent(device)


@dataclass(frozen=True)
class Redistribution:
    """Steps from one distribution of a tensor to another; `print` shows them, with what each moves.

    Attributes:
        source, destination: the distributions.
        element_bytes: the size of an element.
        steps: the collectives, in order; none if there is nothing to do.
        seconds: what they take by the latency and the bandwidth that were given; an estimate.
    """

    source: Distribution
    destination: Distribution
    element_bytes: int
    steps: tuple[Step, ...]
    seconds: float
    _core: _core.Redistribution = field(repr=False, compare=False, hash=False)

    def volume(self) -> tuple[int, int]:
        """The bytes that one device receives from others at most, and all of them together.

        Exact, counted device by device; an all_reduce counts as a reduce_scatter and an all_gather of even parts.
        """
        return self._core.volume()

    def show(self) -> viz.Picture:
        """The picture of `helve.viz.draw_redistribution`: notebooks show it, `text()` is for terminals. Raises as that.
        """
        return viz.draw_redistribution(self)

    def __str__(self) -> str:
        return self._core.text().rstrip("\n")


def redistribution(source: Distribution, destination: Distribution, element_bytes: int, *, latency: float = 5e-6,
                   bandwidth: float = 10e9) -> Redistribution:
    """The cheapest way that was found from one distribution of a tensor to another.

    What a device needs is what it is to hold and does not hold. The direct exchange of that always exists; where a
    collective is proved to move exactly the same, for all devices at once, it stands in its place, and chains of up to
    three of them compete. Takes time that does not grow with the mesh.

    Args:
        source, destination: distributions of one tensor over one mesh.
        element_bytes: the size of an element, 1 or more.
        latency: of a message, in seconds.
        bandwidth: with which a device receives, in bytes per second.

    Raises:
        helve.LayoutError: an argument that is no distribution or no size (HV0507).
        helve.Error: tensors or meshes that differ; terms of different operators (HV0413).
    """
    for value in (source, destination):
        if not isinstance(value, Distribution):
            raise error("LayoutArgument", value=repr(value), expected="distribution",
                        remedy="make one by helve.dist.distribution")
    sizes = ((element_bytes, int, 1, "number of bytes"), (latency, (int, float), 0, "time in seconds"),
             (bandwidth, (int, float), 1, "number of bytes per second"))
    for value, kind, least, unit in sizes:
        if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < 1e18:
            raise error("LayoutArgument", value=repr(value), expected=unit, remedy=f"give a number of at least {least}")
    plan = _core.redistribute(source._core, destination._core, element_bytes, latency, bandwidth)
    steps = tuple(
        Step(each.form, tuple(source.mesh.names[a] for a in each.axes), None if each.root < 0 else each.root,
             each.op if each.terms > 1 else None, of_core(each.source, source), of_core(each.destination, source), each)
        for each in plan.steps
    )
    return Redistribution(source, destination, element_bytes, steps, plan.seconds, plan)
