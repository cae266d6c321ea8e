"""The points of a search: keyword values for a builder.

A dictionary of lists is their product, a list of dictionaries is the points themselves.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helve.errors import Error, error, shown, suggestion

Point = dict[str, Any]


def points_of(builder: Callable, space: Any) -> list[Point]:
    """The points, in the order of the space: of a product the last name changes fastest.

    Raises:
        helve.Error: HV0108 for a space that is none or has no point, HV0103 and HV0104 for keywords that the builder
            does not take or lacks.
    """
    if isinstance(space, Mapping):
        for name, values in space.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, range)):
                raise refused(values, "space", f"the values of '{name}' are no list", "give the values in a list")
        points = [dict(zip(space, values)) for values in itertools.product(*space.values())] if space else []
    elif isinstance(space, Sequence) and not isinstance(space, str) and all(isinstance(p, Mapping) for p in space):
        points = [dict(point) for point in space]
    else:
        raise refused(space, "space", "it is neither a dictionary of lists nor a list of dictionaries",
                      'give for example {"tile": [32, 64], "threads": [128, 256]}')
    if not points:
        raise refused(space, "space", "it has no point", "give each keyword a value or more")
    if not callable(builder):
        raise refused(builder, "builder", "it is no function", "pass a function that returns a kernel function")
    for point in points:
        _check_keywords(builder, point)
    return points


def _check_keywords(builder: Callable, point: Point) -> None:
    parameters = inspect.signature(builder).parameters
    kinds = inspect.Parameter
    name = name_of(builder)
    known = [each for each, parameter in parameters.items()
             if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    text = ", ".join(map(str, parameters.values())) or "none"
    if not any(parameter.kind is kinds.VAR_KEYWORD for parameter in parameters.values()):
        for keyword in point:
            if keyword not in known:
                raise error("UnknownKeyword", function=name, keyword=keyword, parameters=text,
                            fixes=suggestion(keyword, known) or [f"its parameters are: {text}"])
    for each, parameter in parameters.items():
        optional = parameter.kind in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL) or parameter.default is not kinds.empty
        if not optional and (each not in point or parameter.kind is kinds.POSITIONAL_ONLY):
            raise error("MissingArgument", function=name, parameter=each, parameters=text,
                        fixes=["give it in every point of the space, or by functools.partial; to a builder under "
                               "helve.jit, behind the space"])


def name_of(builder: Callable) -> str:
    """What a builder is called, below functools.partial too."""
    while not hasattr(builder, "__name__") and hasattr(builder, "func"):
        builder = builder.func
    return getattr(builder, "__name__", "the builder")


def text_of(point: Point) -> str:
    """A point in a line: "tile=32, threads=128"."""
    return ", ".join(f"{name}={shown(value)}" for name, value in point.items())


def refused(value: Any, parameter: str, reason: str, remedy: str, **more: Any) -> Error:
    """The error HV0108 for an argument of `helve.autotune`."""
    return error("BadArgument", function="helve.autotune", value=shown(value), parameter=parameter, reason=reason,
                 remedy=remedy, **more)
