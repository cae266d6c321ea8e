"""The steps that reductions of a block's threads have in common: partial results in registers, merged by the block.

Tails are guards, and operations on whole tiles, so that a nest stays one launch whatever its extents are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from helve.schedule.auto.nest import Loop, Nest
from helve.schedule.auto.rows import REDUCTIONS
from helve.schedule.auto.steps import apart
from helve.schedule.cursor import Cursor

if TYPE_CHECKING:
    from helve.schedule.schedule import Schedule


@dataclass(frozen=True)
class Partials:
    """What a block does.

    Attributes:
        element: the loop over elements of the result that a block takes `elements` of; None if it takes one.
        elements: how many.
        term: the loop over terms, `terms` of which at once have partial results of their own.
        terms: how many.
        across: are neighbours in memory neighbouring elements? Else they are neighbouring terms.
    """

    element: Loop | None
    elements: int
    term: Loop
    terms: int
    across: bool


def reduce_to_partials(s: Schedule, nest: Nest, plan: Partials) -> None:
    """Gives all other loops over elements to blocks, and those of the plan to threads."""
    name = nest.target.buffer.name
    operation = REDUCTIONS[str(nest.store.stmt.mode)]
    around = [loop.at for loop in nest.loops if loop is not plan.element]
    element, first, whole = None, None, None
    if plan.element is not None:
        outer, element = s.split(plan.element.at, plan.elements)
        around.append(outer)
    others = [loop.at for loop in nest.terms if loop is not plan.term]
    if nest.first is None:
        outer, term = s.split(plan.term.at, plan.terms)
        s.reorder(*around, *others, outer, *_inside(plan, element, term))
    else:
        if element is not None:
            s.reorder(*around, element)
    if element is not None:
        around[-1], whole = s.split(around[-1], 1)  # what holds the initial values and the terms of a block
    if nest.first is not None:
        if element is not None:
            first, element = apart(s, nest.terms[0].at, whole)
        outer, term = s.split(plan.term.at, plan.terms)
        s.reorder(*others, outer, *_inside(plan, element, term))
    copies: list[Cursor] = []
    if whole is not None:
        copies = [*s.cache_write(whole, name, "fragment")]
        copies = [copies[0], copies[-1]] if len(copies) == 3 else [copies[-1]]
    *fill, _, merge = s.rfactor(term, scope="fragment")
    for loop in fill:
        s.tensorize(loop, "fill", "whole")
    if first is not None:
        s.tensorize(first, "fill", "whole")
    s.tensorize(merge, operation, "whole" if whole is not None else "cut")
    for copy in reversed(copies):
        s.tensorize(copy, "copy", "whole")
    for loop in _inside(plan, element, term):
        s.parallel(loop)
    if whole is not None:
        s.unroll(whole)
    if nest.grid == 1:
        for loop in around:
            s.bind(loop)


def _inside(plan: Partials, element: Cursor | None, term: Cursor) -> list[Cursor]:
    """The loops for threads, the one along memory last."""
    inside = [] if element is None else [element]
    return [term, *inside] if plan.across else [*inside, term]
