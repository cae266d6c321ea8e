"""Arguments of steps: from what users write to what the core takes.

What a parameter takes is a column of the table of primitives; a value of another kind is refused at the user's call.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence

from helve import _core
from helve.errors import error, shown
from helve.schedule.cursor import Cursor, carried, find

_ROWS = dict(_core.primitive_rows())
# Of the kinds whose values are texts: why a value is none, and the remedy.
_TEXTS = {"choice": ("it is none of its words", ""),
          "buffer": ("it is no name", "give the name of a buffer, for example \"A\""),
          "text": ("it is no text", "give a text")}


def refuse_wrong_calls(methods: type, place_of_call: Callable[[], _core.Span]) -> type:
    """Lets the class's methods refuse arguments that they do not have, or lack, as others (HV1005)."""
    for name, method in list(vars(methods).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(methods, name, _refusing(name, method, place_of_call))
    return methods


def _refusing(name: str, method: Callable, place_of_call: Callable[[], _core.Span]) -> Callable:
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_all = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    shape = inspect.Signature([each.replace(annotation=each.empty) for each in parameters])

    @functools.wraps(method)
    def called(self, *args, **named):
        try:
            signature.bind(self, *args, **named)
        except TypeError:
            fault = _fault_of_call(args, named, parameters, positional, takes_all)
            raise error("ScheduleArgumentValue", place_of_call(), primitive=name, **fault,
                        fixes=[f"call it as s.{name}{shape}"]) from None
        return method(self, *args, **named)

    return called


def _fault_of_call(args: tuple, named: dict, parameters: list, positional: list, takes_all: bool) -> dict:
    """What of a call fits no parameter, or which one has no argument."""
    known = {each.name for each in parameters if each.kind is not each.VAR_POSITIONAL}
    for parameter, value in named.items():
        if parameter not in known:
            return {"value": shown(value), "parameter": parameter, "reason": "it has no such parameter"}
        if parameter in positional[: len(args)]:
            return {"value": shown(value), "parameter": parameter, "reason": "it is given twice"}
    if len(args) > len(positional) and not takes_all:
        return {"value": shown(args[len(positional)]), "parameter": f"argument {len(positional) + 1}",
                "reason": f"it takes {len(positional)} by their place"}
    missing = next(each for each in positional[len(args):] if each not in named)
    return {"value": "nothing", "parameter": missing, "reason": "it has no default"}


def path_to(version: _core.ScheduleVersion, primitive: str, parameter: str, value: object,
         place: _core.Span) -> _core.Cursor:
    """The statement of a cursor, or of the name of a loop, in a version."""
    if isinstance(value, str):
        return find(version, "loop", value, None, None, place).path
    if isinstance(value, Cursor):
        return carried(value, version, place)
    raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(value), parameter=parameter,
                reason="it is no cursor", fixes=["find the statement, for example by s.loop(\"i\")"])


def integer(primitive: str, parameter: str, value: object, place: _core.Span) -> int:
    """A whole number of 64 bits (HV1005)."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(value), parameter=parameter,
                    reason="it is no whole number of 64 bits", fixes=["give a constant"])
    return number


def function_of(value: object) -> _core.Function | None:
    """The function of the core behind a kernel function; None if it is none."""
    function = getattr(value, "function", value)
    function = getattr(function, "function", function)
    return function if isinstance(function, _core.Function) else None


def _version(primitive: str, parameter: str, value: object, place: _core.Span) -> _core.ScheduleVersion:
    if isinstance(value, _core.ScheduleVersion):
        return value
    function = function_of(value)
    if function is None:
        raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(value), parameter=parameter,
                    reason="it is no kernel function", fixes=["give a result of T.prim_func, or a schedule of one"])
    return _core.start_schedule(function)


def converted(version: _core.ScheduleVersion, primitive: str, values: Sequence, place: _core.Span) -> list:
    """The arguments of a step on a version."""
    out: list = []
    for (name, kind, words), value in zip(_ROWS[primitive], values, strict=True):
        if kind in ("loop", "statement"):
            out.append(path_to(version, primitive, name, value, place))
        elif kind == "loops":
            if isinstance(value, (str, Cursor)) or not isinstance(value, Iterable):
                raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(value), parameter=name,
                            reason="it is no list", fixes=["give a list, for example [s.loop(\"i\")]"])
            out.append([path_to(version, primitive, name, each, place) for each in value])
        elif kind == "function":
            out.append(_version(primitive, name, value, place))
        elif kind not in _TEXTS:
            out.append(integer(primitive, name, value, place))
        elif isinstance(value, str):
            out.append(value)
        else:
            reason, remedy = _TEXTS[kind]
            raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(value), parameter=name,
                        reason=reason, fixes=[remedy or f"words are: {', '.join(words)}"])
    return out
