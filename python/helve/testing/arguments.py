"""Arguments made from the signature of anything that can be compiled.

The rules are those of `helve.arguments`; here a decorated function, or a schedule, may stand for its function.
"""

from __future__ import annotations

from helve import _core, arguments
from helve.arguments import Recipe
from helve.script.prim_func import PrimFunc
from helve.target import core_function

_USUAL = Recipe()


def make_arguments(function: PrimFunc | _core.Function, recipe: Recipe = _USUAL, limit: int | None = None) -> list:
    """Fresh arguments for a function, the same for the same recipe.

    Args:
        function: the function; of its parameters the dtypes, shapes and strides count.
        recipe: sizes and values.
        limit: elements that all tensors may have together.

    Returns:
        Arrays and numbers in the order of the parameters.

    Raises:
        MemoryError: they would have more.
        helve.testing.NegativeExtent: the extents that the recipe deals give a tensor an extent below zero.
        helve.Error: HV0806 for anything but a function.
    """
    return arguments.make_arguments(core_function(function), recipe, limit)
