"""What a machine can do at most: bytes and operations per second, where it is known.

The figures of a GPU are those of the compiler's table for its architecture; its memory is asked for its own clock,
since one architecture is sold with several memories.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from helve import _core
from helve.bench.clocks import CupyEvents, TorchEvents


@dataclass(frozen=True)
class Peaks:
    """Figures of one machine.

    Attributes:
        machine: its name: "cpu", "sm_90".
        bandwidth: bytes per second of its memory; 0 if unknown.
        operations: operations per second by dtype, dense, in tensor cores where they have the dtype (float32: TF32).
    """

    machine: str
    bandwidth: float = 0.0
    operations: dict[str, float] = field(default_factory=dict)


def host_peaks() -> Peaks:
    """Of the CPU: what the compiler knows of it."""
    machine = _core.host_machine()
    return Peaks(machine.name, machine.bandwidth, dict(machine.peaks))


def gpu_peaks(events: TorchEvents | CupyEvents) -> Peaks:
    """Of the GPU that the events are of."""
    machine = _core.gpu_machine(events.arch)
    if machine is None:
        return Peaks(events.arch, events.bandwidth)
    return Peaks(events.arch, events.bandwidth or machine.bandwidth, dict(machine.peaks))
