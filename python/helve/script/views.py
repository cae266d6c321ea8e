"""Buffers seen in another shape, or as another type of the same width.

A view is no buffer of its own: an access of one of its elements is one of the buffer's.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from helve import _core
from helve.errors import error


@dataclass(frozen=True, eq=False)
class View:
    """What T.reshape and T.view give: `shape` and `dtype` as seen, of as many elements of the same width."""

    buffer: _core.Buffer
    shape: list[_core.Expr]
    dtype: str

    @property
    def name(self) -> str:
        """The buffer's."""
        return self.buffer.name

    @property
    def rank(self) -> int:
        """The number of dimensions as seen."""
        return len(self.shape)


@dataclass(frozen=True, eq=False)
class Part:
    """A box of a buffer that a function is called with; inside, its subscripts count from where it begins."""

    buffer: _core.Buffer
    ranges: list[_core.Range]

    @property
    def name(self) -> str:
        """The buffer's."""
        return self.buffer.name

    @property
    def dtype(self) -> str:
        """The buffer's."""
        return self.buffer.dtype

    @property
    def shape(self) -> list[_core.Expr]:
        """The extents of its dimensions, which points have none of."""
        return [each.extent for each in self.ranges if not each.point]

    @property
    def rank(self) -> int:
        """The number of these dimensions."""
        return len(self.shape)

    def within(self, ranges: list[_core.Range]) -> list[_core.Range]:
        """The ranges of the buffer for those of a box of this one."""
        inner = iter(ranges)
        out = []
        for each in self.ranges:
            if each.point:
                out.append(each)
                continue
            part = next(inner)
            out.append(_core.Range(_sum(each.begin, part.begin), part.extent, part.point))
        return out


# What is no buffer, and of which elements are accessed as of one.
Seen = View | Part


def _sum(begin: _core.Expr, index: _core.Expr) -> _core.Expr:
    if _constant(begin) == 0:
        return index
    return begin if _constant(index) == 0 else _apply("Add", begin, index)


_FOLDS = {"Add": operator.add, "Mul": operator.mul, "FloorDiv": operator.floordiv, "FloorMod": operator.mod}


def _apply(op: str, a: Any, b: Any) -> _core.Expr:
    known = _constant(a), _constant(b)
    if None not in known and not (known[1] == 0 and op.startswith("Floor")):
        return _core.int_imm(_FOLDS[op](*known))
    return _core.apply_operands(op, [a, b])


def _constant(extent: _core.Expr) -> int | None:
    return extent.value if isinstance(extent, _core.IntImm) else None


def elements(shape: list[_core.Expr]) -> tuple[int, list[str]]:
    """How many elements a shape has: the product of its constant extents, and the texts of the others."""
    product, others = 1, []
    for extent in shape:
        value = _constant(extent)
        if value is None:
            others.append(str(extent))
        else:
            product *= value
    return product, sorted(others)


def _check_bounds(view: Seen, indices: list[_core.Expr]) -> None:
    """Refuses constant subscripts past the end of a view, which would be those of other elements (OutOfBounds)."""
    for dim, (index, extent) in enumerate(zip(indices, view.shape)):
        at, end = _constant(index), _constant(extent)
        if at is not None and end is not None and at >= end:
            raise error("OutOfBounds", index.span, index=at, dim=dim, buffer=view.name, extent=end,
                        notes=[_core.Note(f"it is seen in the shape ({', '.join(map(str, view.shape))})")])


def base_indices(view: Seen, indices: list[_core.Expr]) -> list[_core.Expr]:
    """The subscripts of the buffer for those of a view: dimensions with equal products of extents belong together."""
    _check_bounds(view, indices)
    if isinstance(view, Part):
        return [each.begin for each in view.within([_core.Range(index, _core.int_imm(1), True) for index in indices])]
    base = view.buffer.shape
    out: list[_core.Expr] = []
    for dims, base_dims in _groups(view.shape, base):
        if len(dims) == len(base_dims) == 1:
            out.append(indices[dims[0]])
            continue
        dims = [d for d in dims if _constant(view.shape[d]) != 1]  # a subscript of one element is 0
        linear = indices[dims[0]] if dims else _core.int_imm(0)
        for d in dims[1:]:
            linear = _apply("Add", _apply("Mul", linear, view.shape[d]), indices[d])
        for at, d in enumerate(base_dims):
            if _constant(base[d]) == 1:
                out.append(_core.int_imm(0))
                continue
            inner = _product([base[later] for later in base_dims[at + 1 :]])
            index = linear if inner is None or _constant(inner) == 1 else _apply("FloorDiv", linear, inner)
            first = all(_constant(base[before]) == 1 for before in base_dims[:at])
            out.append(index if first else _apply("FloorMod", index, base[d]))
    return out


def _product(extents: list[_core.Expr]) -> _core.Expr | None:
    product = None
    for extent in extents:
        product = extent if product is None else _apply("Mul", product, extent)
    return product


def _groups(shape: list[_core.Expr], base: list[_core.Expr]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of two shapes that have as many elements each, in order; found from the last on."""
    groups: list[tuple[list[int], list[int]]] = []
    i, j = len(shape), len(base)
    while i or j:
        dims, base_dims = list(range(max(i - 1, 0), i)), list(range(max(j - 1, 0), j))
        i, j = i - len(dims), j - len(base_dims)
        while i or j:
            ours, theirs = elements([shape[d] for d in dims]), elements([base[d] for d in base_dims])
            if ours == theirs:
                break
            fewer = (len(ours[1]), ours[0]) < (len(theirs[1]), theirs[0])
            if (fewer and i) or not j:
                i -= 1
                dims.insert(0, i)
            else:
                j -= 1
                base_dims.insert(0, j)
        groups.insert(0, (dims, base_dims))
    return groups


def load(view: Seen, indices: list[_core.Expr], span: _core.Span) -> _core.Expr:
    """One element of a view."""
    value = _core.load(view.buffer, base_indices(view, indices), span)
    return value if view.dtype == view.buffer.dtype else _core.bitcast(value, view.dtype, span)


def store(view: Seen, indices: list[_core.Expr], value: _core.Expr, span: _core.Span) -> _core.Stmt:
    """A store of a value, of the type of the view, to one element."""
    if view.dtype != view.buffer.dtype:
        value = _core.bitcast(value, view.buffer.dtype, span)
    return _core.store(view.buffer, base_indices(view, indices), value, span)
