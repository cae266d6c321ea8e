"""What a system does with an illegal step: one word and the first line of its message.

Each attempt runs in a process of its own, since some end the process.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable

import numpy as np
from schedules_of.cases import Case


class Inexpressible(Exception):
    """The system has no such step, or cannot say the program."""


def _first_line(error: BaseException) -> str:
    lines = [re.sub(r"<<<.*?>>>: |\S*/(?=\w+\.py)", "", line).strip() for line in str(error).splitlines()]
    said = [line for line in lines if re.search(r"error|Error|[Cc]an.?not|can't|must|not |neither", line)] or lines
    return next((line for line in said if not line.endswith(":") and "primitive" not in line), said[0])[:160]


def _attempt(case: Case, how: Callable[..., object], refusals: tuple[type, ...], pipe) -> None:
    arguments, expected = case.inputs(), case.inputs()
    case.run(*expected)
    try:
        how(*arguments)
        pairs = list(zip(arguments, expected, strict=True))
        same, near = (all(compare(a, b) for a, b in pairs) for compare in (np.array_equal, np.allclose))
        pipe.send(("equal" if same else "other bits" if near else "wrong result", ""))
    except Inexpressible as error:
        pipe.send(("not expressible", str(error)))
    except refusals as error:
        pipe.send(("refused", _first_line(error)))
    except Exception as error:  # any other is no diagnostic of the system's
        pipe.send(("internal error", f"{type(error).__name__}: {_first_line(error)}"))


def outcome(case: Case, how: Callable[..., object] | None, refusals: tuple[type, ...]) -> tuple[str, str]:
    """The word, and what was said: "refused", "wrong result", "other bits", "equal", "internal error", "crash" or
    "not expressible".
    """
    if how is None:
        return "not expressible", ""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_attempt, args=(case, how, refusals, there))
    process.start()
    there.close()
    try:
        found = here.recv() if here.poll(120) else ("no answer in 120 s", "")
    except EOFError:
        found = ("crash", "")
    process.kill() if process.is_alive() and found[0].startswith("no answer") else process.join(10)
    return found
