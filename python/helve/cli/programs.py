"""`helve run` and `helve show`: a kernel of a file, compiled.

The file is executed as an import would, so that what stands below `if __name__ == "__main__":` does not run.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import helve
from helve import _core, arrays
from helve.arguments import NegativeExtent, Recipe, make_arguments
from helve.cli.mistakes import Mistake
from helve.errors import suggestion
from helve.schedule import Schedule
from helve.script.prim_func import PrimFunc
from helve.target import core_function

EXTENT = 256  # of dimensions that the command line does not tell
_MOST_ELEMENTS = 1 << 31


def load(text: str) -> PrimFunc | Schedule:
    """The kernel function that "FILE:expression" names; the only one of the file for "FILE".

    Raises:
        Mistake: there is no such file, it fails, or it has no such kernel.
        helve.Error: a kernel of the file is wrong.
    """
    name, expression = (text, "") if Path(text).is_file() else (text.partition(":")[0], text.partition(":")[2].strip())
    path = Path(name)
    if not path.is_file():
        raise Mistake(f"there is no file '{name}'", "give a file of Python, and the kernel behind a colon: "
                      "kernels.py:softmax")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        names = _executed(f"'{name}'", lambda: runpy.run_path(str(path.resolve()), run_name="__helve__"))
        if not expression:
            return _only(name, names)
        found = _executed(f"'{expression}'", lambda: _evaluated(name, expression, names))
    finally:
        sys.path.pop(0)
    if isinstance(found, (PrimFunc, Schedule)):
        return found
    remedy = f"name one of: {', '.join(_kernels(names))}" if _kernels(names) else "name a function below @T.prim_func"
    if callable(found) and not isinstance(found, (type, helve.Kernel)):
        remedy = f"if it makes a kernel, give its arguments: {name}:{expression}(...)"
    raise Mistake(f"'{expression}' in '{name}' is no kernel function but a value of type '{type(found).__name__}'",
                  remedy)


def _executed(what: str, run) -> Any:
    """The result of a user's code; what it raises is told with its place."""
    try:
        return run()
    except (helve.Error, Mistake):
        raise
    except (Exception, SystemExit) as fault:
        last = traceback.extract_tb(fault.__traceback__)[-1]
        place, text = f"{last.filename}:{last.lineno}", str(fault)
        if isinstance(fault, SyntaxError):
            place, text = f"{fault.filename}:{fault.lineno}", fault.msg
        raise Mistake(f"{what} fails at {place}: {type(fault).__name__}: {text}",
                      "mend it, or put what is not to run below: if __name__ == \"__main__\":") from None


def _evaluated(name: str, expression: str, names: dict[str, Any]) -> Any:
    if expression.isidentifier() and expression not in names:
        near = suggestion(expression, _kernels(names))
        known = ", ".join(_kernels(names))
        raise Mistake(f"there is no '{expression}' in '{name}'",
                      near[0] if near else f"its kernels are: {known}" if known else "it has no kernels")
    return eval(compile(expression, f"<{name}:{expression}>", "eval"), names)  # noqa: S307 - the user's own text


def _kernels(names: dict[str, Any]) -> list[str]:
    return [name for name, value in names.items() if isinstance(value, (PrimFunc, Schedule))]


def _only(name: str, names: dict[str, Any]) -> PrimFunc | Schedule:
    known = _kernels(names)
    if len({id(names[each]) for each in known}) == 1:
        return names[known[0]]
    if known:
        raise Mistake(f"'{name}' has {len(known)} kernels", f"name one: {name}:{known[0]}; they are {', '.join(known)}")
    raise Mistake(f"'{name}' has no kernel", f"give a call that makes one: {name}:builder(4096)")


def _compiled(chosen: argparse.Namespace, **options: Any) -> tuple[helve.Kernel, _core.Function]:
    program = load(chosen.program)
    mesh = helve.Mesh(tuple(chosen.mesh)) if chosen.mesh else None
    # A schedule may have become another function since its own was defined.
    return helve.compile(program, target=chosen.target, mesh=mesh, **options), core_function(program)


def show_command(chosen: argparse.Namespace) -> None:
    """Prints the text of a stage, or the names of all."""
    kernel, _ = _compiled(chosen, **({"arch": chosen.arch} if chosen.arch else {}))
    print("\n".join(kernel.stages) if chosen.stages else kernel.source(chosen.stage))


def run_command(chosen: argparse.Namespace) -> None:
    """Runs a kernel on random arguments; prints their shapes, and the time."""
    kernel, function = _compiled(chosen)
    values = _arguments(function, dict(chosen.size), chosen.seed)
    print(kernel)
    for param, value in zip(function.params, values):
        shape = f"[{', '.join(map(str, value.shape))}]" if isinstance(value, np.ndarray) else f" = {value}"
        print(f"  {param.name}: {param.dtype}{shape}")
    if kernel.target == "interp":
        kernel(*values)
        print("it runs; the interpreter is not timed")
        return
    moved = _on_gpu(values) if kernel.target == "cuda" else None
    if kernel.target == "cuda" and moved is None:
        print("the time has the copies to the GPU and back: PyTorch or CuPy for its driver is not there to avoid them")
    given = values if moved is None else moved
    kernel(*given)
    print(helve.bench(kernel, *given, rounds=chosen.rounds))


def _arguments(function: _core.Function, sizes: dict[str, int], seed: int) -> list:
    """Random arguments. Whole numbers are 0 and 1, which are subscripts of almost everything."""
    dims = [str(dim) for dim in function.dims]
    for name in sizes:
        if name not in dims:
            known = f"its open extents are: {', '.join(dims)}" if dims else "it has no open extent; leave --size out"
            raise Mistake(f"'{function.name}' has no open extent '{name}'", (*suggestion(name, dims), known)[0])
    extents = tuple(sizes.get(name, EXTENT) for name in dims) or (EXTENT,)
    try:
        return make_arguments(function, Recipe(extents, 0, 2, seed), _MOST_ELEMENTS)
    except MemoryError as fault:
        raise Mistake(f"the arguments do not fit in memory: {fault}", "give smaller extents by --size") from None
    except NegativeExtent as fault:
        raise Mistake(str(fault), "give larger extents by --size") from None


def _on_gpu(values: list) -> list | None:
    """The arrays on the GPU, by the library that has one; None without such a library."""
    for library, move in (("torch", to_torch), ("cupy", to_cupy)):
        try:
            return [move(__import__(library), value) if isinstance(value, np.ndarray) else value for value in values]
        except Exception:  # noqa: BLE001, S112 - no library, driver, device or dtype: each raises its own
            continue
    return None


def to_torch(torch: Any, value: np.ndarray, device: str = "cuda") -> Any:
    """A tensor with the contents of an array.

    Raises:
        NoArrays: PyTorch has no such dtype, or the array's elements do not follow each other.
    """
    out = arrays.empty(value.shape, arrays.dtype_name(value.dtype), torch.empty(0, device=device))
    if not value.flags.c_contiguous:
        raise arrays.NoArrays("its elements do not follow each other")
    out.reshape(-1).view(torch.uint8).copy_(torch.from_numpy(value.reshape(-1).view(np.uint8)))
    return out


def to_cupy(cupy: Any, value: np.ndarray) -> Any:
    """An array of CuPy with the contents of an array."""
    return cupy.asarray(value)
