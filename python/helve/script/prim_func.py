"""The result of a definition: a kernel function, before it is compiled.

The parser makes it, and meets it again where another function calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from helve import _core, source
from helve.errors import error
from helve.signature import call_text, signature


class PrimFunc:
    """A kernel function: what a program describes, before it is compiled for a target.

    Immutable: a copy is the function itself. It is pickled as its printed text, which is parsed again where it is
    loaded; faults then quote that text.

    Attributes:
        function: the function of the core.
        name: its name.
        outputs: the parameters that calls make and return where nothing else is said, by name.
    """

    # The parser stands above this module and gives its entry: from the text of a function to that of the core.
    read: Callable | None = None
    _functions: tuple[str, ...] = ("function",)  # the attributes that are functions of the core

    def __init__(self, function: _core.Function, doc: str | None = None, outputs: tuple[str, ...] = ()):
        if not isinstance(function, _core.Function):
            raise TypeError(f"PrimFunc: a function of the core is wanted, not a '{type(function).__name__}'")
        self.function = function
        self.outputs = outputs
        self._describe(doc)

    def _describe(self, doc: str | None) -> None:
        """Sets what Python's tools look for on a function."""
        self.name: str = self.function.name
        self.__name__ = self.__qualname__ = self.name
        self.__doc__ = doc
        self.__signature__ = signature(self.function)

    def script(self) -> str:
        """The function as Python text that helve.parse reads back."""
        return _core.print(self.function)

    def __call__(self, *args, **kwargs):
        """Refused by Python: a function is compiled before it is called, or called in the host body of another one.

        Raises:
            helve.Error: HV0812, always.
        """
        raise error("NotCompiled", source.span_of_frame(sys._getframe(1)), name=self.name)

    def __copy__(self) -> PrimFunc:
        return self

    def __deepcopy__(self, memo: dict) -> PrimFunc:
        return self

    def __reduce__(self) -> tuple:
        texts = {name: _core.print(getattr(self, name)) for name in self._functions}
        return _restored, (type(self), texts, self.__doc__, self.outputs)

    def __repr__(self) -> str:
        return f"<helve kernel function {call_text(self.function)}>"


def _restored(kind: type, texts: dict[str, str], doc: Any, outputs: tuple[str, ...] = ()) -> PrimFunc:
    """The function that was pickled."""
    out = object.__new__(kind)
    for name, text in texts.items():
        setattr(out, name, PrimFunc.read(text))
    out.outputs = outputs
    out._describe(doc)
    return out
