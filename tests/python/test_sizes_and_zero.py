"""Comparisons of |x| with zero, in conditions, choices, maxima and minima: none of them tells the sign of x.

Machine code is run, for what a compiler infers from such a comparison shows nowhere else.
"""

import helve
import numpy as np
import pytest

FORMS = {
    "max of max": ("T.max(T.max(0.0, T.abs(x)), 0.0)", lambda x: np.abs(x)),
    "max of max, swapped": ("T.max(0.0, T.max(T.abs(x), 0.0))", lambda x: np.abs(x)),
    "min of max": ("T.min(T.max(0.0, T.abs(x)), 0.0)", lambda x: np.where(np.isnan(x), x, 0)),
    "choice": ("T.if_then_else(T.abs(x) > 0.0, T.max(x, 0.0), 7.0)",
               lambda x: np.where(np.abs(x) > 0, np.maximum(x, 0), 7)),
    "choice by at least": ("T.if_then_else(T.abs(x) >= 0.0, x, 7.0)", lambda x: np.where(np.abs(x) >= 0, x, 7)),
    "choice in a choice": ("T.if_then_else(T.abs(x) > 0.0, T.if_then_else(x > 0.0, x, -3.0), 7.0)",
                           lambda x: np.where(np.abs(x) > 0, np.where(x > 0, x, -3), 7)),
    "size of a choice": ("T.abs(T.if_then_else(T.max(T.abs(x), 0.0) > 0.0, x, 5.0))",
                         lambda x: np.abs(np.where(np.abs(x) > 0, x, 5))),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["llvm", "interp"])
@pytest.mark.parametrize("form", FORMS)
def test_no_form_tells_the_sign(form, dtype, target):
    text, meaning = FORMS[form]
    tiny = float(np.finfo(dtype).smallest_subnormal)
    x = np.array([-2.75, 1.5, 0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, -1.0], dtype)
    for loop in ("T.serial", "T.Parallel", "T.vectorized"):
        function = helve.parse(
            f'@T.prim_func\ndef main(X: T.Tensor(({len(x)},), "{dtype}"), Y: T.Tensor(({len(x)},), "{dtype}")):\n'
            f"    with T.Kernel(1):\n        for i in {loop}({len(x)}):\n"
            f"            x = X[i]\n            Y[i] = {text}\n")
        y = np.zeros_like(x)
        helve.compile(function, target)(x, y)
        np.testing.assert_array_equal(y, meaning(x).astype(dtype), err_msg=f"{text} in {loop}")


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_a_branch_does_not_tell_it_either(target):
    function = helve.parse("""
@T.prim_func
def main(X: T.Tensor((9,), "float32"), Y: T.Tensor((9,), "float32")):
    with T.Kernel(1):
        for i in T.serial(9):
            x = X[i]
            if T.max(T.abs(x), 0.0) > 0.0:
                Y[i] = T.max(x, -0.5)
                if x < 0.0:
                    Y[i] = -2.0
""")
    x = np.array([-3, -0.25, 0, -0.0, np.nan, 0.25, 3, -np.inf, np.inf], np.float32)
    y = np.full_like(x, 9)
    helve.compile(function, target)(x, y)
    np.testing.assert_array_equal(y, [-2, -2, 9, 9, 9, 0.25, 3, -2, np.inf])
