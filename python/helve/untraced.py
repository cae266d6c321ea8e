"""Calls that `torch.compile` leaves to Python: a graph ends in front of them.

Its tracer reads attributes of the functions that it meets, so that helve need not know whether PyTorch is there. With
`fullgraph=True`, where no graph may end, the error of PyTorch says what to do in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from helve.errors import error

_Call = TypeVar("_Call", bound=Callable)


def untraced(call: _Call) -> _Call:
    """The function itself, marked as `torch.compiler.disable` marks what it returns, with the reason (HV0645)."""
    call._torchdynamo_disable = True
    reason = error("CallInGraph")
    call._torchdynamo_disable_msg = f"{reason.code}: {reason.message}; {reason.help}"
    return call
