"""One program on every target, at every stage and read back from its text: all of them leave the same values.

Tests of what the language accepts ask this of each form.
"""

import numpy as np

import helve
import helve.testing

TARGETS = ("interp", "llvm")


def agree(function, make, expected, which=-1):
    """Every target and every stage of the compile leaves `expected` in an argument; the text reads back."""
    for target in TARGETS:
        arguments = make()
        helve.compile(function, target=target, verify=True)(*arguments)
        np.testing.assert_array_equal(arguments[which], expected)
    helve.testing.check_stages(function, make)
    text = function.script()
    assert helve.parse(text).script() == text
