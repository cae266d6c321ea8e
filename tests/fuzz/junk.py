"""Calls everything that helve exposes with arguments that it was not made for.

A batch of calls runs in a forked child: a call that dies, hangs or raises what it must not is the finding. Which calls
are made is a function of the seed alone.
"""

import contextlib
import importlib.util
import inspect
import io
import mmap
import os
import pkgutil
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import types
import warnings
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import helve
from helve import T, _core, cute
from helve.layout import R, S, laneid, warpid

BATCH = 250
PATIENCE = 20  # seconds for one call
MEMORY = 6 << 30
# What ends the process, reads the standard input, or asks PyTorch for its device.
SKIPPED = {"helve.cli", "helve.autotune.worker._serve", "helve.bench.clocks.TorchEvents"}


@dataclass(frozen=True)
class Callable:
    """Something that can be called: `make()` gives it, by its public name."""

    name: str
    function: object
    public: bool


@dataclass(frozen=True)
class Finding:
    """A call and what came of it."""

    name: str
    arguments: str
    what: str

    def __str__(self):
        return f"{self.name}({self.arguments}): {self.what}"


def _modules():
    yield _core
    yield _core.cute
    yield helve
    lacking = () if importlib.util.find_spec("torch") else ("helve.torch",)  # which is there for PyTorch alone
    for info in pkgutil.walk_packages(helve.__path__, "helve."):
        if info.name.split(".")[-1].startswith("_") or info.name.startswith((*SKIPPED, *lacking)):
            continue
        yield importlib.import_module(info.name)


def _of_class(name, kind, public):
    """The class, its methods as plain functions, and the getters of its properties."""
    yield Callable(name, kind, public)
    for key, member in vars(kind).items():
        if key in ("__dict__", "__weakref__", "__doc__", "__module__", "__init_subclass__", "__subclasshook__"):
            continue
        if isinstance(member, property):
            yield Callable(f"{name}.{key}.fget", member.fget, public=False)
        elif callable(member) or isinstance(member, (staticmethod, classmethod)):
            # `Class.method(junk)` is a call on no object of the class: Python's own descriptors answer it.
            yield Callable(f"{name}.{key}", getattr(kind, key), public=False)


def callables():
    """Every function, class and method below helve, each once, sorted by name."""
    found = {}
    for module in _modules():
        for key in dir(module):
            value = getattr(module, key)
            owner = getattr(value, "__module__", None) or module.__name__
            if isinstance(value, types.ModuleType) or not callable(value) or not str(owner).startswith("helve"):
                continue
            public = module.__name__ in PUBLIC and key in module.__all__
            name = f"{module.__name__}.{key}"
            if name in SKIPPED:
                continue
            each = _of_class(name, value, public) if inspect.isclass(value) else [Callable(name, value, public)]
            for one in each:
                found.setdefault(one.name, one)
    return [found[name] for name in sorted(found)]


# Modules whose names users call; the others serve them, or tests of the compiler (helve.testing).
PUBLIC = {"helve", "helve.layout", "helve.cute", "helve.dist", "helve.kernels", "helve.viz", "helve.language"}
# What a name that is not public may raise besides: Python's own answers.
PLAIN = (OverflowError, LookupError, NameError, ImportError, AttributeError, StopIteration, SyntaxError)


class Odd:
    """An object whose every protocol misbehaves."""

    def __str__(self):
        raise RuntimeError("no text")

    def __index__(self):
        return "no integer"

    def __iter__(self):
        raise ValueError("no iteration")

    def __dlpack_device__(self):
        return ()


@T.prim_func
def _double(a: T.Tensor((T.dyn("n"),), "float32"), b: T.Tensor((T.dyn("n"),), "float32"), k: T.int32):
    with T.Kernel(1):
        for i in T.Parallel(a.shape[0]):
            b[i] = a[i] * 2.0


def values():
    """The arguments. Made anew for each child, so that one call's damage is not the next one's."""
    function = _double.function
    axe = S[(4, 8) : (8 @ laneid, 1)] + R[2 : 4 @ warpid]
    plain = cute.Layout((4, 8), (8, 1))
    numbers = [0, 1, -1, 2, 3, 32, 128, 2**31, 2**63 - 1, -(2**63), 2**63, 2**64, 10**400, True, 0.5, -0.0,
               float("nan"), float("inf"), 1e308, 2 + 1j, np.int64(3), np.float32(2), np.bool_(True)]
    texts = ["", "x", "float32", "float8_e4m3", "llvm", "laneid", "a b", "\ud800", "\0", "é" * 40, "4:1",
             "(4,8):(8,1)", "m", "xy -> x y *", b"bytes", bytearray(3)]
    holders = [(), [], {}, set(), (1,), (4, 8), [4, 8], ((2, 2), 8), (None, 1), (0, 0), (-1, 2), ("x", "y"), [[]],
               {"x": 1}, {0: 1}, [(0, 1), (2, 3)], [(4, 8, laneid)], range(3), ((((1,),),),), (2**40, 2**40)]
    arrays = [np.zeros(3, np.float32), np.zeros((2, 2), np.int64), np.zeros(0), np.array(5), np.array(["a"]),
              np.zeros(2, ml_dtypes.float8_e5m2), np.zeros(2, ">f4"), np.zeros(2, object), np.zeros((2, 3)).T]
    objects = [None, ..., NotImplemented, object(), Odd(), int, type, len, lambda *a: None, Exception("e"), Odd,
               slice(1, 2), iter(()), (i for i in ()), memoryview(b"ab"), sys, inspect.currentframe()]
    own = [T.dyn("n"), T.dyn("n") + 1, T.float32, T, axe, plain, laneid, 4 @ laneid, cute.Swizzle(2, 0, 3), cute.E(0),
           cute.make_identity_layout((4, 8)), cute.composition(cute.Swizzle(2, 0, 3), cute.Layout((8, 8), (8, 1))),
           helve.Mesh((2, 2), ("x", "y")), _double, function, function.params[0], function.params[1], function.body,
           function.span, _core.Range(_core.int_imm(0), _core.int_imm(4)), _core.whole_region(function.params[0]),
           _core.MeshShape([2], ["x"]), _core.float_imm(1.0, "float32"), _core.make_var("v"), _core.seq([]),
           helve.compile(_double, target="interp"), helve.viz.draw_layout(axe, (4, 8)),
           _core.Diagnostic("UnknownTarget", _core.Span(), [("target", "t"), ("known", "k")])]
    return [*numbers, *texts, *holders, *arrays, *objects, *own, None, None]


def _text(value):
    try:
        text = f"{value!r}"
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) < 60 else text[:57] + "..."


def _allowed(call, fault):
    """Why the exception must not come of the call; None if it may."""
    text = traceback.format_exception_only(fault)[-1].strip()[:300]
    if isinstance(fault, helve.InternalError | SystemError):
        return text
    if isinstance(fault, helve.Error | TypeError | ValueError):
        # What users call of the core itself says what it takes; nothing written in Python hands its junk on.
        raw = "incompatible function arguments" in str(fault) or "incompatible constructor arguments" in str(fault)
        if call.public and raw and inspect.isfunction(call.function):
            return f"a raw {text.splitlines()[0]}"
        return None
    if isinstance(fault, helve.Warning | MemoryError):
        return None
    if not call.public and isinstance(fault, PLAIN):
        return None
    # The misbehaviour of an argument is the caller's own.
    if isinstance(fault, RuntimeError) and str(fault) == "no text":
        return None
    return text


def _may_take_for_ever(call):
    """A function that is not public counts as far as it is told; a method, and the core, answer or refuse."""
    return not call.public and inspect.isfunction(call.function) and "." not in call.function.__qualname__


def _plan(seed, count, every):
    """The calls of a seed: (which callable, seed of its arguments)."""
    rng = random.Random(seed)
    return [(rng.randrange(every), rng.randrange(2**32)) for _ in range(count)]


def _arguments(rng, pool):
    positional = [rng.choice(pool) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4, 5)))]
    return positional, {}


def _named(rng, function, pool):
    """Some keyword arguments by the names that the function has."""
    try:
        names = [p.name for p in inspect.signature(function).parameters.values()
                 if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    except (TypeError, ValueError):
        return {}
    return {name: rng.choice(pool) for name in rng.sample(names, min(len(names), rng.randrange(3)))}


def _run_child(calls, known, report, progress):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.chdir(tempfile.mkdtemp(prefix="junk"))
    pool = values()
    sys.stdout = io.StringIO()
    for number, (which, seed) in enumerate(calls):
        progress.seek(0)
        call = known[which]
        rng = random.Random(seed)
        positional, named = _arguments(rng, pool)
        if rng.random() < 0.3:
            named = _named(rng, call.function, pool)
            positional = positional[: rng.randrange(3)]
        shown = ", ".join([*map(_text, positional), *(f"{key}={_text(value)}" for key, value in named.items())])
        record = f"{call.name}\0{shown}".encode("utf-8", "backslashreplace")[:3000]
        progress.write(struct.pack("<ii", number, len(record)) + record)
        signal.alarm(PATIENCE)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                call.function(*positional, **named)
        except BaseException as fault:
            why = _allowed(call, fault)
            if why:
                report.write(f"{call.name}\0{shown}\0{why}\n".encode("utf-8", "backslashreplace"))
                report.flush()
        signal.alarm(0)


def run(seed, count):
    """(calls made, findings) of a seed."""
    known = callables()
    left = _plan(seed, count, len(known))
    findings = []
    progress = mmap.mmap(-1, 4096)
    while left:
        batch = left[:BATCH]
        progress.seek(0)
        progress.write(struct.pack("<ii", -1, 0))
        with tempfile.TemporaryFile() as report:
            child = os.fork()
            if child == 0:
                try:
                    _run_child(batch, known, report, progress)
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            report.seek(0)
            for line in report.read().decode("utf-8").split("\n"):
                parts = line.split("\0")
                if len(parts) == 3:
                    findings.append(Finding(*parts))
        progress.seek(0)
        number, size = struct.unpack("<ii", progress.read(8))
        if status != 0 and number >= 0:
            name, arguments = progress.read(size).decode("utf-8", "replace").split("\0", 1)
            died = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
            if died != "SIGALRM":
                findings.append(Finding(name, arguments, died))
            elif not _may_take_for_ever(known[batch[number][0]]):
                findings.append(Finding(name, arguments, "no answer"))
            left = left[number + 1 :]
        else:
            left = left[len(batch) :]
    return count, findings


if __name__ == "__main__":
    calls, found = run(int(sys.argv[1]), int(sys.argv[2]))
    for each in sorted({(f.name, f.what): f for f in found}.values(), key=lambda f: (f.what, f.name)):
        print(each)
    print(f"{calls} calls of {len(callables())} names, {len(found)} findings")
