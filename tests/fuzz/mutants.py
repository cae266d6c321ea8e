"""What users get wrong: a right program with its text or its arguments made wrong. (`junk` calls the API wrongly.)

Whatever comes of it is an error that says where and why, `helve.Error` with a code (and, of a text, a line), or a right
answer. Anything else is a failure: another exception, an internal error, a dead process.
"""

import functools
import random
import re
import traceback

import engines
import helve
import layouts
import numpy as np
from arguments import Arguments, difference
from engines import Failure
from helve import _core

TOKEN = re.compile(r'"[^"\n]*"|\w+(?:\.\w+)*|[-+*/%<>=!&|^~]+|[()\[\]{}:,]')
WORDS = ["0", "-1", "1", "2", "31", "1.5", "True", "None", '"x"', '"float32"', '"int4"', "x", "A1", "T", "T.serial",
         "T.Parallel", "T.copy", "(", ")", "[", "]", ":", ",", "//", "%", "<<", "if", "else", "and", "not",
         "lambda x: x", "[]", "()", "{}", "1e400", "2 ** 70", "9" * 30, "'\u00e9'", "...", "*A1", "T.dyn(\"Q\")",
         "T.infinity()"]
OBJECTS = [None, "", "A", 0, -1, 2**63, 2**70, -(2**70), 1.5, float("nan"), float("inf"), True, (), [], {}, object(),
           b"x", np.float32(1), np.zeros(0), np.zeros((2, 2), "U3"), np.zeros(3, object), np.array(1), type,
           lambda: None, 1j]


def mutated(text, rng):
    """The text with a few words taken out, put in twice, exchanged or replaced."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        tokens = list(TOKEN.finditer(text))
        if not tokens:
            return text
        t = rng.choice(tokens)
        match rng.choice(["delete", "double", "replace", "replace", "swap", "line", "cut"]):
            case "delete":
                text = text[: t.start()] + text[t.end() :]
            case "double":
                text = text[: t.end()] + " " + t[0] + text[t.end() :]
            case "replace":
                text = text[: t.start()] + rng.choice(WORDS) + text[t.end() :]
            case "swap":
                a, b = sorted((t, rng.choice(tokens)), key=lambda x: x.start())
                if a.end() <= b.start():
                    text = text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]
            case "line":
                lines = text.splitlines()
                n = rng.randrange(len(lines))
                change = rng.choice([[], [lines[n]] * 2, ["  " + lines[n]], [lines[n].lstrip()]])
                text = "\n".join(lines[:n] + change + lines[n + 1 :]) + "\n"
            case "cut":
                text = text[: t.start()]
    return text


class _Odd:
    """A tensor that lies about itself."""

    def __init__(self, what):
        self.what = what

    def __dlpack__(self, **_):
        if self.what == "raises":
            raise BufferError("not to be had")
        return self.what

    def __dlpack_device__(self):
        return (1, 0)


def wrong(value, rng):
    """An argument that is not what the program asked for, or is in an unusual form."""
    if not isinstance(value, np.ndarray):
        return rng.choice(OBJECTS)
    options = [lambda: rng.choice(OBJECTS),
               lambda: value.astype(rng.choice(["int32", "float64", "uint8", "complex64"])),
               lambda: value[..., None], lambda: value[:-1] if value.ndim else value, lambda: value.T,
               lambda: np.concatenate([value, value]) if value.ndim else value, lambda: value.tolist(),
               lambda: _Odd("raises"), lambda: _Odd(3), lambda: value.view(f"V{value.dtype.itemsize}"),
               lambda: value[::-1] if value.ndim else value, lambda: np.broadcast_to(value[..., :1], value.shape),
               lambda: memoryview(value.tobytes()), lambda: value.astype(value.dtype.newbyteorder(">"))]
    return rng.choice(options)()


def _is_said_well(error, text=None):
    """Why an error is not one for users, or None."""
    if isinstance(error, BufferError):
        return None  # of the tensor itself
    if not isinstance(error, helve.Error):
        return f"{type(error).__name__} in place of a helve.Error"
    if not re.fullmatch(r"HV\d{4}", error.code or ""):
        return f"the code is {error.code!r}"
    if text is not None and not error.lineno:
        return f"{error.code} says no line"
    return None


def _attempt(what, call, text=None):
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001
        if reason := _is_said_well(error, text):
            detail = "".join(traceback.format_exception_only(error))
            return None, Failure(f"mutant {what}: {type(error).__name__}", f"{reason}: {detail}\n{text or ''}")
        return None, None


def of_text(text, rng):
    """A program with a wrong text: parsed, proved and divided among threads, and not run, since it need not end."""
    changed = mutated(text, rng)
    function, failure = _attempt("text", lambda: helve.parse(changed), changed)
    if function is None:
        return failure
    if re.search(r"\d{4,}|\*\*", changed):
        return None  # of any size, and compiled in as much time
    _, failure = _attempt("compile", lambda: helve.compile(function, "interp"), changed)
    if failure:
        return failure
    for target, arch in (("llvm", ""), ("cuda", "sm_90a")):
        lower = functools.partial(_core.lowering_stages, function.function, None, 1, target, arch, 1)
        _, failure = _attempt(f"lower {target}", lower, changed)
        if failure:
            return failure
    return None


def of_arguments(call, rng):
    """A right program, called wrongly; where the call is taken, what it must do is done."""
    kernel = helve.compile(helve.parse(engines.plain(call.text)), rng.choice(["interp", "llvm"]),
                           engines.mesh_of(call))
    data = Arguments(call.scalars, call.tensors, call.shared)
    given = data.fresh()
    values = list(given.values)
    if not values:
        return None
    match rng.choice(["one", "one", "one", "fewer", "more", "same"]):
        case "one":
            n = rng.randrange(len(values))
            values[n] = wrong(values[n], rng)
        case "fewer":
            del values[rng.randrange(len(values))]
        case "more":
            values.append(rng.choice(OBJECTS))
        case "same":
            values[rng.randrange(len(values))] = rng.choice(values)
    _, failure = _attempt("arguments", lambda: kernel(*values))
    if failure:
        failure.detail += f"\n{[v if not isinstance(v, np.ndarray) else (v.shape, v.dtype, v.strides) for v in values]}"
        return failure
    given = data.fresh()  # and the kernel is what it was
    kernel(*given.values)
    found = difference(data, given)
    return Failure("mutant arguments: state", f"after a call that was refused {found}\n{call.text}") if found else None


def of_layout(text, rng):
    """A program with a layout that no fragment can have: refused by the code for that.

    What a branch on constants leaves out is no part of the program, so the parsed one says which fragments there are.
    """
    names = {alloc[1] for alloc in layouts.FRAGMENT.finditer(_core.print(helve.parse(text).function))}
    changed = layouts.misplaced(text, names, rng)
    if changed is None:
        return None
    try:
        helve.parse(changed)
    except helve.Error as error:
        if error.code == "HV0584" and error.lineno:
            return None
        return Failure("mutant layout", f"refused by {error.code} in place of HV0584: {error}\n{changed}")
    return Failure("mutant layout", f"accepted\n{changed}")


def examine(call, seed):
    """Several wrong forms of a call; the first Failure or None."""
    rng = random.Random(f"{seed}/mutant")
    if failure := of_layout(call.text, rng):
        return failure
    for _ in range(3):
        if failure := of_text(call.text, rng):
            return failure
    return of_arguments(call, rng) if rng.random() < 0.5 else None
