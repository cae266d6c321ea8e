"""How far the elements of an access move from one iteration of a loop to the next.

Decisions about lanes and tiles need strides only; whether a decision is legal is asked elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from helve import _core

FAR = 1 << 20  # a stride of rows whose length only a call knows


@dataclass(frozen=True, eq=False)
class Access:
    """One element of a buffer that a statement stores or reads."""

    buffer: _core.Buffer
    indices: tuple[_core.Expr, ...]

    def stride(self, var: _core.Var) -> int | None:
        """Elements between those of two neighbouring iterations; None where it is not one number."""
        total = 0
        for index, step in zip(self.indices, _strides(self.buffer), strict=True):
            times = _coefficient(index, var)
            if times is None:
                return None
            total += times * step
        return total


    def turned(self, lane: _core.Var, others: list[_core.Var]) -> bool:
        """Are the elements of the lanes neighbours in a copy whose dimensions are turned round?"""
        places = [d for d, index in enumerate(self.indices) if _coefficient(index, lane) != 0]
        if len(places) != 1 or _coefficient(self.indices[places[0]], lane) != 1:
            return False
        return all(_coefficient(index, var) == 0 for index in self.indices[:places[0] + 1] for var in others)


def loads(e: _core.Expr) -> list[Access]:
    """The elements that an expression reads, those of subscripts included."""
    if isinstance(e, _core.Load):
        return [Access(e.buffer, tuple(e.indices)), *(a for index in e.indices for a in loads(index))]
    if isinstance(e, _core.Apply):
        return [access for each in e.args for access in loads(each)]
    return loads(e.value) if isinstance(e, _core.Cast) else []


def _strides(buffer: _core.Buffer) -> list[int]:
    if buffer.strides:
        return [e.value if isinstance(e, _core.IntImm) else FAR for e in buffer.strides]
    out, step = [], 1
    for extent in reversed(buffer.shape):
        out.append(step)
        step *= extent.value if isinstance(extent, _core.IntImm) else FAR
    return out[::-1]


def _coefficient(e: _core.Expr, var: _core.Var) -> int | None:
    """What a sum holds of a variable; None if it uses the variable in another way."""
    if e is var:
        return 1
    if isinstance(e, _core.Apply):
        parts = [_coefficient(each, var) for each in e.args]
        if not any(part != 0 for part in parts):
            return 0
        if None in parts:
            return None
        if e.op == "Add":
            return parts[0] + parts[1]
        if e.op == "Sub":
            return parts[0] - parts[1]
        if e.op == "Mul":
            for here, there in ((0, 1), (1, 0)):
                if isinstance(e.args[there], _core.IntImm):
                    return parts[here] * e.args[there].value
        return None
    if isinstance(e, _core.Cast):
        return _coefficient(e.value, var)
    if isinstance(e, _core.Load):
        return None if any(_coefficient(index, var) != 0 for index in e.indices) else 0
    return 0
