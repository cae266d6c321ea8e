"""Two versions of a program on the same arguments.

Proofs say that a step keeps results; with `check=True` the reference interpreter says it too, independently of them.
"""

from __future__ import annotations

import numpy as np

from helve import _core
from helve.arguments import NegativeExtent, make_arguments, recipes
from helve.errors import Error, error

_ELEMENTS = 1 << 16  # of all arguments of a run
_STEPS = 1 << 22  # iterations of a run


def _refusal(function: _core.Function, args: list) -> str | None:
    """Runs the function; the code if the interpreter refuses it, or "steps" if it takes too long."""
    try:
        _core.interpreted(function, None, _STEPS, 0)(*args)
    except Error as fault:
        return fault.code
    except _core.OutOfSteps:
        return "steps"
    return None


def compare(before: _core.Function, after: _core.Function, step: _core.TraceStep) -> None:
    """Runs both functions on arguments of several sizes; those that the first one does not accept tell nothing.

    Raises:
        helve.Error: results differ (HV1010).
    """
    for recipe in recipes(before):
        try:
            wanted = make_arguments(before, recipe, _ELEMENTS)
        except (MemoryError, NegativeExtent):
            continue
        if _refusal(before, wanted) is not None:
            continue
        got = make_arguments(before, recipe, _ELEMENTS)
        refusal = _refusal(after, got)
        if refusal == "HV0616" and step.needs:
            continue  # the step demands more of calls
        if refusal is not None:
            raise error("ScheduleResult", step.place, primitive=step.primitive,
                        reason="the interpreter refuses the program now")
        for number, (a, b) in enumerate(zip(got, wanted)):
            if isinstance(b, np.ndarray) and not _same(a, b, step.effect):
                raise error("ScheduleResult", step.place, primitive=step.primitive,
                            reason=f"argument {number} differs for extents {', '.join(map(str, recipe.extents))}")


def _same(a: np.ndarray, b: np.ndarray, effect: str) -> bool:
    if effect == "equal" or b.dtype.kind in "iub" or b.dtype.itemsize == 1:
        return a.tobytes() == b.tobytes()
    return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=2e-2, atol=1e-4, equal_nan=True)
