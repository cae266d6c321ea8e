"""Every program of the suite through everything that this machine can run.

A program is a text: whoever builds a function anywhere has it checked, without a line of a test. The interpreter with
all its checks is the reference; every stage of every pipeline, machine code and the text of CUDA have to agree with it,
on arguments made from the signature.
"""

import hashlib
import json
import os
import re
import resource
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import helve
import helve.testing
from cuda_on_host import HostKernels, aligned, blocks_and_extents, launches_once, slot_of, version
from helve import _core
from helve.arguments import MULTIPROCESSORS
from helve.testing import NegativeExtent, Recipe, assert_same, interpret, make_arguments, pipelines_of, recipes
from undispatched import undispatched

# Every source function is parsed back; of the stages, which take longest to read, a sample.
helve.testing.stages.PARSED_BACK = 1 if os.environ.get("HELVE_TEST_LONG") else 8
CALLS = 3
STEPS = 30_000  # of the source, for one program; what needs more is shrunk, or listed
ELEMENTS = 1_000_000  # of the arguments together
TOO_LARGE = (_core.OutOfSteps, MemoryError)
GROWTH = 20  # times as many may a stage make: a vector's lanes, replicas and copies for threads count each
TEXT = 12_000  # characters of a kernel that is compiled for the CPU
MEMORY = 16 << 30  # bytes that a process may map: a program that needs more is too large, and must not end others
CLUSTER_BLOCKS = {"sm_80": 1, "sm_90a": 16}


@dataclass(frozen=True)
class Program:
    """A function as text, the mesh that it was compiled for if any, and the test that built it first."""

    text: str
    mesh: tuple | None = None
    test: str = ""

    @property
    def name(self):
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


# Text -> Program of every function that this run of the tests has built.
PROGRAMS = {}


def record(function, mesh=None, test=""):
    """A program for the check: the first test that builds it is named, the first mesh that it is compiled for taken."""
    text = _core.print(function)
    known = PROGRAMS.get(text, Program(text, None, test))
    if mesh is not None and known.mesh is None:
        known = replace(known, mesh=(tuple(mesh.extents), tuple(mesh.names)))
    PROGRAMS[text] = known


def write_programs(folder):
    """Writes the programs of this process, for one that checks those of several."""
    rows = [[program.text, program.mesh, program.test] for program in PROGRAMS.values()]
    Path(folder, f"{os.getpid()}.json").write_text(json.dumps(rows))


def read_programs(folder):
    """The programs that processes wrote, those of this one among them; the first mesh of each counts."""
    found = dict(PROGRAMS)
    for path in sorted(Path(folder).glob("*.json")):
        for text, mesh, test in json.loads(path.read_text()):
            if text not in found or (mesh is not None and found[text].mesh is None):
                found[text] = Program(text, mesh and tuple(map(tuple, mesh)), test)
    return found


def chosen(programs, each=2):
    """Of programs that differ in numbers alone at most `each`, picked by their hashes; `each` 0: all."""
    alike = {}
    for program in sorted(programs, key=lambda program: program.name):
        alike.setdefault(re.sub(r"\d+(\.\d+)?", "#", program.text), []).append(program)
    return [program for group in alike.values() for program in (group[:each] if each else group)]


@dataclass
class Emulated:
    """A kernel that is run on the CPU, and what its arguments hold then."""

    source: _core.Function  # whose arguments it takes: bytes of packed tensors have other values than bytes
    form: _core.Function
    cluster_blocks: int
    unaligned: bool
    recipe: Recipe
    expected: list

    def run(self, kernels, name):
        """Runs it as `name` of the compiled kernels; tensors of the unaligned variant are aligned as an element is."""
        arguments = make_arguments(self.source, self.recipe)
        blocks, extents = blocks_and_extents(self.form, arguments)
        arrays, scalars = {}, dict(extents)
        for place, (param, argument) in enumerate(zip(self.form.params, arguments)):
            if isinstance(param, _core.Var):
                scalars[param.name] = slot_of(argument, param.dtype)
            else:
                arguments[place] = arrays[param.name] = aligned(argument, offset=int(self.unaligned))
        kernels.run(name, blocks, arrays, scalars)
        assert_same(arguments, self.expected, "CUDA C on the CPU")


@dataclass
class Outcome:
    """What became of a program.

    `kind`: "passed"; "refused": no call of it is accepted, or a target cannot do it, by the code in `detail`;
    "large": it makes too many steps on the smallest arguments; "failed".
    """

    program: Program
    kind: str
    detail: str = ""
    kernels: list = field(default_factory=list)  # Emulated

    def fail(self, detail):
        self.kind, self.detail = "failed", detail


def accepted_calls(function):
    """(recipe, what its arguments hold after the call) of the first calls that the checking interpreter accepts: of
    several extents, or of several values where no extent is open.

    Raises:
        helve.Error: it accepts none; this is why the first was refused.
        NegativeExtent: no call has the extents that were tried first.
        OutOfSteps, MemoryError: those that it does not refuse are too large.
    """
    fault, calls = None, []
    for recipe in recipes(function):
        try:
            arguments = make_arguments(function, recipe, ELEMENTS)
            interpret(function, *arguments, check="all", steps=STEPS)
        except (helve.Error, NegativeExtent, *TOO_LARGE) as problem:
            if fault is None or isinstance(problem, TOO_LARGE):
                fault = problem
            continue
        calls.append((recipe, arguments))
        if len(calls) == CALLS:
            break
    if not calls:
        raise fault
    return calls


def check(program):
    """The outcome of one program, apart from its kernels on the CPU."""
    mesh = None if program.mesh is None else helve.Mesh(*program.mesh)
    refused, lowered = [], {}
    try:
        function = helve.parse(program.text)
        for pipeline in pipelines_of(function, mesh):
            try:
                form = _for_target(function, pipeline)
                lowered[pipeline] = helve.testing.lowering_stages(form, mesh, None, *pipeline)
            except helve.Error as fault:
                refused.append(f"{fault.code} for {' '.join(pipeline).strip()}")
        kernels = _check_lowered(program, function, mesh, lowered) if lowered else []
    except helve.Error as fault:
        return Outcome(program, "refused", f"{fault.code}")
    except NegativeExtent as fault:
        return Outcome(program, "refused", str(fault))
    except TOO_LARGE as fault:
        return Outcome(program, "large", str(fault))
    except (AssertionError, helve.InternalError) as fault:
        return Outcome(program, "failed", str(fault))
    return Outcome(program, "refused" if refused else "passed", ", ".join(refused), kernels)


def _for_target(function, pipeline):
    """Programs name implementations on a GPU; another target has none of them."""
    return function if pipeline.target == "cuda" else undispatched(function)


def _check_lowered(program, function, mesh, lowered):
    """Checks stages and machine code on calls that the function itself accepts; gives kernels to run on the CPU.

    Raises:
        helve.Error: no call is accepted, or machine code is not to be had.
        AssertionError, helve.InternalError: something is wrong.
    """
    source = next(iter(lowered.values()))[0][1]  # on its mesh
    calls = accepted_calls(source)
    makes = [partial(make_arguments, source, recipe) for recipe, _ in calls]
    helve.testing.check_lowered(lowered, makes, steps=STEPS * GROWTH)
    _check_machine_code(function, mesh, calls)
    return list(_kernels(program, source, lowered, calls))


def _check_machine_code(function, mesh, calls):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = helve.compile(undispatched(function), "llvm", mesh)
    helve.set_num_threads(MULTIPROCESSORS if "T.multiprocessors()" in _core.print(function.function) else 1)
    undefined = [str(entry.message) for entry in caught if getattr(entry.message, "code", "") == "HV0315"]
    assert not undefined, f"an accepted call, and a warning of undefined values: {undefined[0]}"
    for recipe, expected in calls:
        arguments = make_arguments(function.function, recipe)
        kernel(*arguments)
        assert_same(arguments, expected, "machine code")


def _kernels(program, source, lowered, calls):
    """CUDA C of the last stages, aligned and unaligned variant. Of what is small enough one text is run on the
    CPU, another one for each program; and of kernels in versions each version that a call launches.
    """
    texts = {}
    for pipeline, stages in lowered.items():
        if pipeline.target != "cuda":
            continue
        form, blocks = stages[-1][1], CLUSTER_BLOCKS[pipeline.arch]
        for unaligned in (False, True):
            text, _ = _core.cuda_source(_core.narrow_accesses(form) if unaligned else form, cluster_blocks=blocks,
                                        prelude=False)
            if launches_once(form) and len(text) < TEXT:
                texts[text] = form, blocks, unaligned
    if not texts:
        return
    form, blocks, unaligned = list(texts.values())[int(program.name, 16) % len(texts)]
    launched = {}
    for recipe, expected in calls:
        _, extents = blocks_and_extents(form, make_arguments(source, recipe))
        launched.setdefault(version(form, extents), Emulated(source, form, blocks, unaligned, recipe, expected))
    yield from launched.values()


def run_on_host(outcomes, folder):
    """Runs the kernels of the outcomes, and turns those that fail into failures; g++ is started once for each kind."""
    groups = {}
    for outcome in outcomes:
        for kernel in outcome.kernels:
            groups.setdefault((kernel.cluster_blocks, kernel.unaligned), []).append((outcome, kernel))
    for (cluster_blocks, unaligned), members in groups.items():
        _run_group(members, folder, cluster_blocks, unaligned)


def _run_group(members, folder, cluster_blocks, unaligned):
    names = [f"k{place}_{outcome.program.name}" for place, (outcome, _) in enumerate(members)]
    try:
        kernels = HostKernels([kernel.form for _, kernel in members], folder, names=names,
                              cluster_blocks=cluster_blocks, unaligned=unaligned)
    except AssertionError as fault:
        if len(members) == 1:
            members[0][0].fail(f"CUDA C that g++ does not compile: {fault}")
            return
        for part in (members[: len(members) // 2], members[len(members) // 2 :]):
            _run_group(part, folder, cluster_blocks, unaligned)
        return
    for name, (outcome, kernel) in zip(names, members):
        try:
            kernel.run(kernels, name)
        except AssertionError as fault:
            outcome.fail(f"CUDA C{' of the unaligned variant' * unaligned} on the CPU: {fault}")


def check_chunk(programs):
    """The outcomes of programs, with their kernels on the CPU; for a process of its own."""
    helve.set_num_threads(1)
    outcomes = [check(program) for program in programs]
    with tempfile.TemporaryDirectory() as folder:
        run_on_host(outcomes, folder)
    for outcome in outcomes:
        outcome.kernels = []  # they need not travel
    return outcomes


def bound_memory():
    """Lets what is too large for the machine fail by a MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def check_all(programs, processes=None, chunk=None, run=check_chunk):
    """The outcomes of programs, by several processes, a chunk at a time. A program that ends its process is a failure.
    """
    chunk = chunk or max(1, min(40, len(programs) // (16 * (os.cpu_count() or 1))))
    chunks = [programs[at : at + chunk] for at in range(0, len(programs), chunk)]
    outcomes, lost = [], []
    with ProcessPoolExecutor(processes, get_context("spawn"), bound_memory) as pool:
        for part, future in [(part, pool.submit(run, part)) for part in chunks]:
            try:
                outcomes += future.result()
            except BrokenProcessPool:
                lost.append(part)
    if lost and chunk == 1:
        return outcomes + [Outcome(part[0], "failed", "the process that ran it died") for part in lost]
    for part in lost:
        for program in part:
            outcomes += check_all([program], 1, 1, run)
    return outcomes
