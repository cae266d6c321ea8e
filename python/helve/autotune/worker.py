"""A process that compiles for others: what its compiler stores in the cache is theirs too.

It reads texts of functions from standard input and answers each with nothing, or with the reason why it is refused. It
imports nothing of the program that it works for.
"""

from __future__ import annotations

import pickle
import sys
import warnings

from helve.autotune.compiling import function_of, reason_of
from helve.errors import Error
from helve.target import compile


def _serve() -> None:
    """Answers until the input ends."""
    warnings.simplefilter("ignore")
    while True:
        try:
            text, outputs, recipe = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = None
        try:
            compile(function_of(text, outputs), recipe.target, recipe.mesh, out=recipe.out, **recipe.options)
        except Error as fault:
            answer = reason_of(fault)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
