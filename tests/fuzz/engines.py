"""Runs a program on every engine and compares with its meaning.

Engines: the parser and printer (stages survive a round trip), the interpreter on the function and after each pass of
each target, looking for races and reads of nothing, the text of CUDA C, and machine code, compiled with the verifier
after each pass, on one thread and on two.
"""

import contextlib
import functools
import os
import re
import warnings
from dataclasses import dataclass, field

import arguments
import helve
import program as p
import scalars
from arguments import difference
from helve import _core
from helve.target import Kernel
from helve.testing import PIPELINES, interpret, pipelines_of, placements, stage_check, with_variant
from meaning import contents, number, tensor_data
from bulk import BY_TMA
from products import BY_WARPGROUPS, ON_TENSOR_CORES

_core.sample_conditions(True)
os.environ["PYTHONBREAKPOINT"] = "0"  # sys.breakpointhook then does nothing

# What compiles and runs the programs, with commas between: "llvm", and "cuda" where there is a device.
TARGETS = os.environ.get("HELVE_FUZZ_TARGETS", "llvm").split(",")
STEPS = 20_000_000  # of an interpreted stage: seconds
WIDE = {"sm_80": 1, "sm_90a": 16}  # blocks of a cluster

NUMPY = arguments.NUMPY


@dataclass
class Failure:
    """What disagreed: `layer` names it briefly and is kept while shrinking, `detail` tells the rest."""

    layer: str
    detail: str


@dataclass
class Call:
    """A function text with its arguments and what they must become; floats with the error they may have."""

    text: str
    scalars: list  # None in the place of a tensor
    tensors: list  # [name, dtype, shape, strides or None, values, expected, errors, begin], or None for a scalar
    mesh: list | None
    chunk: int
    shared: list = field(default_factory=list)  # groups of [position of a tensor, begin in their one memory]
    more: list = field(default_factory=list)  # further calls of the same kernel: their scalars and tensors
    refused: list = field(default_factory=list)  # calls of the same kernel that are refused: code, scalars, tensors


@dataclass(frozen=True)
class Effort:
    """What is asked of a program beyond what is asked of all. Much of a campaign's time goes into these, and what they
    find does not hang on one program.
    """

    round_trips: bool = True  # of all stages: what is printed parses to the same
    proofs: bool = True  # of the last stage of each pipeline
    streams: bool = True  # machine code that takes every tensor for a large one
    text: bool = True  # CUDA C

    @staticmethod
    def of(seed, text):
        """The effort for a seed of a campaign."""
        return Effort(seed % 4 == 0, seed % 8 == 1, seed % 4 == 2 or text.count("alloc_") == 0, True)


def first_data(program, buffer, memory):
    """The contents of a tensor before the call."""
    for group in program.shared:
        if buffer in group.buffers:
            name = "/".join(q.name for q in group.buffers)
            count = len(memory.store.values)
            return tensor_data(program.seed, name, (count,), buffer.dtype)[memory.begin :][: memory.size]
    return contents(program, buffer, memory.shape)


def call_of(program, text, memories, others=(), refused=()):
    """The call that a program and its meaning describe; `others` are the same function with other arguments, `refused`
    with arguments that are refused by an error of that code.
    """
    numbers, tensors = [], []
    for q in program.params:
        if isinstance(q, p.Var):
            numbers.append(program.scalars[q.name])
            tensors.append(None)
            continue
        memory = memories[q.name]
        given = first_data(program, q, memory)
        is_float = scalars.is_float(q.dtype)
        values = [x[0] for x in given] if is_float else given
        expected = [x[0] for x in memory.data] if is_float else memory.data
        errors = [x[1] for x in memory.data] if is_float else []
        strides = [number(s, program.dims) for s in q.strides] if q.strides else None
        tensors.append([q.name, q.dtype, list(memory.shape), strides, values, expected, errors if any(errors) else [],
                        q.begin])
        numbers.append(None)
    position = {q.name: n for n, q in enumerate(program.params)}
    shared = [[[position[q.name], at] for q, at in zip(group.buffers, group.begins)] for group in program.shared]
    more = [[each.scalars, each.tensors] for each in (call_of(q, text, m) for q, m in others)]
    wrong = ((code, call_of(q, text, m)) for code, q, m in refused)
    wrong = [[code, each.scalars, each.tensors] for code, each in wrong]
    return Call(text, numbers, tensors, program.mesh, program.chunk, shared, more, wrong)


def plain(text, arch=""):
    """The program for an architecture, or for targets that have neither tensor cores nor TMA."""
    if arch != "sm_90a":  # warps take both factors from shared memory, of 16 bits or more or of integers
        others = set(re.findall(r"(\w+) = T\.alloc_(?:fragment|shared\(.*\"float8)", text))
        text = re.sub(r"(T\.gemm\((\w+).*)" + BY_WARPGROUPS,
                      lambda m: m[1] + ("" if m[2] in others else ON_TENSOR_CORES), text)
    if not arch:
        text = text.replace(ON_TENSOR_CORES, "")
    return text if arch == "sm_90a" else text.replace(BY_TMA, "")


def _first(error):
    return str(error).strip().splitlines()[0]


@contextlib.contextmanager
def threads(count):
    """That many threads of the pool."""
    before = helve.num_threads()
    helve.set_num_threads(count)
    try:
        yield
    finally:
        helve.set_num_threads(before)


def check(call, effort=Effort()):  # noqa: B008  frozen
    """The first Failure of the call on any engine, or None."""
    failure, _ = examine(call, effort)
    return failure


def mesh_of(call):
    """The mesh of a call, or None."""
    return helve.Mesh(tuple(call.mesh), p.AXES[: max(len(call.mesh), 2)]) if call.mesh else None


def examine(call, effort):
    """(the first Failure or None, the last stage for the oldest architecture that has all, or None)."""
    mesh = mesh_of(call)
    try:
        function = helve.parse(plain(call.text))
        of_arch = {each.arch: helve.parse(plain(call.text, each.arch)) for each in PIPELINES if each.arch}
    except helve.Error as error:
        return Failure(f"refused {error.code}", str(error)), None
    except helve.InternalError as error:
        return Failure("parser", str(error)), None
    data = arguments.Arguments(call.scalars, call.tensors, call.shared)
    if failure := _check_function(call, function, data, effort):
        return failure, None
    shape = None if mesh is None else _core.MeshShape(list(mesh.shape), list(mesh.names))
    seen = {(_core.print(function.function), "all")}
    if failure := _check_machine_code(call, {"cuda": of_arch["sm_80"], "llvm": function}, mesh, effort, data):
        return failure, None
    last = None
    for target, arch, cores in pipelines_of(function, mesh):
        chunk = None if cores and call.chunk == 1 else call.chunk  # as many iterations as fit, where cores are devices
        try:
            given = of_arch.get(arch, function)
            stages = _core.lowering_stages(given.function, shape, chunk, target, arch, 1, cores == "devices")
        except helve.Error as error:
            return Failure(f"refused {error.code} when compiled", str(error)), None
        except helve.InternalError as error:
            return Failure("pass " + _first(error).partition(" (/")[0][:60], str(error)), None
        if failure := _check_stages(stages, seen, arch, effort, data):
            return failure, None
        if target == "cuda" and effort.text:
            if failure := _check_cuda_text(stages[-1][1], arch):
                return failure, None
            newest = BY_TMA in call.text or BY_WARPGROUPS in call.text
            last = stages[-1][1] if last is None or newest else last
    return None, last


def _check_cuda_text(stage, arch):
    try:
        _core.cuda_source(stage, cluster_blocks=WIDE[arch])
    except helve.Error as error:
        return Failure(f"refused {error.code} as CUDA C", str(error))
    except helve.InternalError as error:
        return Failure("cuda text " + _first(error).partition(" (/")[0][:60], str(error))
    return None


def _round_trip(stage, text, where):
    try:
        again = helve.parse(text).function
    except (helve.Error, helve.InternalError) as error:
        return Failure(f"round trip {where}", f"{error}\n{text}")
    same, path = _core.structural_equal(stage, again)
    if not same or _core.print(again) != text:
        return Failure(f"round trip {where}", f"differs at '{path}'\n{text}")
    return None


def _check_function(call, function, data, effort):
    """The function itself: round trip, and what it does, proved and watched."""
    text = _core.print(function.function)
    failure = _round_trip(function.function, text, "interp") if effort.round_trips else None
    failure = failure or _run_stage(function.function, text, "interp", "all", True, data, call.more)
    return failure or _check_refusals(call, functools.partial(interpret, function.function, check="all"), "interp")


def _check_refusals(call, run, where):
    """The calls that are refused, before anything is written."""
    for code, *arguments_of in call.refused:
        data = arguments.Arguments(*arguments_of, call.shared)
        given = data.fresh()
        try:
            run(*given.values)
        except helve.Error as error:
            if error.code != code:
                return Failure(f"{where} refusal", f"refused by {error.code} in place of {code}: {error}\n{call.text}")
        except helve.InternalError as error:
            return Failure(f"{where} refusal", f"{error}\n{call.text}")
        else:
            detail = f"a call of {arguments_of[0]} is taken, {code} must refuse it\n{call.text}"
            return Failure(f"{where} refusal", detail)
        if found := difference(data, given):
            return Failure(f"{where} refusal", f"{found} in a call that is refused\n{call.text}")
    return None


def _check_stages(stages, seen, arch, effort, data):
    """Each stage whose text no stage before had, on any target, for what it must not do there."""
    for n, (name, stage) in enumerate(with_variant(stages)):
        where = f"{arch} after {name} ({n})".lstrip()
        check = stage_check([each for each, _ in stages[:n + 1]])
        text = _core.print(stage)
        if (text, check) in seen:
            continue
        seen.add((text, check))
        if effort.round_trips and (failure := _round_trip(stage, text, where)):
            return failure
        if failure := _run_stage(stage, text, where, check, effort.proofs and n == len(stages) - 1, data):
            return failure
    return None


def _run_stage(stage, text, where, check, prove, data, more=()):
    runs = [(again, placement) for again in [data, *(arguments.Arguments(*each, []) for each in more)]
            for placement in placements(text)]
    for again, placement in runs:
        given = again.fresh()
        try:
            interpret(stage, *given.values, check=check, steps=STEPS, placement=placement)
            found = difference(again, given)
            if prove and not found:
                given = again.fresh()
                Kernel(_core.compile(stage, "interp", None, False, False, 1, None))(*given.values)
                found = difference(again, given)
        except _core.OutOfSteps:  # the threads of a block repeat what layouts replicate; the machine code still runs
            continue
        except (helve.Error, helve.InternalError) as error:
            return Failure(where, f"{error}\n{text}")
        if found:
            return Failure(where, f"{found}\n{text}")
    return None


def _check_machine_code(call, functions, mesh, effort, data):
    """Machine code of TARGETS against the meaning; on a GPU the arrays travel there and back."""
    forms = [(target, {}) for target in TARGETS]
    if "llvm" in TARGETS and effort.streams:
        forms.append(("llvm", {"stream_bytes": 1}))  # as if every tensor were large
    return next(filter(None, (_check_target(call, functions[form[0]], mesh, data, *form) for form in forms)), None)


def _check_target(call, function, mesh, data, target, options):
    options = {**options, "persistent_chunk": call.chunk} if mesh else options
    where = f"{target} streams" if "stream_bytes" in options else target
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel = helve.compile(function, target, mesh, verify=True, **options)
        if of_nothing := [entry.message for entry in caught if getattr(entry.message, "code", "") == "HV0315"]:
            return Failure(f"{where} warns", f"every element is written first: {of_nothing[0]}")
        # One kernel, called with these arguments on one thread and on two, with others, and with these again.
        others = [arguments.Arguments(*each, []) for each in call.more]
        turns = [(data, 1), (data, 2), *((each, 2) for each in others), *([(data, 2)] if others else [])]
        first = None
        for given_from, count in turns:
            given = given_from.fresh()
            with threads(count) if target == "llvm" else contextlib.nullcontext():
                kernel(*given.values)
            if found := difference(given_from, given):
                again = " once more" if given_from is data and first is not None else ""
                return Failure(where, f"{found}, on {count} threads{again}\n{kernel.source('lowered')}")
            if given_from is data and target == "llvm":
                first = first or given
                if not first.same_bits(given):
                    return Failure(f"{where} repeats", f"other bits on {count} threads\n{kernel.source('lowered')}")
        if failure := _check_refusals(call, kernel, where):
            return failure
    except (helve.Error, helve.InternalError) as error:
        return Failure(f"{where} raises", str(error))
    return None
