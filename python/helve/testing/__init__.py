"""Ways to test kernels and the compiler itself.

Every stage of a compile is a program: it can be interpreted, printed and parsed, and these functions do so.
"""

from helve.arguments import NegativeExtent, Recipe, evaluate, numpy_dtype, recipes
from helve.testing.arguments import make_arguments
from helve.testing.stages import (
    PIPELINES,
    Pipeline,
    assert_round_trip,
    assert_same,
    changed_stages,
    check_lowered,
    check_stages,
    distinct_stages,
    interpret,
    lowering_stages,
    pipelines_of,
    placements,
    stage_check,
    with_variant,
)

__all__ = [
    "NegativeExtent", "PIPELINES", "Pipeline", "Recipe", "assert_round_trip", "assert_same", "changed_stages",
    "check_lowered", "check_stages", "distinct_stages", "evaluate", "interpret", "lowering_stages", "make_arguments",
    "numpy_dtype", "pipelines_of", "placements", "recipes", "stage_check", "with_variant",
]
