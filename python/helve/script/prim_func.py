"""The result of a definition: a kernel function, before it is compiled.

The parser makes it, and meets it again where another function calls it.
"""

from __future__ import annotations

import sys

from helve import _core, source
from helve.errors import error


class PrimFunc:
    """A kernel function: what a program describes, before it is compiled for a target.

    Attributes:
        function: the function of the core.
        name: its name.
    """

    def __init__(self, function: _core.Function):
        if not isinstance(function, _core.Function):
            raise TypeError(f"PrimFunc: a function of the core is wanted, not a '{type(function).__name__}'")
        self.function = function
        self.name: str = function.name

    def script(self) -> str:
        """The function as Python text that helve.parse reads back."""
        return _core.print(self.function)

    def __call__(self, *args, **kwargs):
        """Refused by Python: a function is compiled before it is called, or called in the host body of another one.

        Raises:
            helve.Error: HV0812, always.
        """
        raise error("NotCompiled", source.span_of_frame(sys._getframe(1)), name=self.name)

    def __repr__(self) -> str:
        return f"<helve kernel function {self.name}>"
