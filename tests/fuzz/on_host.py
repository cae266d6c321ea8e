"""The CUDA C of programs on the CPU: many functions behind one call of g++, through tests/python/cuda_on_host.py.

Taken are functions without a mesh that launch one kernel once; what they compute has to be what every engine computes.
"""

import math
import shutil
import struct
import sys
import tempfile
from pathlib import Path

import engines
import program as p
import scalars
from arguments import Arguments, difference
from engines import Failure
from meaning import Core, Machine

sys.path.append(str(Path(__file__).parent.parent / "python"))


def is_possible():
    return shutil.which("g++") is not None


def blocks_of(program):
    """How many blocks the only kernel of the program has; None where there is not just one."""
    if program.mesh or len(program.body) != 1 or not isinstance(program.body[0], p.Kernel):
        return None
    machine = Machine(program)
    core = Core((), {**program.dims, **program.scalars, p.MULTIPROCESSORS.name: 4})
    return math.prod(machine.int(core, e) for e in program.body[0].extents)


def _slot(dtype, value):
    if scalars.is_float(dtype):
        return int.from_bytes(struct.pack("<d" if dtype == "float64" else "<f", value), "little", signed=True)
    return int(value)


class Batch:
    """Calls whose kernels are compiled together."""

    def __init__(self):
        self.kept = []  # (seed, program, call, stage, blocks)

    def add(self, seed, program, call, stage):
        blocks = blocks_of(program)
        if blocks:
            self.kept.append((seed, program, call, stage, blocks))

    def run(self, starts):
        """Yields (seed, Failure, text) of what fails; `starts` is told of each seed before it runs."""
        for unaligned in (False, True):
            part = [each for each in self.kept if _is_unaligned(each[2]) == unaligned]
            if part:
                yield from self.part(part, unaligned, starts)

    def part(self, part, unaligned, starts):
        from cuda_on_host import HostKernels

        with tempfile.TemporaryDirectory() as folder:
            names = [f"seed_{seed}" for seed, *_ in part]
            try:
                kernels = HostKernels([stage for *_, stage, _ in part], folder, prelude=True, names=names,
                                      cluster_blocks=engines.WIDE["sm_80"], unaligned=unaligned)
            except AssertionError as error:
                if len(part) > 1:
                    for each in part:
                        yield from self.part([each], unaligned, starts)
                else:
                    yield part[0][0], Failure("host emulation compiles", str(error)), part[0][2].text
                return
            for seed, program, call, _, blocks in part:
                starts(seed)
                if failure := _run(kernels, f"seed_{seed}", program, call, blocks):
                    yield seed, failure, call.text


def _is_unaligned(call):
    return any(t and (len(t) > 7 and t[7] or t[3]) for t in call.tensors) or bool(call.shared)


def _run(kernels, name, program, call, blocks):
    data = Arguments(call.scalars, call.tensors, call.shared)
    given = data.fresh()
    arrays = {t[0]: given.values[n] for n, t in enumerate(call.tensors) if t}
    kinds = {q.name: q.dtype for q in program.params if isinstance(q, p.Var)}
    slots = {"multiprocessors": 4, **program.dims} | {q: _slot(kind, program.scalars[q]) for q, kind in kinds.items()}
    try:
        kernels.run(name, blocks, arrays, slots)
    except KeyError:
        return None  # the launch computes an argument
    except AssertionError as error:
        return Failure("host emulation " + str(error).partition(": ")[2][:40], str(error))
    found = difference(data, given)
    return Failure("host emulation", found) if found else None
