"""The part of a tensor that this process holds, where each device of the mesh is a process.

Every process does the same calls; what one cannot take, the others are told of, so that none waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import site
from collections.abc import Callable, Sequence
from typing import Any

from helve import _core
from helve.caller import at_caller
from helve.dist import shards as arrays
from helve.dist.distribution import Distribution
from helve.dist.moves import begun, identities, without_terms
from helve.dist.processes import are_devices_of, at_the_call, compares_on_gpus, device_of, group_of, world_of
from helve.dist.redistribution import Redistribution
from helve.errors import Error

_CARD = 64  # characters that say of which library and dtype parts are


def lies_on_processes(distribution: Distribution) -> bool:
    """Are the devices of its mesh processes?"""
    return are_devices_of(distribution.mesh)


def lies_on_gpus(distribution: Distribution) -> bool:
    """Are the devices of its mesh GPUs, one of each process?"""
    return distribution.mesh.device == "cuda"


def of_whole(array: Any, distribution: Distribution) -> Any:
    """The part of this process, as a copy from the whole tensor; None where its device holds nothing."""
    mesh, held = distribution.mesh, without_terms(distribution)
    device = device_of(mesh)
    extents, begin = distribution.local_shape(device), held.local_begin(device)
    if extents is None:
        return None
    part = arrays.make(extents, array)
    with arrays.without_gradients(part):
        if begin is not None:
            part[...] = array[tuple(slice(b, b + e) for b, e in zip(begin, extents, strict=True))]
        if op := _identity(identities(distribution, mesh.names), group_of(mesh).rank):
            _fill(part, op)
    return part


@at_the_call
def agree_on_parts(part: Any, distribution: Distribution, fault: Error | None) -> Any:
    """An array of no elements like the parts of all processes; each tells the others whether its own fits.

    Args:
        part: of this process, None where its device holds nothing.
        fault: why it does not fit; raised when the others know.

    Raises:
        helve.Error: HV0419 where another one has another distribution or dtype, HV0420 to HV0423.
    """
    mesh = distribution.mesh
    group, what = group_of(mesh), f"DistTensor.from_local of {distribution.shape} as '{distribution}'"
    text = f"{what} over {mesh}"
    if fault is not None:
        with contextlib.suppress(Error):
            group.begin(what, text, refuses=True)
        raise fault
    group.begin(what, text)
    holder = next(number for number, device in enumerate(itertools.product(*map(range, mesh.shape)))
                  if distribution.local_shape(device) is not None)
    mine = "" if part is None else arrays.card_of(part)
    card = group.broadcast(f"the dtype of {what}", mine.ljust(_CARD), holder).decode().strip()
    group.begin(f"{what}, of {mine or card}", f"{text}, {mine or card}")
    return arrays.of_card(card, lies_on_gpus(distribution)) if part is None else arrays.make((0,), part)


def prepare(plan: Redistribution, part: Any, like: Any, out: Any) -> tuple[Callable[[], None], Any]:
    """What does the steps of a plan on this process, as often as wanted.

    Args:
        part: the old part; None where the device holds nothing.
        like: an array of the library and dtype of all parts.
        out: the new part, None for a new one.

    Returns:
        A function that does them, and the new part.

    Raises:
        helve.Error: HV0624 for a dtype without that reduction; HV0610, HV0643 for a part that cannot be written. The
            function raises HV0419 to HV0423.
    """
    mesh = plan.source.mesh
    group, device = group_of(mesh), device_of(mesh)
    what = f"the plan from '{plan.source}' to '{plan.destination}' of {like.dtype} {plan.source.shape}"
    forms = [(step.form, step.axes, str(step.destination)) for step in plan.steps]
    compare = functools.partial(group.begin, what, f"{what} over {mesh}: {forms}")
    calls, moves_of = [], _moves_on_gpus(like) if lies_on_gpus(plan.source) else functools.partial(
        _core.PreparedRankMoves, group, like=like)
    for number, step in enumerate(plan.steps, 1):
        extents = step.destination.local_shape(device)
        target = out if number == len(plan.steps) and out is not None else None
        if target is None and extents is not None:
            target = arrays.make(extents, like)
        calls.append(moves_of(step._core, part, target))
        if op := _identity(begun(step.source, step.destination), group.rank):
            calls.append(functools.partial(_fill, target, op))
        part = target
    if not plan.steps and out is not None:
        calls.append(functools.partial(_copy, part, out))
        part = out
    return _Steps(compare, calls), part


def _moves_on_gpus(like: Any) -> Callable[[_core.CollectiveStep, Any, Any], Callable[[], None]]:
    """What makes the moves of a step between GPUs."""
    return functools.partial(_core.PreparedDeviceMoves, world_of(like), like=like,
                             site_packages=site.getsitepackages(), compares=compares_on_gpus(),
                             allocate=functools.partial(arrays.make_bytes, like=like))


class _Steps:
    """What a process does for a plan. The processes compare the plan once, whether they compare steps or not."""

    def __init__(self, compare: Callable[[], None], calls: Sequence[Callable[[], None]]):
        self._compare: Callable[[], None] | None = compare
        self._calls = tuple(calls)

    def __call__(self) -> None:
        try:
            if self._compare is not None:
                self._compare()
                self._compare = None
            for call in self._calls:
                call()
        except Error as fault:
            raise at_caller(fault) from None


def _copy(source: Any, target: Any) -> None:
    with arrays.without_gradients(target):
        target[...] = source


def _identity(all_begun: Sequence[tuple[int, str]], rank: int) -> str | None:
    """The operator whose identity the device is to hold."""
    return next((op for number, op in all_begun if number == rank), None)


def _fill(part: Any, op: str) -> None:
    with arrays.without_gradients(part):
        part[...] = arrays.identity(op, part.dtype)
