"""The order that index notation gets without a schedule of the user's.

Elements of rows are for the passes of the compiler, which know how to write large tensors; what only a schedule can do
is done by auto, on the nest that is written out loop by loop.
"""

from __future__ import annotations

from helve import _core
from helve.schedule.auto import has_order, machine_of
from helve.schedule.schedule import Schedule


def default_order(nest: _core.Function, target: str, arch: str | None = None) -> _core.Function | None:
    """The function in the order that auto gives it; None if that has nothing to do but blocks and rows. Without an
    architecture, programs for a GPU are planned for that of this machine."""
    if target == "cuda" and arch is None:
        arch = _core.device_arch()
    machine = machine_of(target, arch)
    if machine is None or not has_order(_core.start_schedule(nest), machine):
        return None
    s = Schedule(nest)
    s.auto(target, arch)
    return s.function.function
