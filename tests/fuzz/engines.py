"""Runs a program on every engine and compares with its meaning.

Engines: the parser and printer (every stage survives a round trip), the interpreter on the function and after each
pass, and machine code, compiled with the verifier after each pass.
"""

import itertools
import math
import os
import warnings
from dataclasses import dataclass, field

import helve
import ml_dtypes
import numpy as np
import program as p
import scalars
from helve import _core
from helve.testing import interpret
from meaning import tensor_data

_core.sample_conditions(True)

# What compiles and runs the programs, with commas between: "llvm", and "cuda" where there is a device.
TARGETS = os.environ.get("HELVE_FUZZ_TARGETS", "llvm").split(",")

NUMPY = {name: np.dtype(name) for name in [*scalars.BITS, "bool", "float16", "float32", "float64"]}
NUMPY["bfloat16"] = np.dtype(ml_dtypes.bfloat16)


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
    tensors: list  # [name, dtype, shape, strides or None, values, expected, errors] or None for a scalar
    mesh: list | None
    chunk: int
    shared: list = field(default_factory=list)  # groups of [position of a tensor, begin in their one memory]


def first_data(program, buffer, memory):
    """The contents of a tensor before the call."""
    for group in program.shared:
        if buffer in group.buffers:
            name = "/".join(q.name for q in group.buffers)
            count = len(memory.store.values)
            return tensor_data(program.seed, name, (count,), buffer.dtype)[memory.begin :][: math.prod(memory.shape)]
    return tensor_data(program.seed, buffer.name, memory.shape, buffer.dtype)


def call_of(program, text, memories):
    """The call that a program and its meaning describe."""
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
        strides = [s if isinstance(s, int) else s.value for s in q.strides] if q.strides else None
        tensors.append([q.name, q.dtype, list(memory.shape), strides, values, expected, errors if any(errors) else []])
        numbers.append(None)
    position = {q.name: n for n, q in enumerate(program.params)}
    shared = [[[position[q.name], at] for q, at in zip(group.buffers, group.begins)] for group in program.shared]
    return Call(text, numbers, tensors, program.mesh, program.chunk, shared)


def array_of(dtype, shape, strides, values):
    """A fresh array of those strides in elements."""
    out = np.array(values, NUMPY[dtype]).reshape(shape)
    if not strides:
        return out
    count = 1 + sum(s * (n - 1) for s, n in zip(strides, shape)) if out.size else 0
    base = np.zeros(max(count, 1), NUMPY[dtype])
    view = np.lib.stride_tricks.as_strided(base, shape, [s * base.itemsize for s in strides])
    view[...] = out
    return view


def arguments_of(call):
    """Fresh arguments; those that share memory are views of one array."""
    out = [array_of(t[1], t[2], t[3], t[4]) if t else x for t, x in zip(call.tensors, call.scalars)]
    for group in call.shared:
        whole = np.zeros(max(begin + out[n].size for n, begin in group), out[group[0][0]].dtype)
        for n, begin in group:
            view = whole[begin : begin + out[n].size].reshape(out[n].shape)
            view[...] = out[n]
            out[n] = view
    return out


def difference(call, arguments):
    """The first element that is not what it must be, as text; None when all are."""
    for t, array in zip(call.tensors, arguments):
        if t is None:
            continue
        name, dtype, shape, _, _, expected, errors = t
        got = array.reshape(-1).tolist()
        for n, (x, y, e) in enumerate(zip(got, expected, itertools.chain(errors, itertools.repeat(0.0)))):
            same = x == y or (e > 0 and math.isfinite(x) and abs(x - y) <= 2 * e)
            if not same:
                at = tuple(int(i) for i in np.unravel_index(n, shape))
                allowed = f" within {2 * e:g}" if e else ""
                return f"{name}{list(at)} is {x}, must be {y}{allowed}"
    return None


def _first(error):
    return str(error).strip().splitlines()[0]


def check(call):
    """The first Failure of the call on any engine, or None."""
    mesh = helve.Mesh(tuple(call.mesh)) if call.mesh else None
    try:
        function = helve.parse(call.text)
    except helve.Error as error:
        return Failure(f"refused {error.code}", str(error))
    except helve.InternalError as error:
        return Failure("parser", str(error))
    try:
        shape = None if mesh is None else _core.MeshShape(list(mesh.shape), list(mesh.names))
        stages = _core.lowering_stages(function.function, shape, call.chunk)
        threads = _core.lowering_stages(function.function, shape, call.chunk, "cuda")
    except helve.Error as error:
        return Failure(f"refused {error.code} when compiled", str(error))
    except helve.InternalError as error:
        return Failure("pass " + _first(error).partition(" (/")[0][:60], str(error))
    return (_check_stages(call, stages) or _check_machine_code(call, function, mesh)
            or _check_stages(call, threads, "cuda ") or _check_cuda_text(threads[-1][1]))


def _check_cuda_text(stage):
    try:
        _core.cuda_source(stage)
    except helve.Error as error:
        return Failure(f"refused {error.code} as CUDA C", str(error))
    except helve.InternalError as error:
        return Failure("cuda text " + _first(error).partition(" (/")[0][:60], str(error))
    return None


def _check_stages(call, stages, target=""):
    before, passes = None, []
    for name, stage in stages:
        passes.append(name)
        where = f"{target}interp" if len(passes) == 1 else f"{target}after {name} ({len(passes) - 1})"
        text = _core.print(stage)
        if text == before:
            continue
        before = text
        try:
            again = helve.parse(text).function
        except (helve.Error, helve.InternalError) as error:
            return Failure(f"round trip {where}", f"{error}\n{text}")
        same, path = _core.structural_equal(stage, again)
        if not same or _core.print(again) != text:
            return Failure(f"round trip {where}", f"differs at '{path}'\n{text}")
        arguments = arguments_of(call)
        try:
            interpret(stage, *arguments)
        except (helve.Error, helve.InternalError) as error:
            return Failure(where, f"{error}\n{text}")
        if found := difference(call, arguments):
            return Failure(where, f"{found}\n{text}")
    return None


def _check_machine_code(call, function, mesh):
    """Machine code of TARGETS against the meaning; on a GPU the arrays travel there and back."""
    forms = [(target, {}) for target in TARGETS]
    if "llvm" in TARGETS:
        forms.append(("llvm", {"stream_bytes": 1}))  # as if every tensor were large
    return next(filter(None, (_check_target(call, function, mesh, *form) for form in forms)), None)


def _check_target(call, function, mesh, target, options):
    arguments = arguments_of(call)
    options = {**options, "persistent_chunk": call.chunk} if mesh else options
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", helve.Warning)
            kernel = helve.compile(function, target, mesh, verify=True, **options)
        kernel(*arguments)
    except (helve.Error, helve.InternalError) as error:
        return Failure(f"{target} raises", str(error))
    if found := difference(call, arguments):
        return Failure(target, f"{found}\n{kernel.source('lowered')}")
    return None


