"""Runs many random programs, each in a process that may die, and keeps what failed.

A worker is forked and tells of each program over a pipe. When it dies or hangs, the program that it was at is the
failure, and the next worker goes on after it.
"""

import collections
import dataclasses
import itertools
import math
import multiprocessing
import multiprocessing.connection
import random
import re
import signal
import time
import traceback
from dataclasses import dataclass, field

import helve

import corpus
import engines
import mutants
import on_host
import program as p
import shrink
import tree
import twins
import wide
from engines import Failure
from generate import generate
from meaning import Machine, Refused, iterations_go_on, meaning, two_iterations_meet
from scalars import Undefined

PATIENCE = 60.0  # seconds without news from a worker
STAGE = re.compile(r"after \w+ \(\d+\)")  # the layer of a stage, the races of whose loops are those of its pass
BLOCKS = "error[HV0306]: blocks of this kernel"  # no pass makes them; of simpler terms more is proved
VALUE = re.compile(r"\b\w+=(-?\d+)")  # of a parameter, in an error of a call
EXTENT = re.compile(r"\b(\w+)=(-?\d+)")  # in the example of a refusal
FARTHEST = 2**48  # no extent is larger
HOST_SHARE = 20  # of so many seeds one goes through the emulation of CUDA C


@dataclass
class Report:
    """What a campaign found."""

    seed: int
    programs: int = 0
    twins: int = 0
    emulated: int = 0
    seconds: float = 0.0
    undefined: collections.Counter = field(default_factory=collections.Counter)
    coverage: collections.Counter = field(default_factory=collections.Counter)
    failures: list = field(default_factory=list)  # (seed, Failure, text)

    def summary(self):
        """One line of numbers."""
        return (
            f"seed {self.seed}: {self.programs} programs and {self.twins} twins in {self.seconds:.0f} s, "
            f"{self.emulated} emulated, "
            f"{(self.programs + self.twins) / max(self.seconds, 1e-9):.1f} a second; "
            f"{sum(self.undefined.values())} undefined and left out; {len(self.failures)} failures"
        )

    def record(self):
        """The same as data."""
        failures = [{"seed": seed, "layer": f.layer, "detail": f.detail, "text": text,
                     "reproduce": f"python tests/fuzz/run.py --show --seed {seed}"} for seed, f, text in self.failures]
        undefined = sum(self.undefined.values())
        return {
            "seed": self.seed, "programs": self.programs, "twins": self.twins, "emulated": self.emulated,
            "seconds": round(self.seconds, 1), "targets": engines.TARGETS,
            "undefined": dict(self.undefined),
            "undefined share": round(undefined / max(1, undefined + self.programs), 4),
            "constructs": dict(sorted(self.coverage.items())),
            "failures": failures,
        }

    def text(self):
        """The summary and the table of constructs."""
        lines = [self.summary()]
        items = sorted(self.coverage.items())
        rows = -(-len(items) // 4)
        for r in range(rows):
            lines.append("  ".join(f"{name:<28}{count:>6}" for name, count in items[r::rows]))
        for reason, count in self.undefined.most_common():
            lines.append(f"undefined: {reason}: {count}")
        for seed, failure, _ in self.failures:
            lines.append(f"FAILURE seed {seed}: {failure.layer}: {failure.detail.splitlines()[0]}")
        return "\n".join(lines)


def _excused_race(program, detail):
    """Why the loop is rightly said to race, though this call has a meaning; None if it is not.

    The refusal holds for every call that has two such iterations; a call with extents that leave one is right to expect
    a result. And it holds where each iteration goes on with the only element of private memory, which is a sum.
    """
    at = p.statements(program)
    place = r"\n *--> [^\n]*?:(\d+):\d+\n"
    main = re.search(r"error\[HV0306\][^\n]*" + place, detail)
    loop = re.search(r"\nnote: the (?:loop|kernel)" + place, detail) or main
    other = re.search(r"\nnote: (?!the loop|the kernel)[^\n]*" + place, detail) or main
    buffer = re.search(r"the same element of '(\w+)'", detail)
    loop, main, other = (at[int(found.group(1))] for found in (loop, main, other))
    if not two_iterations_meet(program, loop, main, other, buffer and buffer[1]):
        return "a race of any two iterations, of which this call runs one at most"
    single = {b.name for _, b in tree.places(program) if isinstance(b, p.Buffer) and b.kind == "local"
              and all(n == 1 for n in b.shape)}
    if buffer and buffer[1] in single and iterations_go_on(program, loop, buffer[1]):
        return "a sum in private memory over independent iterations"
    return None


def _left_open(program, detail):
    """Why a stage may call a race what the function leaves open, or None.

    Whether two iterations meet depends on a parameter. A pass may have put both under conditions which only the values
    with a race fulfil, and what races wherever it runs is refused.
    """
    known = {name for name, value in program.scalars.items()} | set(program.dims)
    named = re.findall(r"(\w+)=-?\d+", detail.partition(", when ")[2].partition("\n")[0])
    for proof in helve.compile(helve.parse(engines.plain(p.text(program))), target="interp").proofs():
        asked = proof.kind == "race" and proof.verdict in ("unknown", "checked")
        about = f"{proof.reason} {proof.condition}"
        if asked and any(name in known and re.search(rf"\b{name}\b", about) for name in named):
            return "a race for other values of a parameter, which the function leaves open"
    return None


def others(program, seed):
    """The same function for calls with other extents and data, each with its meaning."""
    rng = random.Random(f"{seed}/others")
    if program.shared or rng.random() < 0.6:
        return []
    out = []
    for n in range(rng.randint(1, 2)):
        dims = {name: rng.choice([value, value + 1, value + rng.randint(0, 20), max(value - 1, 0)])
                for name, value in program.dims.items()}
        if not all(each.holds(dims) for each in program.assumed):
            continue
        numbers = {q.name: wide.wide_value(q.dtype, rng) for q in program.params
                   if isinstance(q, p.Var) and q.dtype in ("int64", "uint64") and rng.random() < 0.3}
        other = dataclasses.replace(program, seed=program.seed + (n + 1) * 10**9, dims=dims,
                                    scalars={**program.scalars, **numbers})
        try:
            out.append((other, meaning(other)))
        except Undefined:
            continue
    return out


def refused(program, seed):
    """A call of the same function that is refused, as (code, program, memories before it), in a list."""
    rng = random.Random(f"{seed}/refused")
    if program.assumed and not program.shared and rng.random() < 0.5:
        dims = {name: value + rng.choice([1, 20]) for name, value in program.dims.items()}
        other = dataclasses.replace(program, dims=dims)
        broken = not all(each.holds(dims) for each in program.assumed)
        return [("HV0616", other, Machine(other).enter_call())] if broken else []
    names = sorted(wide.wide_indices(program, surely=True))
    if not names or rng.random() < 0.3:
        return []
    other = dataclasses.replace(program, scalars={**program.scalars, rng.choice(names): wide.no_index(rng)})
    try:
        meaning(other)
    except Refused as reason:
        return [(str(reason), other, Machine(other).enter_call())]
    return []


def excuse(program, failure):
    """Why a failure is none, or None: what is refused for other calls than this, and rightly."""
    if "error[HV0210]" in failure.detail and "note: when " in failure.detail:
        return "out of bounds wherever it runs, in code that this call does not reach"
    if "error[HV0205]" in failure.detail and _is_other_call(program, failure.detail):
        return "extents that differ wherever code is reached that this call does not reach"
    if failure.layer.endswith("refused HV0203"):
        return "an index that is a number below 0, under a condition that is false"
    if "error[HV0814]" in failure.detail:
        return "extents that agree by data, which machine code is not made for"
    told = failure.detail.strip().partition("\n")[0]
    if "error[HV0625]" in told and any(abs(int(n)) > FARTHEST for n in VALUE.findall(told)):
        return "an address that no condition keeps from being checked, with a parameter beyond any extent"
    races = "error[HV0306]" in failure.detail and (BLOCKS in failure.detail or not STAGE.search(failure.layer))
    if races and (reason := _excused_race(program, failure.detail)):
        return reason
    if "error[HV0306]" in failure.detail and not races and (reason := _left_open(program, failure.detail)):
        return reason
    if "error[HV0206]" in failure.detail and "is out of range" in failure.detail:
        return "a number cast to a type that cannot hold it"
    return None


def _is_other_call(program, told):
    """Does the example of a refusal have an extent that the program's call does not have?"""
    given = dict(EXTENT.findall(told.partition("note: when ")[2].partition("\n")[0]))
    return any(name in given and int(given[name]) != value for name, value in program.dims.items())


def examine(seed, batch=None):
    """One seed: ("undefined", reason) or ("ran", constructs, number of twins, Failure or None, text).

    Now and then the last stage for GPUs goes to a `batch` for the emulation on the CPU.
    """
    program = generate(seed)
    try:
        memories = meaning(program)
    except Undefined as reason:
        return "undefined", str(reason)
    text = p.text(program)
    effort = engines.Effort.of(seed, text)
    more = others(program, seed)
    wrong = refused(program, seed)
    call = engines.call_of(program, text, memories, more, wrong)
    failure, stage = engines.examine(call, effort)
    if failure and more and engines.check(engines.call_of(program, text, memories), effort) is None:
        failure.layer = f"other call: {failure.layer}"
        if any(excuse(other, failure) for other, _ in more):
            failure = None
    if failure and (reason := excuse(program, failure)):
        return "undefined", reason
    if batch is not None and stage is not None and seed % HOST_SHARE == 5:
        batch.add(seed, program, call, stage)
    made, constructs = 0, tree.constructs(program)
    constructs["other calls"] += len(more)
    constructs["refused calls"] += len(wrong)
    if failure is None and seed % 8 == 0:
        failure = mutants.examine(call, seed)
    if failure is None and seed % 6 == 0:
        other = twins.twin(program, seed)
        if other is not None:
            made = 1
            name, rewritten = other
            twin_text = p.text(rewritten)
            failure = engines.check(engines.call_of(program, twin_text, memories), effort)
            # What is refused for other calls than this may be a part of the program only, which the twin sets apart.
            # Extents agree by data in a twin where it puts a guard around them, so not where it splits a loop.
            unguarded = failure and name == "split" and "error[HV0814]" in failure.detail
            if failure and not unguarded and excuse(rewritten, failure):
                made, failure = 0, None
                constructs["twin left out"] += 1
            if failure:
                failure, text = Failure(f"twin {name}: {failure.layer}", failure.detail), twin_text
    return "ran", constructs, made, failure, text


def _worker(seeds, pipe):
    """Tells of each seed when it starts and what came of it, then of those that went through the emulation."""
    batch = on_host.Batch() if on_host.is_possible() else None
    for seed in seeds:
        pipe.send(("start", seed))
        try:
            result = examine(seed, batch)
        except Exception:  # noqa: BLE001  a fault of the fuzzer, or a raw one of the compiler
            result = "ran", {}, 0, Failure("raw exception", traceback.format_exc()), p.text(generate(seed))
        pipe.send(("done", result))
    if batch:
        for found in batch.run(lambda seed: pipe.send(("start", seed))):
            pipe.send(("found", found))
        pipe.send(("emulated", len(batch.kept)))
    pipe.send(("end", None))


def _one(call, pipe):
    pipe.send(engines.check(call))


def _ended(process):
    process.join(5)
    if process.exitcode is None:
        process.kill()
        process.join()
        return Failure("hang", f"no answer in {PATIENCE:.0f} s")
    code = process.exitcode
    name = signal.Signals(-code).name if code and code < 0 else f"exit code {code}"
    return Failure(f"crash {name}", "the process died")


def isolated(call):
    """engines.check in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)
    process = context.Process(target=_one, args=(call, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if ours.poll(PATIENCE):
            failure = ours.recv()
            process.join()
            return failure
    except EOFError:
        pass
    return _ended(process)


class _Worker:
    """A process that examines a range of seeds."""

    def __init__(self, seeds):
        context = multiprocessing.get_context("fork")
        self.seeds, self.at, self.next = seeds, seeds.start, seeds.start
        self.pipe, theirs = context.Pipe(False)
        self.process = context.Process(target=_worker, args=(seeds, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def stop(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Campaign:
    """Workers on ranges of seeds, and the report of what they tell."""

    def __init__(self, seed, count, jobs, tell):
        self.report, self.tell, self.jobs = Report(seed), tell, jobs
        self.start = time.monotonic()
        self.told, self.minute = 0, 1
        # Workers are short-lived: memory of what they compiled goes with them.
        length = 200 if count is None else max(10, min(200, -(-count // (jobs * 4))))
        steps = itertools.count(seed, length) if count is None else range(seed, seed + count, length)
        end = math.inf if count is None else seed + count
        self.ranges = (range(at, min(at + length, end)) for at in steps)
        self.left = []  # of ranges whose worker died
        self.workers = []

    def run(self, seconds):
        while True:
            while len(self.workers) < self.jobs:
                following = self.left.pop() if self.left else next(self.ranges, None)
                if following is None:
                    break
                if following:
                    self.workers.append(_Worker(following))
            if not self.workers or time.monotonic() - self.start >= seconds:
                break
            ready = multiprocessing.connection.wait([w.pipe for w in self.workers], timeout=1.0)
            for worker in list(self.workers):
                if worker.pipe in ready:
                    self.hear(worker)
                elif time.monotonic() - worker.heard > PATIENCE:
                    self.lost(worker)
            self.news()
        for worker in self.workers:
            worker.stop()
        self.report.seconds = time.monotonic() - self.start
        return self.report

    def hear(self, worker):
        worker.heard = time.monotonic()
        try:
            kind, value = worker.pipe.recv()
        except (EOFError, OSError):
            return self.lost(worker)
        if kind == "start":
            worker.at = value
        elif kind == "done":
            worker.next = worker.at + 1
            _note(self.report, worker.at, value)
        elif kind == "found":
            self.report.failures.append(value)
        elif kind == "emulated":
            self.report.emulated += value
        elif kind == "end":
            worker.process.join()
            worker.pipe.close()
            self.workers.remove(worker)

    def lost(self, worker):
        """The process died or hangs: so did the program that it was at; the rest of its range goes to another."""
        self.workers.remove(worker)
        self.report.programs += 1
        failure = _ended(worker.process)
        worker.pipe.close()
        self.report.failures.append((worker.at, failure, p.text(generate(worker.at))))
        following = range(max(worker.at + 1, worker.next), worker.seeds.stop)
        if following:
            self.left.append(following)

    def news(self):
        if self.tell is None:
            return
        for failing, failure, text in self.report.failures[self.told :]:
            self.tell(f"FAILURE seed {failing}: {failure.layer}\n{failure.detail}\n{text}")
        self.told = len(self.report.failures)
        if time.monotonic() - self.start >= 60 * self.minute:
            self.report.seconds = time.monotonic() - self.start
            self.minute = int(self.report.seconds // 60) + 1
            self.tell(self.report.summary())


def run(seed, seconds, count=None, tell=None, jobs=1):
    """Examines seeds from `seed` on for that long (or that many) by so many processes; returns the Report.

    `tell` is called with a line of text: each minute how far the campaign is, and each failure with its program when it
    is found.
    """
    return _Campaign(seed, count, jobs, tell).run(seconds)


def _note(report, seed, result):
    if result[0] == "undefined":
        report.undefined[result[1]] += 1
        return
    _, constructs, made, failure, text = result
    report.programs += 1
    report.twins += made
    report.coverage.update(constructs)
    if failure:
        report.failures.append((seed, failure, text))


def keep(seed, failure, folder=corpus.FOLDER, seconds=60.0, expected=False):
    """Shrinks the failure of a seed and writes it to the corpus; returns the path."""
    program = generate(seed)
    layer = failure.layer
    if layer.startswith("twin "):
        program = twins.twin(program, seed)[1]
        layer = layer.partition(": ")[2]

    def call_of(candidate, memories):
        wrong = refused(candidate, seed) if layer.endswith(" refusal") else []
        return engines.call_of(candidate, p.text(candidate), memories, (), wrong)

    def fails(candidate, memories):
        found = isolated(call_of(candidate, memories))
        return found is not None and found.layer == layer

    if fails(program, meaning(program)):
        program = shrink.shrink(program, fails, seconds)
    call = call_of(program, meaning(program))
    found = isolated(call)
    name = "".join(c if c.isalnum() else "_" for c in layer.lower()).strip("_")[:40]
    path = folder / f"{name}_{seed}.py-text"
    first = found.detail.strip().splitlines()[0] if found else failure.detail.strip().splitlines()[0]
    corpus.write(path, call, f"seed {seed}: {layer}: {first}", layer if expected else None)
    return path
