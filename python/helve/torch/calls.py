"""Calls of the ready operators: what is no argument for one is said as elsewhere in helve.

PyTorch's dispatcher looks at arguments first, so that this is asked only where it refused them.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import torch

from helve.caller import at_caller
from helve.errors import Error
from helve.torch.registration import refused

_NAMES = {torch.Tensor: "tensor", torch.dtype: "dtype of PyTorch", float: "number", int: "whole number", str: "string",
          bool: "truth value"}
_WIDER = {float: (float, int, torch.SymFloat, torch.SymInt), int: (int, torch.SymInt), bool: (bool, torch.SymBool)}


def operator(function: Callable) -> Callable:
    """A function that calls an operator. Arguments that are not of the types it says raise helve.Error HV0108."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except (RuntimeError, TypeError, AttributeError):
            mistake = _mistake(function, args, named)
            if mistake is None:
                raise
        raise at_caller(mistake)

    return call


def _mistake(function: Callable, args: tuple, named: dict[str, Any]) -> Error | None:
    """Of the first argument that is of another type than the function says; None if there is none such."""
    hints = typing.get_type_hints(function)
    try:
        given = inspect.signature(function).bind(*args, **named).arguments
    except TypeError:  # too many, or too few: Python's own error tells
        return None
    for name, value in given.items():
        kinds = typing.get_args(hints[name]) or (hints[name],)
        known = [kind for kind in kinds if kind in _NAMES]
        taken = tuple(t for kind in known for t in _WIDER.get(kind, (kind,))) + (type(None),) * (type(None) in kinds)
        if known and not isinstance(value, taken):
            what = _NAMES[known[0]]
            return refused(f"helve.torch.{function.__name__}", value, name, f"it is no {what}", f"pass a {what}")
    return None
