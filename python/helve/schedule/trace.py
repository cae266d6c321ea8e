"""The steps of a schedule as data: printed as a program, written as JSON, applied to other functions.

Statements are kept as they were found, by the names of variables and buffers, so that a trace fits every function of
the same form, whatever its sizes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from helve import _core, source
from helve.errors import Error, error, shown
from helve.script.entry import parse

_ROWS = dict(_core.primitive_rows())
_FORMAT = "helve.schedule/1"


@dataclass(frozen=True, slots=True, repr=False)
class StepReport:
    """What is known of one step.

    Attributes:
        step: its number, from 1.
        text: the call, as the trace prints it.
        effect: "equal" (results are those of the function before, bit for bit), "reassociated" (up to the order of the
            updates of reductions) or "unproved".
        reason: why it is not proved; empty otherwise.
        unsafe: the reason that was given to take it without a proof; None otherwise.
        needs: conditions that calls must meet since the step, for example `M % 64 == 0`.
        filename, lineno: the call that made the step; None when unknown.
    """

    step: int
    text: str
    effect: str
    reason: str
    unsafe: str | None
    needs: tuple[str, ...]
    filename: str | None
    lineno: int | None

    def __repr__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        given = f"; taken because {self.unsafe!r}" if self.unsafe is not None and self.effect == "unproved" else ""
        needs = f"; calls need {' and '.join(self.needs)}" if self.needs else ""
        return f"<step {self.step}, {self.effect}: {self.text}{reason}{given}{needs}>"


def _finder_text(finder: _core.Finder) -> str:
    number = "" if finder.index < 0 else f", {finder.index}"
    return f"s.{finder.kind}({json.dumps(finder.name)}{number})"


def step_text(step: _core.TraceStep) -> str:
    """The call that makes the step of a schedule `s`."""
    words = []
    for (name, kind, _), value in zip(_ROWS[step.primitive], step.arguments, strict=True):
        if kind == "loops" and any("=" in word for word in words):
            words += [f"{name}=[{', '.join(_finder_text(each) for each in value)}]"] if value else []
        elif kind == "loops":
            words += [_finder_text(each) for each in value]
        elif isinstance(value, _core.Finder):
            words.append(_finder_text(value))
        elif kind == "function":
            words.append(value.function.name)
        elif kind in ("buffer", "text"):
            words.append(json.dumps(value))
        elif kind == "choice":
            words.append(f"{name}={json.dumps(value)}")
        else:
            words.append(str(value))
    if step.unsafe is not None:
        words.append(f"unsafe={json.dumps(step.unsafe)}")
    return f"s.{step.primitive}({', '.join(words)})"


def report(steps: Sequence[_core.TraceStep]) -> list[StepReport]:
    """What is known of each step."""
    out = []
    for number, step in enumerate(steps, 1):
        place = (step.place.file, step.place.line) if step.place.known else (None, None)
        out.append(StepReport(number, step_text(step), step.effect, step.reason, step.unsafe, tuple(step.needs),
                              *place))
    return out


class Trace:
    """The steps of a schedule. Immutable.

    Attributes:
        steps: the steps, as the core has them.
    """

    __slots__ = ("steps",)

    def __init__(self, steps: Sequence[_core.TraceStep] = ()):
        self.steps = tuple(steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        """Python that makes the steps of a schedule `s`, a line each."""
        return "".join(f"{step_text(step)}\n" for step in self.steps)

    def __repr__(self) -> str:
        return f"<helve.Trace of {len(self)} steps>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.json() == other.json()

    def __hash__(self) -> int:
        return hash(str(self))

    def json(self) -> str:
        """The trace as JSON, which `Trace.from_json` reads."""
        return json.dumps({"format": _FORMAT, "steps": [_plain_step(step) for step in self.steps]})

    @staticmethod
    def from_json(text: str) -> Trace:
        """Reads what `json` wrote.

        Raises:
            helve.Error: the text is no trace (HV1009).
        """
        try:
            return Trace(_steps(text))
        except _Fault as fault:
            frame, _ = source.outside(sys._getframe(1))
            raise error("ScheduleTrace", source.span_of_call(frame), reason=fault) from None


class _Fault(ValueError):
    """What is wrong with a text that should be a trace."""


def _steps(text: object) -> list[_core.TraceStep]:
    try:
        data = json.loads(text)
    except (TypeError, ValueError, RecursionError) as fault:
        raise _Fault(f"it is not JSON, {fault}") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("steps"), list):
        raise _Fault(f"it is no object of the format '{_FORMAT}' with a list of steps")
    try:
        return _list_of(data["steps"])
    except RecursionError:
        raise _Fault("its functions are nested too deep") from None


def _list_of(steps: list) -> list[_core.TraceStep]:
    return [_step(number, step) for number, step in enumerate(steps, 1)]


def _plain_step(step: _core.TraceStep) -> dict[str, object]:
    return {"primitive": step.primitive, "arguments": [_plain(value) for value in step.arguments],
            "unsafe": step.unsafe}


def _plain(value: object) -> object:
    if isinstance(value, _core.ScheduleVersion):
        return _plain_function(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, _core.Finder):
        return {"by": value.kind, "name": value.name, "index": value.index if value.index >= 0 else None}
    return value


def _plain_function(version: _core.ScheduleVersion) -> dict[str, object]:
    """The text of a function and the steps of its schedule, whose proofs a reader makes again."""
    steps = []
    while version.before is not None:
        steps.append(_plain_step(version.step))
        version = version.before
    return {"function": _core.print(version.function), "steps": steps[::-1]}


def _function(number: int, value: object) -> _core.ScheduleVersion:
    if not isinstance(value, dict) or value.keys() != {"function", "steps"} or not isinstance(value["steps"], list):
        raise _Fault(f"step {number} gives {shown(value)} for a function")
    if not isinstance(value["function"], str):
        raise _Fault(f"step {number} has the text {shown(value['function'])} of a function")
    try:
        version = _core.start_schedule(parse(value["function"]).function)
        for step in _list_of(value["steps"]):
            version = _core.replay_step(version, step, _core.Span())
    except Error as fault:
        raise _Fault(f"the function of step {number} is refused, {fault.code} {fault.message}") from None
    return version


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _finder(number: int, value: object) -> _core.Finder:
    if isinstance(value, dict) and value.keys() == {"by", "name", "index"}:
        by, name, index = value["by"], value["name"], value["index"]
        known = by in ("loop", "store", "text", "line", "path") and isinstance(name, str)
        if known and (index is None or (_is_integer(index) and index >= 0)):
            return _core.Finder(by, name, -1 if index is None else index)
    raise _Fault(f"step {number} names a statement by {shown(value)}")


def _step(number: int, step: object) -> _core.TraceStep:
    if not isinstance(step, dict) or step.keys() != {"primitive", "arguments", "unsafe"}:
        raise _Fault(f"step {number} is {shown(step)}")
    name, values, unsafe = step["primitive"], step["arguments"], step["unsafe"]
    if not isinstance(name, str) or name not in _ROWS:
        raise _Fault(f"step {number} has the primitive {shown(name)}")
    if not isinstance(values, list) or len(values) != len(_ROWS[name]):
        raise _Fault(f"'{name}' of step {number} has arguments {shown(values)}")
    if unsafe is not None and not isinstance(unsafe, str):
        raise _Fault(f"step {number} has the reason {shown(unsafe)}")
    arguments = []
    for (parameter, kind, _), value in zip(_ROWS[name], values):
        if kind in ("loop", "statement"):
            arguments.append(_finder(number, value))
        elif kind == "loops" and isinstance(value, list):
            arguments.append([_finder(number, each) for each in value])
        elif kind == "function":
            arguments.append(_function(number, value))
        elif (kind in ("factor", "integer") and _is_integer(value)) or (
                kind in ("choice", "buffer", "text") and isinstance(value, str)):
            arguments.append(value)
        else:
            raise _Fault(f"'{name}' of step {number} has {shown(value)} for '{parameter}'")
    return _core.TraceStep(name, arguments, unsafe)
