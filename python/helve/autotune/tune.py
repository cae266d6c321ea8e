"""`helve.autotune` itself: the order of the work.

Candidates are compiled side by side and measured one by one, never both at a time: a compile would be in the times.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helve import _core
from helve.arrays import is_array, is_on_cuda
from helve.autotune.agreement import Result, copies_of_written, difference, results_of
from helve.autotune.compiling import Compiler, Recipe, default_jobs, reason_of
from helve.autotune.progress import Progress
from helve.autotune.record import Record, digest
from helve.autotune.results import Candidate, Tuned
from helve.autotune.space import Point, name_of, points_of, refused, text_of
from helve.bench import bench
from helve.bench.devices import device_name
from helve.caller import at_caller
from helve.dist.processes import are_devices_of
from helve.errors import Error, Warning, error, shown
from helve.jit import JitBuilder, spec_of
from helve.mesh import Mesh
from helve.target import Kernel, check_options, check_target, compile, core_function, mesh_shape


def autotune(builder: Callable | None = None, space: Mapping[str, Sequence] | Sequence[Mapping] | None = None, /,
             *args: Any,
             out: Any = None, target: str | None = None, mesh: Mesh | None = None,
             cost: Callable[..., float] | None = None, seconds: float | None = None, most: int | None = None,
             rounds: int = 7, cache: str = "cold", jobs: int | None = None, tolerance: float | None = None,
             resume: bool = True, progress: bool | None = None, **options: Any) -> Tuned:
    """Builds, compiles, checks and measures kernels, and returns the fastest.

    Args:
        builder: called with the keywords of a point, returns a kernel function. A ValueError that it raises, and
            whatever helve refuses, takes the point out of the search. Other arguments are given by functools.partial.
            Or a builder under `helve.jit`, which has outputs and options of its own: it is called with `args`, of
            arrays their `TensorSpec`s, as well as with the keywords, and its kernels with the arrays among them.
        space: keyword values: a dictionary of lists, all combinations of which are tried, or a list of dictionaries.
        args: what each kernel is called with. What a call writes to them stays written.
        out, mesh, options: as `helve.compile` takes them.
        target: as there; by default that of the device of the arrays.
        cost: called with the keywords of a point: those of the least cost are tried first. By default the order is
            that of the space.
        seconds: when that time is over, no further point is begun. One is measured in any case.
        most: points that are tried at most.
        rounds: samples of each, as `helve.bench` takes it.
        cache: "cold" or "warm": what the caches hold before a sample.
        jobs: compiles at a time; as many as there are processors by default.
        tolerance: how far results may lie from the first candidate's, relative to the largest magnitude in them; by
            default by dtype, and 0 for whole numbers.
        resume: take what an earlier search measured, of the same source, on the same device, with arguments of the same
            shapes. False measures again.
        progress: show a line on standard error? By default if that is a terminal and rich is installed.

    Raises:
        helve.Error: HV0103, HV0104 or HV0108 for arguments that are not these, a space of which every point is refused,
            which lists the reasons, or a candidate whose results differ from the first one's.
    """
    argument: int | str | None = None
    try:
        for value, name in ((builder, "builder"), (space, "space")):
            if value is None:
                raise error("MissingArgument", function="helve.autotune", parameter=name,
                            fixes=["it is no decorator: write found = helve.autotune(builder, space, *arguments), "
                                   "and call found.kernel"])
        argument = 0
        if isinstance(builder, JitBuilder):
            given = {"out": out, "target": target, "mesh": mesh, **options}
            if any(value is not None for value in given.values()):
                raise refused(builder.__name__, "builder", "it is under helve.jit, and has its outputs and options",
                              "leave them out here, or pass the function without helve.jit")
            out, target, mesh = builder.options.out, builder.options.target, builder.options.mesh
            options = builder.options.others
            builder = functools.partial(builder.__wrapped__, *map(spec_of, args))
            args = tuple(each for each in args if is_array(each))
        argument = 1
        points = points_of(builder, space)
        argument = "target"
        if target is not None:
            check_target(target)
        check_options(options)
        mesh_shape(mesh)
        if are_devices_of(mesh):
            argument = "mesh"
            raise refused(mesh, "mesh", "each of its processes would choose by times of its own",
                          'tune on a mesh of device "host"')
        argument = "cost"
        if cost is not None:
            points.sort(key=lambda point: _cost(cost, point))
        for argument, value, kinds in (("seconds", seconds, (int, float)), ("most", most, int), ("jobs", jobs, int),
                                       ("tolerance", tolerance, (int, float))):
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not value > 0):
                raise refused(value, argument, "it is no number above 0", "leave it out, or give such a number")
        argument = "cache"
        if cache not in ("cold", "warm"):
            raise refused(cache, "cache", "it is no state of the caches", 'give "cold" or "warm"')
        argument = 0
        if not args:
            raise refused(builder, "builder", "there is nothing to call its kernels with",
                          "give the arguments of a call behind the space")
        chosen = target or ("cuda" if any(is_array(each) and is_on_cuda(each) for each in args) else "llvm")
        if chosen == "interp":
            argument = "target"
            raise refused(chosen, "target", "the time of the interpreter says nothing about a kernel",
                          'give "llvm" or "cuda"')
        recipe = Recipe(chosen, mesh, out, options)
        search = _Search(builder, points[:most], args, recipe, rounds, cache, tolerance)
        if resume:
            search.record.load()
        argument = 1
        return search.run(seconds, jobs or default_jobs(), progress)
    except Error as fault:
        raise at_caller(fault, argument) from None


def _cost(cost: Callable[..., float], point: Point) -> float:
    value = cost(**point)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise refused(value, "cost", f"it is no cost of {text_of(point)}", "return a number")
    return value


class _Search:
    """One search: what it was asked for, and what it has found."""

    def __init__(self, builder: Callable, points: list[Point], args: tuple, recipe: Recipe, rounds: int, cache: str,
                 tolerance: float | None):
        self._builder = builder
        self._points = points
        self._args = args
        self._recipe = recipe
        self._rounds, self._cache, self._tolerance = rounds, cache, tolerance
        self._found: list[Candidate] = []
        self._best: tuple[Candidate, Any, Kernel | None] | None = None  # with its function, and its kernel
        self._first: tuple[Point, Any] | None = None  # whose results are the measure of the others
        self._wanted: list[Result] | None = None
        self._start: tuple | None = None  # the arguments as they were
        self.record = Record({
            "helve": _core.__version__, "target": recipe.target, "device": device_name(recipe.target, args),
            "arguments": [_described(each) for each in args], "cache": cache, "out": shown(recipe.out),
            "mesh": shown(recipe.mesh), "options": {name: shown(value) for name, value in recipe.options.items()},
        })

    def run(self, seconds: float | None, jobs: int, progress: bool | None) -> Tuned:
        begin = time.monotonic()

        def over() -> bool:
            return seconds is not None and self._best is not None and time.monotonic() - begin >= seconds

        ahead = list(self._points)
        with warnings.catch_warnings(), Compiler(self._recipe, jobs) as compiler, \
                Progress(name_of(self._builder), len(ahead), progress) as line:
            warnings.simplefilter("ignore", Warning)
            while ahead and not over():
                batch = []  # points that have to be compiled, with their functions
                while ahead and len(batch) < jobs:
                    point = ahead.pop(0)
                    func = self._built(point)
                    if func is not None and not self._recorded(point, func):
                        batch.append((point, func))
                    else:
                        self._advance(line)
                kernels = compiler.compiled([func for _, func in batch])
                for n, ((point, func), kernel) in enumerate(zip(batch, kernels)):
                    if over():
                        ahead = [each for each, _ in batch[n:]] + ahead
                        break
                    self._measure(point, func, kernel, compiler)
                    self._advance(line)
            return self._result(len(ahead))

    def _advance(self, line: Progress) -> None:
        best = self._best[0] if self._best is not None else None
        line.advance(best.seconds if best else None, text_of(best.point) if best else "")

    def _built(self, point: Point) -> Any:
        """The point's function; None, and a refused candidate, if there is none."""
        try:
            func = self._builder(**point)
            core_function(func)
            return func
        except (ValueError, Error) as fault:
            self._found.append(Candidate(point, None, None, reason_of(fault)))
            return None

    def _recorded(self, point: Point, func: Any) -> bool:
        """Takes what an earlier search found, if it did."""
        entry = self.record.find(_source(func))
        if entry is None:
            return False
        self._take(Candidate(point, entry["seconds"], entry["spread"], "", True), func, None)
        return True

    def _take(self, candidate: Candidate, func: Any, kernel: Kernel | None) -> None:
        self._found.append(candidate)
        if self._first is None:
            self._first = candidate.point, func
        if self._best is None or candidate.seconds < self._best[0].seconds:
            self._best = candidate, func, kernel

    def _measure(self, point: Point, func: Any, kernel: Kernel | str, compiler: Compiler) -> None:
        """Checks and times a kernel, and records it."""
        try:
            if isinstance(kernel, str):
                raise _Refusal(kernel)
            self._check(point, func, kernel, compiler)
            timing = bench({"kernel": kernel}, *self._args, rounds=self._rounds, cache=self._cache).timing()
        except _Differs as fault:
            raise fault.error from None
        except (_Refusal, Error) as fault:
            self._found.append(Candidate(point, None, None, reason_of(fault)))
            return
        self._take(Candidate(point, timing.seconds, timing.spread), func, None if compiler.carried else kernel)
        try:
            self.record.add(_source(func), text_of(point), timing.seconds, timing.spread)
        except OSError as fault:
            raise error("BadArgument", function="helve.autotune", value=f"'{self.record.path}'", parameter="resume",
                        reason=f"its record cannot be written: {fault.strerror}",
                        remedy="set HELVE_CACHE_DIR to a folder that this user may write") from None

    def _check(self, point: Point, func: Any, kernel: Kernel, compiler: Compiler) -> None:
        """Compares a kernel's results with those of the first candidate."""
        if self._start is None:  # nothing has been measured, which writes to arguments
            self._start = copies_of_written(core_function(func), kernel.outputs, self._args)
        found = results_of(kernel, core_function(func), self._start)
        if self._first is None:  # it is the first
            self._wanted = found
            return
        first, its_func = self._first
        if self._wanted is None:  # the first one was measured by an earlier search
            its_kernel, = compiler.compiled([its_func])
            if isinstance(its_kernel, str):
                raise _Refusal(f"it cannot be compared with {text_of(first)}: {its_kernel}")
            self._wanted = results_of(its_kernel, core_function(its_func), self._start)
        words = difference(self._wanted, found, self._tolerance)
        if words is not None:
            raise _Differs(error(
                "BadArgument", function="helve.autotune", value=text_of(point), parameter="space",
                reason=f"its results differ from those of {text_of(first)}: {words}",
                remedy="correct the builder: what is tuned must not change results; or allow the difference by "
                       "tolerance=",
            ))

    def _result(self, left: int) -> Tuned:
        if self._best is None:
            notes = [_core.Note(f"{text_of(each.point)}: {each.refused}", _core.Span()) for each in self._found]
            raise error("BadArgument", function="helve.autotune", value="these points", parameter="space",
                        reason="none of them gives a kernel", remedy="correct what the notes say, or give other values",
                        notes=notes)
        best, func, kernel = self._best
        if kernel is None:  # an earlier search measured it, or it is compiled from a text without places
            recipe = self._recipe
            kernel = compile(func, recipe.target, recipe.mesh, out=recipe.out, **recipe.options)
        order = sorted(self._found, key=lambda each: math.inf if each.seconds is None else each.seconds)
        return Tuned(kernel, best.point, tuple(order), left)


class _Refusal(Exception):
    """Why a candidate has no time."""


class _Differs(Exception):
    """Results that differ, which ends the search."""

    def __init__(self, fault: Error):
        self.error = fault


def _source(func: Any) -> str:
    """The digest of a function's text."""
    return digest(_core.print(core_function(func)))


def _described(value: Any) -> Any:
    """An argument, as far as a time depends on it."""
    if is_array(value) and hasattr(value, "shape") and hasattr(value, "dtype"):
        return [str(value.dtype), *(int(extent) for extent in value.shape)]
    return shown(value)
