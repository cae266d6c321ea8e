"""Programs without the implementations that they name by `dispatch`: what targets that have none of that name run."""

import re

import helve
from helve import _core


def undispatched(function):
    """The function; each target chooses its implementations."""
    text = _core.print(getattr(function, "function", function))
    free = re.sub(r', dispatch="\w+"', "", text)
    return function if free == text else helve.parse(free)
