"""Runs many random programs, each in a process that may die, and keeps what failed.

A worker is forked and tells of each program over a pipe. When it dies or hangs, the program that it was at is the
failure, and the next worker goes on behind it.
"""

import collections
import multiprocessing
import re
import signal
import time
from dataclasses import dataclass, field

import corpus
import engines
import program as p
import shrink
import tree
import twins
from engines import Failure
from generate import generate
from meaning import meaning, two_iterations_meet
from scalars import Undefined

PATIENCE = 60.0  # seconds without news from a worker


@dataclass
class Report:
    """What a campaign found."""

    seed: int
    programs: int = 0
    twins: int = 0
    seconds: float = 0.0
    undefined: collections.Counter = field(default_factory=collections.Counter)
    coverage: collections.Counter = field(default_factory=collections.Counter)
    failures: list = field(default_factory=list)  # (seed, Failure, text)

    def summary(self):
        """One line of numbers."""
        return (
            f"seed {self.seed}: {self.programs} programs and {self.twins} twins in {self.seconds:.0f} s, "
            f"{(self.programs + self.twins) / max(self.seconds, 1e-9):.1f} a second; "
            f"{sum(self.undefined.values())} undefined and left out; {len(self.failures)} failures"
        )

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


def _race_runs(program, detail):
    """Do two iterations come to the accesses that a refused loop is said to race by?

    The refusal holds for every call that has two such iterations; a call with extents that leave one is right to expect
    a result.
    """
    at = p.statements(program)
    place = r"\n *--> [^\n]*?:(\d+):\d+\n"
    main = re.search(r"error\[HV0306\][^\n]*" + place, detail)
    loop = re.search(r"\nnote: the (?:loop|kernel)" + place, detail) or main
    other = re.search(r"\nnote: (?!the loop|the kernel)[^\n]*" + place, detail) or main
    return two_iterations_meet(program, *(at[int(found.group(1))] for found in (loop, main, other)))


def _has_other_extents(program, failure):
    """Is it an access that is refuted for a dynamic extent that this call has not?

    What a call answers for is not in the text of a later stage, where other extents have code of their own.
    """
    witness = re.search(r"error\[HV0210\].*?\n *note: when ([^\n]*)", failure.detail, re.DOTALL) if failure else None
    values = dict(re.findall(r"(\w+)=(-?\d+)", witness[1])) if witness else {}
    return any(name in values and int(values[name]) != extent for name, extent in program.dims.items())


def examine(seed):
    """One seed: ("undefined", reason) or ("ran", constructs, number of twins, Failure or None, text)."""
    program = generate(seed)
    try:
        memories = meaning(program)
    except Undefined as reason:
        return "undefined", str(reason)
    text = p.text(program)
    failure = engines.check(engines.call_of(program, text, memories))
    if failure and "error[HV0210]" in failure.detail and "note: when " in failure.detail:
        return "undefined", "out of bounds wherever it runs, in code that this call does not reach"
    if failure and "error[HV0814]" in failure.detail:
        return "undefined", "extents that agree by data, which machine code is not made for"
    if failure and "error[HV0306]" in failure.detail and not _race_runs(program, failure.detail):
        return "undefined", "a race of any two iterations, of which this call runs one at most"
    if failure and "error[HV0206]" in failure.detail and "is out of range" in failure.detail:
        return "undefined", "a number cast to a type that cannot hold it"
    made, constructs = 0, tree.constructs(program)
    if failure is None and seed % 3 == 0:
        other = twins.twin(program, seed)
        if other is not None:
            made = 1
            name, rewritten = other
            twin_text = p.text(rewritten)
            failure = engines.check(engines.call_of(program, twin_text, memories))
            # Twins put guards by data around extents that the call answers for.
            guarded = failure and name != "split" and "error[HV0814]" in failure.detail
            if guarded or _has_other_extents(program, failure):
                made, failure = 0, None
                constructs["twin left out"] += 1
            if failure:
                failure, text = Failure(f"twin {name}: {failure.layer}", failure.detail), twin_text
    return "ran", constructs, made, failure, text


def _worker(seeds, pipe):
    for seed in seeds:
        pipe.send(("start", seed))
        pipe.send(("done", examine(seed)))
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


def run(seed, seconds, count=None, tell=None):
    """Examines seeds from `seed` on for that long (or that many); returns the Report.

    `tell` is called with a line of text: each minute how far the campaign is, and each failure with its program when it
    is found.
    """
    report = Report(seed)
    start = time.monotonic()
    told = 0  # failures
    minute = 1

    def news():
        nonlocal told, minute
        if tell is None:
            return
        for failing, failure, text in report.failures[told:]:
            tell(f"FAILURE seed {failing}: {failure.layer}\n{failure.detail}\n{text}")
        told = len(report.failures)
        if time.monotonic() - start >= 60 * minute:
            report.seconds = time.monotonic() - start
            minute = int(report.seconds // 60) + 1
            tell(report.summary())

    context = multiprocessing.get_context("fork")
    following = seed
    while time.monotonic() - start < seconds and (count is None or following < seed + count):
        ours, theirs = context.Pipe(False)
        # Workers are short-lived: memory of what they compiled goes with them.
        last = following + 200 if count is None else min(following + 200, seed + count)
        process = context.Process(target=_worker, args=(range(following, last), theirs), daemon=True)
        process.start()
        theirs.close()
        at = following
        try:
            while True:
                if not ours.poll(PATIENCE):
                    raise EOFError
                kind, value = ours.recv()
                if kind == "end":
                    following = last
                    break
                if kind == "start":
                    at = value
                    continue
                following = at + 1
                _note(report, at, value)
                news()
                if time.monotonic() - start >= seconds:
                    process.kill()
                    break
            process.join()
        except EOFError:
            report.programs += 1
            report.failures.append((at, _ended(process), p.text(generate(at))))
            following = at + 1
            news()
    report.seconds = time.monotonic() - start
    return report


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

    def fails(candidate, memories):
        found = isolated(engines.call_of(candidate, p.text(candidate), memories))
        return found is not None and found.layer == layer

    if fails(program, meaning(program)):
        program = shrink.shrink(program, fails, seconds)
    call = engines.call_of(program, p.text(program), meaning(program))
    found = isolated(call)
    name = "".join(c if c.isalnum() else "_" for c in layer.lower()).strip("_")[:40]
    path = folder / f"{name}_{seed}.py-text"
    first = found.detail.strip().splitlines()[0] if found else failure.detail.strip().splitlines()[0]
    corpus.write(path, call, f"seed {seed}: {layer}: {first}", layer if expected else None)
    return path
